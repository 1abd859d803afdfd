"""Where rows that are ahead are cut off: what is far gets a part of its own, what is ordinary stays one part, and
parts are few."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.instant import MAX_TIME
from tidemark.plan.ahead import MOST_PARTS, OPEN_ROWS, SPARE_ROWS, bucket_starts, cuts, pays

pytestmark = pytest.mark.pure
DAY = 86_400_000_000
NOW = 19_000 * DAY


def cut(times: dict[int, int], frontier: int = NOW, width: int = DAY) -> tuple[int, ...]:
    """The cuts of rows: how many there are of each time."""
    starts = bucket_starts(frontier, width)
    counts = [0] * (len(starts) + 1)
    for time, rows in times.items():
        counts[bisect_right(starts, time)] += rows
    return cuts(counts, starts)


@given(frontier=st.integers(0, MAX_TIME), width=st.integers(1, 2**62))
def test_buckets_begin_at_the_frontier_and_each_is_twice_as_wide_as_the_one_before(frontier, width):
    starts = bucket_starts(frontier, width)
    assert starts[0] == frontier
    assert len(starts) <= 64
    assert all(b - a == width * 2**at for at, (a, b) in enumerate(pairwise(starts)))
    assert starts[-1] <= MAX_TIME < starts[-1] + width * 2 ** (len(starts) - 1)


@pytest.mark.parametrize(
    "times",
    [
        {NOW - DAY: 10**6, NOW - 1: 10**6},
        {NOW - 1: 20_000, NOW: 5},
        {NOW - 1: 20_000, NOW + DAY // 2: 500},
        {NOW - 1: 3_000, NOW + DAY: 20},
        {NOW + 5 * DAY: 100, NOW + 6 * DAY: 10},
        {MAX_TIME: 10},
        {},
    ],
)
def test_ordinary_days_are_one_part(times: dict[int, int]):
    """Also with a few rows of the next day or two."""
    assert cut(times) == ()


@given(
    rows=st.dictionaries(st.integers(0, MAX_TIME), st.integers(1, 10**6), max_size=60),
    frontier=st.integers(0, MAX_TIME),
    width=st.integers(1, 10**12),
)
def test_what_is_not_cut_costs_little_and_parts_are_bounded(rows, frontier, width):
    found = cut(rows, frontier, width)
    assert list(found) == sorted(set(found))
    assert len(found) < MOST_PARTS
    bounds = [-1, *found, MAX_TIME + 1]
    groups = [[t for t in rows if a <= t < b] for a, b in pairwise(bounds)]
    if rows:
        assert all(groups), "no part without rows"
    for times in groups[: MOST_PARTS - 1]:
        first = max(frontier, min(times, default=0))
        drains = (max(times, default=0) - first) // width
        count = sum(rows[time] for time in times)
        # At most the drains up to the bucket's end, which may be as far again.
        assert (
            drains <= 1
            or not pays(drains // 2, 0)
            or drains * (OPEN_ROWS + count) < 4 * SPARE_ROWS
            or one_bucket(times, frontier, width)
        )


def one_bucket(times: list[int], frontier: int, width: int) -> bool:
    starts = bucket_starts(frontier, width)
    return len({bisect_right(starts, time) for time in times}) == 1
