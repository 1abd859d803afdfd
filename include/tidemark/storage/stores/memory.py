"""An object store in memory: what tests run on, with the same promises as the others."""

from __future__ import annotations

import builtins
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from tidemark.storage.stores.store import AlreadyExists, Missing, ObjectInfo, checked_key

if TYPE_CHECKING:
    import pyarrow as pa


class MemoryStore:
    """Objects in a dictionary. Stores opened by one `memory://` address in one process share their objects."""

    _named: ClassVar[dict[str, MemoryStore]] = {}

    def __init__(self, url: str = "memory://", clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self.modified: dict[str, float] = {}
        self.clock = clock
        self._lock = threading.Lock()

    @classmethod
    def named(cls, url: str) -> MemoryStore:
        """The store at an address of this process, made on first use."""
        return cls._named.setdefault(url, cls(url))

    def __reduce__(self) -> tuple[Callable[[str], MemoryStore], tuple[str]]:
        if self._named.get(self.url) is not self:
            raise TypeError("a memory store is found again by its name only: open it as memory://name")
        return MemoryStore.named, (self.url,)

    def create(self, key: str, data: bytes) -> None:
        checked_key(key)
        with self._lock:
            if key in self.objects:
                raise AlreadyExists(key)
            self.modified[key] = self.clock()
            self.objects[key] = data

    def read(self, key: str) -> bytes:
        try:
            return self.objects[checked_key(key)]
        except KeyError:
            raise Missing(key) from None

    def stat(self, key: str) -> ObjectInfo | None:
        data = self.objects.get(checked_key(key))
        if data is None:
            return None
        return ObjectInfo(key, len(data), hashlib.sha256(data).hexdigest(), self.modified.get(key, 0.0))

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for key in self.keys(prefix):
            if info := self.stat(key):
                yield info

    def keys(self, prefix: str) -> builtins.list[str]:
        checked_key(prefix)
        return sorted(key for key in [*self.objects] if key.startswith(prefix))

    def folders(self, prefix: str) -> builtins.list[str]:
        checked_key(prefix)
        below = (key.removeprefix(prefix) for key in [*self.objects] if key.startswith(prefix))
        return sorted({rest.split("/", 1)[0] for rest in below if "/" in rest})

    def delete(self, key: str) -> None:
        self.objects.pop(checked_key(key), None)

    def unfinished(self) -> Iterator[ObjectInfo]:
        return iter(())

    def discard(self, unfinished: ObjectInfo) -> None:
        """Nothing is ever left unfinished here."""

    def open_input(self, key: str) -> pa.NativeFile:
        import pyarrow as pa

        return pa.BufferReader(self.read(key))

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        checked_key(key)
        buffer = BytesIO()
        yield buffer
        with self._lock:
            self.modified[key] = self.clock()
            self.objects[key] = buffer.getvalue()
