"""Which values of a column rows can have for which a condition is true: no row that fits is outside of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.rows.condition import holds
from tidemark.arrow.rows.schema import arrow_type, plain_scalars
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.condition.bounds import ValueRange, bounds
from tidemark.model.condition.text import parse
from tidemark.model.condition.tree import And, Compare, Condition, In, IsNull, Not, Or, bound, check_types

pytestmark = pytest.mark.pure

TYPES: dict[str, ValueType] = {
    "i": ColumnType.INT,
    "s": ColumnType.STRING,
    "f": ColumnType.FLOAT,
    "t": ColumnType.TIMESTAMP,
    "d": ColumnType.DATE,
    "b": ColumnType.BOOL,
    "x": ColumnType.BYTES,
    "m": DecimalType(6, 2),
}
DAY = 86_400_000_000
NAN = Decimal("NaN")


def meets(span: ValueRange, lower: Any, upper: Any) -> bool:
    """Whether a value from `lower` to `upper` (None: unbounded) may be in a span."""
    below = upper is not None and span.lower is not None and upper < span.lower
    above = lower is not None and span.upper is not None and lower > span.upper
    return span.values and not below and not above


def span(text: str, column: str) -> ValueRange:
    condition = parse(text)
    check_types(condition, TYPES.__getitem__)
    return bounds(bound(condition, TYPES.__getitem__), column, TYPES[column])


def known(lower: object, upper: object) -> ValueRange:
    return ValueRange(lower, upper, nulls=False)  # type: ignore[arg-type]


NOTHING = ValueRange(nulls=False, values=False)


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("i > 5 AND i <= 9", "i", known(6, 9)),
        ("i > 5 AND i <= 9 OR i IN (12, 20)", "i", known(6, 20)),
        ("i > 5 OR i < 3", "i", known(None, None)),
        ("i > 5 OR s = 'x'", "i", ValueRange()),
        ("i > 5 OR i IS NULL", "i", ValueRange(6, None)),
        ("i IS NULL", "i", ValueRange(values=False)),
        ("i IS NULL AND i = 1", "i", NOTHING),
        ("i IS NOT NULL", "i", known(None, None)),
        ("i = 1 AND i = 2", "i", NOTHING),
        ("i = 1.5", "i", NOTHING),
        ("i > 1.5 AND i < 3.5", "i", known(2, 3)),
        ("i BETWEEN 1 AND 4", "i", known(1, 4)),
        ("NOT i < 1", "i", known(1, None)),
        ("NOT (i < 1 OR i > 4)", "i", known(1, 4)),
        ("NOT (i < 1 AND s = 'x')", "i", ValueRange()),
        ("NOT i NOT IN (3, 5)", "i", known(3, 5)),
        ("NOT i <> 3", "i", known(3, 3)),
        ("i < 99999999999999999999", "i", known(None, None)),
        ("i > 99999999999999999999", "i", NOTHING),
        ("i <= 9223372036854775807", "i", known(None, None)),
        ("s >= 'a' AND s < 'b'", "s", known("a", "b")),
        ("t >= '1970-01-02' AND t < '1970-01-03'", "t", known(DAY, 2 * DAY - 1)),
        ("d = '1970-01-02'", "d", known(1, 1)),
        ("m > 0.005 AND m < 0.03", "m", known(1, 2)),
        ("m = 12.5", "m", known(1250, 1250)),
        ("b = TRUE", "b", known(True, True)),
        ("x = '/wA='", "x", known("ff00", "ff00")),
        ("f >= 0.1", "f", known(0.1, None)),
        ("NOT f < 1", "f", known(None, None)),  # NaN is not below 1 either
    ],
)
def test_what_a_condition_says_of_a_column(text: str, column: str, expected: ValueRange) -> None:
    assert span(text, column) == expected


def test_of_no_conditions_all_hold_and_none_of_any() -> None:
    assert bounds(And(()), "i", ColumnType.INT) == ValueRange()
    assert bounds(Or(()), "i", ColumnType.INT).is_empty
    assert bounds(In("i", ()), "i", ColumnType.INT).is_empty


VALUES: dict[str, list[object]] = {
    "i": [None, -(2**63), -1, 0, 1, 2, 2**63 - 1],
    "s": [None, "", "a", "ab", "é", "😀"],
    "f": [None, float("nan"), float("-inf"), -0.0, 0.0, 0.1, 1.5, float("inf")],
    "t": [None, -(2**63), -1, 0, DAY, 2**63 - 1],
    "d": [None, -(2**31), -1, 0, 1],
    "b": [None, False, True],
    "x": [None, b"", b"\x00", b"\xff"],
    "m": [None, Decimal("-9999.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("0.01"), Decimal("9999.99")],
}
LITERALS: dict[str, list[object]] = {
    "i": [-(2**63), -(10**30), -1, Decimal("-0.5"), 0, 1, Decimal("1.5"), 2, 2**63 - 1, 2**63, 10**30],
    "s": ["", "a", "ab", "b", "é", "😀"],
    "f": [-1, 0, Decimal("0.1"), 1, Decimal("1.5"), NAN],
    "t": [-(2**63), -1, 0, 1, DAY, 2**63 - 1],
    "d": [-(2**31), -1, 0, 1, 2],
    "b": [False, True],
    "x": [b"", b"\x00", b"\x01", b"\xff"],
    "m": [
        Decimal("-10000"),
        Decimal("-0.005"),
        0,
        Decimal("0.005"),
        Decimal("0.01"),
        Decimal("9999.99"),
        10**40,
        -(10**40),
    ],
}
OPS = ["=", "!=", "<", "<=", ">", ">="]


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(sorted(TYPES)))
    literals = st.sampled_from(LITERALS[column])
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return IsNull(column)
    if kind == 1:
        return In(column, tuple(draw(st.lists(literals, max_size=3))))  # type: ignore[arg-type]
    literal: object = draw(literals)
    equal = column == "b" or literal is NAN
    return Compare(column, draw(st.sampled_from(OPS[:2] if equal else OPS)), literal)  # type: ignore[arg-type]


CONDITIONS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda some: And(tuple(some)), st.lists(inner, max_size=3)),
        st.builds(lambda some: Or(tuple(some)), st.lists(inner, max_size=3)),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)
ROWS = st.lists(st.fixed_dictionaries({name: st.sampled_from(some) for name, some in VALUES.items()}), max_size=20)


def batch_of(rows: list[dict[str, object]]) -> pa.RecordBatch:
    columns = {}
    for name, of in TYPES.items():
        whole = pa.int64() if name == "t" else pa.int32() if name == "d" else arrow_type(of)
        columns[name] = pa.array([row[name] for row in rows], whole).cast(arrow_type(of))
    return pa.record_batch(columns)


def evaluated(condition: Condition, row: dict[str, object]) -> bool | None:
    """By the rules of SQL, value by value, sharing nothing with what is tested."""
    match condition:
        case Not(inner):
            found = evaluated(inner, row)
            return None if found is None else not found
        case And(conditions):
            all_of = [evaluated(one, row) for one in conditions]
            return False if False in all_of else None if None in all_of else True
        case Or(conditions):
            any_of = [evaluated(one, row) for one in conditions]
            return True if True in any_of else None if None in any_of else False
        case IsNull(column):
            return row[column] is None
        case In(column, literals):
            return None if row[column] is None else any(compared(row[column], "=", one, column) for one in literals)
        case Compare(column, op, literal):
            return None if row[column] is None else compared(row[column], op, literal, column)


def compared(value: object, op: str, literal: object, column: str) -> bool:
    if literal is NAN:
        return (value != value) == (op == "=")
    right = float(literal) if column == "f" else literal  # type: ignore[arg-type]
    if column == "s":
        value, right = str(value).encode(), str(right).encode()
    answers = {"=": value == right, "!=": value != right}
    if op in answers:
        return answers[op]
    return {"<": value < right, "<=": value <= right, ">": value > right, ">=": value >= right}[op]  # type: ignore[operator]


@given(CONDITIONS, ROWS)
def test_every_row_that_fits_is_within_the_bounds_of_every_column(
    condition: Condition, rows: list[dict[str, object]]
) -> None:
    batch = batch_of(rows)
    fit = holds(condition, batch)
    assert fit.to_pylist() == [evaluated(condition, row) is True for row in rows]
    for name, of in TYPES.items():
        found = bounds(condition, name, of)
        for value in plain_scalars(batch.column(name).filter(fit)):
            assert found.nulls if value is None else value != value or meets(found, value, value)
            assert value is None or value == value or (found.values and (found.lower, found.upper) == (None, None))
