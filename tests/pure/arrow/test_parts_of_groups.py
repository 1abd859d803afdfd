"""Groups of parts, put together, are those of all rows, however the rows are parted."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.kernels.aggregates.groups import groups_by
from tidemark.arrow.kernels.aggregates.parts import merged_groups, parts_of
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.collection import ColumnType, DecimalType
from tidemark.model.window.aggregate import Function

pytestmark = pytest.mark.pure

INT, FLOAT, TEXT = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING
KEYS = ["k", "l"]
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("l", pa.bool_()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("p", pa.decimal128(5, 2)),
        ("t", pa.string()),
        ("far", pa.int64()),
    ]
)
MERGED = (
    AggregateColumn("rows", Function.COUNT, None, INT),
    AggregateColumn("known", Function.COUNT, "x", INT),
    AggregateColumn("sum", Function.SUM, "n", INT),
    AggregateColumn("hidden", Function.SUM, "n", DecimalType(30, 0), kept=True),
    AggregateColumn("prices", Function.SUM, "p", DecimalType(15, 2)),
    AggregateColumn("floats", Function.SUM, "x", FLOAT),
    AggregateColumn("mean", Function.AVG, "n", FLOAT),
    AggregateColumn("mean_far", Function.AVG, "far", FLOAT),
    AggregateColumn("mean_of_floats", Function.AVG, "x", FLOAT),
    AggregateColumn("mean_price", Function.AVG, "p", DecimalType(9, 6)),
    AggregateColumn("least", Function.MIN, "x", FLOAT),
    AggregateColumn("last", Function.MAX, "t", TEXT),
)
TYPES = {of.name: of.type for of in SCHEMA}
ROW = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, True, False]),
    st.one_of(st.none(), st.integers(-(2**53), 2**53)),
    st.sampled_from([None, 0.0, -0.0, float("nan"), float("inf"), 0.1, 0.7, -1e16, 1e16, 1e300, 5e-324]),
    st.sampled_from([None, Decimal("1.25"), Decimal("-999.99")]),
    st.sampled_from([None, "", "x", "ü"]),
    st.sampled_from([None, 2**63 - 1, -(2**63), 2**62 + 511]),
)


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(column, of.type) for column, of in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@examples(100)
@given(st.lists(ROW, max_size=30), st.integers(1, 9))
def test_groups_of_parts_are_those_of_all(rows: list[tuple[object, ...]], size: int) -> None:
    parts = parts_of(MERGED, TYPES)
    assert parts is not None
    some = [table(rows[first : first + size]) for first in range(0, len(rows), size)] or [table([])]
    put = merged_groups(pa.Table.from_batches([groups_by(one, KEYS, parts) for one in some]), KEYS, MERGED, parts)
    assert repr(put.to_pylist()) == repr(groups_by(table(rows), KEYS, MERGED).to_pylist())


@pytest.mark.parametrize(
    "one",
    [
        AggregateColumn("a", Function.COUNT_DISTINCT, "t", INT),
        AggregateColumn("a", Function.APPROX_QUANTILE, "n", FLOAT, at=0.5),
        AggregateColumn("a", Function.COLLECT, "t", TEXT),
        AggregateColumn("a", Function.FIRST, "t", TEXT),
    ],
)
def test_what_depends_on_how_rows_are_parted_has_no_parts(one: AggregateColumn) -> None:
    assert parts_of((*MERGED, one), TYPES) is None
