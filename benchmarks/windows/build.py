"""A full build of windows, beside Spark's own over the same files in the same session, and DuckDB's in a process.

Tidemark reads its collection and commits the windows' updates; Spark and DuckDB read the landed Parquet files and write
Parquet. Whichever comes first compiles what both run, so each on Spark has done the same twice for few readings and
once for all of them before, but for Spark's frames of many records, which take minutes. CPU seconds are of driver, JVM
and executors together, DuckDB's of its process. All answers are compared with those that numpy calculated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.derived.refresh import Kept, kept
from benchmarks.measure import Cost, in_fresh_process, measured
from benchmarks.peers.engines import missing
from benchmarks.steps import Bench, silent, stored
from benchmarks.throughput import same, wake_workers, warm_spark
from benchmarks.windows import kinds
from benchmarks.windows.kinds import Kind, fingerprint_sql
from benchmarks.windows.readings import NAME, Readings
from tidemark.model.derived import Definition, Derived, Refresh

Result = dict[str, Any]
FEW = Readings(4, 500)
MANY = 1_000
"""Records in a sliding window from which on Spark's frames are computed once only."""


@dataclass(frozen=True)
class Build:
    """Windows of a kind over some readings."""

    kind: Kind
    readings: Readings
    records: int | None = None
    """How many a sliding window holds."""


def builds(full: bool) -> list[Build]:
    """Windows that do not overlap, with a condition too, sessions, and sliding ones that hold ever more."""
    many = Readings(1_000, 2_000 if full else 200)
    times = 5 if full else 1
    sliding = [
        (10, Readings(20, 10_000 * times)),
        (1_000, Readings(8, 12_500 * times)),
        (1_000, Readings(32, 12_500 * times)),
        (10_000, Readings(4, 25_000 * times)),
    ]
    if full:
        sliding.append((100_000, Readings(1, 120_000)))  # the time of frames grows with the square of a key's rows
    tumbling = kinds.tumbling()
    disjoint = (tumbling, kinds.conditioned(tumbling), kinds.tumbling(kinds.ALL), kinds.sessions())
    once = [Build(kind, many) for kind in disjoint]
    return [*once, *(Build(kinds.sliding(records), readings, records) for records, readings in sliding)]


def build(full: bool, say: Callable[[str], None]) -> list[Result]:
    """The figures of all, each from a process of its own. AssertionError if an answer is wrong."""
    has_duckdb = not missing("duckdb")
    if not has_duckdb:
        say("DuckDB is left out, as it is not installed: make bench PEERS=1")
    found = []
    for one in builds(full):
        say(f"windows: {one.kind.name}, over {one.readings.total:,} readings of {one.readings.sensors:,} sensors")
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
            costs = in_fresh_process(_on_spark, one, Path(folder))
            if has_duckdb:
                costs["DuckDB"] = in_fresh_process(_by_duckdb, one, Path(folder))
        found.append(
            {
                "kind": one.kind.name,
                "records": one.records,
                "rows": one.readings.total,
                "sensors": one.readings.sensors,
                "engines": costs,
            }
        )
    return found


def _on_spark(one: Build, folder: Path) -> dict[str, Result]:
    spark = warm_spark()
    for name in ("few", "again"):  # so that what is first measured is compiled as what is last
        _ours(spark, Build(one.kind, FEW), folder / name)
        _theirs(spark, Build(one.kind, FEW), folder / name)
    _ours(spark, one, folder / "before")
    if one.records is None or one.records < MANY:
        _theirs(spark, one, folder / "before")
    found = {"Tidemark": _ours(spark, one, folder), "Spark": _theirs(spark, one, folder)}
    spark.stop()
    return found


def _ours(spark: SparkSession, one: Build, folder: Path) -> Result:
    one.readings.land(folder / "landing", 0)
    source = Bench(one.readings.collection, folder / "root", folder / "landing", note=silent)
    source.certified_day(one.readings.interval(0))
    windows = windows_of(spark, "built", one.kind, folder / "root", Refresh.AUTO)
    return corrected(windows, one.kind, one.readings, 0)


def windows_of(spark: SparkSession, name: str, kind: Kind, root: Path, asked: Refresh) -> Kept:
    """A collection of windows over the readings below a root."""
    made = kept(spark, name, Derived((NAME,), Definition(windows=kind.windows), refresh=asked), root)
    made.bench.note = made.bench.job.note = silent
    return made


def corrected(windows: Kept, kind: Kind, readings: Readings, day: int) -> Result:
    """What `correct` takes after a day's readings. AssertionError for a wrong answer."""
    before, _ = stored(windows.bench.folder)
    wake_workers(windows.spark)
    cost, result = windows.correct()
    after, _ = stored(windows.bench.folder)
    frame = windows.frame().selectExpr("*", "unix_micros(window_start) as _start")
    found = frame.selectExpr(*fingerprint_sql("_start", kind.has_most)).collect()[0].asDict()
    same(f"{kind.name}, day {day}", found, kind.expected(readings.known(day)))
    return {**cost.as_dict(), "windows": found["rows"], "bytes_stored": after - before, "result": result}


def _theirs(spark: SparkSession, one: Build, folder: Path) -> Result:
    out = f"file://{folder}/by-spark"
    files = [f"file://{path}" for path in sorted((folder / "landing").rglob("*.parquet"))]
    with measured() as cost:
        spark.read.parquet(*files).createOrReplaceTempView(NAME)
        spark.sql(one.kind.spark).write.option("compression", "zstd").parquet(out)
    answer = spark.read.parquet(out).selectExpr("*", "unix_micros(start) as _start")
    found = answer.selectExpr(*fingerprint_sql("_start", one.kind.has_most)).collect()[0].asDict()
    return _checked("Spark", one, found, cost, folder / "by-spark")


def _by_duckdb(one: Build, folder: Path) -> Result:
    missing("duckdb")  # where it is
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    connection, out = duckdb.connect(), folder / "by-duckdb.parquet"
    columns = "sensor, id, amount, make_timestamp(epoch_us(taken_at)) as taken_at"
    files = f"read_parquet('{folder}/landing/*/*.parquet')"
    with measured() as cost:
        connection.execute(f"create view {NAME} as select {columns} from {files}")
        connection.execute(f"copy ({one.kind.duckdb}) to '{out}' (format parquet, compression zstd)")
    sums = ", ".join(fingerprint_sql("epoch_us(start)", one.kind.has_most, "({} % {})"))
    answer = connection.execute(f"select {sums} from '{out}'")
    names = [column[0] for column in answer.description]
    return _checked("DuckDB", one, dict(zip(names, answer.fetchone(), strict=True)), cost, out)


def _checked(engine: str, one: Build, found: Result, cost: Cost, out: Path) -> Result:
    same(f"{one.kind.name} by {engine}", found, one.kind.expected_of_peers(one.readings.known(0)))
    size = out.stat().st_size if out.is_file() else stored(out)[0]
    return {**cost.as_dict(), "windows": found["rows"], "bytes_stored": size}
