"""The columns at rest."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import APPEND, CELLS, KEYED
from tidemark.arrow.rows.schema import (
    arrow_type,
    column_of,
    facts_schema,
    order_type,
    plain_scalars,
    sort_columns,
    unsealed_schema,
    updates_schema,
)
from tidemark.model.collection import Column, ColumnType, DecimalType, ValueType
from tidemark.model.update import Scalar

pytestmark = pytest.mark.pure


def test_only_values_and_order_may_be_null() -> None:
    assert [field.name for field in updates_schema(APPEND) if field.nullable] == [c.name for c in APPEND.value]
    assert [field.name for field in facts_schema(KEYED) if field.nullable] == ["word", "x", "_order"]


def test_unsealed_batches_hold_facts_where_the_collection_is_keyed() -> None:
    assert unsealed_schema(KEYED) == facts_schema(KEYED)
    assert unsealed_schema(APPEND) == updates_schema(APPEND)
    assert sort_columns(KEYED, facts=True) == ("number", "_event_time", "_order", "_file", "_row")
    assert sort_columns(KEYED, facts=False) == ("number", "word", "x", "_time", "_event_time")


@pytest.mark.parametrize(
    ("order_by", "expected"),
    [(None, pa.int64()), ("word", pa.string()), ("read_only", pa.date32()), ("happened_at", pa.timestamp("us", "UTC"))],
)
def test_the_order_column_has_the_type_of_what_it_copies(order_by: str | None, expected: pa.DataType) -> None:
    source = replace(KEYED.landed.source, order_by=order_by)
    of = relanded(KEYED, source=source, event_time="happened_at", inputs=(Column("read_only", ColumnType.DATE),))
    assert order_type(of) == expected


@pytest.mark.parametrize("of", [of for of in CELLS if of is not ColumnType.FLOAT], ids=str)
def test_plain_scalars_are_a_column_again(of: ValueType) -> None:
    @given(st.lists(CELLS[of]))
    def check(scalars: list[Scalar]) -> None:
        assert plain_scalars(column_of(scalars, arrow_type(of))) == scalars

    check()


def test_decimals_of_38_digits_lose_none() -> None:
    """Python's own arithmetic rounds to 28, so a gate looked for keys that are none."""
    units = [10**38 - 1, -(10**37) - 7, 12345678901234567890123456789012345678]
    for scale in (0, 2, 38):
        assert plain_scalars(column_of(units, arrow_type(DecimalType(38, scale)))) == units


def test_equal_collections_have_one_schema_and_others_their_own() -> None:
    assert updates_schema(APPEND) is updates_schema(replace(APPEND))
    renamed = replace(APPEND, value=tuple(replace(column, name=f"{column.name}2") for column in APPEND.value))
    assert updates_schema(renamed) != updates_schema(APPEND)
