"""The certificate of a store, kept with a collection: `store/<digest of the address>.json`.

It says that the store kept its promises when it was asked, and which. Nothing else depends on it: a collection of an
earlier release has none, and it may be removed. A collection that is copied to another store has none for that one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidemark.storage.documents import document
from tidemark.storage.log.versions import retried
from tidemark.storage.probe.probe import Proof, address_of, prove
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, ObjectInfo, ObjectStore

FOLDER = "store/"


@dataclass(frozen=True)
class Certificate:
    """That the store at `address` gave the guarantees of these names when `writer` asked it, at `asked_at` (µs)."""

    address: str
    guarantees: tuple[str, ...]
    asked_at: int
    writer: str


def key_of(address: str) -> str:
    """The key of the certificate of the store at an address."""
    return f"{FOLDER}{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"


def kept(store: ObjectStore, pause: Callable[[float], None] = time.sleep) -> ObjectInfo | None:
    """The certificate that is kept in the store for its address, or None."""
    key = key_of(address_of(store))
    return retried(lambda: store.stat(key), pause)


def certified(
    store: ObjectStore, *, unique: str, writer: str, now: int, pause: Callable[[float], None] = time.sleep
) -> Proof:
    """Ask the store, as `prove`, and keep a certificate of it in it. The first that was kept stays."""
    proof = prove(store, unique, pause)
    names = tuple(str(one) for one in proof.guarantees)
    data = document.write(Certificate(proof.address, names, now, writer))
    key = key_of(proof.address)
    try:
        store.create(key, data)
    except AlreadyExists:
        return proof
    except Indeterminate:
        if store.stat(key) is None:
            raise
    return proof
