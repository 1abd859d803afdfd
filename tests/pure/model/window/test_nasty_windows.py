"""Cases of windows that went wrong elsewhere, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.oracles.law.emitted import Emitted, delta
from tidemark.model.instant import parse_duration
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.close import is_closed
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Windows

DAY, HOUR, MINUTE = parse_duration("1d"), parse_duration("1h"), parse_duration("1m")
COUNT, SUM = Aggregate("rows", Function.COUNT), Aggregate("total", Function.SUM, "value")


def aggregated(kind: WindowKind, rows: Iterable[Happened]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found = window_rows(Windows((), "t", kind, (COUNT, SUM)), rows, lambda one, value: value)
    return {(key, window): values for key, window, values in found}


def windows(kind: WindowKind, rows: Iterable[Happened]) -> dict[tuple[int, int], tuple[Any, ...]]:
    return {tuple(window): values for (_, window), values in aggregated(kind, rows).items()}


def test_a_row_retracted_leaves_the_day_it_was_in_and_no_other():
    """Value 5 on day 3, 10:00; since moved to day 9; retracted on day 12: the windows go by when it happened."""
    insert = Happened("k", 5, 3 * DAY + 10 * HOUR, 3 * DAY + 11 * HOUR)
    other = Happened("k", 7, 9 * DAY + HOUR, 9 * DAY + HOUR)
    before = aggregated(Tumbling(DAY), [insert, other])
    after = aggregated(
        Tumbling(DAY), [insert._replace(learned=9 * DAY), other, insert._replace(learned=12 * DAY, diff=-1)]
    )
    assert delta(before, after) == [(("k", (3 * DAY, 4 * DAY)), (1, 5), -1)]
    assert after == {("k", (9 * DAY, 10 * DAY)): (1, 7)}


def test_a_bridge_makes_one_session_of_two_and_its_retraction_two_of_one():
    rows = [Happened("k", 1, at, at) for at in (0, 10, 25)]
    bridge = Happened("k", 1, 18, 30)
    separate, together = windows(Session(10), rows), windows(Session(10), [*rows, bridge])
    assert separate == {(0, 20): (2, 2), (25, 35): (1, 1)}
    assert together == {(0, 35): (4, 4)}
    assert [(of, diff) for of, _, diff in delta(separate, together)] == [((0, 20), -1), ((25, 35), -1), ((0, 35), 1)]
    assert windows(Session(10), [*rows, bridge, bridge._replace(diff=-1)]) == separate


def test_a_late_row_opens_sliding_windows_and_is_in_those_that_are_there():
    rows = [Happened("k", at, at, at) for at in (0, 10)]
    late = Happened("k", 11, 11, 50)
    assert windows(Sliding(10), rows) == {(-10, 0): (1, 0), (0, 10): (2, 10), (1, 11): (1, 10)}
    assert windows(Sliding(10), [*rows, late]) == {
        (-10, 0): (1, 0),
        (0, 10): (2, 10),
        (1, 11): (2, 21),
        (11, 21): (1, 11),
    }
    assert windows(Sliding(10, clamp_start_at_zero=True), rows).keys() == {(0, 10), (1, 11)}


def test_a_window_across_midnight_is_emitted_once_and_whole():
    """[23:30, 24:30) of the first day, with a frontier a day: it is closed by the second day's end."""
    kind, at = Tumbling(HOUR, offset=30 * MINUTE), (23 * HOUR + 45 * MINUTE, 24 * HOUR + 15 * MINUTE)
    seen, emitted = [], Emitted()
    for day in (1, 2, 3):
        rows = [Happened("k", 1, t, t) for t in at if t < day * DAY]
        closed = {of: row for of, row in aggregated(kind, rows).items() if is_closed(kind, of[1].end, 0, day * DAY)}
        signed, emitted = emitted.emit(closed)
        seen += [(day, one.window, one.row, one.revision, one.diff) for one in signed]
    assert seen == [(2, (23 * HOUR + 30 * MINUTE, 24 * HOUR + 30 * MINUTE), (2, 2), 1, 1)]


@pytest.mark.parametrize("kind", [Tumbling(10), Sliding(10), Session(10)])
def test_rows_that_cancel_leave_no_window(kind: WindowKind):
    row = Happened("k", 9, -12, 0)
    assert windows(kind, [row, row._replace(learned=5, diff=-1)]) == {}
    assert windows(kind, [row, row, row._replace(diff=-1)]) == windows(kind, [row])


def test_a_sum_of_zero_is_a_row_and_no_rows_are_none():
    rows = [Happened("k", 5, 1, 1), Happened("k", -5, 2, 2)]
    assert windows(Tumbling(10), rows) == {(0, 10): (2, 0)}
    assert windows(Tumbling(10), [Happened("k", None, 1, 1)]) == {(0, 10): (1, None)}


def test_a_session_that_is_long_enough_is_cut():
    """Each row is within a gap of the next for ever; no session is longer than it may be, and none overlaps another."""
    rows = [Happened("k", 1, at, at) for at in range(0, 100, 5)]
    found = windows(Session(10, max_length=30), rows)
    assert [*found] == [(0, 30), (30, 60), (60, 90), (90, 105)]
    assert [count for count, _ in found.values()] == [6, 6, 6, 2]
    late = windows(Session(10, max_length=30), [*rows, Happened("k", 1, -4, 200)])
    assert [*late] == [(-4, 26), (30, 60), (60, 90), (90, 105)]
