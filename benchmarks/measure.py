"""What a piece of work costs: wall seconds, CPU seconds and memory of this process and everything below it.

CPU seconds are user plus system time of the whole process tree, from the kernel's own counters (psutil), read before
and after: children that ended meanwhile are in their parent's count. Memory is sampled ten times a second from
/proc/<pid>/statm; pages that processes share count once for each. Roles: `driver` is this process, `jvm` every Java
process, `executors` every other one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil

SAMPLE_SECONDS = 0.1
LOOK_AROUND_SECONDS = 1.0
"""How often new processes are looked for: a process that lives shorter has no memory worth a sample."""
ROLES = ("driver", "jvm", "executors")
PAGE = 4096
TICKS = os.sysconf("SC_CLK_TCK")
FIXED_COMPILERS = "-XX:-UseDynamicNumberOfCompilerThreads"
"""The option of a JVM whose compiler threads are to be counted."""


@dataclass
class Cost:
    """The cost of one step, or of several added up: seconds and CPU seconds add, peaks do not."""

    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ROLES, 0.0))
    peak: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))
    peak_total: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.seconds + other.seconds,
            {role: self.cpu[role] + other.cpu[role] for role in ROLES},
            {role: max(self.peak[role], other.peak[role]) for role in ROLES},
            max(self.peak_total, other.peak_total),
        )

    @property
    def cpu_total(self) -> float:
        return sum(self.cpu.values())

    def as_dict(self) -> dict[str, Any]:
        """Seconds to the millisecond, memory in bytes."""
        return {
            "seconds": round(self.seconds, 3),
            "cpu_seconds": {role: round(spent, 3) for role, spent in self.cpu.items()},
            "cpu_seconds_total": round(self.cpu_total, 3),
            "peak_rss": {**self.peak, "total": self.peak_total},
        }


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block; the cost is complete when the block ends."""
    cost, sampler = Cost(), _Sampler()
    before = cpu_seconds()
    sampler.start()
    began = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - began
        sampler.stop()
        after = cpu_seconds()
        cost.cpu = {role: max(0.0, after[role] - before[role]) for role in ROLES}
        cost.cpu["driver"] = max(0.0, cost.cpu["driver"] - sampler.own_cpu)
        cost.peak, cost.peak_total = sampler.peak, sampler.peak_total


@contextmanager
def timed() -> Iterator[Cost]:
    """Measure a block that takes milliseconds and runs in this process alone: no memory, no other processes."""
    cost = Cost()
    began, spent = time.perf_counter(), time.process_time()
    try:
        yield cost
    finally:
        cost.seconds, cost.cpu["driver"] = time.perf_counter() - began, time.process_time() - spent


def cpu_seconds() -> dict[str, float]:
    """CPU seconds of this process tree so far, by role, ended children included."""
    spent = dict.fromkeys(ROLES, 0.0)
    for role, process in _tree():
        with suppress(psutil.Error):
            times = process.cpu_times()
            spent[role] += times.user + times.system + times.children_user + times.children_system
    return spent


def jit_seconds() -> float:
    """CPU seconds that the compilers of the JVMs of this process tree have taken so far.

    Those of threads that live: JVMs are to be started with `FIXED_COMPILERS`, or some end when they are idle and take
    their count with them.
    """
    return sum(
        thread_seconds(thread)
        for role, process in _tree()
        if role == "jvm"
        for thread in Path(f"/proc/{process.pid}/task").glob("*/stat")
    )


def thread_seconds(stat: Path) -> float:
    """CPU seconds of a thread of a JVM by its file in /proc, if it is one that compiles; else 0."""
    with suppress(OSError):  # it has ended
        name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        if "CompilerThre" in name:
            user, system = rest.split()[11:13]
            return (int(user) + int(system)) / TICKS
    return 0.0


def _tree() -> list[tuple[str, psutil.Process]]:
    me = psutil.Process()
    found = [("driver", me)]
    for process in me.children(recursive=True):
        with suppress(psutil.Error):
            found.append(("jvm" if process.name() == "java" else "executors", process))
    return found


class _Sampler:
    """Watches the memory of the process tree from a thread, whose own CPU time it knows."""

    def __init__(self) -> None:
        self.peak = dict.fromkeys(ROLES, 0)
        self.peak_total = 0
        self.own_cpu = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        looked = -LOOK_AROUND_SECONDS
        while True:
            if time.monotonic() - looked >= LOOK_AROUND_SECONDS:
                tree = [(role, Path(f"/proc/{process.pid}/statm")) for role, process in _tree()]
                looked = time.monotonic()
            self._sample(tree)
            self.own_cpu = time.thread_time()
            if self._done.wait(SAMPLE_SECONDS):
                return

    def _sample(self, tree: list[tuple[str, Path]]) -> None:
        now = dict.fromkeys(ROLES, 0)
        for role, statm in tree:
            with suppress(OSError, IndexError):  # the process has ended
                now[role] += int(statm.read_text().split()[1]) * PAGE
        self.peak = {role: max(self.peak[role], now[role]) for role in ROLES}
        self.peak_total = max(self.peak_total, sum(now.values()))


def in_fresh_process(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The function's answer from a fresh process, so that no case inherits another's memory, imports or JVM."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()
