"""Aggregates of ranges of rows: all that windows and groups compute of their rows, whatever the kind.

Rows are in order of key and instant, so that a group, a session and a sliding window are each a range [lo, hi) of them,
and ranges may overlap. No function reads a range row by row: counts and sums are differences of running sums, extremes
those of two ranges of a power of two (extremes.py), distinct values and quantiles walks over bits (ranked.py).

    row      0   1   2   3   4        instants begin at rows 0, 2 and 3
    delay    5   -   9   1   4        [0, 3)  count 2, sum 14, first 5, last 9
    at       1   1   2   7   7        [2, 5)  count 3, sum 14, first 9, last 4, collect [9,1,4]

Nulls are left out of all but a count of rows. Bit by bit the results are Spark's, where a definition's sums are exact
(definition/exact_sum.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.extremes import greatest, least
from tidemark.arrow.kernels.aggregates.float_sums import (
    Floats,
    float_parts,
    float_sums,
    none_known,
    parts_of_parts,
    sums_of_parts,
)
from tidemark.arrow.kernels.aggregates.ranked import different, kth
from tidemark.arrow.kernels.aggregates.sums import Overflowed, counts, sums
from tidemark.arrow.kernels.aggregates.texts import Texts
from tidemark.arrow.kernels.aggregates.values import ordered
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, valid, values, words
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.collection import MAX_PRECISION, DecimalType, ValueType
from tidemark.model.window.aggregate import Function
from tidemark.model.window.quantile import DIGITS

_DIGITS = 100
"""More than any total of decimals has, in units of its mean."""


@dataclass(frozen=True)
class Ranges:
    """Ranges [lo, hi) of rows, each of a row or more, none of which cuts an instant. `at` is the instant of each row,
    and `begins` where rows of another key than the row before begin, for functions that ask for the order of rows."""

    lo: Ints
    hi: Ints
    at: Ints
    begins: Bools

    @cached_property
    def runs(self) -> Ints:
        """Where rows of another key or instant than the row before begin."""
        first = self.begins.copy()
        first[:1] = True
        first[1:] |= self.at[1:] != self.at[:-1]
        return np.flatnonzero(first)


def aggregated(aggregate: AggregateColumn, rows: pa.RecordBatch, ranges: Ranges) -> pa.Array:
    """The value of an aggregate for each range; a sum is also computed from sums that came in parts. Raises Overflowed
    where a value does not fit its type: Spark may stop at a part of a sum that does not, though the whole does."""
    lo, hi = ranges.lo, ranges.hi
    if aggregate.of is None:
        return pa.array(hi - lo)
    column = contiguous(rows.column(aggregate.of))
    match aggregate.function:
        case Function.COUNT:
            return pa.array(counts(valid(column), lo, hi))
        case Function.MIN:
            return least(column, lo, hi)
        case Function.MAX:
            return greatest(column, lo, hi)
        case Function.SUM:
            return _sum(aggregate, column, lo, hi)
        case Function.AVG:
            return _mean(aggregate, column, lo, hi)
        case Function.FIRST:
            return _first(column, ranges)
        case Function.LAST:
            return _last(column, ranges)
        case Function.COLLECT:
            return Collected.of_rows(aggregate, rows, ranges).of(lo, hi)
        case Function.COUNT_DISTINCT | Function.APPROX_DISTINCT:
            known_values, first, last = _known(column, lo, hi)
            return pa.array(different(ordered(known_values)[0], first, last))
        case Function.APPROX_QUANTILE:
            return _quantile(aggregate, column, lo, hi)


def _sum(aggregate: AggregateColumn, column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    if pa.types.is_list(column.type):
        if aggregate.in_parts:
            return parts_of_parts(column, lo, hi)
        return _floats(sums_of_parts(column, lo, hi), none_known(column, lo, hi))
    if aggregate.in_parts:
        return float_parts(column, lo, hi)
    if pa.types.is_floating(column.type):
        return _floats(float_sums(column, lo, hi), none_known(column, lo, hi))
    totals = sums(column.cast(arrow_type(aggregate.type)), lo, hi)
    return totals.fill_null(0) if aggregate.kept else totals


def _mean(aggregate: AggregateColumn, column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    many = counts(valid(column), lo, hi)
    if pa.types.is_floating(column.type):
        return means(aggregate.type, pa.array(float_sums(column, lo, hi)), many)
    wide = arrow_type(total_type(column.type))
    return means(aggregate.type, sums(column.cast(wide), lo, hi), many)


def total_type(type_: pa.DataType) -> DecimalType:
    """What the values of a mean add up to, that are no floats: the sum of whole numbers may be beyond 64 bits where
    their mean is not."""
    return DecimalType(MAX_PRECISION, type_.scale if pa.types.is_decimal(type_) else 0)


def means(type_: ValueType, totals: pa.Array, many: Ints) -> pa.Array:
    """Totals, floats or decimals, each divided by its number of values. Of floats and whole numbers that is the float
    next to the total, divided; of decimals a quotient of the digits that the type has behind the point, of two as near
    the one that is further from 0. Raises Overflowed for a mean that has more digits than its type."""
    if not isinstance(type_, DecimalType):
        return _floats(_nearest_floats(totals) / np.maximum(many, 1), many == 0)
    quotients: list[Decimal | None] = []
    with localcontext(prec=_DIGITS):
        for total, count in zip(totals.to_pylist(), many.tolist(), strict=True):
            if not count:
                quotients.append(None)
                continue
            units = abs(int(total.scaleb(type_.scale)))
            digits = (2 * units + count) // (2 * count)
            if digits >= 10**type_.precision:
                raise Overflowed(f"an average of decimals is beyond {type_}")
            quotients.append(Decimal(digits).scaleb(-type_.scale).copy_sign(total))
    return pa.array(quotients, arrow_type(type_))


def _nearest_floats(totals: pa.Array) -> Floats:
    """The floats next to totals, 0 where these are null; of decimals with nothing behind the point."""
    if pa.types.is_floating(totals.type):
        return values(totals.fill_null(0))
    units = words(totals.fill_null(0)).view(np.int64)
    low, high = units[:, 0], units[:, 1]
    floats = low.astype(np.float64)
    for at in np.flatnonzero(high != low >> 63).tolist():
        floats[at] = float(int(totals[at].as_py()))
    return floats


def _floats(numbers: Floats, none: Bools) -> pa.Array:
    """Floats as a collection stores them: of values that SQL takes for equal the same one."""
    return pa.array(np.where(numbers == 0, 0.0, np.where(np.isnan(numbers), np.nan, numbers)), mask=none)


def _first(column: pa.Array, ranges: Ranges) -> pa.Array:
    """Of the first instant of each range that has values the least of these."""
    place, validity, runs = ranges.lo, valid(column), ranges.runs
    if validity is not None:
        next_known = np.minimum.accumulate(np.where(validity, np.arange(len(column)), len(column))[::-1])[::-1]
        place = next_known[ranges.lo]
        place = np.where(place < ranges.hi, place, ranges.lo)  # a range without values has none there, either
    return least(column, place, np.append(runs, len(column))[np.searchsorted(runs, place, "right")])


def _last(column: pa.Array, ranges: Ranges) -> pa.Array:
    """Of the last instant of each range that has values the greatest of these."""
    place, validity, runs = ranges.hi - 1, valid(column), ranges.runs
    if validity is not None:
        place = np.maximum.accumulate(np.where(validity, np.arange(len(column)), -1))[ranges.hi - 1]
        place = np.where(place >= ranges.lo, place, ranges.hi - 1)
    return greatest(column, runs[np.searchsorted(runs, place, "right") - 1], place + 1)


class Collected:
    """JSON arrays of values in order of instants, and of values at one."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @classmethod
    def of_rows(cls, aggregate: AggregateColumn, rows: pa.RecordBatch, ranges: Ranges) -> Collected:
        """What an aggregate collects of rows."""
        assert aggregate.of is not None, "there is nothing to collect"
        column = contiguous(rows.column(aggregate.of))
        number = np.zeros(len(column), np.int64)
        number[ranges.runs[1:]] = 1
        order = pa.array(np.lexsort((ordered(column)[0], np.cumsum(number))))
        texts = _json_texts(column) if aggregate.texts is None else rows.column(aggregate.texts)
        return cls(Texts(texts.take(order)))

    def bytes_of(self, lo: Ints, hi: Ints) -> Ints:
        """What the arrays of ranges take in memory."""
        return self._texts.bytes_of(lo, hi) + 2

    def of(self, lo: Ints, hi: Ints) -> pa.Array:
        """The arrays of ranges that cut no instant."""
        return pc.binary_join_element_wise("[", self._texts.of(lo, hi).fill_null(""), "]", "")


def _json_texts(column: pa.Array) -> pa.Array:
    """Each value as JSON. Times and floats are texts by then, as Spark writes them."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        return pc.if_else(column, "true", "false")
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return column.cast(pa.string())
    different_, codes = pc.unique(column), None
    texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in different_.to_pylist()]
    codes = pc.index_in(column, value_set=different_)
    return pa.array(texts, pa.string()).take(codes)


def _quantile(aggregate: AggregateColumn, column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The discrete quantile of values on a grid (model/window/quantile.py)."""
    assert aggregate.at is not None, "an aggregate of quantiles says at which"
    known_values, first, last = _known(column, lo, hi)
    numbers, again = ordered(pa.array(_on_grid(_as_floats(known_values))))
    none = last == first
    each, codes = np.unique(numbers, return_inverse=True)
    if not len(each):
        return again(np.zeros(len(lo), np.int64), none)
    k = np.maximum(np.ceil(aggregate.at * (last - first)).astype(np.int64) - 1, 0)
    chosen = np.zeros(len(lo), np.int64)
    chosen[~none] = kth(codes.astype(np.int64), first[~none], last[~none], k[~none])
    return again(each[chosen], none)


def _as_floats(column: pa.Array) -> Floats:
    """The floats next to numbers."""
    if pa.types.is_decimal(column.type):
        return np.array([float(value) for value in column.to_pylist()], np.float64)
    return values(column).astype(np.float64)


def _on_grid(numbers: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        fraction, exponent = np.frexp(numbers)
        rounded = np.ldexp(np.rint(np.ldexp(fraction, DIGITS)), exponent - DIGITS)
    return np.where((numbers == 0) | ~np.isfinite(numbers), numbers + 0.0, rounded)


def _known(column: pa.Array, lo: Ints, hi: Ints) -> tuple[pa.Array, Ints, Ints]:
    """The values that are not null, and which of them the ranges have."""
    validity = valid(column)
    if validity is None:
        return column, lo, hi
    before = np.zeros(len(column) + 1, np.int64)
    np.cumsum(validity, out=before[1:])
    return column.drop_null(), before[lo], before[hi]
