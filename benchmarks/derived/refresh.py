"""What it costs to keep a derived collection right after a hundredth of its input changed, beside computing it whole.

Each definition is kept twice over the same input: as it is refreshed of itself, and with `refresh: whole`. Both are
built from the first day of sales, then corrected for each day after it; the answers of both are compared with those
calculated separately. CPU seconds are of driver, JVM and executors together, in a session that has done the same for
another collection before; bytes are those of what was read of the input and written.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.derived.sales import CASES, CHANGES, FOUND, NAME, Case, Rows, Sales
from benchmarks.measure import Cost, in_fresh_process, measured
from benchmarks.steps import Bench, stored
from benchmarks.throughput import same, wake_workers, warm_spark
from tests.support.reading_frames import as_of_frame as as_of
from tidemark.jobs.app import open_job
from tidemark.jobs.derived import shaped
from tidemark.jobs.steps.correct import correct
from tidemark.model.collection import Collection
from tidemark.model.derived import Definition, Derived, Refresh
from tidemark.spark.runner import SparkRunner


def refresh(sales: Sales) -> dict[str, Any]:
    """The figures of all cases, from a process of its own. AssertionError if an answer is wrong."""
    answer: dict[str, Any] = in_fresh_process(_refresh, sales)
    return answer


def _refresh(sales: Sales) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing, root = Path(folder, "landing"), Path(folder, "root")
        landed = [sales.land(landing, day) for day in range(1 + len(CHANGES))]
        source = Bench(sales.collection, root, landing)
        spark = _warmed(Sales(100, 50), Path(folder, "warm"))
        kept: list[tuple[Case, Refresh, Kept]] = []
        done: list[list[dict[str, Any]]] = []
        for day in range(1 + len(CHANGES)):
            source.certified_day(sales.interval(day))
            kept = kept or [
                (case, asked, _kept(spark, case, asked, root))
                for case in CASES
                for asked in (Refresh.AUTO, Refresh.WHOLE)
            ]
            rows = sales.known(day)
            done.append([_corrected(one, case, rows) for case, _, one in kept])
        spark.stop()
        built, *refreshed = done
        cases = [
            {
                "case": case.name,
                "refresh": str(asked),
                "aim": case.aim,
                "built": built[at],
                "refreshed": {name: of_day[at] for name, of_day in zip(CHANGES, refreshed, strict=True)},
            }
            for at, (case, asked, _) in enumerate(kept)
        ]
        changed = len(sales.changed(1).id)
        total = sales.shops * sales.each
        return {"rows": total, "shops": sales.shops, "changed": changed, "bytes_landed": landed, "cases": cases}


def _warmed(sales: Sales, folder: Path) -> Any:
    """A session that has done all this before, for few sales."""
    spark = warm_spark()
    source = Bench(sales.collection, folder / "root", folder / "landing")
    for day in range(1 + len(CHANGES)):
        sales.land(folder / "landing", day)
        source.certified_day(sales.interval(day))
        for case in CASES:
            for asked in (Refresh.AUTO, Refresh.WHOLE):
                _corrected(_kept(spark, case, asked, folder / "root"), case, sales.known(day))
    return spark


class Kept:
    """A derived collection, corrected and brought into its trace as a run of its DAG does, without what gates read."""

    def __init__(self, spark: Any, collection: Collection, root: Path) -> None:
        self.spark = spark
        self.bench = Bench(collection, root, root, runner_for=lambda store: SparkRunner(spark, store.url))

    def correct(self) -> tuple[Cost, dict[str, Any]]:
        """What `correct` alone takes, and its result."""
        with measured() as cost:
            result = correct(self.bench.job)
        self.bench.certified_rest()
        return cost, result

    def frame(self) -> DataFrame:
        """All rows. AssertionError if one is there more than once."""
        frame = as_of(self.spark, self.bench.job.store, self.bench.job.log.load().state)
        if frame.where("_multiplicity <> 1").count():
            raise AssertionError(f"{self.bench.collection.name}: a row is there more than once")
        return frame


def _kept(spark: Any, case: Case, asked: Refresh, root: Path) -> Kept:
    name = f"{case.name.replace(' ', '_')}_{asked}"
    return kept(spark, name, Derived((NAME,), Definition(case.select), refresh=asked), root)


def kept(spark: Any, name: str, derived: Derived, root: Path) -> Kept:
    """A derived collection as its definition infers it; created if it is not there yet."""
    job = open_job(str(root), name, lambda: SparkRunner(spark, str(root)))
    shape = shaped(job, name, derived)
    key = tuple(column for column in shape.columns if column.name in (shape.key or ()))
    value = tuple(column for column in shape.columns if column not in key)
    return Kept(spark, Collection(name, key, value, derived, hidden=shape.hidden), root)


def _corrected(kept: Kept, case: Case, rows: Rows) -> dict[str, Any]:
    before, _ = stored(kept.bench.folder)
    wake_workers(kept.spark)
    cost, result = kept.correct()
    after, _ = stored(kept.bench.folder)
    found = kept.frame().selectExpr(*FOUND[case.name]).collect()[0].asDict()
    same(case.name, found, case.expected(rows))
    return {**cost.as_dict(), "bytes_stored": after - before, "result": result}
