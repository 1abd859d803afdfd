"""As-of and changes as Spark DataFrames, at the scale of the cluster. Lazy: nothing is read until an action asks.

A read names the state it was planned on, so it is stable while writers run. The rows come through Spark's own Parquet
reader where the file system speaks the store's scheme, else through the Arrow reader in the executors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidemark.arrow.cuts import pieces
from tidemark.arrow.schema import updates_schema
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, plan_changes, resolving
from tidemark.plan.tasks import UnsealedTask
from tidemark.spark import frames
from tidemark.storage import ObjectStore, open_store, parts_table, reads
from tidemark.storage.codec import decode, encode

BATCH_BYTES = 16 * 2**20
"""Most bytes of rows handed to the JVM at once, which holds them outside its heap too."""


def as_of(
    spark: SparkSession,
    store: ObjectStore,
    state: Arrangement,
    *,
    time: int | None = None,
    event_time: int | None = None,
) -> DataFrame:
    """The collection as known at `time` (None: the latest complete one), as of `event_time` (None: all that happened).

    Columns of key and value, and `_multiplicity` (long, never 0). InvalidUsage outside `[since, seal)`.
    """
    request = plan_as_of(state, time, event_time)
    reads.note(store, state, request, newest=time is None and event_time is None)
    updates = _updates(spark, store, request)
    return frames.snapshot(updates, _columns(state.collection), time=request.upto, event_time=request.event_upto)


def changes(
    spark: SparkSession,
    store: ObjectStore,
    state: Arrangement,
    *,
    after: int,
    upto: int | None = None,
    net: bool = False,
) -> DataFrame:
    """What was learned with `after < time <= upto`, in the columns of Spark's CHANGES.

    One row per consolidated update: key and value columns, `_change_type` (insert or delete by the sign;
    update_preimage and update_postimage where one value of a unique key replaces one other), `_commit_version` (its
    time, µs), `_commit_timestamp`, `_event_time` (µs), `diff` (its multiplicity). `net` sums over the whole interval
    and leaves the times out. InvalidUsage outside `[since, seal)`.
    """
    request = plan_changes(state, after, upto)
    reads.note(store, state, request, newest=False)
    collection = state.collection
    updates = _updates(spark, store, request)
    if net:
        summed = frames.net_changes(updates, _columns(collection), after=request.after, upto=request.upto)
        return _labelled(summed, collection, ()).withColumnRenamed("_diff", "diff")
    # Times below since are told as forwarded, whether or not a compaction has moved them there by now.
    forwarded = frames.advance(updates, state.function)
    rows = frames.changes(forwarded, _columns(collection), after=request.after, upto=request.upto)
    labelled = _labelled(rows, collection, frames.TIMES)
    return labelled.select(
        *_columns(collection),
        "_change_type",
        F.col("_time").alias("_commit_version"),
        F.timestamp_micros("_time").alias("_commit_timestamp"),
        "_event_time",
        F.col("_diff").alias("diff"),
    )


def _labelled(rows: DataFrame, collection: Collection, times: Sequence[str]) -> DataFrame:
    sign = F.when(F.col("_diff") > 0, "insert").otherwise("delete")
    if not collection.kind.one_value:
        return rows.withColumn("_change_type", sign)
    at = Window.partitionBy(*(column.name for column in collection.key), *times)
    one_for_one = (F.count("*").over(at) == 2) & (F.min("_diff").over(at) == -1) & (F.max("_diff").over(at) == 1)
    image = F.when(F.col("_diff") > 0, "update_postimage").otherwise("update_preimage")
    return rows.withColumn("_change_type", F.when(one_for_one, image).otherwise(sign))


def _columns(collection: Collection) -> list[str]:
    return [column.name for column in collection.columns]


def _updates(spark: SparkSession, store: ObjectStore, request: ReadRequest) -> DataFrame:
    """All updates the request may need, not yet filtered to it."""
    collection = request.collection
    request, parts = parts_table.opened_read(store, request)
    trace, pending = at_rest(request, parts)
    updates = _loaded(spark, store, collection, trace.parts)
    if pending.parts:
        unsealed = _loaded(spark, store, collection, pending.parts)
        updates = updates.unionByName(unsealed.where(F.col("_time") >= request.unsealed.lower))
    if tasks := resolving(request, parts, target_rows=TASK_ROWS):
        schema = from_arrow_schema(updates_schema(collection), prefer_timestamp_ntz=False)
        encoded = [encode(task) for task in tasks]
        updates = updates.unionByName(_mapped(spark, schema, encoded, _resolver(store.url, type(tasks[0]))))
    return updates


def _loaded(spark: SparkSession, store: ObjectStore, collection: Collection, parts: Sequence[Part]) -> DataFrame:
    schema = from_arrow_schema(updates_schema(collection), prefer_timestamp_ntz=False)
    if not parts:
        return spark.createDataFrame([], schema)
    # Spark's own reader finds columns by name and widens few types: what was written under an earlier declaration is
    # read by Arrow, which maps it.
    native: dict[bool, list[Part]] = {True: [], False: []}
    for part in parts:
        native["://" not in store.url and part.schema == collection.schema].append(part)
    loaded = []
    if native[True]:
        paths = (f"file://{_literally(store.url)}/{part.file.key}" for part in native[True])
        loaded.append(spark.read.schema(schema).parquet(*paths))
    if native[False]:
        tasks = [encode(part) for part in native[False]]
        loaded.append(_mapped(spark, schema, tasks, _reader(store.url, collection)))
    return reduce(DataFrame.unionByName, loaded)


def _literally(path: str) -> str:
    """A path as Spark is told it: Hadoop takes `[1]`, `{x}` and the like for patterns of names unless escaped."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


Produce = Callable[[bytes], Iterable[pa.RecordBatch]]


def _mapped(spark: SparkSession, schema: StructType, tasks: list[bytes], produce: Produce) -> DataFrame:
    """One Spark task for each encoded task, each producing record batches."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                for rows in produce(tasks[at]):
                    yield from pieces(rows, BATCH_BYTES)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, schema)


def _reader(url: str, collection: Collection) -> Produce:
    def produce(encoded: bytes) -> Iterator[pa.RecordBatch]:
        from tidemark.arrow.parts import read_groups

        part = decode(encoded, Part, name="part")
        yield from read_groups(open_store(url), part, schema=updates_schema(collection))

    return produce


def _resolver(url: str, task: type[UnsealedTask]) -> Produce:
    def produce(encoded: bytes) -> Iterator[pa.RecordBatch]:
        from tidemark.arrow.updates import updates_of

        yield from updates_of(open_store(url), decode(encoded, task, name=f"{task.kernel} task"))

    return produce
