"""Rows at one instant, put together, where the aggregates have parts (parts.py): what is left to slide over is
about as many rows as there are instants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.parts import finals, merged_of, parts_of
from tidemark.arrow.kernels.aggregates.ranges import Ranges, aggregated
from tidemark.arrow.rows.columns import contiguous
from tidemark.arrow.rows.order import starts
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.window.aggregate import Function


@dataclass(frozen=True)
class AtInstants:
    """Rows that are together in some columns, put together, and what to compute of these: `aggregates` of rows are
    `merged` of their `parts`. Without parts rows stay as they are."""

    together: tuple[str, ...]
    aggregates: tuple[AggregateColumn, ...]
    parts: tuple[AggregateColumn, ...] | None
    merged: tuple[AggregateColumn, ...]

    @classmethod
    def of(cls, schema: pa.Schema, together: Sequence[str], aggregates: Sequence[AggregateColumn]) -> AtInstants:
        """How rows of this schema are put together."""
        types = dict(zip(schema.names, schema.types, strict=True))
        parts, asked = parts_of(aggregates, types, of_instants=True), tuple(aggregates)
        return cls(tuple(together), asked, parts, asked if parts is None else merged_of(asked, parts))

    def put_together(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a batch, which come in order. Raises Overflowed where a sum might not fit its type."""
        if self.parts is None or not rows.num_rows:
            return rows
        begins = starts(rows, self.together)
        first = np.flatnonzero(begins)
        if len(first) == rows.num_rows:
            columns = [_single(one, rows) for one in self.parts]
        else:
            ranges = Ranges(first, np.append(first[1:], rows.num_rows), np.zeros(rows.num_rows, np.int64), begins)
            columns = [aggregated(one, rows, ranges) for one in self.parts]
            rows = rows.take(pa.array(first))
        names = [*self.together, *(one.name for one in self.parts)]
        return pa.RecordBatch.from_arrays([*(rows.column(name) for name in self.together), *columns], names)

    def finals(self, found: pa.RecordBatch) -> list[pa.Array]:
        """The aggregates of rows, of those of their parts."""
        if self.parts is None:
            return [found.column(one.name) for one in self.aggregates]
        return finals(found, self.aggregates)


def peeked(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Schema | None, Iterator[pa.RecordBatch]]:
    """The schema of a stream, None if nothing comes, and the stream."""
    stream = iter(batches)
    first = next(stream, None)
    return (None, stream) if first is None else (first.schema, chain([first], stream))


def _single(one: AggregateColumn, rows: pa.RecordBatch) -> pa.Array:
    """A part of each row, where no two are put together."""
    if one.of is None:
        return pa.array(np.ones(rows.num_rows, np.int64))
    column = contiguous(rows.column(one.of))
    if one.function is Function.COUNT:
        return column.is_valid().cast(pa.int64())
    if one.in_parts:
        known = column.is_valid()
        offsets = np.concatenate([[0], np.cumsum(known.to_numpy(zero_copy_only=False))])
        of = pa.array(offsets, pa.int32())
        return pa.ListArray.from_arrays(of, column.drop_null().cast(pa.float64()), mask=pc.invert(known))
    if one.function is Function.SUM:
        total = column.cast(arrow_type(one.type))
        return total.fill_null(0) if one.kept else total
    return column
