"""Kernels in this process: what is small would take longer to hand over to executors (docs/decisions/0072)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Runner
from tidemark.model.byte_count import byte_count
from tidemark.plan.task_size import (
    MIB,
    NOTHING,
    SMALL_BYTES,
    SMALL_CPU_SECONDS,
    Estimate,
    decoded_in_memory,
    decoded_in_time,
    estimate,
    is_small,
)
from tidemark.storage import ObjectStore

VARIABLE = "TIDEMARK_SMALL_MEMORY"
"""The environment variable for the memory of small work; with 0 all work is for Spark."""
NOTED_SECONDS = 1.0
"""CPU seconds from which on a run says each time what it took."""


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
class Work:
    """What the tasks of a run were estimated to take, and took.

    Attributes:
        on_spark: Whether any of them ran on Spark.
        estimated: The estimates added up; None if there was none of some tasks.
        cpu_seconds: CPU seconds of this process for what ran here.
    """

    on_spark: bool = False
    estimated: Estimate | None = NOTHING
    cpu_seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """The work as a member of a step's result."""
        estimated = self.estimated
        return {
            "runner": "spark" if self.on_spark else "process",
            "estimated_cpu_s": None if estimated is None else round(estimated.cpu_seconds, 3),
            "estimated_peak_mib": None if estimated is None else -(-estimated.peak_bytes // MIB),
            "cpu_s": round(self.cpu_seconds, 3),
        }


class BySize:
    """Runs small work in this process, other work by the runner that `make` makes.

    What is small is estimated (plan/task_size.py). Where that was wrong, and more rows are decoded than small work
    has, the tasks are given up, and the other runner has them: what they wrote by then are orphans.

    Args:
        store: The collection's store.
        make: Makes the other runner, when it is needed. What it raises is raised by `run`.
        parallelism: How many tasks the other runner runs at once, so that work is cut alike in both places. None: it is
            made to be asked.
        note: Gets one line the first time that a place is chosen, with the reason, and one for work that took long.
    """

    def __init__(
        self, store: ObjectStore, make: Callable[[], Runner], parallelism: int | None, note: Callable[[str], None]
    ) -> None:
        self._store, self._make, self._parallelism, self._note = store, make, parallelism, note
        self._noted: set[bool] = set()
        self.work: Work | None = None
        """What ran so far; None: nothing did."""

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        """The kernel's answers in the order of the tasks."""
        if not tasks:
            return []
        most = small_bytes()
        estimated = estimated_of(self._store, name, tasks) if most else None
        small = estimated is not None and is_small(estimated, most)
        if small not in self._noted:
            self._noted.add(small)
            self._note(_reason(name, estimated, most, small))
        answers = self._here(name, tasks, estimated, most) if small and estimated is not None else None
        if answers is None:
            answers = self._make().run(name, tasks)
            self._add(Work(True, estimated))
        return answers

    @property
    def parallelism(self) -> int:
        """How many tasks work is cut into."""
        return self._make().parallelism if self._parallelism is None else self._parallelism

    @property
    def spark(self) -> Any:
        """The session of the other runner, which starts it; None if it has none."""
        return getattr(self._make(), "spark", None)

    def _here(self, name: str, tasks: Sequence[Any], estimated: Estimate, most: int) -> list[Any] | None:
        """The answers of this process; None where the work is not small after all."""
        from tidemark.arrow.rows.allowance import TooMuchDecoded, decoding_at_most
        from tidemark.arrow.rows.progress import Progress, reporting

        files = sum(len(getattr(task, "files", ())) for task in tasks)
        answers, began = list[Any](), time.process_time()
        try:
            with decoding_at_most(decoded_in_time(name, tasks[0])), reporting(Progress(files, self._note)):
                for task in tasks:
                    with decoding_at_most(decoded_in_memory(name, task, most)):
                        answers += InProcess(self._store).run(name, [task])
        except TooMuchDecoded:
            self._note(f"{name} has more rows than was estimated ({_said(estimated)}): it is given up here, for Spark")
            return None
        took = Work(False, estimated, time.process_time() - began)
        self._add(took)
        if max(took.cpu_seconds, estimated.cpu_seconds) >= NOTED_SECONDS:
            self._note(
                f"{name} took {took.cpu_seconds:.1f} s of CPU in this process, estimated were {_said(estimated)}"
            )
        return answers

    def _add(self, work: Work) -> None:
        before = self.work or Work()
        both = None if before.estimated is None or work.estimated is None else before.estimated + work.estimated
        self.work = Work(before.on_spark or work.on_spark, both, before.cpu_seconds + work.cpu_seconds)


def small_bytes() -> int:
    """The memory of small work. InvalidUsage for a setting that is no number of bytes."""
    text = os.environ.get(VARIABLE) or str(SMALL_BYTES)
    if (size := byte_count(text)) is None:
        raise InvalidUsage(f"{VARIABLE} is {text!r}; write bytes, 128MiB, or 0 for all work on Spark")
    return size


def estimated_of(store: ObjectStore, name: str, tasks: Sequence[Any]) -> Estimate | None:
    """What tasks of a kernel take; None where that is not known. Of many source files a little of one is read."""
    from tidemark.arrow.kernels.density import density_of

    return estimate(name, tasks, density_of(store, tasks))


def _said(estimated: Estimate) -> str:
    return f"{estimated.cpu_seconds:.1f} s and {-(-estimated.peak_bytes // MIB):,} MiB"


def _reason(name: str, estimated: Estimate | None, most: int, small: bool) -> str:
    bound = f"{SMALL_CPU_SECONDS} s of CPU and {most // MIB:,} MiB"
    if not most:
        return f"{name} runs on Spark, as {VARIABLE} is 0"
    if estimated is None:
        return f"{name} runs on Spark: its size is not known"
    if small:
        forced = f"{VARIABLE}=0, or --spark of a command, forces Spark"
        return f"{name} runs in this process, it takes about {_said(estimated)}: work up to {bound} does; {forced}"
    return f"{name} runs on Spark, it takes about {_said(estimated)}: more than {bound}"
