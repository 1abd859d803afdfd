"""Kernels in this process: what takes a second or two here would take longer to hand over to executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from tidemark.jobs.job import Runner
from tidemark.plan.task_size import Size, size_of
from tidemark.storage import ObjectStore

ROWS_HERE = 200_000
"""Most rows of parts that are read in this process: a second or two."""
BYTES_HERE = 8 * 2**20
"""Most bytes of source files and parts that are read in this process: some 200,000 rows of text, up to ten times as
many of compressed files."""


@dataclass(frozen=True)
class InProcess:
    """Runs kernels in this process, one after the other."""

    store: ObjectStore
    parallelism: int = 1

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        from tidemark.arrow.kernels.registry import kernel

        function = kernel(name).function
        return [function(self.store, task) for task in tasks]


@dataclass(frozen=True)
class FewInProcess:
    """Runs tasks that read at most ROWS_HERE `rows` together in this process, others by the runner that
    `make` makes: where few rows are read, no session is asked for anything."""

    store: ObjectStore
    make: Callable[[], Runner]

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        few = sum(task.rows for task in tasks) <= ROWS_HERE
        return (InProcess(self.store) if few else self.make()).run(name, tasks)

    @property
    def parallelism(self) -> int:
        return self.make().parallelism

    @property
    def spark(self) -> Any:
        """The session behind the other runner; None if it has none."""
        return getattr(self.make(), "spark", None)


@dataclass
class BySize:
    """Runs tasks that read at most ROWS_HERE rows and BYTES_HERE bytes together in this process, others by the runner
    that `make` makes.

    `parallelism` is the other runner's, so that work is cut alike in both places. `note` gets one line the first time
    that a place is chosen, with the reason.
    """

    store: ObjectStore
    make: Callable[[], Runner]
    parallelism: int
    note: Callable[[str], None]
    _noted: set[bool] = field(default_factory=set)

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        """The kernel's answers in the order of the tasks."""
        if not tasks:
            return []
        size = total_size(tasks)
        small = is_small(size)
        if small not in self._noted:
            self._noted.add(small)
            self.note(_reason(name, size, small))
        return (InProcess(self.store) if small else self.make()).run(name, tasks)

    @property
    def spark(self) -> Any:
        """The session of the other runner, which starts it; None if it has none."""
        return getattr(self.make(), "spark", None)


def total_size(tasks: Sequence[Any]) -> Size | None:
    """What tasks read together; None where that is not known of one."""
    sizes = [size_of(task) for task in tasks]
    known = [size for size in sizes if size is not None]
    return reduce(add, known, Size()) if len(known) == len(sizes) else None


def is_small(size: Size | None) -> bool:
    """Whether work of a size is done in this process."""
    return size is not None and size.rows <= ROWS_HERE and size.bytes <= BYTES_HERE


def _reason(name: str, size: Size | None, small: bool) -> str:
    if size is None:
        return f"{name} runs on Spark: its size is not known"
    read = (f"{size.rows:,} rows, " if size.rows else "") + f"{size.bytes:,} bytes"
    if small:
        bound = f"{ROWS_HERE:,} rows and {BYTES_HERE:,} bytes"
        return f"{name} runs in this process, it reads {read}: work up to {bound} does; --spark local[*] forces Spark"
    return f"{name} runs on Spark, it reads {read}: more than {ROWS_HERE:,} rows, or than {BYTES_HERE:,} bytes"
