"""Which definitions are so plain that rows at hand are grouped without Spark."""

from __future__ import annotations

import re

import pytest

from tests.pure.definition.inputs import FLIGHTS, columns, recipe
from tidemark.definition.analysed import analysed
from tidemark.definition.recipe import AggregateColumn, DeltaPlan, GroupPlan, InputShape, SumColumn
from tidemark.model.collection import ColumnType, DecimalType
from tidemark.model.condition.tree import Compare
from tidemark.model.expression import Arithmetic, Choice, Constant, Converted, Matches, Projection
from tidemark.model.window.aggregate import Function

pytestmark = pytest.mark.pure

INT, FLOAT, BOOL = ColumnType.INT, ColumnType.FLOAT, ColumnType.BOOL
WIDE = InputShape(
    "prices", columns("shop:string id:int price:decimal(28,3) more:decimal(29,3) raw:bytes doc:json"), ("shop", "id")
)
NOT_PLAIN = [
    "SELECT carrier, max(Delay) AS m FROM flights GROUP BY carrier HAVING max(Delay) > 3",
    "SELECT carrier, max(Delay) + 1 AS m FROM flights GROUP BY carrier",
    "SELECT carrier, max(upper(tags)) AS m FROM flights GROUP BY carrier",
    "SELECT carrier, max(Delay) AS m FROM flights WHERE upper(carrier) = 'UA' GROUP BY carrier",
    "SELECT upper(carrier) AS c, max(Delay) AS m FROM flights GROUP BY ALL",
    "SELECT miles, max(Delay) AS m FROM flights GROUP BY miles",
    "SELECT tags, max(Delay) AS m FROM flights GROUP BY tags",
    "SELECT carrier, max(Delay) AS m FROM flights GROUP BY carrier, day",
    "SELECT carrier, max(Delay) AS m, 1 AS one FROM flights GROUP BY carrier",
    "SELECT carrier, max(tags) AS m FROM flights GROUP BY carrier",
    "SELECT carrier, count(DISTINCT tags) AS n FROM flights GROUP BY carrier",
    "SELECT carrier, count(DISTINCT Delay, id) AS n FROM flights GROUP BY carrier",
    "SELECT carrier, max(Delay) AS m, sum(DISTINCT Delay) AS s FROM flights GROUP BY carrier",
    "SELECT carrier, median(Delay) AS m FROM flights GROUP BY carrier",
    "SELECT carrier, max(named_struct('at', at, 'id', id)).id AS last FROM flights GROUP BY carrier",
    "SELECT carrier, max(Delay) OVER (PARTITION BY carrier) AS m FROM flights",
    "SELECT c AS carrier, max(m) AS m FROM (SELECT carrier AS c, Delay AS m FROM flights) GROUP BY ALL",
    "SELECT f.carrier, max(rank) AS m FROM flights f JOIN carriers ON f.carrier = code GROUP BY f.carrier",
]

MANY = """\
SELECT day AS d, max(delay) AS most, count(*) AS n, f.carrier, avg(miles) AS mean, sum(miles) AS far,
    min(fare) AS least, count(DISTINCT at) AS times, sum(fare) AS fares, count(tags) AS tagged, mean(id) AS middle
FROM flights f GROUP BY f.carrier, day"""


def grouped(select: str) -> GroupPlan | None:
    found = recipe(select).by_key
    assert found is not None
    return found.grouped


def test_aggregates_of_columns_need_no_query() -> None:
    assert grouped(MANY) == GroupPlan(
        ("day", "carrier"),
        (
            AggregateColumn("most", Function.MAX, "Delay", INT),
            AggregateColumn("n", Function.COUNT, None, INT),
            AggregateColumn("mean", Function.AVG, "miles", FLOAT),
            AggregateColumn("far", Function.SUM, "miles", FLOAT),
            AggregateColumn("least", Function.MIN, "fare", DecimalType(12, 2)),
            AggregateColumn("times", Function.COUNT_DISTINCT, "at", INT),
            AggregateColumn("fares", Function.SUM, "fare", DecimalType(22, 2)),
            AggregateColumn("tagged", Function.COUNT, "tags", INT),
            AggregateColumn("middle", Function.AVG, "id", FLOAT),
        ),
    )


@pytest.mark.parametrize("select", NOT_PLAIN)
def test_whatever_else_is_there_is_for_a_query(select: str) -> None:
    assert grouped(select) is None


@pytest.mark.parametrize(
    ("aggregate", "plain"),
    [("sum(price)", True), ("sum(more)", False), ("max(more)", True), ("max(raw)", False), ("count(raw)", True)],
)
def test_decimals_whose_sum_may_not_fit_and_types_without_an_order_are_for_a_query(aggregate: str, plain: bool) -> None:
    found = analysed(f"SELECT shop, max(id) AS m, {aggregate} AS x FROM prices GROUP BY shop", [WIDE]).by_key
    assert found is not None
    assert (found.grouped is not None) is plain


def test_sums_that_grow_are_planned_with_all_that_they_grow_by() -> None:
    """Of no values what is hidden is 0, where what is shown is null."""
    assert grouped("SELECT carrier, avg(Delay) AS mean, sum(fare) AS s FROM flights GROUP BY carrier") == GroupPlan(
        ("carrier",),
        (
            AggregateColumn("mean", Function.AVG, "Delay", FLOAT),
            AggregateColumn("s", Function.SUM, "fare", DecimalType(22, 2)),
            AggregateColumn("_rows", Function.COUNT, None, INT, kept=True),
            AggregateColumn("_part1", Function.COUNT, "Delay", INT, kept=True),
            AggregateColumn("_part2", Function.SUM, "Delay", DecimalType(30, 0), kept=True),
            AggregateColumn("_part3", Function.COUNT, "fare", INT, kept=True),
        ),
    )
    distinct = GroupPlan(("carrier", "day"), (AggregateColumn("_rows", Function.COUNT, None, INT, kept=True),))
    assert grouped("SELECT DISTINCT carrier, day FROM flights") == distinct


@pytest.mark.parametrize("aggregate", ["count(*) + 1 AS n", "sum(length(upper(carrier))) AS s"])
def test_sums_that_grow_of_more_than_expressions_are_for_a_query(aggregate: str) -> None:
    assert grouped(f"SELECT carrier, {aggregate} FROM flights GROUP BY carrier") is None


def test_what_a_select_says_of_rows_are_columns_of_projected_rows() -> None:
    found = recipe(
        "SELECT carrier, date(at) AS d, count(*) FILTER (WHERE Delay > 15) AS late, sum(Delay + id) AS s FROM flights "
        "WHERE carrier LIKE 'a%' GROUP BY carrier, date(at)"
    )
    assert found.projection is not None
    assert found.projection == Projection(
        {
            "_x0": Matches("carrier", "start", "a"),
            "_x1": Converted("at", ColumnType.DATE),
            "_x2": Choice(((Compare("Delay", ">", 15), Constant(True, BOOL)),), Constant(None, BOOL), BOOL),
            "_x3": Arithmetic("+", "Delay", "id", INT),
        },
        {"_x1": ColumnType.DATE, "_x2": BOOL, "_x3": INT},
        Compare("_x0", "=", True),
    )
    assert found.by_key is not None
    assert found.by_key.columns == {"flights": ("carrier", "_x1")}
    assert found.by_key.delta_plan == DeltaPlan(
        ("carrier", "_x1"),
        (
            SumColumn("_rows"),
            SumColumn("late", "_x2", count=True),
            SumColumn("_part1", "_x3", count=True),
            SumColumn("s", "_x3", null_without="_part1"),
        ),
        "_rows",
    )
    assert found.by_key.grouped is not None
    assert found.by_key.grouped.keys == ("carrier", "_x1")
    assert found.left_to_spark == ""


@pytest.mark.parametrize(
    ("select", "why"),
    [
        (NOT_PLAIN[0], "it says HAVING"),
        ("SELECT carrier, max(upper(tags)) AS m FROM flights GROUP BY carrier", r"UPPER\(.*\) is more than columns"),
        ("SELECT miles, max(Delay) AS m FROM flights GROUP BY miles", "it groups by miles, of type float"),
        ("SELECT carrier, max(Delay) + 1 AS m FROM flights GROUP BY carrier", "m: .*MAX.*1"),
        (NOT_PLAIN[-1], "it joins its inputs"),
    ],
)
def test_it_is_said_why_something_is_left_to_spark(select: str, why: str) -> None:
    assert re.match(why, recipe(select).left_to_spark)


def test_columns_that_inputs_spell_differently_are_for_a_query() -> None:
    other = InputShape("others", columns("CARRIER:string n:int"), ("n",))
    found = analysed("SELECT carrier, max(n) AS m FROM others GROUP BY carrier", [FLIGHTS, other]).by_key
    assert found is not None
    assert found.grouped is None
