"""Frames that go through a kernel of ours on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from tidemark.errors import InvalidUsage
from tidemark.spark.workers import in_workers

Batches = Iterator[pa.RecordBatch]
_ERROR = "_error"


def through(frame: DataFrame, kernel: Callable[[Batches], Batches], schema: T.StructType) -> DataFrame:
    """What a kernel makes of each partition of a frame, in columns of `schema`, by name. What it says is wrong about
    the rows is raised by Spark, as what a definition raises is."""
    arrow, names = to_arrow_schema(schema, timezone="UTC"), schema.names
    with_error = pa.schema([*arrow, pa.field(_ERROR, pa.string())])

    def run(batches: Batches) -> Batches:
        try:
            for batch in kernel(batches):
                columns = [batch.column(name).cast(arrow.field(name).type) for name in names]
                yield pa.RecordBatch.from_arrays([*columns, pa.nulls(len(batch), pa.string())], schema=with_error)
        except (InvalidUsage, ArithmeticError) as error:
            nothing = [pa.nulls(1, field.type) for field in arrow]
            yield pa.RecordBatch.from_arrays([*nothing, pa.array([str(error)])], schema=with_error)

    # A row that reports an error has nothing else.
    fields = [T.StructField(field.name, field.dataType) for field in schema.fields]
    made = frame.mapInArrow(in_workers(run), T.StructType([*fields, T.StructField(_ERROR, T.StringType())]))
    error = F.col(_ERROR)
    raised = F.when(error.isNull(), F.lit(True)).otherwise(F.raise_error(error).cast("boolean"))
    return made.where(raised).drop(_ERROR)
