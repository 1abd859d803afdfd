"""Sums of ranges of a column, by differences of running sums: exact, and found not to fit where they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.rows.columns import Bools, Ints, valid, values, words

_BITS = 32
_MASK = (1 << _BITS) - 1


class Overflowed(ArithmeticError):
    """A sum does not fit its type."""


def counts(known: Bools | None, lo: Ints, hi: Ints) -> Ints:
    """How many of the cells of each range [lo, hi) hold something; `known` None: all do."""
    return hi - lo if known is None else _of_ranges(known, lo, hi)


def sums(column: pa.Array, lo: Ints, hi: Ints) -> pa.Array:
    """The sum of what is not null in each range [lo, hi) of a column of int64 or decimal128, in its type; null where
    nothing is. Raises Overflowed where one does not fit."""
    known = valid(column)
    none = counts(known, lo, hi) == 0
    if pa.types.is_decimal128(column.type):
        return _decimals(column, known, lo, hi, none)
    whole = values(column)
    if known is not None:
        whole = np.where(known, whole, 0)
    if _any_fits(whole):
        totals = _of_ranges(whole, lo, hi)
    else:
        low, high = _carried([_of_ranges(limb, lo, hi) for limb in (whole & _MASK, whole >> _BITS)])
        _check_fits(high, none, "a sum of whole numbers is beyond 64 bits")
        totals = (high << _BITS) | low
    return pa.array(totals, column.type, mask=none)


def _any_fits(whole: Ints) -> bool:
    """Whether the sum of any of these fits 64 bits."""
    return not len(whole) or max(abs(int(whole.min())), abs(int(whole.max()))) * len(whole) < 1 << 62


def _of_ranges(column: np.typing.NDArray[np.generic], lo: Ints, hi: Ints) -> Ints:
    running = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column, dtype=np.int64, out=running[1:])
    return running[hi] - running[lo]


def _decimals(column: pa.Array, known: Bools | None, lo: Ints, hi: Ints, none: Bools) -> pa.Array:
    units = words(column)
    if known is not None:
        units = np.where(known[:, None], units, np.uint64(0))
    low, high = np.ascontiguousarray(units[:, 0]), np.ascontiguousarray(units[:, 1]).view(np.int64)
    says, beyond = f"a sum of decimals is beyond {column.type}", 10**column.type.precision
    summed, whole = np.empty((len(lo), 2), np.int64), low.view(np.int64)
    if np.array_equal(high, whole >> 63) and _any_fits(whole):  # as nearly all decimals that there are
        summed[:, 0] = totals = _of_ranges(whole, lo, hi)
        summed[:, 1] = totals >> 63
        if beyond < 1 << 62 and (np.abs(totals) >= beyond).any():
            raise Overflowed(says)
    else:
        limbs = [(low & np.uint64(_MASK)).astype(np.int64), (low >> np.uint64(_BITS)).astype(np.int64)]
        parts = _carried([_of_ranges(limb, lo, hi) for limb in (*limbs, high & _MASK, high >> _BITS)])
        _check_fits(parts[3], none, says)
        if (~none & ~(_below(parts, beyond) & ~_below(parts, 1 - beyond))).any():
            raise Overflowed(says)
        summed[:, 0] = (parts[1] << _BITS) | parts[0]
        summed[:, 1] = (parts[3] << _BITS) | parts[2]
    mask = pa.array(~none).buffers()[1] if none.any() else None
    return pa.Array.from_buffers(column.type, len(lo), [mask, pa.py_buffer(summed)])


def _carried(limbs: Sequence[Ints]) -> list[Ints]:
    """Limbs of 32 bits, the least first, of which each may hold more: what is more goes to the next. The last one
    keeps it, and the sign."""
    limbs = list(limbs)
    for at in range(len(limbs) - 1):
        limbs[at + 1] = limbs[at + 1] + (limbs[at] >> _BITS)
        limbs[at] = limbs[at] & _MASK
    return limbs


def _check_fits(high: Ints, none: Bools, says: str) -> None:
    half = 1 << (_BITS - 1)
    if (~none & ((high < -half) | (high >= half))).any():
        raise Overflowed(says)


def _below(limbs: Sequence[Ints], bound: int) -> Bools:
    """Where four limbs hold less than a number."""
    parts = [(bound >> (_BITS * at)) & _MASK for at in range(3)] + [bound >> (3 * _BITS)]
    return np.asarray(_carried([limb - part for limb, part in zip(limbs, parts, strict=True)])[3] < 0)
