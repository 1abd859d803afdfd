"""The least, the greatest, and all bits, of ranges of a column. Each is merged from those of two ranges that overlap
and whose number of cells is a power of two. Only one power is kept at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.aggregates.sums import counts
from tidemark.arrow.kernels.aggregates.values import ordered
from tidemark.arrow.rows.columns import Ints, valid

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def least(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The least value in each range [lo, hi), null where there is none."""
    return _extreme(column, lo, hi, np.minimum, _MOST)


def greatest(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The greatest value in each range [lo, hi), null where there is none."""
    return _extreme(column, lo, hi, np.maximum, _LEAST)


def _extreme(column: pa.Array, lo: Ints, hi: Ints, merge: Any, nothing: int) -> pa.Array:
    known = valid(column)
    numbers, again = ordered(column)
    if known is not None:
        numbers = np.where(known, numbers, nothing)
    return again(_of_ranges(numbers, lo, hi, merge), counts(known, lo, hi) == 0)


def _of_ranges(numbers: Ints, lo: Ints, hi: Ints, merge: Any) -> Ints:
    """Of ranges that hold a cell or more."""
    found = np.empty(len(lo), np.int64)
    if not len(lo):
        return found
    powers = (np.frexp((hi - lo).astype(np.float64))[1] - 1).astype(np.int8)
    by_power = np.argsort(powers, kind="stable")
    bounds = np.searchsorted(powers[by_power], np.arange(int(powers.max()) + 2))
    for power in range(len(bounds) - 1):
        mine, width = by_power[bounds[power] : bounds[power + 1]], 1 << power
        found[mine] = merge(numbers[lo[mine]], numbers[hi[mine] - width])
        if power < len(bounds) - 2:
            numbers = merge(numbers[:-width], numbers[width:])
    return found
