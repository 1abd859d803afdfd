"""The interval index against a scan, and how many entries it looks at where inputs are chosen to hurt."""

from __future__ import annotations

from math import ceil, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.chunk.forest import Descent, Forest
from tidemark.model.chunk.index import FAN, IntervalIndex
from tidemark.model.chunk.latest import opening_order
from tidemark.model.chunk.metadata import Ends

pytestmark = pytest.mark.pure
N = 100_000
Interval = tuple[int, int, int]
ends = st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(lambda pair: (min(pair), max(pair)))
intervals = st.lists(ends, max_size=80).map(lambda some: [(*pair, at) for at, pair in enumerate(some)])


def overlapping(some: list[Interval], low: int, high: int) -> list[int]:
    return sorted(item for first, last, item in some if low <= high and first <= high and last >= low)


def bounds(some: list[Interval]) -> list[Ends]:
    return [Ends(first, last) for first, last, _ in some]


@given(intervals, st.integers(-22, 22), st.integers(-22, 22), st.booleans())
def test_what_is_found_is_what_a_scan_finds(some: list[Interval], low: int, high: int, by_insertion: bool):
    index: Forest[int] | IntervalIndex[int] = IntervalIndex(some)
    if by_insertion:
        index = Forest()
        for each in some:
            index = index.inserted(*each)
    assert len(index) == len(some)
    assert sorted(index.overlapping(low, high).items) == overlapping(some, low, high)


@given(intervals, st.integers(-22, 22), st.none() | st.integers(0, 9))
def test_falling_is_the_order_of_opening(some: list[Interval], at: int, within: int | None):
    expected = opening_order(bounds(some), at, within)
    lowest = None if within is None else at - within
    forest = Forest[int]()
    for each in some:
        forest = forest.inserted(*each)
    for index in (IntervalIndex(some), forest, Forest((IntervalIndex(some[:30]), IntervalIndex(some[30:])))):
        found = list(index.falling(at, lowest))
        assert [bound for bound, _ in found] == [bound for bound, _ in expected]
        assert sorted(found) == sorted(expected)


@given(st.lists(intervals.filter(bool), max_size=6), st.integers(-22, 22), st.none() | st.integers(0, 9))
def test_a_descent_is_the_order_of_all_that_is_below(parts: list[list[Interval]], at: int, within: int | None):
    """Whole parts by bounds that are too wide at their end, each looked into when its turn comes and no sooner."""
    some = [(first, last, (number, item)) for number, part in enumerate(parts) for first, last, item in part]
    lowest = None if within is None else at - within
    hulls = [(min(f for f, _, _ in part), max(e for _, e, _ in part) + 1, n) for n, part in enumerate(parts)]
    looked_into: list[int] = []

    def below(number: int):
        looked_into.append(number)
        return IntervalIndex([(f, e, (number, item)) for f, e, item in parts[number]]).falling(at, lowest)

    descent, found = Descent(IntervalIndex(hulls).falling(at, lowest), below), []
    while (bound := descent.bound) is not None:
        if descent.sharpen():
            assert all(min(e, at) >= bound for _, e, n in hulls if n in looked_into)
            assert descent.bound is None or descent.bound <= bound
            continue
        coming = descent.peek()
        found.append(next(descent))
        assert (found[-1], found[-1][0]) == (coming, bound)
    assert list(descent) == []
    assert [bound for bound, _ in found] == [bound for bound, _ in opening_order(bounds(some), at, within)]
    assert {item for _, item in found} == {item for _, item in IntervalIndex(some).falling(at, lowest)}


@given(intervals)
def test_what_is_found_in_a_range_is_in_order_of_first_values(some: list[Interval]):
    found = IntervalIndex(some).overlapping(-20, 20).items
    assert [some[item][0] for item in found] == sorted(some[item][0] for item in found)


DISJOINT = [(10 * at, 10 * at + 5, at) for at in range(N)]
HURTFUL = {
    "disjoint": DISJOINT,
    "one over everything": [(-1, 10 * N, N), *DISJOINT],
    "one over everything, at the end": [*DISJOINT, (-1, 10 * N, N)],
    "all overlapping": [(at, 10 * N - at, at) for at in range(N)],
    "all equal": [(7, 500_007, at) for at in range(N)],
    "ends fall as starts rise": [(at, 3 * N - at, at) for at in range(N)],
    "all begin together": [(0, at, at) for at in range(N)],
    "all end together": [(at, N, at) for at in range(N)],
}
DEPTH = ceil(log(N) / log(FAN))


@pytest.mark.parametrize("name", HURTFUL)
def test_a_range_looks_at_log_n_entries_and_those_found(name: str):
    """The found ones are neighbours here, but for the one over everything: a path for each end, and for that one."""
    index = IntervalIndex(HURTFUL[name])
    for low, high in [(0, 0), (500_007, 500_007), (500_008, 500_009), (10 * N, 10 * N), (499_000, 501_000), (-9, -5)]:
        found = index.overlapping(low, high)
        assert sorted(found.items) == overlapping(HURTFUL[name], low, high)
        assert found.visited <= 3 * FAN * DEPTH + 1.1 * len(found.items), (low, high)
    assert index.overlapping(5, 4).visited == 0
