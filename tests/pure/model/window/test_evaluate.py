"""The aggregates of the rows in a window, against the rows one by one in a list."""

from __future__ import annotations

import json
import math
import random
import statistics
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.quantile import on_grid
from tidemark.model.window.windows import Windows

whole = st.integers(-(2**62), 2**62)
cents = st.decimals(-(10**9), 10**9, places=2, allow_nan=False)
floats = st.floats(allow_nan=False, allow_infinity=False)
columns = st.one_of(
    *(st.lists(st.tuples(st.integers(0, 9), st.none() | of), max_size=8) for of in (whole, cents, floats))
)
ALL = tuple(
    Aggregate(one.value, one, "" if one is Function.COUNT else "x", at=0.5 if one is Function.APPROX_QUANTILE else None)
    for one in Function
)


def aggregated(
    points: list[tuple[int, Any]], aggregates: tuple[Aggregate, ...] = ALL, where: Any = None
) -> dict[str, Any]:
    rows = [Happened((), (number, x), at, 0) for number, (at, x) in enumerate(points)]
    definition = Windows((), "t", Tumbling(10), aggregates)
    ((_, _, values),) = window_rows(definition, rows, lambda one, value: value[1], where or (lambda one, value: True))
    return dict(zip([one.name for one in aggregates], values, strict=True))


@given(columns.filter(bool), st.randoms())
def test_of_each_function(points: list[tuple[int, Any]], dice: random.Random):
    found = aggregated(points)
    there = [(at, x) for at, x in points if x is not None]
    values = sorted(x for _, x in there)
    assert found["count"] == len(points)
    if not there:
        assert [found[name] for name in ("sum", "avg", "min", "max", "first", "last", "approx_quantile")] == [None] * 7
        assert found["collect"] == "[]"
        assert found["count_distinct"] == found["approx_distinct"] == 0
        return
    assert (found["min"], found["max"]) == (values[0], values[-1])
    assert (found["first"], found["last"]) == (min(there)[1], max(there)[1])
    assert found["count_distinct"] == found["approx_distinct"] == len(set(values))
    assert json.loads(found["collect"], parse_float=type(values[0]) if isinstance(values[0], Decimal) else float) == [
        x for _, x in sorted(there)
    ]
    try:
        assert found["sum"] == (math.fsum(values) if isinstance(values[0], float) else sum(values))
    except OverflowError:  # fsum gives up where what it adds up on the way is too large
        assert isinstance(found["sum"], float)
    lower, upper = abs(statistics.median_low(values)), float(abs(found["approx_quantile"]))
    assert float(lower) * 0.996 <= upper <= float(lower) * 1.004 or abs(float(lower)) < 1e-300
    shuffled = [*points]
    dice.shuffle(shuffled)
    assert aggregated(shuffled) == found


def test_what_is_there_less_than_no_times_counts_and_has_no_place_in_an_order():
    rows = [Happened("k", 2, 5, 0, -1)]
    of = lambda one, value: value  # noqa: E731
    definition = Windows((), "t", Tumbling(10), (Aggregate("rows", Function.COUNT), Aggregate("x", Function.SUM, "x")))
    assert window_rows(definition, rows, of) == [("k", (0, 10), (-1, -2))]
    ordered = Windows((), "t", Tumbling(10), (Aggregate("x", Function.MIN, "x"),))
    with pytest.raises(InvalidUsage, match="2 at 5 is there -1 times"):
        window_rows(ordered, rows, of)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3))
def test_the_grid_is_coarse_by_little_and_its_position_needs_no_exact_logarithm(value: float, off: int):
    found = on_grid(value)
    assert abs(found - value) <= abs(value) * 2**-8 or not 1e-300 < abs(value) < 1.79e308
    assert on_grid(found) == found
    assert on_grid(-value) == -found
    power = 2.0**off
    assert {on_grid(near) for near in (power, math.nextafter(power, 0), math.nextafter(power, 9))} == {power}
