"""What one row becomes by the law of expressions and conditions, and that the kernels agree, value by value."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.steps import Steps
from tidemark.jobs.queries.law_rows import cells
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.expression import Projection
from tidemark.model.projected_row import projected_row

pytestmark = pytest.mark.pure
DAY = 86_400_000_000
TYPES: dict[str, ValueType] = {
    "n": ColumnType.INT,
    "m": ColumnType.INT,
    "note": ColumnType.STRING,
    "ratio": ColumnType.FLOAT,
    "rate": ColumnType.FLOAT,
    "at": ColumnType.TIMESTAMP,
    "day": ColumnType.DATE,
    "ok": ColumnType.BOOL,
    "price": DecimalType(12, 2),
    "fee": DecimalType(9, 4),
}
HARD: dict[str, list[Any]] = {
    "n": [None, 0, 1, -1, -7, 31, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "m": [None, 0, 1, -1, 3, -3, 2**31, 2**32 + 1],
    "note": [None, "", "a", "A", "ab", "a%b", "é", "\U0001f600x"],
    "ratio": [None, 0.0, -0.0, 0.1, 1.0, math.nan, math.inf, -math.inf, 5e-324, 1e308],
    "rate": [None, 0.0, 0.2, -1.5, math.nan],
    "at": [None, 0, -1, DAY, DAY - 1, 1_700_000_000_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999],
    "day": [None, 0, -1, 19_000, -719_162, 2_932_896],
    "ok": [None, True, False],
    "price": [None, Decimal("0.00"), Decimal("0.25"), Decimal("-0.01"), Decimal("9999999999.99")],
    "fee": [None, Decimal("0.0000"), Decimal("12345.6789"), Decimal("-99999.9999")],
}
VALUES = """
n + 1; n - m; n * m; n / m; n % 7; n div m; -n; abs(m); price * 2; price + fee; price - 0.01; price * fee; -price;
ratio * rate; ratio / rate; ratio + 0.1; ratio % 2; -ratio; price * n; date(at); CAST(day AS timestamp); year(at);
quarter(day); month(day); day(at); hour(at) + 1; minute(at) * 60 + second(at); length(note); CAST(n AS int);
CAST(m AS decimal(20, 2)); CAST(price AS decimal(20, 4)); CAST(n AS double); CAST(n AS string); coalesce(n, m, 0);
nvl(note, 'none'); nullif(n, 0); IF(n > m, n, m); CASE WHEN price > fee THEN price ELSE 0 END;
CASE WHEN m != 0 THEN n / m END; CASE WHEN m = 0 OR n % m = 0 THEN 1 ELSE 0 END; n > m; ratio >= rate; year(date(at));
note LIKE 'a%'; coalesce(ok, FALSE); CAST(coalesce(day, DATE '2020-01-01') AS timestamp); ratio > 0.5; price = 0.25
"""
CONDITIONS = """
TRUE; n > 0; NOT (n > 0); n > 0 AND m > 0; n > 0 OR ok; n IN (1, 31); note IN ('a', 'ab'); note NOT LIKE '%b'; ok;
n IS NULL OR m <> 3; ratio > 0; ratio = CAST('NaN' AS double); price < 0.3; at >= TIMESTAMP '1970-01-02 00:00:00';
day = DATE '1970-01-01'; n <=> m; m = 0 OR n / m > 1; price IN (0.25, 1)
"""


def node_of(text: str) -> exp.Expr:
    query = parsed(f"SELECT {text.strip()} FROM t")
    assert isinstance(query, exp.Select)
    return query.selects[0].unalias()


def rule_of(value: str, where: str) -> tuple[Projection, str]:
    steps = Steps(TYPES)
    condition = steps.condition(node_of(where))
    name = steps.column(node_of(value))
    return Projection(steps.named, {name: steps.type_of(name)}, condition), name


def rows_drawn(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [{name: chance.choice(values) for name, values in HARD.items()} for _ in range(count)]


def by_kernel(rule: Projection, name: str, row: dict[str, Any]) -> Any:
    """The value by the kernel: a list of it, or of nothing where the row does not count."""
    arrays = {}
    for column, of in TYPES.items():
        number = {ColumnType.TIMESTAMP: pa.int64(), ColumnType.DATE: pa.int32()}.get(of)  # type: ignore[call-overload]
        made = pa.array([row[column]], number or arrow_type(of))
        arrays[column] = made.cast(arrow_type(of)) if number else made
    return cells(projected(pa.record_batch(arrays), rule).column(name))


def shown(value: Any) -> Any:
    return "NaN" if value != value else repr(value + 0.0) if isinstance(value, float) else value


@pytest.mark.parametrize("text", [one.strip() for one in VALUES.replace("\n", " ").split(";")])
def test_a_value_is_what_the_kernel_says(text: str) -> None:
    chance, compared = random.Random(text), 0
    conditions = [one.strip() for one in CONDITIONS.replace("\n", " ").split(";")]
    for row in rows_drawn(chance, 60):
        where = chance.choice(["TRUE", *conditions])
        try:
            rule, name = rule_of(text, where)
        except LeftToSpark:
            continue
        try:
            theirs = by_kernel(rule, name, row)
        except Overflowed:
            continue  # they may give up where the law does not
        mine = projected_row(rule, TYPES, row)
        assert [shown(one) for one in theirs] == ([] if mine is None else [shown(mine[name])]), (text, where, row)
        compared += 1
    assert compared > 20
