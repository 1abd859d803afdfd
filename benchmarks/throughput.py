"""Rows a second, CPU seconds, bytes and memory of every step at 1 M and 10 M updates, beside what others need for the
same.

The updates come in four days. Each day is ingested, sealed, drained and compacted, with its gates, as a DAG run
would; then the collection is read as of the end. A step's figures are the sum over its days. Rows a second are the
feed's rows over that sum; for compaction they are the rows merged: half of the trace after two days, and all of it
after four.

Beside it, in the same Spark: a plain PySpark job that groups the same files into the same answer and writes it, and
two floors of one pyarrow process: read the files and write them again, and the same with a sort by key between.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import feed as feeds
from benchmarks.feed import Feed, Fingerprint
from benchmarks.measure import Cost, in_fresh_process, measured
from benchmarks.steps import Bench, stored
from tidemark.model.collection import Envelope
from tidemark.spark.runner import SparkRunner
from tidemark.spark.session import SETTINGS, session

DAYS = 4
KEYS_SHARE = 5
"""Updates a key, on average."""
METADATA_ONLY = ("seal", "gate frontier")


def throughput(envelope: Envelope, updates: int, seed: int) -> dict[str, Any]:
    """The figures of one envelope and size, from a process of its own. AssertionError if an answer is wrong."""
    answer: dict[str, Any] = in_fresh_process(_throughput, envelope, updates, seed)
    return answer


def _throughput(envelope: Envelope, updates: int, seed: int) -> dict[str, Any]:
    feed = Feed(envelope, DAYS, updates // DAYS, max(1, updates // KEYS_SHARE), seed)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing, root = Path(folder, "landing"), Path(folder, "root")
        ingested_bytes = feed.write(landing)
        expected = {days: feed.expected(days) for days in (DAYS // 2, DAYS)}
        del feed.__dict__["drawn"]  # or the driver's memory would be the generator's
        with measured() as start:
            spark = warm_spark()
        with measured() as imported:
            importlib.import_module("great_expectations")  # the resident launcher has, too
        bench = Bench(feed.collection, root, landing, lambda store: SparkRunner(spark, store.url))
        for day in range(DAYS):
            bench.day(feed.interval(day))
            bench.compact(feed.interval(day))
        costs = {**bench.costs, **_reads(spark, bench, feed, expected)}
        costs |= _peers(spark, feed, landing, Path(folder), expected[DAYS])
        written, objects = stored(bench.folder)
        spark.stop()
        return {
            "envelope": str(envelope),
            "updates": feed.total,
            "days": DAYS,
            "keys": feed.keys,
            "seed": seed,
            "checked": expected[DAYS],
            "start_spark": start.as_dict(),
            "import_great_expectations": imported.as_dict(),
            "steps": {name: _figures(name, cost, bench, feed) for name, cost in costs.items()},
            "bytes": _bytes(bench, ingested_bytes, written, objects),
        }


def _figures(step: str, cost: Cost, bench: Bench, feed: Feed) -> dict[str, Any]:
    if step in METADATA_ONLY:
        return {"rows": 0, **cost.as_dict(), "rows_per_second": None}
    rows = sum(result["rows"] for result in bench.results["compact"]) if step == "compact" else feed.total
    return {"rows": rows, **cost.as_dict(), "rows_per_second": round(rows / cost.seconds)}


def _bytes(bench: Bench, ingested: int, written: int, objects: int) -> dict[str, Any]:
    """Bytes by what wrote them, and all of them over the bytes of the change files."""
    totals = bench.job.log.load().state.totals
    data = {"ingest": totals.bytes_ingested, "drain": totals.bytes_drained, "compact": totals.bytes_compacted}
    return {
        "change_files": ingested,
        "written": data | {"metadata": written - sum(data.values())},
        "written_total": written,
        "written_per_byte": round(written / ingested, 3),
        "objects": objects,
    }


def warm_spark() -> SparkSession:
    """A session whose Python workers have started and imported Arrow, so that no step pays for that."""
    spark = session("tidemark benchmark")
    wake_workers(spark)
    return spark


def wake_workers(spark: SparkSession) -> None:
    """Have Python workers started, with Arrow imported: those that have been idle for a minute are ended. What they do
    when their tasks are over is over, too: it would be counted to what is measured next, 0.1 CPU seconds."""
    cores = spark.sparkContext.defaultParallelism
    spark.range(0, 64, 1, cores).mapInArrow(lambda batches: batches, "id long").collect()
    time.sleep(1)


def settings() -> dict[str, str]:
    """What Spark ran with."""
    return {"spark.master": "local[*]", **SETTINGS}


def _reads(spark: SparkSession, bench: Bench, feed: Feed, expected: dict[int, Fingerprint]) -> dict[str, Cost]:
    """As-of the end by both readers; half way before that, unmeasured: it is checked too, and warms Spark's SQL."""
    from tests.support.reading import as_of as arrow_as_of
    from tests.support.reading_frames import as_of_frame as spark_as_of

    store, state = bench.job.store, bench.job.log.load().state
    half = feed.interval(DAYS // 2).lower - 1
    same("as-of half way, Arrow", feeds.fingerprint_of(arrow_as_of(store, state, time=half)), expected[DAYS // 2])
    found = fingerprint_of_frame(spark_as_of(spark, store, state, time=half))
    same("as-of half way, Spark", found, expected[DAYS // 2])
    costs: dict[str, Cost] = {}
    with measured() as costs["as-of, Arrow reader"]:
        table = arrow_as_of(store, state)
    same("as-of, Arrow reader", feeds.fingerprint_of(table), expected[DAYS])
    del table
    with measured() as costs["as-of, Spark reader"]:
        found = fingerprint_of_frame(spark_as_of(spark, store, state))
    same("as-of, Spark reader", found, expected[DAYS])
    return costs


def same(what: str, found: Fingerprint, expected: Fingerprint) -> None:
    if found != expected:
        raise AssertionError(f"{what} gave {found}, calculated were {expected}")


def fingerprint_of_frame(frame: DataFrame) -> Fingerprint:
    multiplicity, number = F.col("_multiplicity"), F.substring("label", len("label-") + 1, 9).cast("long")
    sums = frame.agg(
        F.sum(multiplicity).alias("rows"),
        F.sum(multiplicity * F.col("id")).alias("ids"),
        F.sum(multiplicity * F.col("amount")).alias("amounts"),
        F.sum(multiplicity * F.col("ratio")).alias("ratios"),
        F.sum(multiplicity * F.col("amount") * (F.col("id") % 1009)).alias("amount_by_id"),
        F.sum(multiplicity * number * (F.col("id") % 1013)).alias("label_by_id"),
    )
    return sums.collect()[0].asDict()


def _peers(spark: SparkSession, feed: Feed, landing: Path, folder: Path, expected: Fingerprint) -> dict[str, Cost]:
    costs: dict[str, Cost] = {}
    files = sorted(landing.rglob("*.parquet"))
    with measured() as costs["peer: plain PySpark, group and write"]:
        changed = spark.read.parquet(*(f"file://{path}" for path in files))
        _grouped(changed, feed.envelope).write.option("compression", "zstd").parquet(f"file://{folder}/grouped")
    same("plain PySpark", fingerprint_of_frame(spark.read.parquet(f"file://{folder}/grouped")), expected)
    with measured() as costs["floor: pyarrow, read and write"]:
        for path in files:
            pq.write_table(pq.read_table(path), folder / "copied.parquet", compression="zstd")
    with measured() as costs["floor: pyarrow, read, sort, write"]:
        for path in files:
            ordered = pq.read_table(path).sort_by([("id", "ascending"), ("code", "ascending")])
            pq.write_table(ordered, folder / "sorted.parquet", compression="zstd")
    return costs


def _grouped(changes: DataFrame, envelope: Envelope) -> DataFrame:
    """The same answer as an as-of at the end, by Spark alone and for ever from scratch."""
    value = ["amount", "ratio", "label"]
    if envelope is Envelope.APPEND:
        return changes.groupBy("id", "code", *value).agg(F.count("*").alias("_multiplicity"))
    last = F.max_by(F.struct(*value, "deleted"), "happened_at").alias("last")
    rows = changes.groupBy("id", "code").agg(last).where(~F.col("last.deleted"))
    return rows.select("id", "code", *(f"last.{name}" for name in value), F.lit(1).cast("long").alias("_multiplicity"))
