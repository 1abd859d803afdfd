"""Updates of a frame written as parts by the executors that hold them, each in order of its own.

A task's parts have names that no other attempt uses, and its answer, their records, comes from the attempt that Spark
accepted: others leave orphans only. Where executors share the key range, their parts overlap, as those of the tasks of
an ingest do; the drain makes one run of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemark.arrow.decode.jsontexts import of_texts
from tidemark.arrow.kernels.ahead import split_ahead
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.cuts import PIECE_BYTES, sorted_pieces
from tidemark.arrow.rows.layout import buckets
from tidemark.arrow.rows.schema import BUCKET, DIFF, EVENT_TIME, TIME, key_at_rest, sort_columns, updates_schema
from tidemark.definition.computation import Computation, Written
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.model.canonical_json import NotJson
from tidemark.model.collection import Collection, Column, ColumnType, Layout
from tidemark.plan.ahead import MOST_PARTS, Cut, bucket_starts
from tidemark.spark.derive.columns import order
from tidemark.spark.derive.difference import stored
from tidemark.spark.runner import revived, travelling
from tidemark.spark.workers import in_workers
from tidemark.storage import open_store
from tidemark.storage.documents.codec import decode, encode

Batches = Iterator[pa.RecordBatch]


def written(frame: DataFrame, computation: Computation) -> list[Written]:
    """What the executors wrote of the updates, one answer for each that had any."""
    layout = computation.collection.layout
    by = [_bucket(computation.collection, layout).asc()] if layout else []
    by += [by for column in in_order(computation.collection) for by in order(column)]
    return written_in_order(frame.sortWithinPartitions(*by, F.col(TIME), F.col(EVENT_TIME)), computation)


def written_in_order(
    frame: DataFrame, computation: Computation, kernel: Callable[[Batches], Batches] | None = None
) -> list[Written]:
    """The same of updates that are in order in each partition, or that a kernel makes so of what is there: what that
    cannot compute exactly raises InvalidUsage."""
    write = _writer(computation.url, computation.collection, computation.prefix, _cut(computation))

    def run(batches: Batches) -> Batches:
        return write(batches if kernel is None else _exactly(kernel(batches)))

    answers = frame.mapInArrow(in_workers(run), "answer binary, error binary").collect()
    for row in answers:
        if row["error"] is not None:
            raise revived(bytes(row["error"]))
    return [decode(bytes(row["answer"]), Written, name="answer of a task") for row in answers]


def _exactly(batches: Batches) -> Batches:
    try:
        yield from batches
    except ArithmeticError as error:
        raise InvalidUsage(str(error)) from None


def _bucket(collection: Collection, layout: Layout) -> SparkColumn:
    """The bucket of a row (model/layout.py); Spark divides whole numbers towards 0."""
    time = F.col(f"`{layout.by}`")
    time = F.unix_micros(time) if collection.column(layout.by).type is ColumnType.TIMESTAMP else time
    bucket = F.call_function("div", time, F.lit(layout.every)) - (time % layout.every < 0).cast("long")
    return F.coalesce(bucket, F.lit(layout.bucket(None)))


def in_order(collection: Collection) -> list[Column]:
    """The columns a definition gives, as rows at rest are in order of them: key first, then by id, as a column that
    came later is behind those there were, hidden ones too, wherever a definition shows it."""
    return [*collection.key, *(column for column in collection.stored_value if column not in collection.dropped)]


def written_here(batches: Iterable[pa.RecordBatch], computation: Computation) -> list[Written]:
    """The same for updates in order that this process has."""
    collection, store = computation.collection, open_store(computation.url)
    if collection.layout:
        batches = _placed(batches, collection)
    wrote = write_updates(store, collection, computation.prefix, _cut(computation), batches)
    return [wrote] if wrote.parts else []


def _placed(batches: Iterable[pa.RecordBatch], collection: Collection) -> Iterator[pa.RecordBatch]:
    """Updates as they are at rest, where a collection is laid out by time."""
    schema = updates_schema(collection)
    pieces = [at_rest(rows, collection, schema) for rows in batches]
    if pieces:
        yield from sorted_pieces(pieces, sort_columns(collection, facts=False), most=PIECE_BYTES)


def _cut(computation: Computation) -> Cut:
    return Cut(bucket_starts(computation.upper, computation.width)[: MOST_PARTS - 1])


def _writer(url: str, collection: Collection, prefix: str, cut: Cut) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        answer, error = None, None
        try:
            wrote = write_updates(open_store(url), collection, prefix, cut, batches)
            answer = encode(wrote) if wrote.parts else None
        except TidemarkError as raised:
            error = travelling(raised)
        if answer or error:
            yield pa.RecordBatch.from_arrays(
                [pa.array([answer], pa.binary()), pa.array([error], pa.binary())], ["answer", "error"]
            )

    return run


def write_updates(
    store: Any, collection: Collection, prefix: str, cut: Cut, batches: Iterable[pa.RecordBatch]
) -> Written:
    """Write updates that come in order as parts, those ahead into parts of their own (plan/ahead.py)."""
    schema = updates_schema(collection)
    added = retracted = 0
    with ExitStack() as stack:
        writers: dict[int, PartWriter] = {}
        for batch in batches:
            rows = at_rest(batch, collection, schema)
            diffs = integers(rows, DIFF)
            added += int(diffs[diffs > 0].sum())
            retracted -= int(diffs[diffs < 0].sum())
            for number, some in split_ahead(rows, cut):
                if number not in writers:
                    made = PartWriter(
                        store,
                        prefix,
                        schema,
                        key_width=len(key_at_rest(collection)),
                        facts=False,
                        records_consolidated=True,
                    )
                    writers[number] = stack.enter_context(made)
                writers[number].write(some)
        parts = tuple(part for number in sorted(writers) for part in writers[number].close())
    return Written(parts, added, retracted)


def at_rest(batch: pa.RecordBatch, collection: Collection, schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns at rest: a dropped column is null. Raises InvalidUsage for a text that is no JSON where
    one is declared."""
    types = {column.name: column.type for column in stored(collection)}
    names = set(batch.schema.names)
    arrays = []
    for of in schema:
        if of.name == BUCKET and collection.layout:
            times = batch.column(collection.layout.by).cast(schema.field(collection.layout.by).type)
            arrays.append(pa.array(buckets(times, collection.layout)))
            continue
        if of.name not in names:
            arrays.append(pa.nulls(batch.num_rows, of.type))
            continue
        array = batch.column(of.name)
        if types.get(of.name) is ColumnType.JSON:
            array = _as_json(array, collection.name, of.name)
        arrays.append(array.cast(of.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_json(texts: pa.Array, collection: str, name: str) -> pa.Array:
    try:
        return of_texts(texts)
    except NotJson as error:
        raise InvalidUsage(
            f"column {name} of {collection} is json, and a row of its definition holds {error}"
        ) from None
