"""Kernels in this process: what takes a second or two here would take longer to hand over to executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.jobs.job import Runner
from tidemark.storage import ObjectStore

ROWS_HERE = 200_000
"""Rows that are read in this process at most, where a step says `few_in_process`: a second or two."""


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
