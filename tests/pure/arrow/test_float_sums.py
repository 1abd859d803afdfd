"""Sums of floats by limbs are the floats next to the exact sums, of any ranges."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.kernels.aggregates.float_sums import float_parts, float_sums, sums_of_parts

pytestmark = pytest.mark.pure

ANY = st.floats(allow_nan=True, allow_infinity=True)
NEAR = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-(2**70), 2**70).map(float),
    st.sampled_from([0.1, 0.2, 0.3, -0.0, 1e16, -1e16, 2.0**53, 1.0, 2.0**-119, 2.0**149, -(2.0**149), 1e-30, 5e-324]),
)


def summed(numbers: list[float]) -> float:
    """The float next to the exact sum."""
    unbounded = {one for one in numbers if not math.isfinite(one)}
    if unbounded:
        return unbounded.pop() if len(unbounded) == 1 and not any(map(math.isnan, numbers)) else math.nan
    exact = sum(map(Fraction, numbers), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def check(numbers: list[float | None], bounds: list[tuple[int, int]]) -> None:
    ranges = sorted((min(a, b) % (len(numbers) + 1), max(a, b) % (len(numbers) + 1)) for a, b in bounds)
    ranges = [(min(a, b), max(a, b)) for a, b in ranges]
    lo, hi = (np.array([one[side] for one in ranges], np.int64) for side in (0, 1))
    found = float_sums(pa.array(numbers, pa.float64()), lo, hi)
    for (a, b), one in zip(ranges, found.tolist(), strict=True):
        wanted = summed([number for number in numbers[a:b] if number is not None])
        assert one == wanted or (math.isnan(one) and math.isnan(wanted)), numbers[a:b]


def check_parts(numbers: list[float | None], sizes: list[int]) -> None:
    """Sums of parts of some sizes are those of all."""
    cuts = [0, *(min(len(numbers), sum(sizes[: at + 1])) for at in range(len(sizes))), len(numbers)]
    lo, hi = np.array(cuts[:-1], np.int64), np.array(cuts[1:], np.int64)
    parts = float_parts(pa.array(numbers, pa.float64()), lo, hi)
    known = [any(one is not None for one in numbers[a:b]) for a, b in pairwise(cuts)]
    assert parts.is_valid().to_pylist() == known
    (found,) = sums_of_parts(parts, np.array([0]), np.array([len(parts)])).tolist()
    wanted = summed([number for number in numbers if number is not None])
    assert found == wanted or (math.isnan(found) and math.isnan(wanted)), numbers
    each = sums_of_parts(parts.slice(1), np.arange(len(parts) - 1), np.arange(1, len(parts)))
    assert repr(each.tolist()) == repr(float_sums(pa.array(numbers, pa.float64()), lo[1:], hi[1:]).tolist())


SIZES = st.lists(st.integers(0, 9), max_size=6)


@given(st.lists(st.one_of(st.none(), NEAR, ANY), max_size=40), SIZES)
def test_parts_of_numbers_as_they_are_say_what_all_come_to(numbers: list[float | None], sizes: list[int]) -> None:
    check_parts(numbers, sizes)


BOUNDS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8)


@given(st.lists(st.one_of(st.none(), NEAR, ANY), max_size=40), BOUNDS)
def test_of_numbers_as_they_are(numbers: list[float | None], bounds: list[tuple[int, int]]) -> None:
    check(numbers, bounds)


@given(st.integers(0, 140), st.integers(0, 70), st.integers(0, 60), st.booleans())
def test_halves_are_rounded_to_even_and_what_is_more_than_half_up(
    power: int, below: int, least: int, minus: bool
) -> None:
    """Numbers whose sum is at, or just beside, the middle of two floats."""
    top = 2.0 ** (power - 60)
    numbers: list[float | None] = [top, top * 2.0**-53, top * 2.0 ** -(53 + below), -(top * 2.0 ** -(54 + least))]
    check([None if one is None else -one if minus else one for one in numbers], [(0, 2), (0, 3), (0, 4), (1, 4)])
