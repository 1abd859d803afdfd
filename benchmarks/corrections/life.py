"""A history taken in by one engine, then files of it corrected, one after the other, in each way the engine has.

What a correction costs is the CPU of the process and all below it, and the bytes and objects that were not there
before: of the last half of the corrections, by when an engine on Spark is warm, the median. After them the answers of
all days are asked for, in one read, and compared with those calculated separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from benchmarks.corrections.history import History
from benchmarks.feed import Fingerprint
from benchmarks.measure import cpu_seconds, jit_seconds

TIMES = 6
Cost = dict[str, float]


class Table(Protocol):
    """An engine's table; its files are below its folder."""

    settings: str
    ways: tuple[str, ...]
    """How it can take in a corrected file: words for the tables."""

    def load(self, landing: Path) -> None:
        """Take in all days."""

    def correct(self, way: str, number: int, landing: Path) -> None:
        """Make the file of that day count that is in the landing now, as `History.corrected_file` says which."""

    def settle(self, number: int) -> None:
        """What runs after it and is no part of it: compaction."""

    def by_day(self) -> list[Fingerprint]:
        """The fingerprint as of the end of each day, by what is known now."""

    def close(self) -> None: ...


def life(table: Table, folder: Path, history: History) -> dict[str, Any]:
    """The figures of one engine."""
    landing, stored = folder / "landing", folder / "table"
    landed = [history.land(landing, number) for number in range(history.days)]
    load = _clocked(lambda: table.load(landing))
    before = _answered(table, history.expected())
    # Ways take turns over the days, so that none has the older ones.
    days = np.linspace(0, history.days - 2, TIMES * len(table.ways)).astype(int).tolist()
    ways = []
    corrected: list[int] = []
    for at, way in enumerate(table.ways):
        chosen = days[at :: len(table.ways)]
        costs = [_corrected(table, way, number, landing, stored, history) for number in chosen]
        corrected += chosen
        answered = _answered(table, history.expected(corrected))
        ways.append({"way": way, **_medians(costs), "answers": answered, "each": costs})
    return {
        "settings": table.settings,
        **history.parameters,
        "bytes_of_a_day": round(sum(landed) / len(landed)),
        "bytes_loaded": sum(size for size, _ in _files(stored).values()),
        "load": load,
        "answers_before": before,
        "ways": ways,
    }


def _corrected(table: Table, way: str, number: int, landing: Path, stored: Path, history: History) -> dict[str, Any]:
    history.correct(landing, number)
    before = _files(stored)
    cost = _clocked(lambda: table.correct(way, number, landing))
    after = _files(stored)
    settled = _clocked(lambda: table.settle(number))
    new = [size for path, (size, changed) in after.items() if before.get(path) != (size, changed)]
    return {"day": number, **cost, "bytes": sum(new), "objects": len(new), "settled": settled["cpu_seconds"]}


def _medians(costs: list[dict[str, Any]]) -> dict[str, Any]:
    last = costs[len(costs) // 2 :]
    middle = {name: round(median(cost[name] for cost in last), 4) for name in last[0] if name != "day"}
    return {**middle, "first_cpu_seconds": costs[0]["cpu_seconds"]}


def _answered(table: Table, expected: list[Fingerprint]) -> dict[str, Any]:
    """How many days were answered right, and what one read of all of them took."""
    answers: list[list[Fingerprint]] = []
    cost = _clocked(lambda: answers.append(table.by_day()))
    right = sum(a == b for a, b in zip(answers[0], expected, strict=True))
    return {"days": len(expected), "right": right, **cost}


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Bytes of each file, and when it changed."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {str(path): (status.st_size, status.st_mtime_ns) for path, status in found}


def _clocked(work: Callable[[], object]) -> Cost:
    """What the work took of this process, to the microsecond, and of all below it, to the hundredth; looking at those
    is not counted."""
    compiled, below, own, began = jit_seconds(), _below(), time.process_time(), time.perf_counter()
    work()
    seconds, spent = time.perf_counter() - began, time.process_time() - own
    return {
        "cpu_seconds": round(spent + _below() - below, 4),
        "jit": round(jit_seconds() - compiled, 3),
        "seconds": round(seconds, 4),
    }


def _below() -> float:
    spent = cpu_seconds()
    return spent["jvm"] + spent["executors"]
