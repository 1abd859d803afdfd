"""Early and late results: panes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracles.law.panes import Pane, Panes, Trigger
from tests.support.kinds import kinds
from tidemark.errors import InvalidUsage
from tidemark.model.window.contents import Rule, rows_by_window
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session, Tumbling, WindowKind
from tidemark.model.window.windows import Late

Step = int | list[int]
"""A frontier, or rows that come at these instants."""


def run(panes: Panes, steps: list[Step]) -> list[list[tuple[tuple[int, int], list[int]]]]:
    """What each step emits: windows, and the instants of the rows that it emits for them."""
    found = []
    for step in steps:
        close = panes.close or 0
        rows = [] if isinstance(step, int) else [Happened("k", "v", at, close) for at in step]
        emitted, panes = panes.advanced(step) if isinstance(step, int) else panes.with_rows(rows)
        found.append([(tuple(pane.window), sorted(row.at or 0 for row in pane.rows)) for pane in emitted])
    return found


def rule(kind: WindowKind, max_lateness: int | None = 0) -> Rule:
    return Rule(kind, 0, Late.REEMIT, max_lateness)


@pytest.mark.parametrize(("accumulating", "late"), [(True, [2, 8]), (False, [8])])
def test_a_late_row_is_emitted_at_once_with_the_others_or_by_itself(accumulating: bool, late: list[int]):
    panes = Panes(rule(Tumbling(10), 5), accumulating=accumulating)
    assert run(panes, [[2], 9, 10, [8], 14, 15, [9], 20]) == [
        [],
        [],
        [((0, 10), [2])],
        [((0, 10), late)],
        [],
        [],
        [],
        [],
    ]


@pytest.mark.parametrize(("accumulating", "last"), [(True, [0, 5, 12, 22]), (False, [12])])
def test_a_session_that_two_became_emits_what_was_not_emitted(accumulating: bool, last: list[int]):
    """The bridge at 12 joins [0, 15) and [22, 32), of which both were emitted; it is late for neither."""
    panes = Panes(rule(Session(10), 100), accumulating=accumulating)
    emitted = run(panes, [[0, 5], [22], 40, [12]])
    assert emitted[2] == [((0, 15), [0, 5]), ((22, 32), [22])]
    assert emitted[3] == [((0, 32), last)]


def test_a_count_tells_each_time_so_many_rows_came():
    steps: list[Step] = [[1], [2], [3], 10, [4], [5]]
    assert run(Panes(rule(Tumbling(10), 9), Trigger(count=2), accumulating=False), steps) == [
        [],
        [((0, 10), [1, 2])],
        [],
        [],
        [((0, 10), [3, 4])],
        [],
    ]
    assert run(Panes(rule(Tumbling(10), 9), Trigger(count=2)), steps)[4] == [((0, 10), [1, 2, 3, 4])]


def test_an_interval_tells_early_and_the_end_tells_all():
    steps: list[Step] = [[1], 3, 4, [5], 7, 9, 10, 13]
    emitted = run(Panes(rule(Tumbling(10)), Trigger(every=3)), steps)
    early = [((0, 10), [1])]
    both = [((0, 10), [1, 5])]
    assert emitted == [[], [], early, [], both, [], both + both, []]
    discarding = run(Panes(rule(Tumbling(10)), Trigger(every=3), accumulating=False), steps)
    assert discarding == [[], [], early, [], [((0, 10), [5])], [], [], []]


def test_triggers_that_never_fire_are_refused():
    for wrong in ({"count": 0}, {"every": 0}):
        with pytest.raises(InvalidUsage, match="must be 1 or more"):
            Trigger(**wrong)


@example(kind=Session(6, False, 6), drawn=[11, [0, 5], [-1]])  # emitted, then cut in two by a late row
@given(kinds, st.lists(st.integers(0, 40) | st.lists(st.integers(-5, 30), min_size=1, max_size=3), max_size=7))
def test_panes_without_early_ones_are_the_closed_windows(kind: WindowKind, drawn: list[Step]):
    """Each row of a closed window is emitted once; the last accumulating pane of a window is the window."""
    steps = [*drawn, 200]
    for accumulating in (True, False):
        panes, emitted = Panes(rule(kind, None), accumulating=accumulating), list[Pane]()
        close = 0
        for step in steps:
            if isinstance(step, int):
                close = max(step, close)
                fired, panes = panes.advanced(close)
            else:
                fired, panes = panes.with_rows([Happened("k", "v", at, close) for at in step])
            emitted += fired
        final = rows_by_window(rule(kind, None), panes.rows)
        if accumulating:
            last = {(pane.key, pane.window): Counter(pane.rows) for pane in emitted}
            assert {of: Counter(rows) for of, rows in final.items()}.items() <= last.items()
        elif not isinstance(kind, Session):
            sums: dict[object, Counter[Happened]] = {}
            for pane in emitted:
                sums.setdefault((pane.key, pane.window), Counter()).update(pane.rows)
            assert sums == {of: Counter(rows) for of, rows in final.items()}
        else:
            assert Counter(row for pane in emitted for row in pane.rows) == Counter(panes.rows)
