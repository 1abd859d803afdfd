"""The kernel of groups against groups that plain Python computes row by row: sums by fractions, orders by its own."""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.kernels.aggregates.groups import groups_by
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.window.aggregate import Function

MOST = 2**63 - 1
LARGEST = 1.7976931348623157e308
FLOATS = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, LARGEST, -LARGEST, 5e-324, -5e-324, 0.1, 1e16, 1.0]),
    st.floats(),
)
WHOLE = st.one_of(st.none(), st.integers(-(2**55), 2**55))
EXACT = Context(prec=60)
DECIMAL = DecimalType(28, 3)
PRICES = st.one_of(
    st.none(), st.integers(-(10**28) + 1, 10**28 - 1).map(lambda units: Decimal(units).scaleb(-3, EXACT))
)
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "é", "aé", "\uffee", "\U0001f600"]), st.text(max_size=3))
DAYS = st.one_of(st.none(), st.dates())
COLUMNS: dict[str, tuple[ValueType, pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (ColumnType.INT, pa.int64(), WHOLE),
    "float": (ColumnType.FLOAT, pa.float64(), FLOATS),
    "price": (DECIMAL, pa.decimal128(28, 3), PRICES),
    "text": (ColumnType.STRING, pa.string(), TEXTS),
    "day": (ColumnType.DATE, pa.date32(), DAYS),
    "yes": (ColumnType.BOOL, pa.bool_(), st.sampled_from([None, True, False])),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "shop": st.sampled_from([None, "", "a", "b"]),
            "kind": st.sampled_from([None, 1, 2]),
            **{name: drawn for name, (_, _, drawn) in COLUMNS.items()},
        }
    ),
    max_size=12,
)
SCHEMA = pa.schema([("shop", pa.string()), ("kind", pa.int64()), *((name, of) for name, (_, of, _) in COLUMNS.items())])
INT, FLOAT = ColumnType.INT, ColumnType.FLOAT
AGGREGATES = (
    AggregateColumn("rows", Function.COUNT, None, INT),
    *(AggregateColumn(f"count_{name}", Function.COUNT, name, INT) for name in COLUMNS),
    *(AggregateColumn(f"distinct_{name}", Function.COUNT_DISTINCT, name, INT) for name in COLUMNS),
    *(AggregateColumn(f"min_{name}", Function.MIN, name, of) for name, (of, _, _) in COLUMNS.items()),
    *(AggregateColumn(f"max_{name}", Function.MAX, name, of) for name, (of, _, _) in COLUMNS.items()),
    AggregateColumn("sum_whole", Function.SUM, "whole", INT),
    AggregateColumn("sum_float", Function.SUM, "float", FLOAT),
    AggregateColumn("sum_price", Function.SUM, "price", DecimalType(38, 3)),
    AggregateColumn("kept_whole", Function.SUM, "whole", DecimalType(30, 0), kept=True),
    AggregateColumn("kept_price", Function.SUM, "price", DecimalType(38, 3), kept=True),
    AggregateColumn("mean_whole", Function.AVG, "whole", FLOAT),
    AggregateColumn("mean_float", Function.AVG, "float", FLOAT),
)
Row = dict[str, Any]


def place(value: Any) -> Any:
    """Where a value stands in Spark's order: a NaN above all, one zero, texts by their bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def plain(value: float) -> float:
    return math.nan if math.isnan(value) else 0.0 if value == 0 else value


def nearest(total: Fraction) -> float:
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def float_sum(values: list[float]) -> float:
    special = [one for one in values if not math.isfinite(one)]
    if special:
        return special[0] if len({str(one) for one in special}) == 1 else math.nan
    return nearest(sum(map(Fraction, values), Fraction()))


def total(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        return plain(float_sum(values))
    if isinstance(values[0], Decimal):
        units = sum(int(one.scaleb(3, EXACT)) for one in values)
        return Decimal(units).scaleb(-3, EXACT)
    return sum(values)


def mean(values: list[Any]) -> float:
    whole = float_sum(values) if isinstance(values[0], float) else nearest(Fraction(sum(values)))
    return plain(whole / len(values))


def extreme(most: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def found(values: list[Any]) -> Any:
        value = most(values, key=place)
        return plain(value) if isinstance(value, float) else value

    return found


ORACLE: dict[Function, Callable[[list[Any]], Any]] = {
    Function.MIN: extreme(min),
    Function.MAX: extreme(max),
    Function.SUM: total,
    Function.AVG: mean,
}


def computed(one: AggregateColumn, rows: list[Row]) -> Any:
    values = [row[one.of] for row in rows if row[one.of] is not None] if one.of else rows
    if one.function is Function.COUNT:
        return len(values)
    if one.function is Function.COUNT_DISTINCT:
        return len({place(value) for value in values})
    return ORACLE[one.function](values) if values else 0 if one.kept else None


def bits(value: Any) -> Any:
    """A value such that only the same one is equal to it, to the last bit."""
    return struct.pack(">d", value) if isinstance(value, float) else value


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


@examples(100)
@given(ROWS, st.sampled_from([("shop",), ("shop", "kind"), ("kind", "shop")]))
def test_groups_are_those_computed_row_by_row(rows: list[Row], keys: tuple[str, ...]) -> None:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in keys)].append(row)
    expected = {(key, one.name): bits(computed(one, some)) for key, some in groups.items() for one in AGGREGATES}
    found = groups_by(table_of(rows), keys, AGGREGATES).to_pylist()
    assert len(found) == len(groups)
    given = {(tuple(row[name] for name in keys), one.name): bits(row[one.name]) for row in found for one in AGGREGATES}
    assert given == expected


def test_columns_are_of_the_types_they_are_to_have() -> None:
    rows = [dict.fromkeys(SCHEMA.names)]
    found = groups_by(table_of(rows), ["shop"], AGGREGATES).schema
    assert found.field("sum_price").type == pa.decimal128(38, 3)
    assert {found.field(name).type for name in ("rows", "count_text", "distinct_float", "sum_whole")} == {pa.int64()}
    assert {found.field(name).type for name in ("sum_float", "mean_whole", "mean_float")} == {pa.float64()}
    assert [found.field(f"{least}_{name}").type for least in ("min", "max") for name in COLUMNS] == 2 * [
        of for _, of, _ in COLUMNS.values()
    ]


def test_a_sum_is_refused_where_it_does_not_fit_and_not_where_a_part_of_it_does_not() -> None:
    """Of the first group the whole fits, but the sum of the first two does not."""
    rows = pa.table({"k": [1, 1, 1], "x": [MOST, 1, -1]})
    total = AggregateColumn("total", Function.SUM, "x", INT)
    assert groups_by(rows, ["k"], [total]).to_pylist() == [{"k": 1, "total": MOST}]
    with pytest.raises(Overflowed):
        groups_by(rows.slice(0, 2), ["k"], [total])
    mean = groups_by(rows.slice(0, 2), ["k"], [AggregateColumn("mean", Function.AVG, "x", FLOAT)])
    assert mean.to_pylist() == [{"k": 1, "mean": 2.0**62}]
    most = groups_by(rows, ["k"], [AggregateColumn("most", Function.MAX, "x", INT)])
    assert most.to_pylist() == [{"k": 1, "most": MOST}]


def test_groups_of_dates_and_texts_are_distinguished_by_value() -> None:
    days = [date(1, 1, 1), None, date(9999, 12, 31), date(1, 1, 1)]
    rows = pa.table({"day": pa.array(days, pa.date32()), "x": [1, 2, 3, 4]})
    found = groups_by(rows, ["day"], [AggregateColumn("n", Function.COUNT, None, INT)])
    assert found.to_pylist() == [{"day": None, "n": 1}, {"day": days[0], "n": 2}, {"day": days[2], "n": 1}]
