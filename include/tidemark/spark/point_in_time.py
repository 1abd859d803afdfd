"""The point-in-time join at scale: probes go to where rows are, one key range a task.

Each probe is given the number of the task in whose range its key is, and the probes of one number are brought together
by a shuffle: of probes only, rows stay where they are. A task then has its probes in memory, and reads the rows of its
range once (arrow/point_in_time.py). The driver gets nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from tidemark.arrow.point_in_time import Join, check_knowledge, joined_to
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.probes import Asking, keys_in, probes_of
from tidemark.arrow.rows.schema import key_column_of
from tidemark.errors import InvalidUsage
from tidemark.model.key import BehindNull, Bound, Key
from tidemark.plan.read import ReadRequest
from tidemark.plan.tasks import ReadTask
from tidemark.spark import scattered
from tidemark.spark.read import cores, tasks_of
from tidemark.spark.workers import in_workers
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.documents.codec import decode, encode
from tidemark.storage.sidecars import parts_table


def schema_of(frame: DataFrame) -> pa.Schema:
    """The columns of a data frame as Arrow has them."""
    try:
        schema: pa.Schema = to_arrow_schema(frame.schema, timezone="UTC")
    except PySparkException as error:
        raise InvalidUsage(
            f"at: a column of the data frame has no type of Arrow: {str(error).splitlines()[0]}"
        ) from None
    return schema


def joined_frame(
    spark: SparkSession,
    store: ObjectStore,
    request: ReadRequest,
    probes: DataFrame | pa.Table,
    asking: Asking,
    join: Join,
    schema: pa.Schema,
) -> DataFrame:
    """The rows of `probes`, each with the latest row of its key, in the columns of `schema`."""
    frame = _made(spark, probes) if isinstance(probes, pa.Table) else probes
    if request.collection.layout:
        return scattered.joined_frame(spark, store, request, frame, asking, join, schema)
    request, parts = parts_table.opened_read(store, request)
    tasks = tasks_of(cores(spark), request, parts, leading=len(request.collection.key))
    encoded, url = [encode(task) for task in tasks], store.url
    lowers = [_key(task.keys.lower) for task in tasks[1:]]
    number = "_task"
    while number in schema.names:
        number += "_"

    def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(number, pa.array(_task_numbers(keys_in(batch, asking), lowers)))

    def answered(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        table = table.drop_columns([number])
        task = decode(encoded[key[0].as_py()], ReadTask, name="read task")
        own = probes_of(table, asking)
        check_knowledge(own, task.function, task.upto + 1)
        answer = joined_to(open_store(url), [task], table, own, join, schema)
        return pa.Table.from_batches(answer, schema)

    with_number = StructType([*frame.schema.fields, StructField(number, LongType(), False)])
    grouped = frame.mapInArrow(in_workers(numbered), with_number).groupBy(number)
    return grouped.applyInArrow(answered, from_arrow_schema(schema, prefer_timestamp_ntz=True))


def _made(spark: SparkSession, table: pa.Table) -> DataFrame:
    try:
        return spark.createDataFrame(table)
    except (PySparkException, pa.ArrowException) as error:
        said = (str(error).splitlines() or [""])[0]
        raise InvalidUsage(f"at: Spark cannot have the table as a data frame: {said}") from None


def _key(lower: Bound | None) -> Key:
    """Where a range of keys begins that was cut at one."""
    return tuple(scalar for scalar in lower or () if not isinstance(scalar, BehindNull))


def _task_numbers(keys: pa.RecordBatch, lowers: Sequence[Key]) -> Ints:
    """In which of some ranges of keys each key is, by where all but the first begin. Nulls are before all keys."""
    names = keys.schema.names
    if not lowers:
        return np.zeros(keys.num_rows, np.int64)
    bounds = [key_column_of(some, of) for some, of in zip(zip(*lowers, strict=True), keys.schema.types, strict=True)]
    numbers = ranks(joined([keys, pa.RecordBatch.from_arrays(bounds, names)]), names)
    return np.searchsorted(numbers[keys.num_rows :], numbers[: keys.num_rows], "right").astype(np.int64)
