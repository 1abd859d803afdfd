"""Sums of decimals, and means, that the driver adds up by how much changes let them grow, compared bit by bit with
those of Spark's queries: a session is refused where the driver is to do it, so nothing else can have."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import INSTANT, Made, day_of, no_spark
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import at_rest, refreshed
from tidemark.errors import TidemarkError
from tidemark.jobs.app import NeedsSpark
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.windows import Windows
from tidemark.spark.derive.kinds import groups

pytestmark = pytest.mark.spark

SALES = """\
name: sales
key: [id]
value: [shop, sold, whole, cents, fine, wide]
columns: {id: int, shop: string, sold: int, whole: int, cents: "decimal(11, 2)", fine: "decimal(16, 6)",
          wide: "decimal(27, 4)", at: timestamp}
start: 2024-01-01
time: {column: at}
source: {path: "{{ landing }}/sales/{{ ds }}/*.parquet", format: parquet, envelope: updates, diff: change}
"""
TYPES = {
    "id": pa.int64(),
    "shop": pa.string(),
    "sold": pa.int64(),
    "whole": pa.int64(),
    "cents": pa.decimal128(11, 2),
    "fine": pa.decimal128(16, 6),
    "wide": pa.decimal128(27, 4),
    "change": pa.int64(),
    "at": INSTANT,
}
MEANS = ("whole", "cents", "fine")
COLUMNS = ", ".join(
    ["count(*) AS n", "sum(wide) AS wide", "sum(cents) AS cents", *(f"avg({of}) AS mean_{of}" for of in MEANS)]
)
TOTALS = Definition(f"SELECT shop, {COLUMNS} FROM sales GROUP BY shop")
IN_WINDOWS = Definition(
    windows=Windows(
        ("shop",),
        "sold",
        Tumbling(10),
        (Aggregate("n", Function.COUNT), *(Aggregate(f"mean_{of}", Function.AVG, of) for of in MEANS)),
        early=True,
    )
)
Row = dict[str, Any]


def row(number: int, day: int = 1, **more: Any) -> Row:
    empty: Row = dict.fromkeys(TYPES)
    return empty | {"id": number, "shop": "a", "sold": 3, "change": 1, "at": day_of(day).lower} | more


def drawn(chance: random.Random, day: int, number: int) -> Row:
    return row(
        number,
        day,
        shop=chance.choice(["a", "b", "ü", ""]),
        sold=chance.randrange(30),
        whole=chance.choice([None, 0, 7, -3, 2**63 - 1, -(2**63) + 1, 2**53 + 1]),
        cents=chance.choice([None, Decimal("0.01"), Decimal("-0.05"), Decimal("999999999.99"), Decimal("-7.30")]),
        fine=chance.choice([None, Decimal("0.000001"), Decimal("-0.000001"), Decimal("9999999999.999999")]),
        wide=chance.choice([None, Decimal("9" * 23 + ".9999"), Decimal("-" + "9" * 23 + ".9999"), Decimal("0.0001")]),
        change=chance.choice([1, 1, 1, 3]),
    )


def land(made: Made, day: int, rows: list[Row]) -> None:
    folder = made.landing / made.name / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    columns = {
        name: pa.array([row[name] for row in rows], pa.int64() if of == INSTANT else of).cast(of)
        for name, of in TYPES.items()
    }
    pyarrow.parquet.write_table(pa.table(columns), folder / "0.parquet")
    made.moved(day)
    made.step("trace", day)


def deriving(made: Made, spark: Any, name: str, definition: Definition) -> Deriving:
    one = Deriving(made, spark, name, Derived((made.name,), definition))
    one.declared()
    return one


@pytest.mark.parametrize("definition", [TOTALS, IN_WINDOWS], ids=["totals", "windows"])
def test_what_the_driver_adds_up_is_what_the_queries_do(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: Definition
) -> None:
    made, chance, there = Made(tmp_path, SALES), random.Random(7), list[Row]()
    each: dict[str, Deriving] = {}
    for day in range(1, 5):
        new = [drawn(chance, day, 1000 * day + number) for number in range(150 if day == 1 else 20)]
        gone = [
            {**one, "change": -one["change"], "at": day_of(day).lower} for one in chance.sample(there, len(there) // 3)
        ]
        land(made, day, [*new, *gone])
        there = [*new, *(one for one in there if one["id"] not in {back["id"] for back in gone})]
        if day == 1:
            each = {name: deriving(made, spark, name, definition) for name in ("here", "queries")}
        refreshed(each["here"], here=day > 1)
        with monkeypatch.context() as patch:
            patch.setattr(groups, "grown_here", lambda views, rule: None)
            assert refreshed(each["queries"], here=False)["mode"] == ("by_key" if day > 1 else "whole")
        assert at_rest(each["here"]) == at_rest(each["queries"]) != []
    land(made, 5, [{**one, "change": -one["change"], "at": day_of(5).lower} for one in there])
    refreshed(each["here"], here=True)
    assert each["here"].rows() == {}
    assert verify_definition(each["here"].job(), every=True).sound


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([row(1, cents=Decimal("0.01"))], [row(2, 2, cents=Decimal("0.01"), change=10**18)]),
        ([row(1, wide=Decimal("9" * 23))], [row(2, 2, wide=Decimal("9" * 23), change=10**10)]),
        ([row(1)], [row(1, 2, change=-1), row(2, 2, shop="b", change=-1)]),
    ],
    ids=["a diff of many digits", "a product of many digits", "fewer rows than none"],
)
def test_what_might_not_fit_is_left_to_the_queries(
    spark: Any, tmp_path: Path, before: list[Row], after: list[Row]
) -> None:
    made = Made(tmp_path, SALES)
    land(made, 1, before)
    one = deriving(made, spark, "totals", TOTALS)
    refreshed(one, here=False)
    land(made, 2, after)
    with pytest.raises(NeedsSpark):
        correct(replace(one.job(), runner=no_spark))
    with pytest.raises(TidemarkError):
        refreshed(one, here=False)
