"""A frame as batches of Arrow, in order, of which a partition at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.spark.workers import in_workers

_PACKED = "_packed"


def streamed(frame: DataFrame, schema: pa.Schema, order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a frame in ascending order of some columns, in those of a schema, which are the frame's by name."""
    ordered = frame.orderBy(*(F.col(f"`{name}`") for name in order))
    for row in ordered.mapInArrow(in_workers(_packed), f"{_PACKED} binary").toLocalIterator():
        with pa.ipc.open_stream(row[0]) as stream:
            for batch in stream:
                columns = [batch.column(field.name).cast(field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()], pa.binary())], [_PACKED])
