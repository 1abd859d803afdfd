"""Sums of floats are exact, whatever their order: limbs as SQL computes them, put together by `exact_sum`."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.definition.inputs import recipe
from tidemark.definition.exact_sum import HIGHEST_BIT, LIMB_BITS, LIMBS, LOWEST_BIT, exact_sum
from tidemark.errors import InvalidUsage

ANY = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
USUAL = st.floats(-1e20, 1e20)


def of(values: list[float]) -> float | None:
    """The sum as a group's SQL has it (definition/sums.py): limbs and the rest, then one call."""
    limbs: list[int | None] = [0] * LIMBS if values else [None] * LIMBS
    rest, special = [], 0
    for value in values:
        if math.isnan(value) or math.isinf(value):
            special |= 4 if math.isnan(value) else 1 if value > 0 else 2
        elif abs(value) < 2.0**HIGHEST_BIT and math.fmod(value, 2.0**LOWEST_BIT) == 0:
            for at in range(LIMBS):
                lowest = LOWEST_BIT + LIMB_BITS * at
                limb = math.trunc(math.fmod(value, 2.0 ** (lowest + LIMB_BITS)) * 2.0**-lowest)
                assert abs(limb) < 2**LIMB_BITS
                limbs[at] = (limbs[at] or 0) + limb
        else:
            rest.append(value)
    return exact_sum(limbs, rest, special)


def nearest(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


@given(st.lists(USUAL | ANY.filter(math.isfinite), min_size=1, max_size=20))
def test_a_sum_is_the_float_nearest_to_it(values: list[float]) -> None:
    assert of(values) == nearest(sum(map(Fraction, values), Fraction(0)))


def test_what_is_no_number_decides() -> None:
    assert math.isnan(of([1.0, math.nan, math.inf]) or 0.0)
    assert math.isnan(of([math.inf, -math.inf]) or 0.0)
    assert of([1e300, math.inf]) == math.inf
    assert of([-math.inf, 5.0]) == -math.inf
    assert of([1.7e308, 1.7e308]) == math.inf


def test_no_value_has_no_sum() -> None:
    assert of([]) is None
    assert math.copysign(1.0, of([-0.0]) or 0.0) == 1.0


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT sum(miles) OVER (PARTITION BY carrier) AS s FROM flights", "floats in a window"),
        ("SELECT avg(miles) OVER (PARTITION BY carrier) AS s FROM flights", "AS decimal(18, 6)"),
        ("SELECT sum(DISTINCT miles) AS s FROM flights GROUP BY carrier", "distinct floats"),
        ("SELECT stddev(miles) AS s FROM flights GROUP BY carrier", "sum(x * x)"),
        ("SELECT corr(miles, Delay) AS s FROM flights GROUP BY carrier", "calls CORR"),
        ("SELECT percentile_approx(miles, 0.5) AS s FROM flights GROUP BY carrier", "percentile(x, 0.5)"),
        ("SELECT sum(get_json_object(tags, '$.a')) AS s FROM flights GROUP BY carrier", "not known to be a number"),
        ("SELECT try_sum(Delay) AS s FROM flights GROUP BY carrier", "use sum or avg"),
    ],
)
def test_sums_that_cannot_be_exact_are_refused(select: str, message: str) -> None:
    with pytest.raises(InvalidUsage) as refusal:
        recipe(select)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("select", "is_float"),
    [
        *(("sum(miles)", True), ("sum(miles * 2)", True), ("avg(CASE WHEN Delay > 0 THEN miles END)", True)),
        *(("sum(Delay / 2)", True), ("sum(sqrt(Delay))", True), ("sum(coalesce(fare, 0.0))", False)),
        *(("sum(fare * 1.5)", False), ("sum(round(fare, 1))", False), ("avg(fare)", False)),
        *(("sum(Delay * 2 + length(carrier))", False), ("sum(CAST(miles AS decimal(18, 6)))", False)),
    ],
)
def test_sums_of_floats_are_known_by_their_types(select: str, is_float: bool) -> None:
    found = recipe(f"SELECT carrier, {select} AS s FROM flights GROUP BY carrier")
    assert ("TIDEMARK_EXACT_SUM" in found.whole) is is_float
