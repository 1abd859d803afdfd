"""States of ranges of cells, by the op of each column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.windows.extremes import all_bits, greatest, least
from tidemark.arrow.kernels.windows.ranked import different, kth
from tidemark.arrow.kernels.windows.sums import sums
from tidemark.arrow.kernels.windows.values import ordered
from tidemark.arrow.rows.columns import Ints, contiguous, valid, values
from tidemark.definition.state import Op, State

_SIZED: dict[Op, Callable[[pa.Array, Ints, Ints], pa.Array]] = {
    Op.ADD: sums,
    Op.MIN: least,
    Op.MAX: greatest,
    Op.BIT_OR: all_bits,
}


def grows(op: Op) -> bool:
    """Whether the state of a window is as large as those of its cells together."""
    return op in (Op.TEXT, Op.CONCAT)


def merged(state: State, column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The states of ranges [lo, hi) of cells, each of a cell or more. Raises Overflowed."""
    if (sized := _SIZED.get(state.op)) is not None:
        return sized(column, lo, hi)
    if state.op is Op.FIRST:
        return _first(column, lo, hi)
    if state.op is Op.LAST:
        return _last(column, lo, hi)
    if state.op is Op.TEXT:
        return Texts(column).of(lo, hi)
    lists = Lists(column)
    if state.op is Op.CONCAT:
        return lists.of(lo, hi)
    first, last = lists.offsets[lo], lists.offsets[hi]
    numbers, again = ordered(lists.flat)
    if state.op is Op.DISTINCT:
        return pa.array(different(numbers, first, last))
    return _quantiles(state.at, numbers, again, first, last)


def _first(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    held = valid(column)
    if held is None:
        return column.take(pa.array(lo))
    place = np.where(held, np.arange(len(column)), len(column))
    place = np.minimum.accumulate(place[::-1])[::-1][lo]
    return column.take(pa.array(place, mask=place >= hi))


def _last(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    held = valid(column)
    if held is None:
        return column.take(pa.array(hi - 1))
    place = np.maximum.accumulate(np.where(held, np.arange(len(column)), -1))[hi - 1]
    return column.take(pa.array(np.maximum(place, 0), mask=place < lo))


def _quantiles(
    at: float, numbers: Ints, again: Callable[[Ints, np.typing.NDArray[np.bool_]], pa.Array], lo: Ints, hi: Ints
) -> pa.Array:
    none = hi == lo
    different_, codes = np.unique(numbers, return_inverse=True)
    if not len(different_):
        return again(np.zeros(len(lo), np.int64), none)
    k = np.maximum(np.ceil(at * (hi - lo)).astype(np.int64) - 1, 0)
    found = np.zeros(len(lo), np.int64)
    found[~none] = kth(codes.astype(np.int64), lo[~none], hi[~none], k[~none])
    return again(different_[found], none)


@dataclass(frozen=True)
class Lists:
    """A column of lists: all elements one after another, and which of them begins each list. A null one is empty."""

    column: pa.Array

    @cached_property
    def offsets(self) -> Ints:
        lengths = pc.list_value_length(self.column).fill_null(0)
        return _running(values(contiguous(lengths)))

    @cached_property
    def flat(self) -> pa.Array:
        return contiguous(self.column.flatten())

    def bytes_of(self, lo: Ints, hi: Ints) -> Ints:
        """What the lists of ranges take in memory."""
        each = -(-self.flat.nbytes // max(1, len(self.flat)))
        return np.asarray((self.offsets[hi] - self.offsets[lo]) * each)

    def of(self, lo: Ints, hi: Ints) -> pa.Array:
        """The lists of ranges."""
        first, lengths = self.offsets[lo], self.offsets[hi] - self.offsets[lo]
        offsets = _running(lengths)
        places = np.repeat(first - offsets[:-1], lengths) + np.arange(offsets[-1])
        made = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self.flat.take(pa.array(places)))
        return made.cast(self.column.type)


@dataclass(frozen=True)
class Texts:
    """A column of texts: all that are not null with commas between them, and where each begins."""

    column: pa.Array

    @cached_property
    def _held(self) -> pa.Array:
        return self.column.drop_null().cast(pa.large_binary())

    @cached_property
    def _before(self) -> Ints:
        """How many texts there are before each cell."""
        held = valid(self.column)
        return np.arange(len(self.column) + 1) if held is None else _running(held)

    @cached_property
    def _begins(self) -> Ints:
        return _running(values(contiguous(pc.binary_length(self._held))) + 1)

    @cached_property
    def _joined(self) -> memoryview:
        return memoryview(b",".join(self._held.to_pylist()))

    def bytes_of(self, lo: Ints, hi: Ints) -> Ints:
        """What the texts of ranges take in memory."""
        return self._begins[self._before[hi]] - self._begins[self._before[lo]]

    def of(self, lo: Ints, hi: Ints) -> pa.Array:
        """The texts of ranges; null where there is none."""
        first, last = self._before[lo], self._before[hi]
        begins, ends, held = self._begins[first].tolist(), (self._begins[last] - 1).tolist(), (last > first).tolist()
        joined = self._joined
        texts = [bytes(joined[a:b]) if any_ else None for a, b, any_ in zip(begins, ends, held, strict=True)]
        return pa.array(texts, pa.binary()).cast(self.column.type)


def _running(lengths: np.typing.NDArray[np.generic]) -> Ints:
    running = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=running[1:])
    return running
