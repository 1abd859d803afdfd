"""Questions about all rows of a key at scale, where rows are laid out by time: rows of a key are then in many buckets,
so that they are brought together by a shuffle. What cannot answer is left out before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from tidemark.arrow.latest import candidates_of, latest_among
from tidemark.arrow.point_in_time import Join, check_knowledge, joined_to_rows, updates_asked, within_times
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.digest import row_hashes
from tidemark.arrow.rows.probes import Asking, keys_in, probes_of
from tidemark.arrow.rows.schema import DIFF, some_of, updates_schema
from tidemark.arrow.winners import Latest, latest_schema
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.read import ReadRequest
from tidemark.plan.tasks import ReadTask
from tidemark.spark.read import LEAST_TASK_ROWS, cores, merged_rows
from tidemark.spark.workers import in_workers
from tidemark.storage.stores.store import ObjectStore


def latest_frame(spark: SparkSession, store: ObjectStore, request: ReadRequest, ask: Latest) -> DataFrame:
    """The latest row of each key within the spans of a request, in the columns of `latest_schema`."""
    collection, schema = request.collection, updates_schema(request.collection)

    def found(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return candidates_of(store, task, ask)

    def latest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return latest_among((rows.cast(read) for rows in batches if rows.num_rows), collection, ask)

    read = some_of(schema, [*ask.read(collection), DIFF])
    frame = merged_rows(spark, store, request, read, found)
    by_key = frame.repartition(*(F.col(f"`{column.name}`") for column in collection.key))
    return by_key.mapInArrow(
        in_workers(latest), from_arrow_schema(latest_schema(collection, ask), prefer_timestamp_ntz=False)
    )


def joined_frame(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    probes: DataFrame,
    asking: Asking,
    join: Join,
    schema: pa.Schema,
) -> DataFrame:
    """The rows of `probes`, each with the latest row of its key, in the columns of `schema`: rows and probes go where
    the hash of their key says."""
    collection, names = request.collection, join.columns(request.collection)
    key = [column.name for column in collection.key]
    function, seal, count = request.function, request.upto + 1, _groups(spark, request)
    number = "_task"
    while number in (*schema.names, *probes.columns):
        number += "_"

    def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(number, _numbers(keys_in(batch, asking), count))

    def read(store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        for rows in updates_asked(store, within_times(task, join.ask.timeline, (None, None)), join):
            yield rows.select(names).append_column(number, _numbers(rows.select(key), count))

    def answered(rows: pa.Table, table: pa.Table) -> pa.Table:
        table = table.drop_columns([number])
        own = probes_of(table, asking)
        check_knowledge(own, function, seal)
        found = [] if not rows.num_rows else [one_batch(rows.select(names).cast(updates))]
        return pa.Table.from_batches(joined_to_rows(found, collection, table, own, join, schema), schema)

    updates = pa.schema([updates_schema(collection).field(name) for name in names])
    rows = merged_rows(spark, store, request, updates.append(pa.field(number, pa.int64(), False)), read)
    with_number = StructType([*probes.schema.fields, StructField(number, LongType(), False)])
    asked = probes.mapInArrow(in_workers(numbered), with_number).groupBy(number)
    found = rows.groupBy(number).cogroup(asked)
    return found.applyInArrow(answered, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def _numbers(keys: pa.RecordBatch, count: int) -> pa.Array:
    """To which of so many groups each key belongs."""
    return pa.array((row_hashes(keys) % np.uint64(count)).astype(np.int64))


def _groups(spark: SparkSession, request: ReadRequest) -> int:
    """Groups of about as many rows as a task has."""
    rows = sum(batch.rows for batch in request.trace) + sum(batch.rows for batch in request.unsealed.batches)
    return max(1, -(-rows // TASK_ROWS), min(cores(spark), -(-rows // LEAST_TASK_ROWS)))
