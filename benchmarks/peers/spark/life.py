"""One life, the same for every engine: a base, small upserts, a batch of late rows; then reads, each answer checked.

Costs are CPU seconds of the whole process tree, and how many of them the JVM's compilers took (`jit`): a JVM that has
just begun compiles most of the time, one that has run for a day does not, so both are reported. Ingests early in the
life warm an engine up; the figures of a batch are those of the last ten. What a file holds is written before the clock
starts. Nothing is deleted before the reads; `clean` comes last.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import pyarrow.parquet as pq

from benchmarks.feed import Fingerprint, Rows, code_of
from benchmarks.measure import cpu_seconds, jit_seconds
from benchmarks.peers.engines import sizes
from benchmarks.workload import CurrentRows, Workload, minus

REPEATS = 3
LAST = 10


class Table(Protocol):
    """An engine's table; days count from 0, the base. Answers are fingerprints (benchmarks/feed.py)."""

    settings: str

    def ingest(self, day: int, rows: Path) -> None: ...
    def maintain(self, day: int) -> None: ...
    def note(self, day: int) -> None:
        """Remember by what the newest state can be asked for later."""

    def clean(self) -> None:
        """Delete what no reader of the newest state needs."""

    def as_of(self, day: int) -> Fingerprint: ...
    def changes(self, after: int, upto: int) -> Fingerprint: ...
    def point(self, id: int, code: str) -> Fingerprint: ...
    def close(self) -> None: ...


def life(table: Table, folder: Path, workload: Workload, every: int) -> dict[str, Any]:
    """The figures of one engine; maintained after `every` ingests and the last, or never (0)."""
    current, landing, stored = CurrentRows(workload.feed), folder / "landing", folder / "stored"
    expected: list[Fingerprint] = []
    alone: list[int] = []

    def one_day(day: int, rows: Rows) -> dict[str, float]:
        expected.append(current.after(rows))
        file = landing / f"{day:03}.parquet"
        landing.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.table(workload.envelope), file, compression="zstd")
        alone.append(file.stat().st_size)
        cost = clocked(partial(table.ingest, day, file))
        table.note(day)
        return cost

    base = one_day(0, workload.day(0))
    before, ingests, maintained = sizes(stored), [], []
    for day in range(1, workload.ingests + 1):
        ingests.append(one_day(day, workload.day(day)))
        if every and day % every == 0:
            maintained.append(clocked(partial(table.maintain, day)))
            table.note(day)
    late = one_day(workload.ingests + 1, current.late(workload, workload.ingests + 1))
    after = sizes(stored)
    reads = _reads(table, workload, expected, current)
    cleaned = _tried(table.clean)
    grown = {kind: after[kind] - before[kind] for kind in after}
    return {
        "settings": table.settings,
        "base": workload.base,
        "ingests": workload.ingests,
        "rows_per_ingest": workload.rows,
        "maintained_every": every,
        "load": base,
        "batch": _middle(ingests[-LAST:]),
        "first_batch": ingests[0],
        "late": late,
        "maintain": _middle(maintained) if maintained else None,
        "reads": reads,
        "stored": grown,
        "bytes_ratio": round((grown["data"] + grown["metadata"]) / sum(alone[1:]), 2),
        "objects_per_batch": round(grown["objects"] / (workload.ingests + 1), 1),
        "bytes_after_clean": cleaned or _bytes(sizes(stored)),
        "bytes_before_clean": _bytes(after),
    }


def clocked(work: Callable[[], object]) -> dict[str, float]:
    """What the work took of this process and all below it."""
    spent, compiled, began = sum(cpu_seconds().values()), jit_seconds(), time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return {
        "cpu_seconds": round(sum(cpu_seconds().values()) - spent, 3),
        "jit": round(jit_seconds() - compiled, 3),
        "seconds": round(seconds, 3),
    }


def _reads(table: Table, workload: Workload, expected: list[Fingerprint], current: CurrentRows) -> dict[str, Any]:
    last = workload.ingests
    half = last // 2
    key = int(workload.day(last).id[~workload.day(last).deleted][0])
    asked: dict[str, tuple[Callable[[], Fingerprint], Fingerprint]] = {
        "as-of the end": (lambda: table.as_of(last + 1), expected[last + 1]),
        "as-of half way": (lambda: table.as_of(half), expected[half]),
        f"changes of {last - half} batches": (lambda: table.changes(half, last), minus(expected[last], expected[half])),
        "changes of the late batch": (
            lambda: table.changes(last, last + 1),
            minus(expected[last + 1], expected[last]),
        ),
        "one key": (lambda: table.point(key, code_of(key % 97)), current.of(key)),
    }
    return {what: _read(read, wanted) for what, (read, wanted) in asked.items()}


def _read(read: Callable[[], Fingerprint], expected: Fingerprint) -> dict[str, Any]:
    answers: list[Fingerprint] = []
    try:
        costs = [clocked(lambda: answers.append(read())) for _ in range(REPEATS)]
    except Exception as error:  # an engine that cannot answer is a result
        return {"answer": _said(error)}
    least = min(costs, key=lambda cost: cost["cpu_seconds"])
    return {**least, "answer": "right" if all(answer == expected for answer in answers) else "wrong"}


def _tried(work: Callable[[], object]) -> str:
    try:
        work()
    except Exception as error:
        return _said(error)
    return ""


def _said(error: Exception) -> str:
    """In one line; of what the JVM has raised, what it says and not which call it was."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = next((line[2:] for line in lines if line.startswith(": ")), (lines or [type(error).__name__])[0])
    return f"error: {line[:160]}"


def _middle(costs: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(median(cost[name] for cost in costs), 3) for name in costs[0]}


def _bytes(found: dict[str, int]) -> int:
    return found["data"] + found["metadata"]
