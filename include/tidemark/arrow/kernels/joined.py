"""Joins of rows in memory with a side that is small: inner ones, and left ones, which keep the rows that equal none.
Each row has a diff: that of a joined row is the product of those of its sides.

rows     carrier  flight  DIFF      side     carrier2  name     DIFF      joined   UA  1  United   +1
         UA       1       +1                 UA        United   +1                 UA  2  United   -1
         UA       2       -1                 AA        American +1        left     ZZ  3  null     +1
         ZZ       3       +1

The different values of a side's columns are numbered once, and rows are brought to these numbers batch by batch: so
rows stay in their order, and what is in memory besides is a batch and the side. A null equals nothing; floats are equal
as SQL has it: -0.0 equals 0.0, and a NaN the NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.arrays import of_numbers, scalar_of
from tidemark.arrow.rows.columns import Ints, contiguous, one_batch, replaced, values
from tidemark.arrow.rows.schema import DIFF

_OTHER = "_diff_of_other"
_NONE, _ONCE = scalar_of(-1, pa.int32()), scalar_of(1, pa.int64())


def canonical(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column in which floats that SQL takes for equal are one: -0.0 is 0.0, a NaN is the one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    zero, nan = scalar_of(0.0, column.type), scalar_of(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.if_else(pc.equal(column, zero), zero, column))


class Values:
    """The different values that rows have in some columns, null in none of them, numbered from 0. `own` are the numbers
    of these rows, -1 where one is null."""

    def __init__(self, rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> None:
        self.own = np.zeros(rows.num_rows, np.int64)
        self._levels: list[tuple[pa.Array, Ints]] = []
        """Column by column: its different values, and which pairs there are of a number by the columns before it and a
        place among these values, each pair as one whole number, in order."""
        for name in columns:
            column = canonical(contiguous(rows.column(name)))
            different = column.drop_null().unique()
            pairs = _pairs(self.own, column, different)
            present = np.unique(pairs[pairs >= 0])
            self._levels.append((different, present))
            self.own = _places(pairs, present)

    def numbers(self, rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Ints:
        """The numbers of the values that other rows have in columns of the same types; -1 where there are none."""
        found = np.zeros(rows.num_rows, np.int64)
        for name, (different, present) in zip(columns, self._levels, strict=True):
            found = _places(_pairs(found, canonical(contiguous(rows.column(name))), different), present)
        return found


def _pairs(numbers: Ints, column: pa.Array, different: pa.Array) -> Ints:
    """Numbers and the places of a column's values among the different ones, as one number each; -1 without either."""
    at = values(pc.index_in(column, different, skip_nulls=True).fill_null(_NONE))
    return np.where((numbers < 0) | (at < 0), -1, numbers * max(1, len(different)) + at)


def _places(pairs: Ints, present: Ints) -> Ints:
    """The place of each pair among those that are present; -1 where it is not."""
    if not len(present):
        return np.full(len(pairs), -1, np.int64)
    at = np.minimum(np.searchsorted(present, pairs), len(present) - 1)
    return np.where(present[at] == pairs, at, -1)


class Side:
    """Rows, with DIFF, that others are joined with where these pairs of columns, of the others and of its own, are
    equal. With `keeps_all` the others stay where they equal none: its columns are null then."""

    def __init__(self, rows: pa.Table, equal: Sequence[tuple[str, str]], *, keeps_all: bool = False) -> None:
        self.of_others, own = zip(*equal, strict=True)
        batch = one_batch(rows)
        self._values = Values(batch, own)
        numbers = self._values.own
        order = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
        counts = np.bincount(numbers[order]).astype(np.int64)
        self._times, self._begins = np.append(counts, int(keeps_all)), np.append(np.cumsum(counts) - counts, 0)
        called = [_OTHER if name == DIFF else name for name in batch.schema.names]
        self._rows = batch.take(of_numbers(order)).rename_columns(called)

    def joined(self, rows: pa.Table | pa.RecordBatch, *, most: int) -> pa.RecordBatch | None:
        """The rows, with DIFF, that it keeps, in their order, with all columns of both; None where they would be more
        than `most`. The two have no column in common but DIFF. Raises Overflowed for a diff beyond 64 bits."""
        rows = one_batch(rows)
        numbers = self._values.numbers(rows, self.of_others)
        times = self._times[numbers]
        if times.sum() > most:
            return None
        begins = self._begins[numbers]
        if not (times == 1).all():
            again = np.repeat(np.arange(len(times)), times)
            firsts = np.cumsum(times) - times
            begins = begins[again] + np.arange(len(again)) - firsts[again]
            rows, numbers = rows.take(of_numbers(again)), numbers[again]
        other = self._rows.take(of_numbers(begins, numbers < 0))
        try:
            diffs = pc.multiply_checked(rows.column(DIFF), other.column(_OTHER).fill_null(_ONCE))
        except pa.ArrowInvalid:
            raise Overflowed("the multiplicity of a joined row is beyond 64 bits") from None
        other = other.drop_columns([_OTHER])
        both = pa.RecordBatch.from_arrays([*rows.columns, *other.columns], [*rows.schema.names, *other.schema.names])
        return replaced(both, DIFF, values(diffs))
