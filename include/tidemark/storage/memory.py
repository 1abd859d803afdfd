"""An object store in memory: what tests run on, with the same promises as the others."""

from __future__ import annotations

import builtins
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from tidemark.storage.store import AlreadyExists, Missing, ObjectInfo

if TYPE_CHECKING:
    import pyarrow as pa


class MemoryStore:
    """Objects in a dictionary. Stores opened by one `memory://` address in one process share their objects."""

    _named: ClassVar[dict[str, MemoryStore]] = {}

    def __init__(self, url: str = "memory://") -> None:
        self.url = url
        self.objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    @classmethod
    def named(cls, url: str) -> MemoryStore:
        """The store at an address of this process, made on first use."""
        return cls._named.setdefault(url, cls(url))

    def create(self, key: str, data: bytes) -> None:
        with self._lock:
            if key in self.objects:
                raise AlreadyExists(key)
            self.objects[key] = data

    def read(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise Missing(key) from None

    def stat(self, key: str) -> ObjectInfo | None:
        data = self.objects.get(key)
        return None if data is None else ObjectInfo(key, len(data), hashlib.sha256(data).hexdigest())

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        for key in sorted(key for key in self.objects if key.startswith(prefix)):
            if info := self.stat(key):
                yield info

    def folders(self, prefix: str) -> builtins.list[str]:
        below = (key.removeprefix(prefix) for key in self.objects if key.startswith(prefix))
        return sorted({rest.split("/", 1)[0] for rest in below if "/" in rest})

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def open_input(self, key: str) -> pa.NativeFile:
        import pyarrow as pa

        return pa.BufferReader(self.read(key))

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        buffer = BytesIO()
        yield buffer
        with self._lock:
            self.objects[key] = buffer.getvalue()
