"""Sums of floats of ranges of rows, exact and rounded once, whatever the order: by running sums of limbs.

A float is cut into limbs as definition/exact_sum.py says. Each limb has a running sum of whole numbers, so that the sum
of a range, also of one that overlaps others, is a difference per limb. Its 61 leading bits, the last of them set where
any lower bit is, round to the nearest float as all bits would.

    1e16, 1.0, -1e16     limbs of 2^0: 1e16 % 2^30, 1, …; sum of the range: 1, which is 1.0 (added up as floats: 0.0)
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemark.arrow.rows.columns import Bools, Ints, valid, values
from tidemark.definition.exact_sum import (
    HIGHEST_BIT,
    INFINITY,
    LIMB_BITS,
    LIMBS,
    LOWEST_BIT,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    exact_sum,
)

Floats = npt.NDArray[np.float64]
_MASK = (1 << LIMB_BITS) - 1
_MORE = 2
"""Limbs above those of single floats, for what sums carry over."""
_LEADING = 62
"""Bits that are rounded, at most."""


def float_sums(column: pa.Array, lo: Ints, hi: Ints) -> Floats:
    """The sum of what is not null in each range [lo, hi) of a column of doubles; 0.0 where nothing is. A NaN, or both
    infinities, sum to NaN."""
    known = valid(column)
    numbers = values(column) if known is None else np.where(known, values(column), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        small = np.abs(numbers) < 2.0**HIGHEST_BIT
        fits = small & (np.fmod(np.where(small, numbers, 0.0), 2.0**LOWEST_BIT) == 0)
    found = _rounded(_limbs(np.where(fits, numbers, 0.0), lo, hi))
    if fits.all():
        return found
    others = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(~fits, out=others[1:])
    for at in np.flatnonzero(others[hi] > others[lo]).tolist():
        found[at] = _exactly(numbers[lo[at] : hi[at]].tolist())
    return found


def _limbs(numbers: Floats, lo: Ints, hi: Ints) -> list[Ints]:
    """The limbs of the sums, the least first; each of 30 bits, but for the last, which has the sign."""
    sums: list[Ints] = []
    for limb in range(LIMBS):
        lowest = LOWEST_BIT + LIMB_BITS * limb
        below = np.fmod(numbers, 2.0 ** (lowest + LIMB_BITS)) if limb < LIMBS - 1 else numbers
        units = np.trunc(below * 2.0**-lowest).astype(np.int64)
        if not units.any():
            sums.append(np.zeros(len(lo), np.int64))
            continue
        running = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(units, out=running[1:])
        sums.append(running[hi] - running[lo])
    return _carried([*sums, *(np.zeros(len(lo), np.int64) for _ in range(_MORE))])


def _carried(limbs: list[Ints]) -> list[Ints]:
    for at in range(len(limbs) - 1):
        limbs[at + 1] = limbs[at + 1] + (limbs[at] >> LIMB_BITS)
        limbs[at] = limbs[at] & _MASK
    return limbs


def _rounded(limbs: list[Ints]) -> Floats:
    """The floats next to what limbs say."""
    negative = limbs[-1] < 0
    positive = _carried([np.where(negative, -limb, limb) for limb in limbs])
    table = np.stack([np.zeros_like(negative, np.int64), np.zeros_like(negative, np.int64), *positive])
    count = len(positive)
    nonzero = table[2:] != 0
    highest = np.where(nonzero.any(axis=0), count - 1 - np.argmax(nonzero[::-1], axis=0), 0)
    each = np.arange(table.shape[1])
    first, second, third = (table[highest + 2 - back, each] for back in range(3))
    lower = np.zeros(table.shape[1], bool)
    for at in range(count):
        lower |= nonzero[at] & (highest >= at + 3)
    bits = np.frexp(first.astype(np.float64))[1].astype(np.int64)
    more = np.clip(_LEADING - LIMB_BITS - bits, 0, LIMB_BITS)
    leading = (((first << LIMB_BITS) | second) << more) | (third >> (LIMB_BITS - more))
    rest = lower | ((third & ((np.int64(1) << (LIMB_BITS - more)) - 1)) != 0)
    exponent = LIMB_BITS * (highest - 1) + LOWEST_BIT - more
    found = np.ldexp((leading | rest).astype(np.float64), exponent.astype(np.int32))
    return np.asarray(np.where(negative, -found, found), np.float64)


def _exactly(numbers: list[float]) -> float:
    """The same of numbers some of which are beyond the limbs, or none."""
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


def none_known(column: pa.Array, lo: Ints, hi: Ints) -> Bools:
    """Where a range has nulls only."""
    known = valid(column)
    if known is None:
        return np.asarray(hi == lo)
    running = np.zeros(len(column) + 1, np.int64)
    np.cumsum(known, out=running[1:])
    return np.asarray(running[hi] == running[lo])
