"""Plans of the collector as stored: `collect/<n>.json`, each created if absent, none changed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from tidemark.errors import Contention
from tidemark.plan.collect import GarbagePlan
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import with_checksum, without_checksum
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.log.versions import retried
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Missing, ObjectInfo, ObjectStore

FOLDER = "collect/"
_KEY = re.compile(rf"{FOLDER}\d{{8}}\.json")


def key_of(number: int) -> str:
    """The key of a plan."""
    return f"{FOLDER}{number:08d}.json"


def listed(store: ObjectStore, pause: Callable[[float], None] = time.sleep) -> list[ObjectInfo]:
    """The plans in a store, ascending: the newest and a few before it."""
    return [info for info in retried(lambda: list(store.list(FOLDER)), pause) if _KEY.fullmatch(info.key)]


def load(store: ObjectStore, key: str, pause: Callable[[float], None] = time.sleep) -> GarbagePlan:
    """One plan. Missing if there is none, Corruption if it is not what was written, UpgradeRequired if a newer
    Tidemark wrote it."""
    data = without_checksum(retried(lambda: store.read(key), pause), key)
    plan: GarbagePlan = document.read(data, Kind.PLAN, GarbagePlan, name=key)
    return plan


def save(store: ObjectStore, plan: GarbagePlan) -> None:
    """Write a plan. AlreadyExists if another collector has written one of its number."""
    key, data = key_of(plan.number), with_checksum(document.write(plan))
    try:
        store.create(key, data)
    except (AlreadyExists, Indeterminate):
        try:
            stored = store.read(key)
        except Missing:
            store.create(key, data)
        else:
            if stored != data:
                raise AlreadyExists(key) from None


def versions_below(store: ObjectStore, pause: Callable[[float], None] = time.sleep) -> int:
    """No version from this on was ever planned to go; 0 if none was."""
    newest = listed(store, pause)[-1:]
    try:
        return load(store, newest[0].key, pause).versions_below if newest else 0
    except Missing as missing:
        raise Contention(f"{missing} was removed while it was read; run the step again") from None
