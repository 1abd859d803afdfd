"""Immutable sidecar objects: what grows lives beside the state, which names it with size and checksum."""

from __future__ import annotations

from typing import Any

from tidemark.errors import Corruption
from tidemark.model.batch import ObjectRef
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import check, reference
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing, ObjectStore


def write(store: ObjectStore, key: str, value: Any) -> ObjectRef:
    """Write a value under a fresh key and return what to record of it. Writing the same bytes again is success."""
    data = document.write(value)
    try:
        store.create(key, data)
    except (AlreadyExists, Indeterminate):
        try:
            if store.read(key) != data:
                raise Corruption(f"{key} exists with another content; keys of sidecar objects must be fresh") from None
        except Missing:
            store.create(key, data)
    return reference(key, data)


def read(store: ObjectStore, ref: ObjectRef, kind: Kind, shape: Any) -> Any:
    """The value of type `shape` that a reference names; Corruption if the object is missing or is not what was
    recorded, UpgradeRequired if a newer Tidemark wrote it."""
    try:
        data = store.read(ref.key)
    except Missing:
        raise Corruption(f"{ref.key} is named by the state and does not exist") from None
    return document.read(check(ref, data), kind, shape, name=ref.key)
