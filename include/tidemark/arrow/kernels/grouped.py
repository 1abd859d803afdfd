"""Groups of rows in memory, told by aggregates of single columns: bit by bit what Spark tells of them, where the
definition's sums are exact (definition/exact_sum.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemark.arrow.kernels.windows.extremes import greatest, least
from tidemark.arrow.kernels.windows.ranked import different
from tidemark.arrow.kernels.windows.sums import Overflowed, counts, sums
from tidemark.arrow.kernels.windows.values import ordered
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, valid, values
from tidemark.arrow.rows.order import sort, starts
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.exact_sum import INFINITY, MINUS_INFINITY, NOT_A_NUMBER, exact_sum
from tidemark.definition.recipe import Aggregated
from tidemark.model.instant import MAX_TIME
from tidemark.model.window.aggregate import Function

Floats = npt.NDArray[np.float64]
_MOST_SIZE = 2.0**62
"""Of numbers that come to less, all taken for positive ones, no sum of some is beyond 64 bits."""


def grouped(rows: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregated]) -> pa.RecordBatch:
    """One row for each group of rows that are equal in `keys`, in order of these: the keys, null a value, and what the
    aggregates tell. Each row counts once. Raises Overflowed where a sum might not fit its type."""
    inside = sort(rows, keys)
    first = np.flatnonzero(starts(inside, keys))
    last = np.append(first[1:], inside.num_rows)[: len(first)]
    columns = [inside.column(name).take(pa.array(first)) for name in keys]
    columns += [told(one, inside, first, last) for one in aggregates]
    return pa.RecordBatch.from_arrays(columns, [*keys, *(one.name for one in aggregates)])


def told(one: Aggregated, rows: pa.RecordBatch, lo: Ints, hi: Ints) -> pa.Array:
    """What an aggregate, of any function but first and last, tells of ranges [lo, hi) of rows, each of a row or more.
    Raises as `grouped`."""
    if one.of is None:
        return pa.array(hi - lo)
    column = contiguous(rows.column(one.of))
    match one.function:
        case Function.COUNT:
            return pa.array(counts(valid(column), lo, hi))
        case Function.COUNT_DISTINCT:
            return pa.array(_different(column, lo, hi))
        case Function.MIN:
            return least(column, lo, hi)
        case Function.MAX:
            return greatest(column, lo, hi)
        case Function.SUM if pa.types.is_floating(column.type):
            return _floats(_float_sums(column, lo, hi), counts(valid(column), lo, hi) == 0)
        case Function.SUM:
            summed = _sums(column.cast(arrow_type(one.type)), lo, hi)
            return summed.fill_null(0) if one.kept else summed
        case Function.AVG:
            return _means(column, lo, hi)
    raise AssertionError(one.function)  # definition/grouped.py names no other


def _different(column: pa.Array, lo: Ints, hi: Ints) -> Ints:
    held = valid(column)
    if held is not None:
        before = np.zeros(len(column) + 1, np.int64)
        np.cumsum(held, out=before[1:])
        column, lo, hi = column.drop_null(), before[lo], before[hi]
    return different(ordered(column)[0], lo, hi)


def _sums(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """Of whole numbers and decimals. Spark stops where a part of a sum does not fit, though the whole may: so what
    might not fit in some order is not told."""
    if not pa.types.is_decimal(column.type):
        held = valid(column)
        whole = values(column) if held is None else np.where(held, values(column), 0)
        most = max(abs(int(whole.min())), abs(int(whole.max()))) if len(whole) else 0
        if most * len(whole) > MAX_TIME and _sizes(whole, lo, hi) > _MOST_SIZE:
            raise Overflowed("a sum of whole numbers may be beyond 64 bits")
    return sums(column, lo, hi)


def _sizes(whole: Ints, lo: Ints, hi: Ints) -> float:
    """The greatest sum of a range whose numbers are all taken for positive ones, about."""
    return float(np.add.reduceat(np.abs(whole.astype(np.float64)), lo).max()) if len(lo) else 0.0


def _means(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The float next to a sum, divided by how many values it is of."""
    many = counts(valid(column), lo, hi)
    if pa.types.is_floating(column.type):
        totals = _float_sums(column, lo, hi)
    else:
        totals = values(_sums(column, lo, hi).fill_null(0)).astype(np.float64)
    return _floats(totals / np.maximum(many, 1), many == 0)


def _floats(found: Floats, none: Bools) -> pa.Array:
    """Floats as a collection holds them: of values that SQL takes for equal the same one."""
    return pa.array(np.where(found == 0, 0.0, np.where(np.isnan(found), np.nan, found)), mask=none)


def _float_sums(column: pa.Array, lo: Ints, hi: Ints) -> Floats:
    held = valid(column)
    numbers = values(column) if held is None else np.where(held, values(column), 0.0)
    each: list[float] = numbers.tolist()
    return np.array([_float_sum(each[a:b]) for a, b in zip(lo.tolist(), hi.tolist(), strict=True)], np.float64)


def _float_sum(numbers: list[float]) -> float:
    """The float next to the exact sum, by `exact_sum` where Python's own says that it cannot tell."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        bits = {math.inf: INFINITY, -math.inf: MINUS_INFINITY}
        special = 0
        for one in numbers:
            special |= NOT_A_NUMBER if math.isnan(one) else bits.get(one, 0)
        found = exact_sum([0], [one for one in numbers if math.isfinite(one)], special)
        assert found is not None  # there are limbs
        return found
