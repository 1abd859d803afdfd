"""Sliding windows and sessions as they are compiled: which states an instant has, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from tests.pure.definition.inputs import FLIGHTS
from tidemark.definition.recipe import AggregateColumn, BoundedLateness, Recipe, SessionPlan, SlidingPlan, ValueColumn
from tidemark.definition.windows.aggregated import aggregates_of_values
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType, DecimalType
from tidemark.model.condition.tree import Compare
from tidemark.model.derived import Mode, Refresh
from tidemark.model.expression import Choice, Constant, Projection
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.windows import Late, Windows

BOOL, INT = ColumnType.BOOL, ColumnType.INT
SLID = Sliding(10)


def recipe(*aggregates: Aggregate, kind: Sliding | Session = SLID, refresh: Refresh = Refresh.AUTO) -> Recipe:
    return analysed_windows(Windows(("carrier",), "at", kind, aggregates, where="id > 1"), FLIGHTS, refresh)


def slid(*aggregates: Aggregate) -> SlidingPlan:
    rule = recipe(*aggregates).windowed
    assert isinstance(rule, SlidingPlan)
    return rule


def test_what_aggregates_are_of_is_asked_of_spark_and_null_where_it_is_not_for_them() -> None:
    rule = slid(
        Aggregate("rows", Function.COUNT),
        Aggregate("late", Function.COUNT, where="Delay > 0"),
        Aggregate("known", Function.COUNT, "fare"),
        Aggregate("either", Function.COUNT, "id > 2 OR Delay > 0"),
        Aggregate("nines", Function.APPROX_QUANTILE, "ln(Delay)", where="id > 2", at=0.9),
        Aggregate("different", Function.APPROX_DISTINCT, "id"),
        Aggregate("whole", Function.COUNT, "1 / id", where="id > 2"),
    )
    assert rule.aggregates == (
        ValueColumn("rows", Function.COUNT, None),
        ValueColumn("late", Function.COUNT, "_v1"),
        ValueColumn("known", Function.COUNT, "_v2"),
        ValueColumn("either", Function.COUNT, "_v3"),
        ValueColumn("nines", Function.APPROX_QUANTILE, "_v4", 0.9),
        ValueColumn("different", Function.COUNT_DISTINCT, "_v5"),
        ValueColumn("whole", Function.COUNT, "_v6"),
    )
    assert rule.valued == (
        "SELECT `flights`.`carrier` AS `carrier`, `flights`.`_at` AS `_at`, "
        "CASE WHEN `flights`.`Delay` > 0 THEN true END AS `_v1`, "
        "CASE WHEN (`flights`.`fare`) IS NOT NULL THEN true END AS `_v2`, "
        "CASE WHEN (`flights`.`id` > 2 OR `flights`.`Delay` > 0) IS NOT NULL THEN true END AS `_v3`, "
        "CASE WHEN `flights`.`id` > 2 THEN LN(`flights`.`Delay`) END AS `_v4`, "
        "`flights`.`id` AS `_v5`, "
        "CASE WHEN `flights`.`id` > 2 THEN CASE WHEN (1 / `flights`.`id`) IS NOT NULL THEN true END END AS `_v6` "
        "FROM `flights`"
    )


def test_what_is_collected_has_its_text_beside_it() -> None:
    """And as that is null where it is not for the aggregate."""
    some = slid(Aggregate("some", Function.COLLECT, "miles", "id > 2"))
    assert "CASE WHEN `flights`.`id` > 2 THEN CASE WHEN (`flights`.`miles`) IS NOT NULL THEN substring(" in some.valued
    rule = slid(Aggregate("all", Function.COLLECT, "miles"))
    assert rule.aggregates == (ValueColumn("all", Function.COLLECT, "_v0", texts="_t0"),)
    assert "substring(to_json(array(`flights`.`miles`)), 2" in rule.valued
    assert aggregates_of_values(rule.aggregates, {"_v0": ColumnType.FLOAT, "_t0": ColumnType.STRING}) == (
        AggregateColumn("all", Function.COLLECT, "_v0", ColumnType.STRING, texts="_t0"),
    )


def of_columns(*aggregates: Aggregate, where: str = "", on: str = "at") -> tuple[AggregateColumn, ...] | None:
    rule = analysed_windows(Windows(("carrier",), on, SLID, aggregates, where=where), FLIGHTS).windowed
    assert isinstance(rule, SlidingPlan)
    return rule.of_columns


def test_what_columns_tell_needs_no_query() -> None:
    asked = (
        Aggregate("n", Function.COUNT),
        Aggregate("known", Function.COUNT, "miles"),
        Aggregate("fares", Function.SUM, "Fare"),
        Aggregate("least", Function.MIN, "carrier"),
        Aggregate("last", Function.LAST, "at"),
        Aggregate("mean", Function.AVG, "fare"),
        Aggregate("floats", Function.SUM, "miles"),
        Aggregate("ids", Function.COLLECT, "id"),
        Aggregate("nines", Function.APPROX_QUANTILE, "Delay", at=0.9),
        Aggregate("different", Function.APPROX_DISTINCT, "id"),
    )
    found = of_columns(*asked)
    assert found is not None
    assert [(one.name, one.function, one.of, one.at) for one in found] == [
        ("n", Function.COUNT, None, None),
        ("known", Function.COUNT, "miles", None),
        ("fares", Function.SUM, "fare", None),
        ("least", Function.MIN, "carrier", None),
        ("last", Function.LAST, "at", None),
        ("mean", Function.AVG, "fare", None),
        ("floats", Function.SUM, "miles", None),
        ("ids", Function.COLLECT, "id", None),
        ("nines", Function.APPROX_QUANTILE, "Delay", 0.9),
        ("different", Function.COUNT_DISTINCT, "id", None),
    ], "in sliding windows the approximate count is the exact one"


NEVER_PLAIN = (
    Aggregate("a", Function.COUNT, "upper(carrier)"),
    Aggregate("a", Function.COUNT, "Delay", "upper(carrier) > 'A'"),
    Aggregate("a", Function.COUNT, "ln(Delay)", "id > 1"),
)


@pytest.mark.parametrize(
    "aggregate",
    [
        *NEVER_PLAIN,
        Aggregate("a", Function.COLLECT, "miles"),
        Aggregate("a", Function.COLLECT, "at"),
        Aggregate("a", Function.MAX, "tags"),
        Aggregate("a", Function.FIRST, "tags"),
    ],
)
def test_what_columns_alone_do_not_tell_is_not_plain(aggregate: Aggregate) -> None:
    count = Aggregate("n", Function.COUNT)
    assert of_columns(count) is not None
    assert of_columns(count, aggregate) is None


def test_rows_that_are_not_those_of_the_input_are_not_plain() -> None:
    count = Aggregate("n", Function.COUNT)
    assert of_columns(count, where="id > Delay") is not None
    assert of_columns(count, where="upper(carrier) > 'A'") is None
    bounded = Windows(("carrier",), "at", SLID, (count,), max_lateness=9)
    rule = analysed_windows(bounded, FLIGHTS).windowed
    assert isinstance(rule, SlidingPlan)
    assert rule.of_columns is None


def in_sessions(*aggregates: Aggregate, by: tuple[str, ...] = ("carrier",), **more: Any) -> SessionPlan:
    rule = analysed_windows(Windows(by, "at", Session(5, max_length=9), aggregates, **more), FLIGHTS).windowed
    assert isinstance(rule, SessionPlan)
    return rule


def test_sessions_that_columns_tell_need_no_query() -> None:
    """Those that their states do not tell, too."""
    functions = {
        "n": (Function.COUNT, "", ColumnType.INT),
        "tagged": (Function.COUNT, "tags", ColumnType.INT),
        "far": (Function.SUM, "miles", ColumnType.FLOAT),
        "fares": (Function.SUM, "Fare", DecimalType(22, 2)),
        "mean": (Function.AVG, "Delay", ColumnType.FLOAT),
        "least": (Function.MIN, "carrier", ColumnType.STRING),
        "first": (Function.FIRST, "fare", DecimalType(12, 2)),
        "last": (Function.LAST, "miles", ColumnType.FLOAT),
        "different": (Function.COUNT_DISTINCT, "id", ColumnType.INT),
    }
    asked = [Aggregate(name, function, of) for name, (function, of, _) in functions.items()]
    found = in_sessions(*asked).of_columns
    assert found is not None
    assert {one.name: (one.function, (one.of or "").lower(), one.type) for one in found} == {
        name: (function, of.lower(), result) for name, (function, of, result) in functions.items()
    }


@pytest.mark.parametrize(
    "aggregate",
    [
        *NEVER_PLAIN,
        Aggregate("a", Function.COLLECT, "miles"),
        Aggregate("a", Function.MAX, "tags"),
        Aggregate("a", Function.FIRST, "tags"),
    ],
)
def test_sessions_that_columns_alone_do_not_tell_are_not_plain(aggregate: Aggregate) -> None:
    count = Aggregate("n", Function.COUNT)
    assert in_sessions(count).of_columns is not None
    assert in_sessions(count, aggregate).of_columns is None


@pytest.mark.parametrize("kind", [SLID, Session(5, max_length=9)])
def test_rows_are_projected_by_what_needs_no_query(kind: Sliding | Session) -> None:
    """So that what is left has none; of rows that are as they are nothing is said."""
    aggregates = (
        Aggregate("n", Function.COUNT),
        Aggregate("some", Function.COUNT, where="Delay > 0"),
        Aggregate("last", Function.LAST, "id", "carrier = 'UA'"),
    )
    recipe = analysed_windows(Windows(("carrier",), "at", kind, aggregates, where="id > 1"), FLIGHTS)
    some = Choice(((Compare("Delay", ">", 0), Constant(True, BOOL)),), Constant(None, BOOL), BOOL)
    last = Choice(((Compare("carrier", "=", "UA"), "id"),), Constant(None, INT), INT)
    steps, shown = {"_x0": some, "_x1": last}, {"_x0": BOOL, "_x1": INT}
    assert recipe.projection == Projection(steps, shown, Compare("id", ">", 1))
    assert recipe.projection.sources(["carrier", "_x1"]) == ("id", "carrier")
    assert isinstance(recipe.windowed, SlidingPlan | SessionPlan)
    assert recipe.windowed.of_columns is not None
    assert [one.of for one in recipe.windowed.of_columns] == [None, "_x0", "_x1"]
    assert analysed_windows(Windows(("carrier",), "at", kind, aggregates[:1]), FLIGHTS).projection is None
    left = Windows(("carrier",), "at", kind, aggregates, where="upper(carrier) = 'UA'")
    assert analysed_windows(left, FLIGHTS).projection is None


def test_sessions_of_other_rows_than_those_of_the_input_are_not_plain() -> None:
    count = Aggregate("n", Function.COUNT)
    assert in_sessions(count, by=()).of_columns is not None
    assert in_sessions(count, by=("fare",)).of_columns is None, "what is equal to a decimal may be another one"
    assert in_sessions(count, where="id > Delay").of_columns is not None
    assert in_sessions(count, where="upper(carrier) > 'A'").of_columns is None
    assert in_sessions(count, max_lateness=9).of_columns is None


def test_an_average_that_could_not_be_rounded_as_sparks_is_refused() -> None:
    with pytest.raises(InvalidUsage, match=r"average of .* in sliding windows has more digits"):
        recipe(Aggregate("mean", Function.AVG, "CAST(fare AS decimal(30, 2))"))


def test_sessions_read_the_columns_they_need() -> None:
    rule = recipe(Aggregate("n", Function.COUNT, "Delay", "miles > 3"), kind=Session(5, max_length=9)).windowed
    assert isinstance(rule, SessionPlan)
    assert rule.columns == ("carrier", "Delay", "miles")
    assert rule.aggregates == (ValueColumn("n", Function.COUNT, "_v0"),)


@pytest.mark.parametrize("kind", [SLID, Session(5)])
def test_columns_that_sums_would_hide_are_none_of_theirs(kind: Sliding | Session) -> None:
    """A count and an average of the rows at one instant would be added up from what is hidden."""
    found = recipe(Aggregate("n", Function.COUNT), Aggregate("mean", Function.AVG, "fare"), kind=kind)
    assert found.hidden == ()
    shown = sqlglot.parse_one(found.whole, dialect="spark").named_selects
    assert shown == ["carrier", "window_start", "window_end", "n", "mean"]


def test_they_are_computed_by_key_unless_all_is_asked_for() -> None:
    count = Aggregate("n", Function.COUNT)
    assert (recipe(count).mode, recipe(count).key) == (Mode.BY_KEY, ("carrier", "window_start", "window_end"))
    assert recipe(count, kind=Session(5)).mode is Mode.BY_KEY
    assert recipe(count, refresh=Refresh.WHOLE).mode is Mode.WHOLE
    bounded_lateness = analysed_windows(
        Windows(("carrier",), "at", SLID, (count,), grace=3, late=Late.DISCARD), FLIGHTS
    )
    rule = bounded_lateness.windowed
    assert isinstance(rule, SlidingPlan)
    assert rule.bounded_lateness == BoundedLateness(3, 0, ("carrier",)), "a count needs no column besides"
    assert "`flights`.`_band` AS `_band`" in rule.valued


def test_sessions_that_freeze_are_distinguished_by_where_they_end_too() -> None:
    windows = Windows(("carrier",), "at", Session(5), (Aggregate("n", Function.COUNT),), grace=3, max_lateness=10)
    rule = analysed_windows(windows, FLIGHTS).windowed
    assert isinstance(rule, SessionPlan)
    assert rule.after == 14, "a row at the end still joins"
    assert "`flights`.`_start` AS `_start`, `flights`.`_end` AS `_end` FROM" in rule.valued
    assert rule.columns == ("carrier",)
