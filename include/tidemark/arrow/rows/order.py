"""One total order of rows: column by column, null first, NaN next, then ascending; strings by code point, bytes as
unsigned numbers, decimals as numbers.

Arrow's `sort_indices` with nulls at the start orders so (stable, NaN between null and the least number, -0.0
equal to 0.0), and Python compares str by code point as Arrow compares UTF-8 bytes, so all layers agree.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, encoded_texts, one_batch, valid, values
from tidemark.model import decimals
from tidemark.model.key import BEHIND_NULL, NULL, Bound, Key
from tidemark.model.update import Row, Scalar

FIRST = 1_024
"""Rows of many that are looked at first, where these mostly show what is asked."""
SortKey = tuple[tuple[int, Any], ...]
_TIMES = (pa.TimestampScalar, pa.Date32Scalar)
PLAIN = 2
"""What marks a cell that is neither null nor NaN in a place: those come first."""

BY_KEY = int(pa.__version__.split(".")[0]) >= 25
"""Arrow takes the place of nulls with each sort key from 25 on, and warns of the one for all that it took before."""


def sort(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The rows in order of `columns`; equal rows stay as they were. Rows that are in order are not copied."""
    batch = one_batch(table)
    return batch if in_order(batch, columns) else batch.take(sort_indices(batch, columns))


def in_order(batch: pa.RecordBatch, columns: Sequence[str]) -> bool:
    """Whether no row is before its predecessor in the order. If they are not, the first rows mostly show it."""
    some = [batch.slice(0, FIRST), batch] if batch.num_rows > FIRST else [batch]
    return not any(wrong for rows in some for wrong, _ in neighbours(rows, columns))


def sort_indices(batch: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """By which rows to take a batch to have it in order."""
    texts = next((name for name in columns if pa.types.is_string(batch.schema.field(name).type)), None)
    if texts is not None and isinstance(batch, pa.RecordBatch):  # of further texts few are compared
        batch = batch.set_column(batch.schema.get_field_index(texts), texts, _quick(batch.column(texts)))
    if BY_KEY:
        return pc.sort_indices(batch, sort_keys=[(name, "ascending", "at_start") for name in columns])
    return pc.sort_indices(batch, sort_keys=[(name, "ascending") for name in columns], null_placement="at_start")


def _quick(column: pa.Array) -> pa.Array:
    """A column that sorts as one of texts does: their places among the different ones, where these are few."""
    encoded = encoded_texts(column)
    if encoded is None:
        return column
    places = np.empty(len(encoded.dictionary), np.int64)
    places[values(pc.sort_indices(encoded.dictionary))] = np.arange(len(places))
    return of_numbers(places).take(encoded.indices)


def starts(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Bools:
    """Where a row differs from the row before it in any of `columns`; the first row always does.

    Null equals null and NaN equals NaN.
    """
    differs = np.zeros(table.num_rows, bool)
    differs[:1] = True
    if table.num_rows < 2:
        return differs
    for name in columns:
        if differs.all():
            break
        differs[1:] |= _differs(contiguous(table.column(name)))
    return differs


def last_start(rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> int:
    """The first of the last rows, those equal in `columns`. Mostly they are few, so the last are looked at first."""
    first = max(0, rows.num_rows - FIRST)
    at = int(np.flatnonzero(starts(rows.slice(first), columns))[-1])
    return first + at if at or not first else int(np.flatnonzero(starts(rows, columns))[-1])


def unsorted(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> int:
    """How many rows are before their predecessor in the order."""
    return sum(wrong for wrong, _ in neighbours(table, columns))


def neighbours(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[int, Bools]]:
    """Column by column: how many rows are before their predecessor by this one, and `starts` of the columns up to it
    (one array, which grows with each)."""
    differs = np.zeros(table.num_rows, bool)
    differs[:1] = True
    for name in columns:
        wrong, undecided = 0, ~differs[1:]
        if undecided.any():
            array = contiguous(table.column(name))
            here = undecided & _differs(array)
            wrong = int(np.count_nonzero(here & _descends(array))) if here.any() else 0
            differs[1:] |= here
        yield wrong, differs


def ranks(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> Ints:
    """For each row the number of distinct rows before its own in the order: equal for equal rows, from 0."""
    batch = one_batch(table).select(list(columns))
    permutation = sort_indices(batch, columns)
    numbers = np.empty(batch.num_rows, np.int64)
    numbers[values(permutation)] = np.cumsum(starts(batch.take(permutation), columns)) - 1
    return numbers


def sort_key_at(batch: pa.RecordBatch, row: int, columns: Sequence[str]) -> SortKey:
    """A row's place in the order as a value that Python compares alike."""
    return sort_key_of(tuple(_cell(batch.column(name)[row]) for name in columns))


def sort_key_of(row: Row | Bound) -> SortKey:
    """The place of plain scalars, be they of a key; behind null is where NaN is."""
    return tuple(
        (0, 0) if x is None or x is NULL else (1, 0) if x is BEHIND_NULL or x != x else (PLAIN, x) for x in row
    )


def rows_before(batch: pa.RecordBatch, bound: SortKey, columns: Sequence[str]) -> int:
    """How many rows of a sorted batch are before the place."""
    return _rows_to(batch, bound, columns, behind=False)


def rows_up_to(batch: pa.RecordBatch, bound: SortKey, columns: Sequence[str]) -> int:
    """How many rows of a sorted batch are before the place or at it."""
    return _rows_to(batch, bound, columns, behind=True)


def rows_around(batch: pa.RecordBatch, keys: Sequence[Key], columns: Sequence[str]) -> tuple[Ints, Ints]:
    """For each of some keys, as metadata has them: how many rows of a sorted batch are before it; before it or at
    it."""
    first = batch.column(columns[0])
    if not keys or keys[0][0] is NULL or not pa.types.is_int64(first.type) or first.null_count:
        before, up_to = np.zeros(len(keys), np.int64), np.full(len(keys), batch.num_rows)
    else:
        numbers, sought = values(first), np.array([key[0] for key in keys], np.int64)
        before, up_to = np.searchsorted(numbers, sought, "left"), np.searchsorted(numbers, sought, "right")
    for at in np.flatnonzero(before < up_to).tolist():
        bound = sort_key_of(keys[at])
        before[at], up_to[at] = rows_before(batch, bound, columns), rows_up_to(batch, bound, columns)
    return before, up_to


def _rows_to(batch: pa.RecordBatch, bound: SortKey, columns: Sequence[str], *, behind: bool) -> int:
    """How many rows of a sorted batch are before a place, and with `behind` at it: column by column, among the rows
    that are equal to the place in those before. A place that has fewer columns than rows is before all that begin as
    it does, and one that has more is behind these."""
    low, high = 0, batch.num_rows
    for name, cell in zip(columns, bound, strict=False):
        low, high = _equal(batch.column(name), cell, low, high)
        if low == high:
            return low
    return high if len(bound) > len(columns) or (behind and len(bound) == len(columns)) else low


def _equal(column: pa.Array, cell: tuple[int, Any], low: int, high: int) -> tuple[int, int]:
    """From which to which row of [low, high), which are in order of a column, this has a value; the same number twice
    where it has none, that of the rows before it."""
    kind, value = cell
    if kind == PLAIN and _counted(column.type) and not column.null_count:
        numbers = values(column)[low:high]
        if not -(2**63) <= value < 2**63:  # as the place behind the greatest number
            return (low, low) if value < 0 else (high, high)
        return low + int(np.searchsorted(numbers, value, "left")), low + int(np.searchsorted(numbers, value, "right"))
    key = _sort_keys(column)
    first = bisect_left(range(high), cell, low, high, key=key)
    if first == high or key(first) != cell:
        return first, first
    return first, bisect_right(range(high), cell, first + 1, high, key=key)


def _counted(of: pa.DataType) -> bool:
    """Whether values are numbers that NumPy compares as their cells are."""
    return bool(pa.types.is_int64(of) or pa.types.is_timestamp(of))


def _sort_keys(column: pa.Array) -> Callable[[int], tuple[int, Any]]:
    """The place of a row in the order of a column."""
    if pa.types.is_string(column.type) and not column.null_count:
        return lambda row: (PLAIN, column[row].as_py())
    return lambda row: sort_key_of((_cell(column[row]),))[0]


def _cell(cell: pa.Scalar) -> Scalar:
    # As plain_scalars; `value` is the plain integer of a timestamp or a date, where `as_py` makes an object of it.
    plain: Any = cell.value if isinstance(cell, _TIMES) else cell.as_py()
    if isinstance(plain, Decimal):
        plain = decimals.count(plain, cell.type.scale)
    scalar: Scalar = plain.hex() if isinstance(plain, bytes) else plain
    return scalar


def _differs(array: pa.Array) -> Bools:
    """Whether each element but the first differs from the one before."""
    before, after = array.slice(0, len(array) - 1), array.slice(1)
    if _compared_by_arrow(array.type):
        differs = _bools(pc.not_equal(before, after))
    else:
        left, right = values(before), values(after)
        differs = left != right
        if pa.types.is_floating(array.type):
            differs &= ~(np.isnan(left) & np.isnan(right))
    known = valid(array)
    if known is not None:
        differs = np.where(known[:-1] & known[1:], differs, known[:-1] != known[1:])
    return np.asarray(differs)


def _descends(array: pa.Array) -> Bools:
    """Whether each element but the first is below the one before; of use only where the two differ."""
    before, after = array.slice(0, len(array) - 1), array.slice(1)
    if _compared_by_arrow(array.type):
        descends = _bools(pc.greater(before, after))
    else:
        left, right = values(before), values(after)
        descends = left > right
        if pa.types.is_floating(array.type):
            descends |= ~np.isnan(left) & np.isnan(right)
    known = valid(array)
    if known is not None:
        descends = np.where(known[:-1] & known[1:], descends, known[:-1])
    return np.asarray(descends)


def _compared_by_arrow(of: pa.DataType) -> bool:
    """Whether values are no numbers that NumPy has."""
    return bool(pa.types.is_string(of) or pa.types.is_binary(of) or pa.types.is_decimal(of))


def _bools(array: pa.Array) -> Bools:
    return values(array)
