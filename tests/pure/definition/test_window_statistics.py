"""Statistics of windows are aggregates of the same windows, over rows that say how often and since when they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.pure.definition.inputs import CARRIERS, FLIGHTS, columns
from tidemark.definition.recipe import HAPPENED, SlidingPlan
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.definition.windows.statistics import Statistics, statistics_of
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.statistics import KEYS, NET, ROWS
from tidemark.model.window.windows import Late, Windows

COUNT = (Aggregate("n", Function.COUNT),)
WINDOWS = Windows(("carrier",), "at", Tumbling(10), COUNT, where="Delay > 15", grace=5)


def rows_of(statistics: Statistics) -> str:
    """The query of the rows that are in any window."""
    rule = statistics.recipe.windowed or statistics.recipe.in_windows
    assert rule is not None
    return rule.rows


@pytest.mark.parametrize(
    "kind", [Tumbling(10), Hopping(10, 4), Cumulate(10, 5), Calendar(Unit.DAY), Sliding(10), Session(10)]
)
def test_they_are_of_the_windows_that_are_computed_of_the_same_rows(kind: WindowKind) -> None:
    windows = replace(WINDOWS, kind=kind)
    statistics, own = statistics_of(windows, FLIGHTS), analysed_windows(windows, FLIGHTS)
    assert statistics.recipe.key == own.key
    assert statistics.recipe.columns[:3] == own.columns[:3]
    assert not statistics.recipe.hidden
    assert "Delay` > 15" in rows_of(statistics)


def test_a_value_has_the_bytes_of_its_type_and_a_key_is_text_that_no_other_key_is() -> None:
    statistics = statistics_of(replace(WINDOWS, by=("code",), on="rank", where=""), CARRIERS)
    fixed = "IF(`rank` IS NULL, 0, 8)"
    assert statistics.size == f"coalesce(octet_length(`code`), 0) + coalesce(octet_length(`name`), 0) + {fixed}"
    assert statistics.key == "to_json(array(CAST(`code` AS string)))"
    assert statistics.called[KEYS] == statistics.called[ROWS], "of one value each, there are as many keys as rows"


def test_no_column_of_the_input_is_taken_for_one_of_theirs() -> None:
    statistics = statistics_of(
        replace(WINDOWS, by=("s0",)), replace(FLIGHTS, columns=(*FLIGHTS.columns, *columns("s0:string")))
    )
    assert {statistics.called[ROWS], statistics.called[NET]} < set(statistics.recipe.columns)
    assert len(set(statistics.recipe.columns)) == 11


@pytest.mark.parametrize("kind", [Tumbling(10), Sliding(10), Session(10)])
def test_on_event_times_rows_are_distinguished_by_when_they_happened_too(kind: WindowKind) -> None:
    statistics = statistics_of(replace(WINDOWS, on="event_time", kind=kind), FLIGHTS)
    assert f"`flights`.`{HAPPENED}` " in rows_of(statistics)
    assert HAPPENED not in statistics.size, "it is no value of a row"
    carriers = statistics_of(replace(WINDOWS, by=("code",), on="event_time", where="", kind=kind), CARRIERS)
    assert carriers.called[KEYS] != carriers.called[ROWS], "a key may be there at several times"


@pytest.mark.parametrize("kind", [Tumbling(10), Hopping(10, 4), Cumulate(10, 5), Calendar(Unit.DAY)])
@pytest.mark.parametrize("on", ["at", "day", "id", "event_time"])
@pytest.mark.parametrize("more", [{"late": Late.DISCARD}, {"max_lateness": 7}])
def test_of_windows_that_take_late_rows_for_a_while_rows_are_those_that_count(
    kind: WindowKind, on: str, more: dict[str, Any]
) -> None:
    statistics = statistics_of(replace(WINDOWS, kind=kind, on=on, **more), FLIGHTS)
    assert statistics.recipe.in_windows is not None
    assert statistics.recipe.in_windows.assignment.frozen_after == 5 + more.get("max_lateness", 0)
    assert "Delay` > 15" in rows_of(statistics)
    assert "Delay" not in statistics.recipe.whole
    assert not statistics.recipe.hidden
    assert statistics.recipe.key == ("carrier", "window_start", "window_end")
    assert statistics.recipe.columns[:3] == statistics.recipe.key


@pytest.mark.parametrize("kind", [Tumbling(10), Hopping(10, 4), Cumulate(10, 5), Calendar(Unit.DAY)])
def test_by_next_window_rows_are_where_they_count_and_late_for_their_own_windows(kind: WindowKind) -> None:
    moving = statistics_of(replace(WINDOWS, kind=kind, late=Late.NEXT_WINDOW), FLIGHTS)
    staying = statistics_of(replace(WINDOWS, kind=kind, late=Late.DISCARD), FLIGHTS)
    assert moving.recipe.in_windows is not None
    assert staying.recipe.in_windows is not None
    assert (moving.recipe.in_windows.assignment.grace_of_next, staying.recipe.in_windows.assignment.grace_of_next) == (
        5,
        None,
    )
    same = {"in_windows": None, "placed": None}
    assert replace(moving, recipe=replace(moving.recipe, **same)) == replace(
        staying, recipe=replace(staying.recipe, **same)
    )


@pytest.mark.parametrize("kind", [Sliding(10), Session(10)])
@pytest.mark.parametrize("on", ["at", "event_time"])
def test_which_rows_of_data_driven_windows_count_is_decided_as_where_they_are_computed(
    kind: WindowKind, on: str
) -> None:
    windows = replace(WINDOWS, kind=kind, on=on, late=Late.DISCARD)
    statistics, own = statistics_of(windows, FLIGHTS), analysed_windows(windows, FLIGHTS)
    assert statistics.recipe.windowed is not None
    assert own.windowed is not None
    assert statistics.recipe.windowed.kind == own.windowed.kind
    if isinstance(statistics.recipe.windowed, SlidingPlan) and isinstance(own.windowed, SlidingPlan):
        assert own.windowed.bounded_lateness is not None
        assert replace(statistics.recipe.windowed.bounded_lateness, columns=()) == replace(
            own.windowed.bounded_lateness, columns=()
        )
    else:
        assert statistics.recipe.windowed.after == own.windowed.after == 6


def test_a_frozen_session_may_hold_what_was_retracted_so_keys_are_counted() -> None:
    windows = replace(WINDOWS, by=("code",), on="rank", where="", kind=Session(10))
    assert statistics_of(windows, CARRIERS).called[KEYS] == statistics_of(windows, CARRIERS).called[ROWS]
    lasting = statistics_of(replace(windows, late=Late.DISCARD), CARRIERS)
    assert lasting.called[KEYS] != lasting.called[ROWS]
