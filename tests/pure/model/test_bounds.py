"""Bounds of values: what they enclose, what they may hold, what several of them amount to, against the values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.chunk.bounds import NO_VALUE, Bounds, TimelineBounds, timeline_bounds, union
from tidemark.model.chunk.law import Span

pytestmark = pytest.mark.pure
VALUES = st.lists(st.none() | st.integers(-4, 4), max_size=6)


def of(values: list[int | None]) -> Bounds:
    known = [value for value in values if value is not None]
    return Bounds(min(known, default=None), max(known, default=None), len(values) - len(known))


@given(VALUES, st.integers(-5, 5), st.integers(-5, 5))
def test_a_range_without_values_may_be_passed_over_and_one_with_values_never(
    values: list[int | None], lower: int, upper: int
) -> None:
    if any(value is not None and lower <= value <= upper for value in values):
        assert Span(1, ((lower, upper),)).meets(of(values))
    if Span(1, ((lower, upper),)).meets(of(values)):
        assert of(values).first is not None
    assert not Span(1, ((lower, upper),)).meets(of([None] * len(values)))


@given(st.lists(VALUES, max_size=4))
def test_bounds_taken_together_are_those_of_all_values_and_enclose_each(lists: list[list[int | None]]) -> None:
    together = union(map(of, lists))
    assert together == of([value for values in lists for value in values])
    assert all(together.encloses(of(values)) for values in lists)


@pytest.mark.parametrize(
    ("other", "enclosed"),
    [
        (Bounds(1, 5, 2), True),
        (Bounds(0, 5, 0), False),
        (Bounds(1, 6, 0), False),
        (Bounds(2, 3, 3), False),
        (Bounds(None, None, 2), True),
        (NO_VALUE, True),
    ],
)
def test_what_is_enclosed(other: Bounds, enclosed: bool) -> None:
    assert Bounds(1, 5, 2).encloses(other) == enclosed
    assert Bounds(None, None, 9).encloses(other) == (other.first is None)


def test_a_column_without_bounds_is_unknown_and_not_null() -> None:
    kept = [TimelineBounds.of(3, Bounds(None, None, 7)), TimelineBounds(4, 1, 2, 0)]
    assert timeline_bounds(kept, 3) == Bounds(None, None, 7)
    assert timeline_bounds(kept, 5) is None
    assert [str(each.bounds) for each in kept] == ["only nulls", "1 to 2"]
