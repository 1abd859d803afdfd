"""Statistics of windows are aggregates of the same windows, over rows that say how often and since when they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.pure.definition.inputs import CARRIERS, FLIGHTS
from tidemark.definition.recipe import SlidingPlan
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.definition.windows.statistics import Statistics, statistics_of
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.statistics import KEYS, ROWS
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
