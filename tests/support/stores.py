"""Stores of every kind for the tests that run on any of them, and their contents as values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

Stores = Callable[[], ObjectStore]
"""Makes empty stores of one kind; the fixture `stores` of a ring."""


def stores_in_memory() -> Stores:
    return MemoryStore


def stores_on_disk(folder: Path) -> Stores:
    names = count()
    return lambda: LocalStore(str(folder / str(next(names))))


class Contents:
    """What a store holds, taken and put back. What did not change in between is not read or written again."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._known: dict[tuple[str, str], bytes] = {}

    def take(self) -> dict[str, bytes]:
        """All objects by key."""
        return {info.key: self._bytes(info.key, info.token) for info in self._store.list("")}

    def put_back(self, objects: dict[str, bytes]) -> None:
        """Make the store hold these objects and no others."""
        current = self.take()
        for key in current.keys() - objects.keys():
            self._store.delete(key)
        for key, data in objects.items():
            if current.get(key) != data:
                self._store.delete(key)
                self._store.create(key, data)

    def as_memory(self) -> MemoryStore:
        """A copy of the store in memory: to look at it from all sides costs no requests."""
        copy = MemoryStore()
        copy.objects = self.take()
        return copy

    def _bytes(self, key: str, token: str) -> bytes:
        if (key, token) not in self._known:
            self._known[key, token] = self._store.read(key)
        return self._known[key, token]
