"""A finished day run again, though nothing of it changed: beside reading that day's files once.

Three kinds of nothing: the files as they were; files that were touched, so that their bytes must be read to know them;
files written again, with other bytes and the same rows, which must be decoded and compared with what they contributed.
And one file corrected, for comparison. All steps of the run count, those of its gates but for what gates look at.

What is compared with is pyarrow reading the same files, on one core as the steps do. Medians of some days. The steps
are of one process, as when the command line runs many days again; days of which nothing is written are run once more
with each step by itself, as tasks of a DAG are. What such a step reads of the state depends on how many versions came
since the last checkpoint.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from benchmarks.corrections.history import History
from benchmarks.corrections.ours import InOneProcess
from benchmarks.counting import Traffic
from benchmarks.measure import timed

DAYS_AGAIN = 7
UNCHANGED = ("as it was", "touched")
CASES = (*UNCHANGED, "written anew, equal rows", "one file corrected")


def rerun(history: History) -> dict[str, Any]:
    """The figures. AssertionError if a run without a change writes data, or an answer is wrong after all."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing = Path(folder, "landing")
        for number in range(history.days):
            history.land(landing, number)
        table = InOneProcess(Path(folder, "table"), history)
        traffic = table.bench.counted()
        table.load(landing)
        chosen = range(0, history.days, max(1, history.days // DAYS_AGAIN))[:DAYS_AGAIN]
        changed: dict[str, Callable[[int], object]] = {
            "as it was": lambda number: None,
            "touched": lambda number: _touch(history.paths(landing, number)),
            "written anew, equal rows": lambda number: history.rewrite(landing, number),
            "one file corrected": lambda number: history.correct(landing, number),
        }
        costs: dict[str, list[dict[str, Any]]] = {case: [] for case in CASES}
        for number in chosen:
            for case in CASES:
                changed[case](number)
                costs[case].append(_again(table, traffic, history, landing, number))
                if case in UNCHANGED:
                    costs[case][-1]["each_anew"] = _each_loads(table, history, landing, number)
                if costs[case][-1]["objects_of_data"] and case != CASES[-1]:
                    raise AssertionError(f"a day run again {case} wrote data: {costs[case][-1]}")
        if table.by_day() != history.expected(chosen):
            raise AssertionError("days that were run again are answered wrong")
    return {
        **history.parameters,
        "cases": {case: _middle(some) for case, some in costs.items()},
    }


def _again(table: InOneProcess, traffic: Traffic, history: History, landing: Path, number: int) -> dict[str, Any]:
    """What a day run again takes, and then reading its files."""
    traffic.taken(), traffic.created_by_kind()
    table.bench.costs.clear()
    table.correct("", number, landing)
    asked, created, spent = traffic.taken(), traffic.created_by_kind(), dict(table.bench.costs)
    with timed() as reading:
        for path in history.paths(landing, number):
            pq.read_table(path, use_threads=False)
    return {
        "cpu_seconds": sum(cost.cpu_total for cost in spent.values()),
        "ingest": spent["ingest"].cpu_total,
        "reading": reading.cpu_total,
        "objects_of_data": created.get("part", 0) + created.get("late rows", 0),
        "versions": created.get("version", 0),
        "bytes_written": asked["bytes_written"],
        "calls": asked["calls"],
    }


def _each_loads(table: InOneProcess, history: History, landing: Path, number: int) -> float:
    """The CPU of a day run again by steps of which each loads the state."""
    table.bench.costs.clear()
    table.bench.each_loads = True
    table.correct("", number, landing)
    table.bench.each_loads = False
    return sum(cost.cpu_total for cost in table.bench.costs.values())


def _touch(paths: list[Path]) -> None:
    for path in paths:
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000_000))


def _middle(costs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: round(median(cost[name] for cost in costs), 5) for name in costs[0]}
