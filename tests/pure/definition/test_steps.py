"""How expressions are split into steps (model/expression.py), and what steps give. That Spark gives the same is
tested where Spark is (tests/spark/test_expressions.py)."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from sqlglot import exp

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.projected import projected
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.steps import Steps
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.condition.tree import And, Compare, Condition, IsNull, Not, Or
from tidemark.model.expression import (
    Arithmetic,
    Choice,
    Constant,
    Converted,
    Matches,
    Order,
    Projection,
    Step,
    TimePart,
)

pytestmark = pytest.mark.pure

TYPES: dict[str, ValueType] = {
    "a": ColumnType.INT,
    "b": ColumnType.INT,
    "note": ColumnType.STRING,
    "at": ColumnType.TIMESTAMP,
    "ok": ColumnType.BOOL,
    "price": DecimalType(12, 2),
}
ROWS = pa.record_batch(
    {
        "a": pa.array([6, 7, None, 9], pa.int64()),
        "b": pa.array([3, 0, 2, -2], pa.int64()),
        "note": pa.array(["x", None, "yx", "y"]),
        "at": pa.array([0, 86_400_000_000, -1, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "ok": pa.array([True, False, None, True]),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.10")], pa.decimal128(12, 2)),
    }
)
INT, BOOL = ColumnType.INT, ColumnType.BOOL


def node_of(text: str) -> exp.Expr:
    query = parsed(f"SELECT {text} FROM t")
    assert isinstance(query, exp.Select)
    return query.selects[0].unalias()


def steps_of(text: str) -> dict[str, Step]:
    steps = Steps(TYPES)
    steps.column(node_of(text))
    return steps.named


def values_of(text: str, where: str = "TRUE", rows: pa.RecordBatch = ROWS) -> list[object]:
    steps = Steps(TYPES)
    condition = steps.condition(node_of(where))
    name = steps.column(node_of(text))
    shown = {} if name in TYPES else {name: steps.type_of(name)}
    found: list[object] = projected(rows, Projection(steps.named, shown, condition)).column(name).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", {}),
        ("a + b", {"_x0": Arithmetic("+", "a", "b", INT)}),
        ("price * 2", {"_x0": Arithmetic("*", "price", Constant(Decimal(2), DecimalType(1, 0)), DecimalType(14, 2))}),
        ("(a + b) * (a + b)", {"_x0": Arithmetic("+", "a", "b", INT), "_x1": Arithmetic("*", "_x0", "_x0", INT)}),
        ("date(at)", {"_x0": Converted("at", ColumnType.DATE)}),
        ("hour(at) + 1", {"_x0": TimePart("at", "hour"), "_x1": Arithmetic("+", "_x0", Constant(1, INT), INT, 32)}),
        (
            "CASE WHEN a > b THEN 1 END",
            {
                "_x0": Order("a", "b"),
                "_x1": Choice(((Compare("_x0", ">", 0), Constant(1, INT)),), Constant(None, INT), INT),
            },
        ),
    ],
)
def test_what_expressions_are_split_into(text: str, steps: dict[str, Step]) -> None:
    assert steps_of(text) == steps


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a + 1 > 2", Compare("_x0", ">", 2)),
        ("a > b", Compare("_x0", ">", 0)),
        ("note LIKE 'x%'", Compare("_x0", "=", True)),
        ("note NOT LIKE 'x'", Not(Compare("note", "=", "x"))),
        ("coalesce(ok, TRUE)", Compare("_x0", "=", True)),
        (
            "a <=> 1",
            Or((And((IsNull("a"), IsNull("_x0"))), And((Not(IsNull("a")), Not(IsNull("_x0")), Compare("a", "=", 1))))),
        ),
    ],
)
def test_an_operand_that_is_no_column_is_a_step_before_its_condition(text: str, condition: Condition) -> None:
    assert Steps(TYPES).condition(node_of(text)) == condition


def test_patterns_say_where_a_text_is() -> None:
    steps = Steps(TYPES)
    for pattern in ("x%", "%x", "%x%"):
        steps.condition(node_of(f"note LIKE '{pattern}'"))
    assert [step.place for step in steps.named.values() if isinstance(step, Matches)] == ["start", "end", "anywhere"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a + b", [9, 7, None, 7]),
        ("a % b", None),
        ("CASE WHEN b != 0 THEN a % b END", [0, None, None, 1]),
        ("IF(b = 0, -1, a div b)", [2, -1, None, -4]),
        ("coalesce(a, a div b)", [6, 7, None, 9]),
        ("coalesce(a % b, 1)", None),
        ("coalesce(a, 1 div b)", [6, 7, 0, 9]),
        ("price + a", [Decimal("7.50"), None, None, Decimal("9.10")]),
        ("a * 9223372036854775807", None),
        ("b = 0 OR a % b = 0", [True, True, None, False]),
        ("b != 0 AND a % b = 0", [True, False, None, False]),
        ("length(note)", [1, None, 2, 1]),
    ],
)
def test_what_fails_in_a_branch_that_is_not_taken_is_no_error(text: str, values: list[object] | None) -> None:
    if values is None:
        with pytest.raises(Overflowed, match="beyond its type, or divided by zero"):
            values_of(text)
    else:
        assert values_of(text) == values


def test_what_fails_for_a_row_that_does_not_count_is_no_error() -> None:
    assert values_of("a % b", "b != 0") == [0, None, 1]
    assert values_of("a", "b != 0 AND a % b = 1") == [9]
    with pytest.raises(Overflowed):
        values_of("a", "a % b = 1")


def test_a_projection_asks_for_the_columns_that_it_needs() -> None:
    steps = Steps(TYPES)
    condition = steps.condition(node_of("date(at) = '1970-01-01'"))
    name, other = steps.only(node_of("note = 'x'"), node_of("a + b")), steps.column(node_of("price * 2"))
    rule = Projection(steps.named, {name: INT, other: DecimalType(14, 2)}, condition)
    assert rule.sources([name]) == ("at", "a", "b", "note")
    assert rule.sources([other, "ok"]) == ("ok", "at", "price")
    found = projected(ROWS, rule)
    assert found.schema.names == [*TYPES, name, other]
    assert found.select([name, other]).to_pylist() == [{name: 9, other: Decimal("3.00")}]


def test_a_constant_is_a_column_where_one_is_asked_for() -> None:
    assert values_of("1") == [1, 1, 1, 1]
    with pytest.raises(LeftToSpark, match="no type"):
        steps_of("NULL")
