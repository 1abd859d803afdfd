"""Which row groups of an opened part a read needs, by the statistics in its footer, and which of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.parts.bounds import chunk_bounds
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.arrays import of_bools
from tidemark.arrow.rows.columns import Bools, valid, values
from tidemark.model.chunk.law import Span


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
                known = chunk_bounds(part, field, groups)
                groups = [group for group, bounds in zip(groups, known, strict=True) if span.meets(bounds)]
        return groups

    def holding(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Of some rows such ones, by those of the columns that they have."""
        fitting: Bools | None = None
        for span, field in zip(self.spans, self.fields, strict=True):
            at = rows.schema.get_field_index(field.name)
            if at >= 0:
                inside = _inside(rows.column(at), span)
                fitting = inside if fitting is None else fitting & inside
        return rows if fitting is None or fitting.all() else rows.filter(of_bools(fitting))


NO_SPANS = Spanned()


def spannable(of: pa.DataType) -> bool:
    """Whether columns of a type may have spans: what Parquet stores as whole numbers."""
    return bool(pa.types.is_int64(of) or pa.types.is_date32(of) or pa.types.is_timestamp(of))


def _inside(column: pa.Array, span: Span) -> Bools:
    numbers = values(column)
    inside = np.zeros(len(numbers), bool)
    for lower, upper in span.intervals:
        within = np.ones(len(numbers), bool) if lower is None else numbers >= lower
        inside |= within if upper is None else within & (numbers <= upper)
    known = valid(column)
    return inside if known is None else inside & known
