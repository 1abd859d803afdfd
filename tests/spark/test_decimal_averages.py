"""An average of decimals is the exact quotient rounded half up, however it is computed, and in whatever order."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pytest
from sqlglot import exp

from tidemark.definition.delta import quotient
from tidemark.spark.derive.settings import isolated_session

pytestmark = pytest.mark.spark

ROWS, GROUPS = 160, 400
"""A sum of so many cents may have an average in the middle of two numbers of six digits."""


def rounded(total: Decimal, count: int) -> Decimal:
    with localcontext(prec=60):
        return (total / count).quantize(Decimal("0.000001"), ROUND_HALF_UP)


@pytest.fixture(scope="module")
def engine(spark: Any) -> Any:
    return isolated_session(spark)


def test_an_average_in_the_middle_of_two_is_rounded_up(engine: Any) -> None:
    cents = f"CASE WHEN id % {ROWS} = 0 THEN (2 * (id DIV {ROWS}) + 1) / 100 ELSE 0 END"
    grown = quotient(exp.column("total"), exp.column("many"), 9, 2).sql(dialect="spark")
    rows = engine.range(0, GROUPS * ROWS, 1, 1).selectExpr(
        f"id DIV {ROWS} AS g", f"CAST({cents} AS decimal(9, 2)) AS v"
    )
    rows.createOrReplaceTempView("rows_of_cents")
    sums = engine.sql("SELECT g, avg(v) AS mean, sum(v) AS total, count(v) AS many FROM rows_of_cents GROUP BY g")
    found = sums.selectExpr("g", "mean", f"{grown} AS grown").collect()
    assert len(found) == GROUPS
    for row in found:
        expected = rounded(Decimal(2 * row.g + 1) / 100, ROWS)
        assert (row.mean, row.grown) == (expected, expected), row.g


def test_no_order_of_large_ones_gives_another(engine: Any) -> None:
    large, count = Decimal("999999999.99"), 200_001
    value = f"CAST(CASE WHEN id = {{}} THEN 0.01 ELSE {large} END AS decimal(11, 2)) AS v"
    means = {
        engine.range(0, count, 1, tasks).selectExpr(value.format(at)).selectExpr("avg(v)").collect()[0][0]
        for at in (0, count - 1)
        for tasks in (1, 3)
    }
    assert means == {rounded(large * (count - 1) + Decimal("0.01"), count)}
