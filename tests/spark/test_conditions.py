"""Conditions of windows that are evaluated without a query hold of the rows of which Spark says that they hold, and
windows with them are what Spark's queries give, whether the driver, executors or a shuffle make them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import functions as F

from tests.spark.support import HOUR, Made
from tests.spark.test_grouped_here import (
    COUNTS,
    EXTREMES,
    SAME,
    UPDATES,
    UPSERT,
    at_rest,
    followed,
    land,
    refreshed,
)
from tests.spark.test_sessions import ALL as OF_SESSIONS
from tests.spark.test_sessions import compared_by_executors, computed_both_ways, deriving, sale
from tests.spark.test_sliding_refresh import ALL as OF_SLIDING
from tests.spark.ways import by_executors, by_queries
from tests.support.budget import budget
from tidemark.arrow.rows.condition import holds
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape
from tidemark.definition.resolve import spelled_alike
from tidemark.definition.steps import Steps
from tidemark.definition.windows.expressions import row_expression
from tidemark.model.collection import Column, ColumnType, DecimalType, ValueType
from tidemark.model.derived import Definition
from tidemark.model.window.aggregate import Aggregate
from tidemark.model.window.kinds import Hopping, Session, Sliding, Tumbling
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.spark.derive.settings import isolated_session

pytestmark = pytest.mark.spark

DAY = 24 * HOUR
TYPES: dict[str, ValueType] = {
    "n": ColumnType.INT,
    "text": ColumnType.STRING,
    "ratio": ColumnType.FLOAT,
    "at": ColumnType.TIMESTAMP,
    "day": ColumnType.DATE,
    "ok": ColumnType.BOOL,
    "price": DecimalType(12, 2),
}
VALUES: dict[str, list[Any]] = {
    "n": [None, 0, 1, -1, 2, 3, 2**53 + 1, 2**63 - 1, -(2**63)],
    "text": [None, "", "a", "A", "ab", "a ", "é", "\uffee", "😀", "it's", "\\"],
    "ratio": [None, 0.0, -0.0, 0.1, 1.0, math.nan, math.inf, -math.inf, 5e-324, 2.0**53],
    "at": [None, 0, -1, 1, DAY, DAY - 1, 1_700_000_000_000_001, 2**62],
    "day": [None, 0, 1, -1, 19_000, -719_162],
    "ok": [None, True, False],
    "price": [None, Decimal("0.00"), Decimal("0.25"), Decimal("-0.01"), Decimal("9999999999.99")],
}
LITERALS: dict[str, list[str]] = {
    "n": ["0", "1", "-1", "0.5", "-1.0", "2", "9007199254740993", "9223372036854775807", "99999999999999999999"],
    "text": ["''", "'a'", "'ab'", "'é'", "'\U0001f600'", "'it\\'s'", '"A"', "'\\\\'", "'\\uffee'"],
    "ratio": ["0", "-0.0", "0.1", "1", "9007199254740993", "0.10000000000000000000001"],
    "at": ["'1970-01-01'", "TIMESTAMP '1970-01-02 00:00:00'", "DATE '1970-01-02'", "'1970-01-01T01:00:00+01:00'"],
    "day": ["'1970-01-01'", "DATE '1970-01-02'", "'2022-01-08'", "'0001-01-01'"],
    "ok": ["TRUE", "false"],
    "price": ["0", "0.25", "0.255", "-0.01", "10000000000", "9999999999.99"],
}
SHAPE = InputShape("rows", tuple(Column(name, of) for name, of in TYPES.items()), ("n",))


def leaf(chance: random.Random) -> str:
    column = chance.choice(list(TYPES))
    literals = LITERALS[column]
    kind = chance.randrange(6)
    if kind == 0:
        return f"{column} IS {chance.choice(['', 'NOT '])}NULL"
    if kind == 1 and column != "ratio":
        typed = [one for one in literals if column not in ("at", "day") or not one.startswith("'")]
        return f"{column} {chance.choice(['', 'NOT '])}IN ({', '.join(chance.choices(typed, k=chance.randint(1, 12)))})"
    if kind == 2 and column != "ok":
        low, high = chance.choices(literals, k=2)
        return f"{column} {chance.choice(['', 'NOT '])}BETWEEN {low} AND {high}"
    if column == "ok":
        return chance.choice(["ok", "NOT ok", f"ok {chance.choice(['=', '<>'])} {chance.choice(literals)}"])
    op, literal = chance.choice(["=", "==", "!=", "<>", "<", "<=", ">", ">="]), chance.choice(literals)
    return f"{column} {op} {literal}" if kind < 5 else f"{literal} {op} {column}"


def condition(chance: random.Random, depth: int = 3) -> str:
    if depth == 0 or chance.random() < 0.3:
        return chance.choice([*[leaf(chance)] * 8, "TRUE", "1 = 1", "2 < 1"])
    if chance.random() < 0.25:
        return f"NOT ({condition(chance, depth - 1)})"
    word = chance.choice([" AND ", " OR "])
    return f"({word.join(condition(chance, depth - 1) for _ in range(chance.randint(2, 3)))})"


def test_conditions_hold_of_the_rows_of_which_spark_says_so(spark: Any, tmp_path: Path) -> None:
    chance = random.Random(51)
    rows = [{name: chance.choice(some) for name, some in VALUES.items()} for _ in range(400)]
    whole = {"at": pa.int64(), "day": pa.int32()}
    arrays = {
        name: pa.array([row[name] for row in rows], whole.get(name, arrow_type(of))).cast(arrow_type(of))
        for name, of in TYPES.items()
    }
    batch = pa.record_batch(arrays)
    pyarrow.parquet.write_table(pa.Table.from_batches([batch]), tmp_path / "rows.parquet")
    asked = {}
    while len(asked) < budget(ci=150, deep=300):
        text = condition(chance)
        read = row_expression(text, "where", SHAPE, spelled_alike([SHAPE]))
        node: Any = parsed(f"SELECT {read.sql} FROM w")
        found = Steps(TYPES).condition(node.selects[0].unalias())
        asked[text] = (read.sql, holds(found, batch).to_pylist())
    frame = isolated_session(spark).read.parquet(f"file://{tmp_path}/rows.parquet").alias("rows").coalesce(1)
    texts = list(asked)
    for at in range(0, len(texts), 50):
        some = texts[at : at + 50]
        selected = frame.select(
            *(F.coalesce(F.expr(asked[one][0]), F.lit(False)).alias(f"c{n}") for n, one in enumerate(some))
        )
        answers = selected.toArrow()
        for n, one in enumerate(some):
            assert asked[one][1] == answers.column(n).to_pylist(), one


ROWS = "(whole >= -3 OR whole IS NULL) AND note <> 'x'"
FEW = "good"
"""Of every third row."""


def only(aggregates: tuple[Aggregate, ...]) -> tuple[Aggregate, ...]:
    """The same, every second over some rows only."""
    conditions = ("ratio > 0.5 OR ratio IS NULL", "note IN ('', 'ü') OR good", "since < '2024-01-01'")
    return tuple(replace(one, where=conditions[at % 3]) if at % 2 == 0 else one for at, one in enumerate(aggregates))


NARROW = (
    *OF_SESSIONS[:6],
    *(one for one in OF_SESSIONS[6:] if one.name in ("first_note", "last_ratio", "max_note", "different_note")),
)
BUILT = {
    "tumbling": (UPSERT, Windows(("shop",), "sold", Tumbling(DAY // 4, 7), only(EXTREMES), ROWS, grace=5)),
    "counted": (UPDATES, Windows(("shop",), "sold", Tumbling(DAY // 4, 7), COUNTS, ROWS, grace=5)),
    "counted_only": (UPDATES, Windows(("shop",), "sold", Tumbling(DAY // 4, 7), only(COUNTS), grace=5)),
    "hopping": (UPDATES, Windows((), "sold", Hopping(DAY, DAY // 2), only(EXTREMES), FEW, early=True)),
}
DATA_DRIVEN = {
    "sessions": (UPSERT, Windows(("shop",), "sold", Session(3 * HOUR), only(OF_SESSIONS), ROWS, grace=5)),
    "sessions_of_some": (UPDATES, Windows(("kind", "shop"), "sold", Session(9 * HOUR), NARROW, FEW, early=True)),
    "sliding": (UPSERT, Windows(("shop",), "sold", Sliding(3 * HOUR), only(OF_SLIDING), ROWS, grace=5)),
    "sliding_of_some": (UPDATES, Windows(("kind", "shop"), "sold", Sliding(9 * HOUR), OF_SLIDING, FEW, early=True)),
}


@pytest.mark.parametrize("name", BUILT)
def test_aligned_windows_are_those_that_spark_computes(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = BUILT[name]
    followed(Made(tmp_path, text), spark, Definition(windows=windows), (*windows.by, WINDOW_START, WINDOW_END), 3)


@pytest.mark.parametrize("name", DATA_DRIVEN)
def test_data_driven_windows_are_those_that_spark_computes(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = DATA_DRIVEN[name]
    computed_both_ways(spark, Made(tmp_path, text), windows)


@pytest.mark.parametrize("name", ["sessions", "sliding"])
def test_what_executors_compare_with_stored_rows_is_what_the_driver_does(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = DATA_DRIVEN[name]
    compared_by_executors(spark, Made(tmp_path, text), windows, 7)


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("tumbling", ["executors"]),
        ("counted_only", ["executors", "queries"]),
        ("sessions", ["shuffle"]),
        ("sliding", ["shuffle"]),
        ("sliding_of_some", ["shuffle"]),
    ],
)
def test_all_ways_to_build_them_give_the_same(spark: Any, tmp_path: Path, name: str, ways: list[str]) -> None:
    """Those that the tests above do not compare to the last bit with what the driver builds, which is one of theirs."""
    text, windows = (BUILT | DATA_DRIVEN)[name]
    made, chance = Made(tmp_path, text), random.Random(name)
    land(made, 1, [sale(chance, 1, number) for number in range(200)])
    reports, stored = {}, {}
    for way in ("here", *ways):
        one = deriving(made, spark, way, windows)
        with pytest.MonkeyPatch.context() as patch:
            if way == "queries":
                by_queries(patch)
            if way in ("executors", "shuffle"):
                with by_executors(9, ranges=way == "executors"):
                    reports[way] = refreshed(one, here=False)
            else:
                reports[way] = refreshed(one, here=way == "here")
        stored[way] = at_rest(one)
    for way in reports:
        same = [of for of in SAME if of != "rows_read"]
        assert [reports[way].get(of) for of in same] == [reports["here"].get(of) for of in same], way
        assert stored[way] == stored["here"] != [], way
