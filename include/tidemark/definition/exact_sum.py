"""Sums of floats that do not depend on the order in which they are added up: exact, and rounded once.

A float is a whole number times a power of two. The whole number is cut into limbs of 30 bits at fixed places, limb i
of them worth 2^(30 i - 120), and each limb is summed by itself, as a whole number: that can be done in any order, and
in parts. Nine limbs hold what is a multiple of 2^-120 and below 2^150, which is any value between 4e-21 and 1e45.
What is smaller or larger is kept as it is, in a list that is empty as a rule, and of what is no number (NaN, an
infinity) only that it was there. An executor adds up limbs in SQL, and calls `exact_sum` once a group, by the name
EXACT_SUM: its arguments are of types array<bigint>, array<double> and bigint, its result is a double.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

EXACT_SUM = "tidemark_exact_sum"
"""What SQL calls `exact_sum`."""
LIMBS = 9
LIMB_BITS = 30
LOWEST_BIT = -120
"""The worth of a limb's 1 is 2^(LIMB_BITS * i + LOWEST_BIT)."""
HIGHEST_BIT = LIMBS * LIMB_BITS + LOWEST_BIT
INFINITY, MINUS_INFINITY, NOT_A_NUMBER = 1, 2, 4
"""Bits of the third argument."""
_SMALLEST_BIT = -1074


def exact_sum(limbs: Sequence[int | None], rest: Sequence[float], special: int | None) -> float | None:
    """The sum of the floats whose limbs add up to `limbs`, and of `rest`: the float nearest to it. None if there were
    none. `special` says, in bits, which infinities and whether a NaN were among them, and decides then."""
    if limbs[0] is None:
        return None
    if special:
        if special in (INFINITY, MINUS_INFINITY):
            return math.inf if special == INFINITY else -math.inf
        return math.nan
    total = sum((limb or 0) << (LIMB_BITS * at) for at, limb in enumerate(limbs))
    if not rest:
        return _rounded(total, -LOWEST_BIT)
    total <<= LOWEST_BIT - _SMALLEST_BIT
    for value in rest:
        over, under = value.as_integer_ratio()
        total += over * ((1 << -_SMALLEST_BIT) // under)
    return _rounded(total, -_SMALLEST_BIT)


def _rounded(units: int, bits: int) -> float:
    try:
        return units / (1 << bits)  # of whole numbers, and so the nearest float
    except OverflowError:
        return math.inf if units > 0 else -math.inf
