"""Which row groups of an opened part a read needs, by the statistics in its footer, and which of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.columns import Bools, valid, values
from tidemark.arrow.rows.fields import field_id
from tidemark.model.chunk.bounds import ALL_NULL, Bounds
from tidemark.model.chunk.law import Span

DAY = 86_400_000_000


@dataclass(frozen=True)
class Spanned:
    """Rows with a value in every one of some spans, whose columns are those of `fields` today: whole numbers, days or
    microseconds."""

    spans: tuple[Span, ...] = ()
    fields: tuple[pa.Field, ...] = ()

    def among(self, part: OpenedPart, groups: Sequence[int]) -> Sequence[int]:
        """Those of some row groups of a part that can hold such a row."""
        for span, field in zip(self.spans, self.fields, strict=True):
            if groups:
                known = group_bounds(part, field, groups)
                groups = [group for group, bounds in zip(groups, known, strict=True) if span.meets(bounds)]
        return groups

    def holding(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Of some rows such ones, by those of the columns that they have."""
        held: Bools | None = None
        for span, field in zip(self.spans, self.fields, strict=True):
            at = rows.schema.get_field_index(field.name)
            if at >= 0:
                inside = _inside(rows.column(at), span)
                held = inside if held is None else held & inside
        return rows if held is None or held.all() else rows.filter(pa.array(held))


NO_SPANS = Spanned()


def spannable(of: pa.DataType) -> bool:
    """Whether columns of a type may have spans: what Parquet stores as whole numbers."""
    return bool(pa.types.is_int64(of) or pa.types.is_date32(of) or pa.types.is_timestamp(of))


def group_bounds(part: OpenedPart, field: pa.Field, groups: Sequence[int]) -> list[Bounds | None]:
    """Of some row groups the bounds of a column as it is today, None where the footer does not tell. A part that lacks
    the column has only nulls there."""
    source = _source(part.schema, field)
    if source is None:
        return [ALL_NULL] * len(groups)
    unit = DAY if pa.types.is_date32(source.type) and pa.types.is_timestamp(field.type) else 1
    if source.type != field.type and unit == 1:
        return [None] * len(groups)
    at = part.schema.get_field_index(source.name)
    return [_of_group(part, group, at, unit) for group in groups]


def _source(held: pa.Schema, field: pa.Field) -> pa.Field | None:
    number = field_id(field)
    return next((some for some in held if field_id(some) == number), None)


def _of_group(part: OpenedPart, group: int, at: int, unit: int) -> Bounds | None:
    column = part.metadata.row_group(group).column(at)
    told = column.statistics
    if told is None:
        return None
    nulls = told.null_count if told.has_null_count else 0
    if told.has_min_max:
        return Bounds(int(told.min_raw) * unit, int(told.max_raw) * unit, nulls)
    return Bounds(None, None, nulls) if told.has_null_count and nulls == column.num_values else None


def _inside(column: pa.Array, span: Span) -> Bools:
    numbers = values(column)
    inside = np.zeros(len(numbers), bool)
    for lower, upper in span.intervals:
        within = np.ones(len(numbers), bool) if lower is None else numbers >= lower
        inside |= within if upper is None else within & (numbers <= upper)
    known = valid(column)
    return inside if known is None else inside & known
