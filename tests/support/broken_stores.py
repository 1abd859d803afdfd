"""Stores that break one guarantee each, around a store in memory that keeps all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from support.faulty import WrappedStore
from tidemark.model.guarantee import Guarantee
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Conflict, Missing, ObjectStore, Unsupported


class OverMemory(WrappedStore):
    inner: MemoryStore

    def __init__(self) -> None:
        super().__init__(MemoryStore())

    def put(self, key: str, data: bytes) -> None:
        """As a store without conditions."""
        self.inner.objects[key] = data


class Forgetful(OverMemory):
    """It refuses creates of keys that never had an object."""

    def create(self, key, data):
        raise AlreadyExists(key)


class Undecided(OverMemory):
    """It finds a conflict wherever it looks, also where nobody else writes."""

    def create(self, key, data):
        raise Conflict(key)


class Remembering(OverMemory):
    """What was not there when it was asked for is not there for a while."""

    def __init__(self):
        super().__init__()
        self.missed: dict[str, int] = {}

    def read(self, key):
        if self.missed.get(key, 3) < 3 or key not in self.inner.objects:
            self.missed[key] = self.missed.get(key, 0) + 1
            raise Missing(key)
        return super().read(key)


class Overwriting(OverMemory):
    """It does not look at the condition."""

    def create(self, key, data):
        self.put(key, data)


class OverwritingQuietly(OverMemory):
    """It refuses, and has written already."""

    def create(self, key, data):
        taken = key in self.inner.objects
        self.put(key, data)
        if taken:
            raise AlreadyExists(key)


class Unconditional(OverMemory):
    """It says that it does not know conditions."""

    def create(self, key, data):
        raise Unsupported(key)


class AlwaysConflicting(OverMemory):
    """It answers 409 where 412 is meant."""

    def create(self, key, data):
        try:
            super().create(key, data)
        except AlreadyExists:
            raise Conflict(key) from None


class ListingLate(OverMemory):
    """The newest object is not listed yet."""

    def keys(self, prefix):
        newest = list(self.inner.objects)[-1:]
        return [key for key in super().keys(prefix) if key not in newest]


class FoldersLate(OverMemory):
    """Folders are listed later than objects."""

    def folders(self, prefix):
        return []


class Unsorted(OverMemory):
    def keys(self, prefix):
        return super().keys(prefix)[::-1]


class HalfWritten(OverMemory):
    """A request that is cut leaves what had come of it."""

    address = "memory://cut"

    def another(self) -> ObjectStore:
        return self

    def create_unheard(self, key, data):
        self.put(key, data[: len(data) // 2])


class Locked(HalfWritten):
    """A request that is cut leaves its lock, and no object."""

    def __init__(self):
        super().__init__()
        self.locked: set[str] = set()

    def create_unheard(self, key, data):
        self.locked.add(key)

    def create(self, key, data):
        if key in self.locked:
            raise AlreadyExists(key)
        super().create(key, data)


class Racing(OverMemory):
    """Alone it looks first and writes then, as it should; what is different among several is for a subclass."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.writers: dict[str, int] = {}

    def create(self, key, data):
        if "race" not in key:
            super().create(key, data)
            return
        with self.lock:
            self.writers[key] = self.writers.get(key, 0) + 1
            self.raced(key, data, self.writers[key])

    def raced(self, key: str, data: bytes, number: int) -> None:
        raise NotImplementedError


class TwoWinners(Racing):
    """It looks first and writes then, and another one may come in between."""

    def raced(self, key, data, number):
        if number > 2:
            raise AlreadyExists(key)
        self.put(key, data)


class LooksFirst(OverMemory):
    """It looks whether the key is taken, and writes a little later."""

    def create(self, key, data):
        if key in self.inner.objects:
            raise AlreadyExists(key)
        time.sleep(0.02)
        self.put(key, data)


class NoWinner(Racing):
    """Each sees the other, and all step back."""

    def raced(self, key, data, number):
        raise AlreadyExists(key)


class LastStays(Racing):
    """The first gets the answer that it succeeded, the last is what stays."""

    def raced(self, key, data, number):
        self.put(key, data)
        if number > 1:
            raise AlreadyExists(key)


class OtherStays(Racing):
    """One succeeds, and its object is gone when the race is over."""

    def raced(self, key, data, number):
        if number > 1:
            raise AlreadyExists(key)


BREAKING: dict[Guarantee, tuple[Callable[[], OverMemory], ...]] = {
    Guarantee.ONLY_IF_TAKEN: (Forgetful, Undecided),
    Guarantee.READ_AFTER_WRITE: (Remembering,),
    Guarantee.TAKEN_IS_REFUSED: (Overwriting, OverwritingQuietly, Unconditional, AlwaysConflicting),
    Guarantee.LIST_AFTER_WRITE: (ListingLate, FoldersLate),
    Guarantee.LIST_IN_ORDER: (Unsorted,),
    Guarantee.OWN_CREATE_FOUND: (HalfWritten, Locked),
    Guarantee.ONE_WINNER: (TwoWinners, LooksFirst, NoWinner),
    Guarantee.WINNER_STAYS: (LastStays, OtherStays),
}
