"""Which definitions are so plain that changes are added up without a query, and which touched values are columns."""

from __future__ import annotations

import pytest

from tests.pure.definition.inputs import recipe
from tidemark.definition.recipe import ByKey, DeltaPlan, MeanColumn, SumColumn
from tidemark.model.collection import ColumnType, DecimalType

pytestmark = pytest.mark.pure

NOT_PLAIN = [
    "SELECT carrier, count(*) AS n FROM flights WHERE upper(tags) > 'A' GROUP BY carrier",
    "SELECT carrier, count(*) FILTER (WHERE ln(id) > 1) AS n FROM flights GROUP BY carrier",
    "SELECT upper(carrier) AS c, count(*) AS n FROM flights GROUP BY ALL",
    "SELECT carrier, sum(length(upper(carrier))) AS s FROM flights GROUP BY carrier",
    "SELECT carrier, sum(Delay) + 1 AS s FROM flights GROUP BY carrier",
    "SELECT carrier, sum(CAST(Delay AS decimal(20, 0))) AS s, avg(Delay) AS a FROM flights GROUP BY carrier",
    "SELECT carrier, avg(fare + 1) AS a FROM flights GROUP BY carrier",
    "SELECT carrier, avg(Delay) + 1 AS a FROM flights GROUP BY carrier",
    "SELECT carrier, count(id, Delay) AS n FROM flights GROUP BY carrier",
    "SELECT carrier, count(*) AS n, 1 AS one FROM flights GROUP BY carrier",
    "SELECT c AS carrier, count(*) AS n FROM (SELECT carrier AS c FROM flights) GROUP BY ALL",
    "SELECT carrier, max(Delay) AS m FROM flights GROUP BY carrier",
]


def by_key(select: str) -> ByKey:
    found = recipe(select).by_key
    assert found is not None
    return found


def test_counts_and_sums_of_columns_are_added_up_without_a_query() -> None:
    sums = by_key("SELECT carrier AS c, sum(delay) AS s, count(fare) AS f FROM flights GROUP BY carrier").delta_plan
    added = (
        SumColumn("_rows"),
        SumColumn("_part1", "Delay", count=True),
        SumColumn("s", "Delay", null_without="_part1"),
    )
    assert sums == DeltaPlan(("carrier",), (*added, SumColumn("f", "fare", count=True)), "_rows")
    distinct = by_key("SELECT DISTINCT carrier, day FROM flights").delta_plan
    assert distinct == DeltaPlan(("carrier", "day"), (SumColumn("_rows"),), "_rows")


def test_decimals_and_means_of_columns_are_added_up_without_a_query() -> None:
    plain = by_key(
        "SELECT carrier, sum(fare) AS s, avg(fare) AS a, avg(delay) AS d FROM flights GROUP BY carrier"
    ).delta_plan
    assert plain is not None
    fares, mean, delays = DecimalType(22, 2), DecimalType(16, 6), DecimalType(30, 0)
    assert set(plain.sums[1:]) == {
        SumColumn("_part1", "fare", count=True),
        SumColumn("_part2", "Delay", count=True),
        SumColumn("_part3", "Delay", type=delays),
        SumColumn("s", "fare", null_without="_part1", type=fares),
    }
    assert plain.means == (MeanColumn("a", "s", "_part1", mean), MeanColumn("d", "_part3", "_part2", ColumnType.FLOAT))


@pytest.mark.parametrize("select", NOT_PLAIN)
def test_whatever_else_is_there_is_for_a_query(select: str) -> None:
    assert by_key(select).delta_plan is None


def test_sums_of_expressions_of_some_rows_are_added_up_too() -> None:
    sums = by_key(
        "SELECT day, sum(Delay + 1) FILTER (WHERE id > 1) AS s FROM flights WHERE fare > 2 GROUP BY day"
    ).delta_plan
    added = (SumColumn("_rows"), SumColumn("_part1", "_x1", count=True), SumColumn("s", "_x1", null_without="_part1"))
    assert sums == DeltaPlan(("day",), added, "_rows")
    mean = by_key("SELECT carrier, avg(CAST(Delay AS decimal(20, 0))) AS a FROM flights GROUP BY carrier").delta_plan
    assert mean is not None
    assert mean.means == (MeanColumn("a", "_part2", "_part1", DecimalType(24, 4)),)


def test_touched_values_that_are_columns_are_named() -> None:
    assert by_key("SELECT carrier, max(Delay) AS m FROM flights GROUP BY carrier").columns == {"flights": ("carrier",)}
    joined = by_key("SELECT f.id, f.carrier, name FROM flights f JOIN carriers ON f.carrier = code")
    assert joined.columns == {"flights": ("carrier",), "carriers": ("code",)}
    assert by_key("SELECT upper(carrier) AS c, max(id) AS m FROM flights GROUP BY ALL").columns == {}
