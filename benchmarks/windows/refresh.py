"""Windows kept right after a hundredth of the readings changed, beside all of them computed from scratch.

Each kind is kept twice over the same readings: as it is refreshed of itself, and with `refresh: whole`. Both are built
from the first day, then corrected for each day after it, whose changes are of neighbours or scattered. Bytes are those
of the row groups that were opened, of the readings and of the stored windows.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.measure import in_fresh_process
from benchmarks.steps import Bench, silent
from benchmarks.throughput import warm_spark
from benchmarks.windows import kinds
from benchmarks.windows.build import FEW, Result, corrected, windows_of
from benchmarks.windows.kinds import Kind
from benchmarks.windows.readings import CHANGES, Readings
from tidemark.model.derived import Refresh

RECORDS = 30
"""In a sliding window."""


@dataclass(frozen=True)
class Case:
    """Windows of a kind; whether what they tell can be subtracted."""

    kind: Kind
    subtracts: bool = False


def cases() -> tuple[Case, ...]:
    sums, most = kinds.tumbling(), kinds.tumbling(kinds.ALL)
    return Case(sums, subtracts=True), Case(most), Case(kinds.sliding(RECORDS)), Case(kinds.sessions())


def refresh(readings: Readings) -> Result:
    """The figures of all cases, from a process of its own. AssertionError if an answer is wrong."""
    answer: Result = in_fresh_process(_refresh, readings)
    return answer


def _refresh(readings: Readings) -> Result:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        spark = warm_spark()
        _kept(spark, FEW, Path(folder, "few"))
        found = _kept(spark, readings, Path(folder))
        spark.stop()
    changed = {name: len(readings.changed(day).id) for day, name in enumerate(CHANGES, 1)}
    return {"rows": readings.total, "sensors": readings.sensors, "changed": changed, "cases": found}


def _kept(spark: SparkSession, readings: Readings, folder: Path) -> list[Result]:
    """All cases through all days."""
    source = Bench(readings.collection, folder / "root", folder / "landing", note=silent)
    readings.land(folder / "landing", 0)
    source.certified_day(readings.interval(0))
    each = [
        (case, asked, windows_of(spark, f"case_{at}_{asked}", case.kind, folder / "root", asked))
        for at, case in enumerate(cases())
        for asked in (Refresh.AUTO, Refresh.WHOLE)
    ]
    found: list[Result] = [
        {
            "kind": case.kind.name,
            "refresh": str(asked),
            "subtracts": case.subtracts,
            "built": corrected(windows, case.kind, readings, 0),
            "refreshed": {},
        }
        for case, asked, windows in each
    ]
    for day, name in enumerate(CHANGES, 1):
        readings.land(folder / "landing", day)
        source.certified_day(readings.interval(day))
        for entry, (case, _, windows) in zip(found, each, strict=True):
            entry["refreshed"][name] = corrected(windows, case.kind, readings, day)
    return found
