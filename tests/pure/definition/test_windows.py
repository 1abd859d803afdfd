"""Windows of aligned kinds as definitions: how they are computed, and what does not fit an input."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.pure.definition.inputs import FLIGHTS, columns
from tidemark.definition.recipe import AggregateColumn, DeltaPlan, GroupPlan, InputShape, SumColumn, WindowAssignment
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.definition.windows.explained import explained_windows
from tidemark.definition.windows.rows import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.condition.tree import Compare
from tidemark.model.derived import Mode
from tidemark.model.expression import Choice, Constant, Projection
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.close import closes_at
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Late, Windows

pytestmark = pytest.mark.pure

HOURLY = Windows(("carrier",), "at", Tumbling(3_600_000_000), (Aggregate("n", Function.COUNT),))


@pytest.mark.parametrize("kind", [Tumbling(7), Hopping(7, 2), Cumulate(9, 3), Calendar(Unit.WEEK, "Asia/Tokyo")])
def test_what_changes_touch_is_found_by_the_window_and_counts_grow(kind: WindowKind) -> None:
    recipe = analysed_windows(replace(HOURLY, kind=kind), FLIGHTS)
    assert (recipe.mode, recipe.key) == (Mode.BY_KEY, ("carrier", "window_start", "window_end"))
    assert recipe.by_key is not None
    assert recipe.by_key.key_columns == ("carrier", "window_start", "window_end")
    assert recipe.by_key.delta is not None
    assert recipe.by_key.clustered == {"flights": (("carrier", "k0"),)}, "the input's key begins with carrier"


def test_values_are_asked_of_rows_that_are_in_windows_alone() -> None:
    sampling = analysed_windows(replace(HOURLY, kind=Hopping(2, 10, 3, sampling=True), where="id > 1"), FLIGHTS)
    assert sampling.in_windows is not None
    assert "`at` IS NOT NULL AND pmod(pmod(`flights`.`at`, 10) - 3, 10) < 2 AND (`flights`.`id` > 1)" in (
        sampling.in_windows.rows.replace("unix_micros(CAST(`flights`.`at` AS timestamp))", "`flights`.`at`")
    )
    clamped = analysed_windows(replace(HOURLY, kind=Sliding(7, clamp_start_at_zero=True)), FLIGHTS)
    assert clamped.windowed is not None
    assert clamped.windowed.rows.endswith(">= 0")
    for kind in (Hopping(10, 2), Tumbling(7), Cumulate(9, 3)):
        found = analysed_windows(replace(HOURLY, kind=kind), FLIGHTS).in_windows
        assert found is not None
        assert found.rows.endswith("WHERE `flights`.`at` IS NOT NULL")


def test_what_an_aggregate_is_of_is_not_evaluated_in_rows_that_its_condition_excludes() -> None:
    """Whatever Spark makes of FILTER. A column can be evaluated in all of them, which kernels know."""
    guarded = Aggregate("mean", Function.AVG, "CAST(miles AS int)", "id > 2")
    plain = Aggregate("most", Function.MAX, "miles", "id > 2")
    whole = analysed_windows(replace(HOURLY, aggregates=(guarded, plain)), FLIGHTS).whole
    assert "CASE WHEN `flights`.`id` > 2 THEN CAST(`flights`.`miles` AS INT) END" in whole
    assert "MAX((`flights`.`miles`) + CAST('0.0' AS DOUBLE)) FILTER" in whole


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
    ("changes", "message"),
    [
        ({"on": "scheduled"}, "windows.on: flights has no column scheduled; "),
        ({"on": "Event_Time"}, "windows.on: flights has no column Event_Time; "),
        ({"on": "event_time", "by": ("event_time",)}, "windows.by: flights has no column event_time; "),
        ({"on": "event_time", "where": "_happened IS NULL"}, "windows.where: "),
        ({"on": "carrier"}, "windows.on: column carrier of flights is string; windows are on a timestamp, a date or"),
        ({"on": "miles"}, "windows.on: column miles of flights is float"),
        ({"by": ("carier",)}, "windows.by: flights has no column carier; did you mean 'carrier'?"),
        (
            {"by": ("miles",)},
            "windows.by: column miles of flights is a float, and equality of floats identifies nothing; make a derived",
        ),
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
def test_what_does_not_fit_the_input_is_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidUsage) as caught:
        analysed_windows(replace(HOURLY, **changes), FLIGHTS)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "the select" not in str(caught.value)


@pytest.mark.parametrize("kind", [Tumbling(7), Calendar(Unit.DAY, "Asia/Tokyo"), Sliding(7), Session(7)])
def test_event_times_are_a_timestamp_that_no_column_of_the_input_is(kind: WindowKind) -> None:
    most = (Aggregate("most", Function.MAX, "Delay"),)
    windows = Windows(("carrier",), "event_time", kind, most)
    recipe = analysed_windows(windows, FLIGHTS)
    with_one = FLIGHTS.with_columns(*columns("happened:timestamp"))
    other = analysed_windows(replace(windows, on="happened"), with_one)
    assert (recipe.happened, other.happened) == (True, False)
    by_queries = other.by_key and replace(other.by_key, delta_plan=None, columns={}, grouped=None)
    data_driven = replace(other.windowed, of_columns=None) if other.windowed else None
    seen = replace(other, happened=True, placed=None, by_key=by_queries, windowed=data_driven)
    seen = replace(seen, left_to_spark=recipe.left_to_spark)
    assert recipe.left_to_spark
    if recipe.in_windows is not None and other.in_windows is not None:
        assert recipe.in_windows.grouped is not None, "executors group what Spark gives"
        of_values = {name: getattr(recipe.in_windows, name) for name in ("valued", "aggregates", "grouped")}
        seen = replace(seen, in_windows=replace(other.in_windows, **of_values))
    assert repr(recipe).replace("_happened", "happened") == repr(seen), "rows at hand do not tell when they happened"


def test_a_column_called_event_time_goes_before_the_axis() -> None:
    """However it is spelled: SQL knows no difference of case, so there it would be one name of two things."""
    for name, said in (("event_time", None), ("Event_Time", "did you mean 'Event_Time'?")):
        shape = replace(FLIGHTS, columns=(*FLIGHTS.columns, *columns(f"{name}:int")))
        if said is None:
            recipe = analysed_windows(replace(HOURLY, on="event_time"), shape)
            assert not recipe.happened
            assert recipe.in_windows is not None
            assert "`flights`.`event_time`" in recipe.in_windows.rows
        else:
            with pytest.raises(InvalidUsage, match=re.escape(said)):
                analysed_windows(replace(HOURLY, on="event_time"), shape)


@pytest.mark.parametrize("kind", [Tumbling(7), Hopping(7, 2), Cumulate(9, 3), Calendar(Unit.WEEK, "Asia/Tokyo")])
def test_windows_that_take_late_rows_for_a_while_are_computed_as_others_of_the_rows_in_time(kind: WindowKind) -> None:
    lasting = replace(HOURLY, kind=kind)
    recipe = analysed_windows(replace(lasting, late=Late.DISCARD), FLIGHTS)
    assert recipe.in_windows is not None
    assert recipe.in_windows.columns == ("carrier",), "no more of the input is needed"
    assert (recipe.mode, recipe.key, recipe.columns) == (
        Mode.BY_KEY,
        ("carrier", "window_start", "window_end"),
        ("carrier", "window_start", "window_end", "n"),
    )
    assert recipe.by_key is not None
    assert recipe.by_key.delta is not None
    assert recipe.by_key.clustered == {"flights": (("carrier", "k0"),)}
    found = (recipe.by_key.delta_plan, recipe.by_key.columns, recipe.by_key.grouped, recipe.placed)
    frozen_after = closes_at(kind, 0, lasting.grace)
    assert found[3] == WindowAssignment(kind, "at", ("carrier",), ColumnType.TIMESTAMP, frozen_after)
    assert None not in found, "this process judges whether a row came in time"
    for other, of in (({"max_lateness": 3}, (frozen_after + 3, None)), ({}, (None, None))):
        assert assignments(replace(lasting, **other)) == {of}
    moving = replace(lasting, late=Late.NEXT_WINDOW)
    assert assignments(moving) == {(frozen_after, lasting.grace)}
    same: dict[str, Any] = {name: getattr(recipe, name) for name in ("in_windows", "placed")}
    for windows in (lasting, moving):
        assert replace(analysed_windows(windows, FLIGHTS), **same) == recipe, "else all is as of the rows that count"


def assignments(windows: Windows) -> set[tuple[int | None, int | None]]:
    """How long rows count in windows, and where then, by queries and by rows at hand."""
    recipe = analysed_windows(windows, FLIGHTS)
    assert recipe.in_windows is not None
    assert recipe.placed is not None
    assert recipe.in_windows.assignment == replace(recipe.placed, on=AT)
    return {(rule.frozen_after, rule.grace_of_next) for rule in (recipe.placed, recipe.in_windows.assignment)}


def test_how_long_late_rows_count_is_explained() -> None:
    sentence = "a row that comes once a window has {} no longer changes it, and is counted"
    hour = replace(HOURLY, max_lateness=3_600_000_000)
    assert sentence.format("been closed for 1h") in explained_windows(hour)
    assert sentence.format("closed") in explained_windows(replace(HOURLY, late=Late.DISCARD))
    assert not any("no more" in line for line in explained_windows(HOURLY))
    moving = "a row that comes late for all of its windows is in the first one that is open when it comes"
    assert {moving, sentence.format("closed")} < {*explained_windows(replace(HOURLY, late=Late.NEXT_WINDOW))}
    session = "a row that comes once a session has closed no longer changes it, and is counted where it joins no other"
    assert session in explained_windows(replace(HOURLY, kind=Session(5), late=Late.DISCARD))


@pytest.mark.parametrize("kind", [Tumbling(7), Hopping(7, 2), Cumulate(9, 3)])
def test_windows_computed_by_arithmetic_are_as_plain_as_groups_of_a_table(kind: WindowKind) -> None:
    windows = replace(HOURLY, kind=kind)
    recipe = analysed_windows(windows, FLIGHTS)
    assert recipe.by_key is not None
    assert recipe.by_key.columns == {"flights": ("carrier", START, END)}
    assert recipe.by_key.delta_plan == DeltaPlan(("carrier", START, END), (SumColumn("n"),), "n")
    assert recipe.placed == WindowAssignment(kind, "at", ("carrier",), ColumnType.TIMESTAMP)
    most = analysed_windows(replace(windows, on="id", aggregates=(Aggregate("m", Function.MAX, "Delay"),)), FLIGHTS)
    assert most.by_key is not None
    aggregates = (AggregateColumn("m", Function.MAX, "Delay", ColumnType.INT),)
    assert most.by_key.grouped == GroupPlan(("carrier", START, END), aggregates)
    assert most.placed == WindowAssignment(kind, "id", ("carrier",), ColumnType.INT)


def test_a_sketch_of_aligned_windows_stays_one_of_sparks() -> None:
    """Its collections hold what the sketch said so far: a kernel's exact counts would be corrections."""
    some = (Aggregate("different", Function.APPROX_DISTINCT, "id"),)
    recipe = analysed_windows(replace(HOURLY, aggregates=some), FLIGHTS)
    assert recipe.by_key is not None
    assert (recipe.by_key.grouped, recipe.placed) == (None, None)
    assert recipe.left_to_spark == "approx_distinct is a sketch of Spark's"


def test_rows_that_count_by_a_condition_without_functions_are_as_plain() -> None:
    recipe = analysed_windows(replace(HOURLY, where="id > 2"), FLIGHTS)
    assert recipe.by_key is not None
    assert recipe.by_key.delta_plan == DeltaPlan(("carrier", START, END), (SumColumn("n"),), "n")
    assert recipe.placed == WindowAssignment(Tumbling(3_600_000_000), "at", ("carrier",), ColumnType.TIMESTAMP)
    assert recipe.projection == Projection({}, {}, Compare("id", ">", 2))
    some = (*HOURLY.aggregates, Aggregate("some", Function.COUNT, "Delay", "id > 2"))
    conditional = analysed_windows(replace(HOURLY, aggregates=some), FLIGHTS)
    assert conditional.by_key is not None
    assert conditional.by_key.delta_plan == DeltaPlan(
        ("carrier", START, END), (SumColumn("n"), SumColumn("some", "_x0", count=True)), "n"
    )
    assert conditional.projection == Projection(
        {"_x0": Choice(((Compare("id", ">", 2), "Delay"),), Constant(None, ColumnType.INT), ColumnType.INT)},
        {"_x0": ColumnType.INT},
    )


def test_rows_that_count_by_a_function_are_computed_by_queries() -> None:
    recipe = analysed_windows(replace(HOURLY, where="upper(carrier) > 'A'"), FLIGHTS)
    assert recipe.by_key is not None
    assert (recipe.placed, recipe.by_key.delta_plan, recipe.by_key.columns) == (None, None, {})
    assert recipe.projection is None
    assert recipe.left_to_spark.startswith("UPPER(carrier) is more than columns")
