"""A store that counts what is asked of it: calls by name, bytes read and written. Storage has no other costs."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from tidemark.storage.stores.store import ObjectInfo, ObjectStore


@dataclass
class Traffic:
    """What was asked of a store since the last `taken`; `listed` are names returned by listings."""

    calls: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_written: int = 0
    listed: int = 0
    created: Counter[str] = field(default_factory=Counter)

    def created_by_kind(self) -> dict[str, int]:
        """Objects written since the last call, by what they are."""
        counts = dict(sorted(self.created.items()))
        self.created.clear()
        return counts

    def taken(self) -> dict[str, Any]:
        """The counts as a JSON object; counting starts again from zero."""
        counts = {
            "calls": sum(self.calls.values()),
            "calls_by_name": dict(sorted(self.calls.items())),
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "names_listed": self.listed,
        }
        self.calls.clear()
        self.bytes_read = self.bytes_written = self.listed = 0
        return counts


def kind_of(key: str) -> str:
    """What an object is, by its key (docs/format.md)."""
    folder, name = key.partition("/")[0], key.rpartition("/")[2]
    if folder != "data":
        return {"versions": "version"}.get(folder, folder)
    return "table" if name.startswith("parts-") else "late rows" if name.startswith("late-") else "part"


class CountingStore:
    """Passes every call on to `inner`: an `ObjectStore` with the same promises."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url
        self.traffic = Traffic()

    def create(self, key: str, data: bytes) -> None:
        self.traffic.calls["create"] += 1
        self.traffic.bytes_written += len(data)
        self.inner.create(key, data)
        self.traffic.created[kind_of(key)] += 1

    def read(self, key: str) -> bytes:
        self.traffic.calls["read"] += 1
        data = self.inner.read(key)
        self.traffic.bytes_read += len(data)
        return data

    def stat(self, key: str) -> ObjectInfo | None:
        self.traffic.calls["stat"] += 1
        return self.inner.stat(key)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        self.traffic.calls["list"] += 1
        for info in self.inner.list(prefix):
            self.traffic.listed += 1
            yield info

    def keys(self, prefix: str) -> builtins.list[str]:
        self.traffic.calls["keys"] += 1
        names = self.inner.keys(prefix)
        self.traffic.listed += len(names)
        return names

    def folders(self, prefix: str) -> builtins.list[str]:
        self.traffic.calls["folders"] += 1
        names = self.inner.folders(prefix)
        self.traffic.listed += len(names)
        return names

    def delete(self, key: str) -> None:
        self.traffic.calls["delete"] += 1
        self.inner.delete(key)

    def unfinished(self) -> Iterator[ObjectInfo]:
        self.traffic.calls["unfinished"] += 1
        yield from self.inner.unfinished()

    def discard(self, unfinished: ObjectInfo) -> None:
        self.traffic.calls["discard"] += 1
        self.inner.discard(unfinished)

    def open_input(self, key: str) -> Any:
        self.traffic.calls["open_input"] += 1
        return _CountedInput(self.inner.open_input(key), self.traffic)

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        self.traffic.calls["open_output"] += 1
        with self.inner.open_output(key) as sink:
            yield _CountedOutput(sink, self.traffic)  # type: ignore[misc]
        self.traffic.created[kind_of(key)] += 1


class _CountedInput:
    """What parts are read through, and the bytes fetched by it."""

    def __init__(self, inner: Any, traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> _CountedInput:
        return self

    def __exit__(self, *_: object) -> None:
        self._inner.close()

    def read_buffer(self, size: int | None = None) -> Any:
        data = self._inner.read_buffer(size)
        self._traffic.bytes_read += data.size
        return data


class _CountedOutput:
    """What parts are written through."""

    def __init__(self, inner: Any, traffic: Traffic) -> None:
        self._inner, self._traffic = inner, traffic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: Any) -> int:
        self._traffic.bytes_written += memoryview(data).nbytes
        return int(self._inner.write(data))
