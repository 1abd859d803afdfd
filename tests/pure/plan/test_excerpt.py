"""How much is looked at of a collection of any size: never more than was asked for, and an end of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.plan.test_ranges import inside, part_of
from tidemark.model.batch import Part
from tidemark.plan.excerpt import Weight, landmarks, newest_within, weight_of
from tidemark.plan.ranges import behind
from tidemark.plan.tasks import ALL_KEYS, KeyRange

pytestmark = pytest.mark.pure

keys = st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 30), st.integers(0, 2))
Rows = list[tuple[str, int, int]]
several = st.lists(st.lists(keys, min_size=1, max_size=40).map(sorted), min_size=1, max_size=4)
ranges = st.sampled_from([ALL_KEYS, KeyRange(("b",), behind(("b",))), KeyRange(("a", 5), ("a", 25)), KeyRange(("z",))])


def made(files: list[Rows], group_rows: int = 4) -> list[Part]:
    return [part_of(rows, group_rows, size=10 * len(rows)) for rows in files]


@given(several, ranges, st.integers(0, 200), st.integers(0, 2_000))
def test_what_is_looked_at_is_an_end_of_what_was_asked_and_no_more_than_is_allowed(
    files: list[Rows], asked: KeyRange, rows: int, size: int
) -> None:
    parts, bound = made(files), Weight(rows, size)
    found = newest_within(parts, asked, bound, 2)
    assert found.upper == asked.upper
    assert asked.lower is None or (found.lower is not None and found.lower >= asked.lower)
    if weight_of(parts, asked).within(bound):
        assert found == asked
    elif not weight_of(parts, found).within(bound):
        # The shortest that can be distinguished: what follows is in the row groups that can hold its first key.
        assert found.lower == asked.lower or found.lower == max(landmarks(parts, asked, 2))
        assert landmarks(parts, found, 2) == []
    elif found.lower is not None:
        longer = [start for start in landmarks(parts, asked, 2) if start < found.lower]
        assert not any(weight_of(parts, KeyRange(start, asked.upper)).within(bound) for start in longer)


@given(several, ranges)
def test_all_rows_of_a_range_are_in_what_it_weighs(files: list[Rows], asked: KeyRange) -> None:
    weight = weight_of(made(files), asked)
    assert weight.rows >= sum(inside(key, asked) for rows in files for key in rows)
    assert weight.rows <= sum(map(len, files))
    assert weight.bytes <= 10 * weight.rows


def test_landmarks_are_the_beginnings_of_row_groups_between_two_keys() -> None:
    rows = [(key, start, 0) for key in "abcdefgh" for start in range(4)]
    parts = [part_of(rows, 4), part_of(rows[2:], 8)]
    assert landmarks(parts, ALL_KEYS, 1) == [(key,) for key in "abcdefgh"]
    assert landmarks(parts, KeyRange(behind(("b",)), ("e",)), 1) == [("c",), ("d",)]
    assert landmarks(parts, KeyRange(behind(("b",)), ("c",)), 1) == []
