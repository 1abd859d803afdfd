"""The bytes that this process holds in buffers: one maximum for all kernels that run in it at once.

A kernel reserves what it is about to hold. Where there is no room it holds less: it writes out what it has gathered, or
decodes a file twice, and goes on. So a budget makes work slower, and never fails it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from tidemark.errors import InvalidUsage
from tidemark.model.batching.memory import Budget, Level, Usage
from tidemark.model.byte_count import byte_count

VARIABLE = "TIDEMARK_BUFFERS"
DEFAULT = 640 * 2**20
"""Room for the buffers of one kernel of any kind, and for half as much beside: the bounds of each kernel hold first."""


class Guard:
    """What was reserved, until it is given back: at the end of a `with`, however that ends, or by `release`, once."""

    def __init__(self, memory: Memory, name: str, size: int) -> None:
        self._memory, self._name, self.size = memory, name, size
        self._is_reserved = True

    def release(self) -> None:
        """Give it back; a second time nothing happens."""
        with self._memory._lock:
            if self._is_reserved:
                self._is_reserved = False
                self._memory._usage = self._memory._usage.released(self._name, self.size)

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Gathered:
    """What a kernel gathers in this process's memory under a name; all of it is given back at the end of a `with`,
    however that ends."""

    def __init__(self, name: str) -> None:
        self._name, self._guards = name, ExitStack()

    def add(self, size: int) -> bool:
        """Whether there is room for so many bytes more, which are reserved then."""
        guard = memory().room(self._name, size)
        if guard is not None:
            self._guards.enter_context(guard)
        return guard is not None

    def release(self) -> None:
        """Give all of it back; more may be added then."""
        self._guards.close()

    def __enter__(self) -> Gathered:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Memory:
    """A budget that threads share. Testing for room and taking it are one step."""

    def __init__(self, budget: Budget) -> None:
        self._usage, self._lock = Usage(budget), threading.Lock()

    def reserve(self, name: str, size: int) -> Guard | None:
        """A guard of `size` bytes; None where there is no room now. InvalidUsage for what never fits."""
        with self._lock:
            after = self._usage.reserved(name, size)
            if after is None:
                return None
            self._usage = after
        return Guard(self, name, size)

    def room(self, name: str, size: int) -> Guard | None:
        """As `reserve`; None also for what never fits."""
        return self.reserve(name, size) if size <= self._usage.largest(name) else None

    @contextmanager
    def some(self, name: str, wanted: int, *, least: int) -> Iterator[int]:
        """How many bytes may be used in the block: `wanted`, or half of that, and so on; at the worst `least`, which is
        used whether there is room or not, as less would be useless."""
        size, guard = max(wanted, least), None
        while guard is None and size >= max(1, least):
            guard = self.room(name, size)
            size = size if guard else size // 2
        try:
            yield guard.size if guard else least
        finally:
            if guard:
                guard.release()

    @property
    def used(self) -> int:
        return self._usage.used

    @property
    def maximum(self) -> int:
        """The bytes of the budget, used or not."""
        return self._usage.budget.maximum

    @property
    def level(self) -> Level:
        return self._usage.level


def _of_environment() -> Memory:
    """The process's own. InvalidUsage for a setting that is no number of bytes."""
    text = os.environ.get(VARIABLE) or str(DEFAULT)
    if (size := byte_count(text)) is None:
        raise InvalidUsage(f"{VARIABLE} is {text!r}; write bytes, or 512MiB")
    return Memory(Budget(size))


_own: Memory | None = None
_making = threading.Lock()


def memory() -> Memory:
    """The memory of this process: TIDEMARK_BUFFERS bytes, as `512MiB` or a number."""
    global _own
    with _making:
        _own = _own or _of_environment()
        return _own
