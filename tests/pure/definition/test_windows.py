"""Windows of aligned kinds as definitions: how they are computed, and what does not fit an input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.pure.definition.inputs import CARRIERS, FLIGHTS, columns
from tidemark.definition.recipe import InputShape
from tidemark.definition.windows.aligned import analysed_windows
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Mode, Refresh
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Tumbling, Unit, WindowKind
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.pure

HOURLY = Windows(("carrier",), "at", Tumbling(3_600_000_000), (Aggregate("n", Function.COUNT),))


@pytest.mark.parametrize("kind", [Tumbling(7), Hopping(7, 2), Cumulate(9, 3), Calendar(Unit.WEEK, "Asia/Tokyo")])
def test_what_changes_touch_is_told_by_the_window_and_counts_grow(kind: WindowKind) -> None:
    recipe = analysed_windows(replace(HOURLY, kind=kind), FLIGHTS)
    assert (recipe.mode, recipe.key) == (Mode.BY_KEY, ("carrier", "window_start", "window_end"))
    assert recipe.by_key is not None
    assert recipe.by_key.held == ("carrier", "window_start", "window_end")
    assert recipe.by_key.delta is not None
    assert recipe.by_key.clustered == {"flights": (("carrier", "k0"),)}, "the input's key begins with carrier"


def test_windows_of_all_rows_have_their_bounds_as_key() -> None:
    recipe = analysed_windows(replace(HOURLY, by=()), FLIGHTS)
    assert recipe.key == ("window_start", "window_end")
    assert recipe.by_key is not None
    assert recipe.by_key.clustered == {"flights": ()}


def test_what_cannot_be_subtracted_is_computed_anew_for_the_windows_that_changes_touch() -> None:
    most = (Aggregate("most", Function.MAX, "Delay"),)
    recipe = analysed_windows(replace(HOURLY, aggregates=most), FLIGHTS, Refresh.INCREMENTAL)
    assert recipe.by_key is not None
    assert recipe.by_key.delta is None


def test_an_input_may_have_columns_called_as_those_of_windows() -> None:
    """Windows of windows: days of hours."""
    hours = InputShape("hours", columns("window_start:timestamp window_end:timestamp n:int"), ("window_start",), True)
    days = Windows((), "window_start", Calendar(Unit.DAY), (Aggregate("n", Function.SUM, "n"),))
    recipe = analysed_windows(days, hours)
    assert recipe.columns == ("window_start", "window_end", "n")
    with pytest.raises(InvalidUsage, match="_start"):
        analysed_windows(replace(days, aggregates=(Aggregate("n", Function.SUM, "_start"),)), hours)


def of(function: Function, of: str = "", where: str = "") -> tuple[Aggregate, ...]:
    return (Aggregate("n", function, of, where, 0.5 if function is Function.APPROX_QUANTILE else None),)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"on": "scheduled"}, "windows.on: flights has no column scheduled; "),
        (
            {"on": "event_time"},
            "windows.on: windows by the event times of flights are not computed by this version; ke",
        ),
        ({"on": "carrier"}, "windows.on: column carrier of flights is string; windows are on a timestamp, a date or"),
        ({"on": "miles"}, "windows.on: column miles of flights is float"),
        ({"by": ("carier",)}, "windows.by: flights has no column carier; did you mean 'carrier'?"),
        ({"by": ("miles",)}, "windows.by: column miles of flights is a float"),
        ({"where": "carier = 'UA'"}, "windows.where: "),
        ({"where": "miles + 1"}, "windows.where: 'miles + 1' is a double, no condition"),
        ({"where": "at > 'now'"}, "windows.where: holds 'now', which Spark takes for the time at which it runs"),
        (
            {"aggregates": of(Function.SUM, "carrier")},
            "aggregates.n: sum takes numbers, and carrier is string; use min",
        ),
        ({"aggregates": of(Function.AVG, "at")}, "aggregates.n: avg takes numbers, and at is timestamp"),
        ({"aggregates": of(Function.APPROX_QUANTILE, "day")}, "aggregates.n: approx_quantile takes numbers, and day"),
        ({"aggregates": of(Function.SUM, "from_json(tags, 'a int').a")}, "aggregates.n: sum takes numbers, and the ty"),
        ({"aggregates": of(Function.MAX, "Delai")}, "aggregates.n: "),
        ({"aggregates": of(Function.COUNT, where="id")}, "aggregates.n.where: 'id' is a bigint, no condition"),
        ({"kind": Calendar(Unit.DAY, "Asia/Tokyo"), "on": "day"}, "windows.calendar: column day of flights is a date"),
    ],
)
def test_what_does_not_fit_the_input_is_one_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidUsage) as caught:
        analysed_windows(replace(HOURLY, **changes), FLIGHTS)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert "the select" not in str(caught.value)


def test_windows_are_over_keyed_inputs_too() -> None:
    ranks = Windows((), "rank", Tumbling(2), (Aggregate("names", Function.COLLECT, "name"),))
    assert analysed_windows(ranks, CARRIERS).mode is Mode.BY_KEY


def test_a_column_may_be_called_as_a_key_is_within() -> None:
    recipe = analysed_windows(replace(HOURLY, aggregates=(Aggregate("k0", Function.COUNT),)), FLIGHTS)
    assert recipe.by_key is not None
    assert recipe.by_key.delta is None, "added up, it could not be told from the key"
    assert any("a column is called k0" in why for why in recipe.why)
