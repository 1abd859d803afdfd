"""A finished day run again, though nothing of it changed: beside reading that day's files once.

Three kinds of nothing: the files as they were; files that were touched, so that their bytes must be read to know them;
files written anew, with other bytes and the same rows, which must be decoded and compared with what they contributed.
And one file corrected, for comparison. All steps of the run count, those of its gates but for what gates look at.

What is compared with is pyarrow reading the same files, on one core as the steps do. The least CPU of REPEATS
different days each, which is what others on the machine add least to; bytes by what they are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.corrections.history import History
from benchmarks.corrections.ours import InOneProcess
from benchmarks.measure import timed

REPEATS = 5
CASES = ("as it was", "touched", "written anew, equal rows", "one file corrected")


def rerun(history: History) -> dict[str, Any]:
    """The figures. AssertionError if a run without a change writes data, or an answer is wrong after all."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing = Path(folder, "landing")
        for number in range(history.days):
            history.land(landing, number)
        table = InOneProcess(Path(folder, "table"), history)
        traffic = table.bench.counted()
        table.load(landing)
        chosen = [int((at + 0.5) * history.days / REPEATS) for at in range(REPEATS)]
        changed: dict[str, Callable[[int], object]] = {
            "as it was": lambda number: None,
            "touched": lambda number: _touch(history.paths(landing, number)),
            "written anew, equal rows": lambda number: history.rewrite(landing, number),
            "one file corrected": lambda number: history.correct(landing, number),
        }
        found: dict[str, Any] = {}
        for case in CASES:
            costs = []
            for number in chosen:
                changed[case](number)
                traffic.taken(), traffic.created_by_kind()
                with timed() as cost:
                    table.correct("", number, landing)
                asked, created = traffic.taken(), traffic.created_by_kind()
                data = created.get("part", 0) + created.get("late rows", 0)
                if data and case != "one file corrected":
                    raise AssertionError(f"a day run again {case} wrote {data} objects of data")
                with timed() as reading:
                    for path in history.paths(landing, number):
                        pq.read_table(path, use_threads=False)
                costs.append(
                    {
                        "cpu_seconds": round(cost.cpu_total, 5),
                        "reading": round(reading.cpu_total, 5),
                        "objects_of_data": data,
                        "versions": created.get("version", 0),
                        "bytes_written": asked["bytes_written"],
                        "calls": asked["calls"],
                    }
                )
            found[case] = _least(costs)
        if table.by_day() != history.expected(chosen):
            raise AssertionError("days that were run again are answered wrong")
    return {
        **history.told,
        "cases": found,
    }


def _touch(paths: list[Path]) -> None:
    for path in paths:
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000_000))


def _least(costs: list[dict[str, Any]]) -> dict[str, Any]:
    least = min(costs, key=lambda cost: float(cost["cpu_seconds"]))
    return {**least, "reading": min(cost["reading"] for cost in costs)}
