"""What reads through Spark cost: as-of, net changes, one key and a tenth by a condition, beside the Arrow reader in one
process and beside Spark reading the same answer from a plain Parquet file, which no table can beat. As-of and one key
also by the data source `tidemark`, each query loading again, and by a view of `register`.

Three collections of as many updates each: `append` and `upsert` are those of `throughput`, four days, each drained and
compacted; `loaded` holds each key once, said in order of keys, and a last day changed the last hundredth of them. Every
answer is added up (feed.py) and compared with what was calculated separately. A figure is the least of `TRIES` in a
session that has answered the same before: CPU seconds of driver, JVM and executors together.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import tidemark
from benchmarks.feed import DAY, Feed, Fingerprint, Rows, fingerprint_of, write_day
from benchmarks.measure import in_fresh_process, measured
from benchmarks.steps import Bench
from benchmarks.throughput import DAYS, KEYS_SHARE, fingerprint_of_frame, same, warm_spark
from tests.support import reading
from tests.support.reading_frames import as_of_frame, changes_frame
from tidemark.model.collection import Envelope
from tidemark.plan.tasks import KeyRange

TRIES = 3
CASES = ("append", "upsert", "loaded")
TENTH = 100_000
"""Amounts are drawn below ten times that."""


def spark_reads(case: str, updates: int, seed: int) -> dict[str, Any]:
    """The figures of one collection, from a process of its own. AssertionError if an answer is wrong."""
    answer: dict[str, Any] = in_fresh_process(_spark_reads, case, updates, seed)
    return answer


def _spark_reads(case: str, updates: int, seed: int) -> dict[str, Any]:

    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        feed = _feed(case, updates, seed)
        bench = Bench(feed.collection, Path(folder, "root"), Path(folder, "landing"))
        expected = _filled(bench, feed, case)
        store, state = bench.job.store, bench.job.log.load().state
        whole = reading.as_of(store, state)
        last = state.seal - DAY - 1
        learned = fingerprint_of(reading.changes(store, state, after=last, net=True), "diff")
        # As many files as the machine has use for, as a table would have.
        table = Path(folder, "plain")
        table.mkdir()
        for number, start in enumerate(range(0, whole.num_rows, 1_000_000)):
            pq.write_table(whole.slice(start, 1_000_000), table / f"{number}.parquet", compression="zstd")
        key = (int(whole["id"][whole.num_rows // 2].as_py()), str(whole["code"][whole.num_rows // 2].as_py()))
        keys = KeyRange(key, (key[0], key[1] + "\0"))
        one = fingerprint_of(reading.as_of(store, state, keys=keys))
        tenth = fingerprint_of(whole.filter(pc.field("amount") < TENTH))
        rows = whole.num_rows
        del whole
        spark = warm_spark()
        sums = fingerprint_of_frame

        def changed() -> DataFrame:
            frame = changes_frame(spark, store, state, after=last, net=True)
            return frame.withColumnRenamed("diff", "_multiplicity")

        by_key = f"id = {key[0]} and code = '{key[1]}'"
        address = store.url
        tidemark.register(spark, address.rpartition("/")[0])

        def source(**options: str) -> DataFrame:
            return spark.read.format("tidemark").options(multiplicity="true", **options).load(address)

        def to_spark(where: str | None = None) -> DataFrame:
            return tidemark.open(address).as_of(where=where).to_spark(spark)

        def view(where: str = "TRUE") -> DataFrame:
            frame = spark.sql(f"SELECT *, 1 AS _multiplicity FROM {feed.collection.name} WHERE {where}")
            return frame.withColumn("_multiplicity", frame._multiplicity.cast("long"))

        reads: dict[str, tuple[Callable[[], Fingerprint], Fingerprint]] = {
            "as-of, Spark": (lambda: sums(as_of_frame(spark, store, state)), expected),
            "as-of, Arrow": (lambda: fingerprint_of(reading.as_of(store, state)), expected),
            "as-of, plain Parquet on Spark": (lambda: sums(spark.read.parquet(f"file://{table}")), expected),
            "net changes of the last day, Spark": (lambda: sums(changed()), learned),
            "net changes of the last day, Arrow": (
                lambda: fingerprint_of(reading.changes(store, state, after=last, net=True), "diff"),
                learned,
            ),
            "one key, Spark": (lambda: sums(as_of_frame(spark, store, state, keys=keys)), one),
            "one key, plain Parquet on Spark": (lambda: sums(spark.read.parquet(f"file://{table}").where(by_key)), one),
            "as-of, to_spark": (lambda: sums(to_spark()), expected),
            "as-of, data source": (lambda: sums(source()), expected),
            "as-of, view": (lambda: sums(view()), expected),
            "one key, to_spark": (lambda: sums(to_spark(by_key)), one),
            "one key, data source": (lambda: sums(source(where=by_key)), one),
            "one key, view": (lambda: sums(view(by_key)), one),
            "a tenth, Spark": (
                lambda: sums(as_of_frame(spark, store, state, keep=_of_small_amounts)),
                tenth,
            ),
        }
        costs = {what: _least(what, call, right) for what, (call, right) in reads.items()}
        spark.stop()
        return {"case": case, "updates": updates, "rows": rows, "seed": seed, "reads": costs}


def _of_small_amounts(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.less(rows.column("amount"), TENTH))


def _least(what: str, call: Callable[[], Fingerprint], expected: Fingerprint) -> dict[str, Any]:
    """The cheapest of some tries, after one that does not count."""
    same(what, call(), expected)
    tries = []
    for _ in range(TRIES):
        with measured() as cost:
            found = call()
        same(what, found, expected)
        tries.append(cost)
    return min(tries, key=lambda cost: cost.cpu_total).as_dict()


def _feed(case: str, updates: int, seed: int) -> Feed:
    envelope = Envelope.APPEND if case == "append" else Envelope.UPSERT
    return Feed(envelope, DAYS, updates // DAYS, max(1, updates // KEYS_SHARE), seed)


def _filled(bench: Bench, feed: Feed, case: str) -> Fingerprint:
    """Land the case's days and keep them; the fingerprint of the rows then."""
    if case != "loaded":
        feed.write(bench.landing)
        for day in range(DAYS):
            bench.certified_day(feed.interval(day))
        return feed.expected(DAYS)
    current = _in_order(np.arange(feed.total), feed, 0)
    changed = np.arange(feed.total - feed.total // 100, feed.total)
    write_day(bench.landing, feed.interval(0), current.table(feed.envelope))
    bench.certified_drain(feed.interval(0))
    later = _in_order(changed, feed, 1)
    write_day(bench.landing, feed.interval(1), later.table(feed.envelope))
    bench.certified_drain(feed.interval(1))
    for column in ("amount", "ratio", "label"):
        getattr(current, column)[changed] = getattr(later, column)
    return current.fingerprint()


def _in_order(ids: Any, feed: Feed, day: int) -> Rows:
    """One row for each id, all said in the course of a day."""
    chance = np.random.default_rng([feed.seed, day])
    happened = feed.interval(day).lower + np.arange(len(ids)) % DAY
    return Rows(
        ids.astype(np.int64),
        chance.integers(0, 1_000_000, len(ids)),
        chance.integers(0, 2**20, len(ids)) / 1024,
        chance.integers(0, 1_000, len(ids)),
        happened,
        happened.copy(),
        np.zeros(len(ids), bool),
    )
