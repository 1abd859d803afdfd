"""Stores that fail, wrapped around one that does not: the object store is the one seam where faults are injected."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypeVar

from tidemark.storage.stores.store import AlreadyExists, Indeterminate, ObjectInfo, ObjectStore, Unavailable

T = TypeVar("T")


class Died(Exception):
    """The process was killed at this point: nothing in it may catch this."""


class WrappedStore:
    """Passes every call on through `_call`, which tells calls that change something from those that only look."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.url = inner.url

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        return action()

    def create(self, key: str, data: bytes) -> None:
        self._call("create", key, lambda: self.inner.create(key, data), writes=True)

    def read(self, key: str) -> bytes:
        return self._call("read", key, lambda: self.inner.read(key), writes=False)

    def stat(self, key: str) -> ObjectInfo | None:
        return self._call("stat", key, lambda: self.inner.stat(key), writes=False)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        yield from self._call("list", prefix, lambda: [*self.inner.list(prefix)], writes=False)

    def keys(self, prefix: str) -> builtins.list[str]:
        return self._call("keys", prefix, lambda: self.inner.keys(prefix), writes=False)

    def folders(self, prefix: str) -> builtins.list[str]:
        return self._call("folders", prefix, lambda: self.inner.folders(prefix), writes=False)

    def delete(self, key: str) -> None:
        self._call("delete", key, lambda: self.inner.delete(key), writes=True)

    def unfinished(self) -> Iterator[ObjectInfo]:
        yield from self._call("unfinished", "", lambda: [*self.inner.unfinished()], writes=False)

    def discard(self, unfinished: ObjectInfo) -> None:
        self._call("discard", unfinished.key, lambda: self.inner.discard(unfinished), writes=True)

    def open_input(self, key: str) -> Any:
        return self._call("open_input", key, lambda: self.inner.open_input(key), writes=False)

    @contextmanager
    def open_output(self, key: str) -> Iterator[BinaryIO]:
        output = self.inner.open_output(key)
        sink = self._call("open_output", key, output.__enter__, writes=False)
        try:
            yield sink
        except BaseException as error:
            output.__exit__(type(error), error, error.__traceback__)
            raise
        try:
            self._call("close_output", key, lambda: output.__exit__(None, None, None), writes=True)
        except BaseException as error:
            # Failed before its effect: the object must not appear when the generator is collected.
            output.__exit__(type(error), error, error.__traceback__) if not self._closed(key) else None
            raise

    def _closed(self, key: str) -> bool:
        return self.inner.stat(key) is not None


@dataclass(frozen=True)
class Fault:
    """The `nth` call (from 1) fails before its effect, or the `nth` that has one after it: by death, or by an answer a
    store may give."""

    nth: int
    after: bool = False
    dies: bool = True

    @property
    def error(self) -> Exception:
        if self.dies:
            return Died(f"call {self.nth}")
        return Indeterminate(f"call {self.nth}") if self.after else Unavailable(f"call {self.nth}")


class FaultyStore(WrappedStore):
    """One fault at a counted call. `fired` tells whether it came to pass; without a fault it only counts.

    `wrote` are the counts of the calls that may have changed something.
    """

    def __init__(self, inner: ObjectStore, fault: Fault | None = None) -> None:
        super().__init__(inner)
        self.fault = fault
        self.calls = 0
        self.wrote: set[int] = set()
        self.fired: str | None = None

    def arm(self, fault: Fault | None) -> None:
        """Count from here."""
        self.fault, self.calls, self.wrote, self.fired = fault, 0, set(), None

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        fault = self.fault
        # A call that only looks has no effect to come after.
        if fault is not None and fault.after and not writes:
            return action()
        self.calls += 1
        if writes:
            self.wrote.add(self.calls)
        if fault is None or self.calls != fault.nth:
            return action()
        self.fired = f"{name} {key}"
        if fault.after:
            action()
        raise fault.error


class LostAckStore(WrappedStore):
    """Every conditional create lands and is answered by an error, as when a client library retries on its own."""

    def __init__(self, inner: ObjectStore, error: type[Exception] = AlreadyExists) -> None:
        super().__init__(inner)
        self.error = error
        self.lost = 0

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        answer = action()
        if name == "create":
            self.lost += 1
            raise self.error(key)
        return answer


@dataclass
class Clock:
    """Seconds that pass only when a test lets them, and pauses that cost nothing."""

    now: float = 1000.0
    pauses: builtins.list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class InterruptedStore(WrappedStore):
    """Runs `meanwhile` once, around the next call of a given name: what others do while this process stands still."""

    def __init__(self, inner: ObjectStore, name: str, meanwhile: Callable[[], None], *, after: bool) -> None:
        super().__init__(inner)
        self.name, self.meanwhile, self.after = name, meanwhile, after
        self.interrupted = False

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        if self.interrupted or name != self.name:
            return action()
        self.interrupted = True
        if not self.after:
            self.meanwhile()
            return action()
        answer = action()
        self.meanwhile()
        return answer
