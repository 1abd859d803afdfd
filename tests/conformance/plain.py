"""The vectors' plain values as Tidemark's, and back: updates, frontiers, parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from tidemark.arrow.parts.reader import read_groups
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import sort_columns, updates_schema
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.frontier import EMPTY
from tidemark.model.update import Update
from tidemark.storage.stores.store import ObjectStore

COLLECTION = Collection(
    "vectors",
    (Column("key", ColumnType.STRING),),
    (Column("value", ColumnType.STRING),),
    Landed(Source("*", Format.JSONL, Envelope.UPDATES)),
    compact_ahead=False,
)
UNIT = "\0unit"
"""A key or value that carries nothing: the vectors' null. A key of ours is never null."""

Plain = list[Any]
"""An update of the vectors: [key, value, time, diff]."""


def frontier(time: int) -> int | None:
    """The vectors' frontier: null where it is the empty one."""
    return None if time == EMPTY else time


def frontier_of(value: int | None) -> int:
    return EMPTY if value is None else value


def update_of(plain: Plain) -> Update:
    """There is one time in the vectors: what was learned happened then."""
    key, value, time, diff = plain
    return Update((UNIT if key is None else key,), (UNIT if value is None else value,), time, time, diff)


def rows_of(updates: Iterable[Plain]) -> pa.RecordBatch:
    """The updates at rest, sorted."""
    cells = [(*u.key, *u.value, u.time, u.event_time, u.diff) for u in map(update_of, updates)]
    schema = updates_schema(COLLECTION)
    columns = zip(*cells, strict=True) if cells else [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return sort(pa.RecordBatch.from_arrays(arrays, schema=schema), sort_columns(COLLECTION, facts=False))


def plain_rows(batches: Iterable[pa.RecordBatch]) -> list[Plain]:
    """Rows as the vectors write them, in order."""
    cells = [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
    return [[*(None if cell == UNIT else cell for cell in row[:2]), row[2], row[4]] for row in cells]


def write(store: ObjectStore, prefix: str, updates: Sequence[Plain]) -> tuple[Part, ...]:
    """The updates as a part, if there are any."""
    rows = rows_of(updates)
    with PartWriter(store, prefix, rows.schema, key_width=1, facts=False) as writer:
        writer.write(rows)
        return writer.close()


def read(store: ObjectStore, parts: Iterable[Part]) -> list[pa.RecordBatch]:
    """The rows of parts, as they are."""
    return [rows for part in parts for rows in read_groups(store, part)]


def multiset(updates: Iterable[Plain]) -> list[Plain]:
    """Sorted, so that equal multisets are equal lists."""
    return sorted((list(update) for update in updates), key=lambda u: [(cell is not None, cell) for cell in u])
