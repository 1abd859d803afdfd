"""Which conditions in Spark SQL become a tree, and which are left to Spark. That both say the same of rows is tested
where Spark is (tests/spark/test_expressions.py)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlglot import exp

from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape
from tidemark.definition.resolve import spelled_alike
from tidemark.definition.steps import Steps
from tidemark.definition.windows.expressions import row_expression
from tidemark.model.collection import Column, ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Not, Or

pytestmark = pytest.mark.pure

TYPES: dict[str, ValueType] = {
    "n": ColumnType.INT,
    "Text": ColumnType.STRING,
    "ratio": ColumnType.FLOAT,
    "at": ColumnType.TIMESTAMP,
    "day": ColumnType.DATE,
    "ok": ColumnType.BOOL,
    "raw": ColumnType.BYTES,
    "doc": ColumnType.JSON,
    "price": DecimalType(12, 2),
    "wide": DecimalType(38, 30),
}
SHAPE = InputShape("rows", tuple(Column(name, of) for name, of in TYPES.items()), ("n",))
NAN = Decimal("NaN")
OK = Compare("ok", "=", True)


def read(text: str) -> Condition:
    """As windows read it."""
    found = row_expression(text, "where", SHAPE, spelled_alike([SHAPE]))
    query = parsed(f"SELECT {found.sql} FROM w")
    assert isinstance(query, exp.Select)
    return Steps(TYPES).condition(query.selects[0].unalias())


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("n > 15", Compare("n", ">", 15)),
        ("15 < n", Compare("n", ">", 15)),
        ("n >= -1.5", Compare("n", ">=", Decimal("-1.5"))),
        ("text = 'it\\'s'", Compare("Text", "=", "it's")),
        ('text <> "UA"', Compare("Text", "!=", "UA")),
        ("n BETWEEN -1 AND 5", And((Compare("n", ">=", -1), Compare("n", "<=", 5)))),
        ("n NOT IN (1, 2)", Not(In("n", (1, 2)))),
        (
            "ok AND NOT (n IS NULL OR n = 1)",
            And((Compare("ok", "=", True), Not(Or((IsNull("n"), Compare("n", "=", 1)))))),
        ),
        ("ok != false", Compare("ok", "!=", False)),
        ("n = 1 OR n = 2 OR n = 3", Or(tuple(Compare("n", "=", one) for one in (1, 2, 3)))),
        ("day = '1970-01-02'", Compare("day", "=", 1)),
        ("day < DATE '1970-01-02'", Compare("day", "<", 1)),
        ("at >= '1970-01-01 00:00:01.5'", Compare("at", ">=", 1_500_000)),
        ("at < TIMESTAMP '1970-01-01T01:00:00+01:00'", Compare("at", "<", 0)),
        ("at < DATE '1970-01-02'", Compare("at", "<", 86_400_000_000)),
        ("price IN (0.25, 3)", In("price", (Decimal("0.25"), 3))),
        ("ratio < 0.1", Compare("ratio", "<", Decimal("0.1"))),
        ("ratio > 1", Or((Compare("ratio", ">", 1), Compare("ratio", "=", NAN)))),
        ("raw IS NULL", IsNull("raw")),
        ("ok IS TRUE", And((Not(IsNull("ok")), Compare("ok", "=", True)))),
        ("n IS DISTINCT FROM NULL", Not(IsNull("n"))),
        ("1 = 1", And(())),
        ("TRUE", And(())),
        ("n IS NULL OR 2 < 1", Or((IsNull("n"), Or(())))),
    ],
)
def test_what_is_said_by_a_tree(text: str, tree: Condition) -> None:
    assert repr(read(text)) == repr(tree)


@pytest.mark.parametrize(
    "text",
    [
        *("n = '5'", "text = 5", "n > 1e3", "ok > FALSE", "text LIKE 'a_'", "text LIKE text"),
        *("day = '1970-1-2'", "day = '1970-02-30'", "day = TIMESTAMP '1970-01-02 00:00:00'", "at = 'epoch'"),
        *("at = '1970-01-01 24:00:00'", "day IN ('1970-01-02', '1970-01-03')", "ratio IN (0, 1)", "raw = X'ff'"),
        *("doc = '{}'", "wide = 1", "price = 0.000000000000000000000000000001", "doc = text", "raw = raw"),
        *("text = 'a' COLLATE utf8_lcase", "isnotnull(n)", "n RLIKE 'a'", "ratio = DOUBLE 'NaN'"),
    ],
)
def test_what_is_left_to_spark(text: str) -> None:
    with pytest.raises(LeftToSpark):
        read(text)
