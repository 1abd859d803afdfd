"""Up to where an input was complete when its rows came, and which windows stay as they are stored."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pure.model.window.test_late_rows import aligned, graces
from tidemark.arrow.kernels.windows.judged import learned
from tidemark.config.schedule import Schedule, interval_ends
from tidemark.model.instant import parse_instant
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.judged import Judging, judged_from, judging_of
from tidemark.model.window.windows import Late, Windows

pytestmark = pytest.mark.pure

HOUR = 3_600_000_000
DAY = 24 * HOUR
arrivals = st.lists(st.tuples(st.integers(-40, 80), st.integers(0, 79)), max_size=12)


def test_rows_of_an_interval_came_when_the_one_before_was_complete() -> None:
    judging = Judging(0, (0, 10, 20))
    assert [judging.learned(time) for time in (0, 9, 10, 19, 20, 35)] == [0, 0, 10, 10, 20, 20]


@given(
    st.sets(st.integers(-(2**62), 2**62) | st.integers(-20, 20), max_size=9),
    st.integers(-25, 25),
    st.lists(st.integers(-25, 25) | st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.integers(0, 3),
)
def test_many_rows_are_judged_at_once_as_each_is_by_itself(
    ends: set[int], known_from: int, times: list[int], before: int
) -> None:
    judging = Judging(known_from, tuple(sorted(ends)))
    found = learned(judging, pa.array(times, pa.int64()).slice(before))
    assert found.type == pa.int64()
    assert found.to_pylist() == [judging.learned(time) for time in times[before:]]


def test_what_was_merged_or_consumed_before_counts_wherever_it_is() -> None:
    judging = judging_of((0, 10, 20), since=12, merged=True, consumed=25, only_new=False)
    assert [judging.learned(time) for time in (5, 12, 13, 20)] == [None, None, 10, 20]
    stays = [judging.stays(frozen) for frozen in (10, 11, 12, None)]
    assert stays == [True, True, False, False], "as all that counts at 11 is known, but not who came just at 10"


def test_for_what_is_new_windows_stand_that_took_nothing_more_by_then() -> None:
    judging = judging_of((0, 10, 20), since=0, merged=False, consumed=12, only_new=True)
    assert [judging.learned(time) for time in (9, 11, 12, 20)] == [None, 10, 10, 20]
    assert (judging.stays(10), judging.stays(11)) == (True, False)


def test_a_first_build_computes_all() -> None:
    judging = judging_of((0, 10), since=12, merged=True, consumed=None, only_new=False)
    assert not judging.stays(-5)


@given(st.integers(0, 60), st.integers(1, 60), st.integers(0, 70), st.integers(-10, 90), st.lists(st.integers(0, 60)))
def test_no_merging_changes_what_counts_in_windows_that_do_not_stand(
    since: int, consumed: int, upper: int, frozen: int, times: list[int]
) -> None:
    """Of rows by the times they had at first and by those they were merged to: by an incremental run, and by a whole
    one, as many count in a window that neither leaves as it is stored."""
    ends = tuple(range(0, 70, 10))
    since = min(since, consumed - 1)
    merged = [max(time, since) for time in times]
    for only_new in (True, False):
        judging = judging_of(ends, since=since, merged=since > 0, consumed=consumed, only_new=only_new)
        if judging.stays(frozen):
            continue
        plain = [time for time in times if time // 10 * 10 < frozen]
        found = [time for time in merged if (at := judging.learned(time)) is None or at < frozen]
        assert len(found) == len(plain)


@settings(max_examples=300)
@given(aligned, graces, st.sampled_from([7, 10, 25]), st.integers(0, 60), st.integers(0, 15), arrivals)
def test_next_windows_that_are_open_are_known_from_a_while_before(
    kind: Any, grace: int, width: int, consumed: int, more: int, came: list[tuple[int, int]]
) -> None:
    """Rows as (when they happened, when they came), judged from the time from which an incremental run judges them,
    those that came before it wherever they are: windows that are open at that time have the rows that the law says of
    all that is known, and new rows are in no other."""
    windows = Windows((), "k", kind, (), grace=grace, late=Late.NEXT_WINDOW)
    ends = tuple(range(0, 90, width))
    frontier = consumed // width * width
    begins = judged_from(windows, frontier)
    later = ends[max(0, bisect_right(ends, begins) - 1) :]
    judging = judging_of(later, since=0, merged=False, consumed=consumed, only_new=True, judged_from=begins)
    known = [(at, time) for at, time in came if time < consumed + more]

    def contents_of(rows: list[tuple[int, int]], learned: Any) -> dict[Any, Any]:
        return contents(Rule.of(windows), [Happened((), (at, time), at, learned(time)) for at, time in rows])

    def incremental(time: int) -> int:
        found = judging.learned(time)
        return -1000 if found is None else found

    def still_open(found: dict[Any, Any]) -> dict[Any, Any]:
        return {of: rows for of, rows in found.items() if of[1].end + grace > frontier}

    assert still_open(contents_of(known, incremental)) == still_open(
        contents_of(known, lambda time: time // width * width)
    )
    new = contents_of([(at, time) for at, time in known if time >= consumed], incremental)
    assert still_open(new) == new


def test_collections_of_several_schedules_are_complete_together_when_the_slowest_is() -> None:
    at = parse_instant("2013-01-01T05:00")
    day = at - 5 * HOUR
    daily, hourly = Schedule("@daily"), Schedule("0 * * * *")
    assert interval_ends([daily], at, at + 2 * DAY) == (day, day + DAY, day + 2 * DAY)
    assert interval_ends([hourly], at + 1, at + 3 * HOUR) == (at, at + HOUR, at + 2 * HOUR)
    assert interval_ends([hourly, daily], at, at + DAY) == (day, day + DAY)
