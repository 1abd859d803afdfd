"""Sums of floats of ranges of rows, exact and rounded once, whatever the order: by running sums of limbs.

A float is cut into limbs as definition/exact_sum.py says. Each limb has a running sum of whole numbers, so that the sum
of a range, also of one that overlaps others, is a difference per limb. Its 61 leading bits, the last of them set where
any lower bit is, round to the nearest float as all bits would.

The sum of a part of the rows goes on as a list of floats that add up to it exactly, one of each limb (`float_parts`).

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
    numbers, fits = _numbers(column)
    found = _rounded(_limbs(np.where(fits, numbers, 0.0), lo, hi))
    if fits.all():
        return found
    others = _before(~fits)
    for at in np.flatnonzero(others[hi] > others[lo]).tolist():
        found[at] = _exactly(numbers[lo[at] : hi[at]].tolist())
    return found


def float_parts(column: pa.Array, lo: Ints, hi: Ints) -> pa.ListArray:
    """Lists of floats that add up to the exact sum of what is not null in each range [lo, hi) of a column of doubles:
    what limbs do not hold as it is. Null where nothing is."""
    numbers, fits = _numbers(column)
    negative, limbs = _magnitudes(_limbs(np.where(fits, numbers, 0.0), lo, hi))
    each = np.stack([np.ldexp(limb.astype(np.float64), LOWEST_BIT + LIMB_BITS * at) for at, limb in enumerate(limbs)])
    each = np.where(negative, -each, each).T
    of, parts = np.nonzero(each)[0], each[each != 0]
    others, before = np.flatnonzero(~fits), _before(~fits)
    first, many = before[lo], before[hi] - before[lo]
    if many.any():
        places = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many) + np.repeat(first, many)
        of, parts = np.append(of, np.repeat(np.arange(len(lo)), many)), np.append(parts, numbers[others[places]])
        order = np.argsort(of, kind="stable")
        of, parts = of[order], parts[order]
    offsets = np.searchsorted(of, np.arange(len(lo) + 1))
    none = pa.array(none_known(column, lo, hi))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(parts, pa.float64()), mask=none)


def sums_of_parts(parts: pa.ListArray, lo: Ints, hi: Ints) -> Floats:
    """The sum of what is in the lists of each range [lo, hi), as of their floats one by one."""
    offsets = _offsets(parts)
    return float_sums(parts.flatten(), offsets[lo], offsets[hi])


def parts_of_parts(parts: pa.ListArray, lo: Ints, hi: Ints) -> pa.ListArray:
    """Lists of floats that add up to what is in the lists of each range [lo, hi). Null where all of these are."""
    offsets = _offsets(parts)
    found = float_parts(parts.flatten(), offsets[lo], offsets[hi])
    none = pa.array(none_known(parts, lo, hi))
    return pa.ListArray.from_arrays(found.offsets, found.flatten(), mask=none)


def _offsets(parts: pa.ListArray) -> Ints:
    """Where each list begins among all their floats, and where the last one ends; a null one is empty."""
    return np.asarray(parts.offsets.to_numpy() - parts.offsets[0].as_py())


def _numbers(column: pa.Array) -> tuple[Floats, Bools]:
    """Floats, nulls as 0.0, and which of them limbs hold."""
    known = valid(column)
    numbers = values(column) if known is None else np.where(known, values(column), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        small = np.abs(numbers) < 2.0**HIGHEST_BIT
        return numbers, small & (np.fmod(np.where(small, numbers, 0.0), 2.0**LOWEST_BIT) == 0)


def _before(true: Bools) -> Ints:
    """How many are true before each row, and of all."""
    counted = np.zeros(len(true) + 1, np.int64)
    np.cumsum(true, out=counted[1:])
    return counted


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


def _magnitudes(limbs: list[Ints]) -> tuple[Bools, list[Ints]]:
    """Which are below 0, and the limbs of what they are without the sign."""
    negative = np.asarray(limbs[-1] < 0)
    return negative, _carried([np.where(negative, -limb, limb) for limb in limbs])


def _rounded(limbs: list[Ints]) -> Floats:
    """The floats next to what limbs say."""
    negative, positive = _magnitudes(limbs)
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
    before = _before(known)
    return np.asarray(before[hi] == before[lo])
