"""What a process remembers of objects that never change, so that a reader that asks again need not fetch them again.

Objects are never overwritten, and a state names each by the hash of its content. So what was decoded of one is
remembered under that hash, and can never be out of date: a newer version names other objects. What does change (the
versions of a state, what a listing gives) is not remembered.

Only a read of the `api` has a cache: it gives its tasks a `CachedStore` in place of the store, and whoever decodes
something asks `remembered` for it. Steps, gates and audits open the plain store, and so see what is stored now.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

from tidemark.errors import InvalidUsage
from tidemark.model.byte_count import byte_count
from tidemark.storage.stores.store import ObjectStore

T = TypeVar("T")

VARIABLE = "TIDEMARK_CACHE"
DEFAULT = 256 * 2**20
SHARE = 4
"""One read uses a quarter of the cache at most: a scan of everything leaves the rest to those who ask again."""
ENTRY_BYTES = 300
"""What an entry takes beside its value."""


class Cache:
    """Values by name, of `limit` bytes together at most; which was used least recently goes first. For any threads."""

    def __init__(self, limit: int) -> None:
        self._lock = Lock()
        self._limit = limit
        self._bytes = 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, name: Hashable) -> tuple[Any, int] | None:
        """A value and the bytes it was put with."""
        with self._lock:
            found = self._entries.get(name)
            if found is not None:
                self._entries.move_to_end(name)
            return found

    def put(self, name: Hashable, value: Any, size: int) -> None:
        """Remember a value, which takes `size` bytes; one that is larger than all of the cache is not remembered."""
        size += ENTRY_BYTES
        with self._lock:
            _, before = self._entries.pop(name, (None, 0))
            self._bytes -= before
            if size <= self._limit:
                self._entries[name] = value, size
                self._bytes += size
            self._shrink()

    def resize(self, limit: int) -> None:
        """Remember no more than `limit` bytes from now on."""
        if limit != self._limit:
            with self._lock:
                self._limit = limit
                self._shrink()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    @property
    def limit(self) -> int:
        """The most bytes it may take."""
        return self._limit

    @property
    def bytes(self) -> int:
        """The bytes of all that is remembered."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def _shrink(self) -> None:
        while self._bytes > self._limit:
            _, (_, size) = self._entries.popitem(last=False)
            self._bytes -= size

    def renew_lock(self) -> None:
        """In a process that was forked: a thread that had the lock is not in it."""
        self._lock = Lock()


class CachedStore:
    """A store as one read has it: all that it asks goes to `store`, and what it decodes is remembered in `cache`, up to
    its share. Sent to another process it is the plain store."""

    def __init__(self, store: ObjectStore, cache: Cache) -> None:
        self._store, self._cache = store, cache
        self._left = cache.limit // SHARE

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def __reduce__(self) -> tuple[Callable[[ObjectStore], ObjectStore], tuple[ObjectStore]]:
        return _plain, (self._store,)

    def find(self, name: Hashable) -> Any:
        """What is remembered under a name; None: nothing."""
        found = self._cache.get(name)
        if found is None:
            return None
        self._left -= found[1]
        return found[0]

    def keep(self, name: Hashable, size: int, value: Callable[[], T]) -> None:
        """Remember a value of `size` bytes, if the read's share has room for it: only then it is made."""
        if 0 < size <= self._left:
            self._left -= size
            self._cache.put(name, value(), size)


def remembered(store: ObjectStore, name: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
    """What `make` makes, which is the same whenever it is made; from the cache, if the store has one."""
    cached = cache_of(store)
    if cached is None:
        return make()
    found: T | None = cached.find(name)
    if found is None:
        made = found = make()
        cached.keep(name, size(made), lambda: made)
    return found


def cache_of(store: ObjectStore) -> CachedStore | None:
    """The store as one that remembers, if it does."""
    return store if isinstance(store, CachedStore) else None


def with_cache(store: ObjectStore) -> ObjectStore:
    """The store for one read of this process, which remembers TIDEMARK_CACHE bytes over all reads: 256 MiB, if it is
    not set; with 0 nothing.

    Raises InvalidUsage for a setting that is no number of bytes.
    """
    text = os.environ.get(VARIABLE)
    limit = byte_count(text) if text else DEFAULT
    if limit is None:
        raise InvalidUsage(f"{VARIABLE} is {text!r}; write bytes, such as 256MiB, or 0 for no cache")
    OF_PROCESS.resize(limit)
    return cast(ObjectStore, CachedStore(store, OF_PROCESS)) if limit else store


def _plain(store: ObjectStore) -> ObjectStore:
    return store


OF_PROCESS = Cache(DEFAULT)
os.register_at_fork(after_in_child=OF_PROCESS.renew_lock)
