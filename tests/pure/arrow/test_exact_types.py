"""Decimals, bytes and JSON once they are columns: compared, widened, asked for and shown exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import EXACT, KEYED_BY_ALL, MONEY, NULLABLE
from tidemark.api.conditions import Where, conditions_of
from tidemark.api.keys import keys_within
from tidemark.arrow.rows.condition import holds
from tidemark.arrow.rows.fields import as_wanted, found
from tidemark.arrow.rows.plain import plain_rows
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.condition.text import parse
from tidemark.model.condition.tree import bound, check_types
from tidemark.model.decimals import from_units, units
from tidemark.model.key import BEHIND_NULL, NULL
from tidemark.plan.tasks import KeyRange

pytestmark = pytest.mark.pure


def test_a_literal_of_a_float_column_is_the_double_nearest_to_it() -> None:
    rows = pa.record_batch({"f": [0.1, 0.5, None]})
    assert holds(parse("f = 0.1"), rows).to_pylist() == [True, False, False]
    assert holds(parse("f > 0.1"), rows).to_pylist() == [False, True, False]


def test_bytes_and_json_are_compared_with_their_texts() -> None:
    types = {"b": ColumnType.BYTES, "j": ColumnType.JSON}
    rows = pa.record_batch({"b": [b"\xff", b"\x7f", None], "j": ['{"a":1}', "[]", None]})

    def matches(text: str) -> list[bool]:
        condition = parse(text)
        check_types(condition, types.__getitem__)
        return holds(bound(condition, types.__getitem__), rows).to_pylist()  # type: ignore[no-any-return]

    assert matches("b = '/w=='") == [True, False, False]
    assert matches("b > 'fw=='") == [True, False, False], "unsigned"
    assert matches("""j = '{ "a": 1.0 }'""") == [True, False, False]
    assert matches("""NOT j IN ('[ ]', 'null') AND j <> '1'""") == [True, False, False]


@pytest.mark.parametrize(
    ("text", "of", "says"),
    [
        ("a = 'x'", MONEY, "of type decimal(12, 2), with 'x'; write a number"),
        ("a = 0.5", ColumnType.STRING, "of type string, with 0.5; write a text in single quotes"),
        ("a = '_w=='", ColumnType.BYTES, "write the base64 of bytes in single quotes, such as '/wA='"),
        ("a = 5", ColumnType.BYTES, "write the base64 of bytes in single quotes"),
        ("a = 'x'", ColumnType.JSON, """write JSON in single quotes, such as '{"a": 1}'"""),
        ('a = \'{"a":1,"a":1}\'', ColumnType.JSON, "write JSON in single quotes"),
        ("a < '1'", ColumnType.JSON, "orders column a, which is json and in no order; write = or !=, or IN"),
    ],
)
def test_other_literals_are_refused(text: str, of: ValueType, says: str) -> None:
    with pytest.raises(InvalidUsage) as refusal:
        check_types(parse(text), lambda _: of)
    assert says in str(refusal.value)


@pytest.mark.parametrize("text", ["a = 1e-9999999999", "a = 1e-99999999999999999999"])
def test_a_number_whose_exponent_is_no_number_of_anything_is_refused(text: str) -> None:
    with pytest.raises(InvalidUsage, match="expected a number that fits a double"):
        parse(text)


def keyed(rows: list[tuple[Any, Any, Any]]) -> pa.RecordBatch:
    arrays = [pa.array(cells, arrow_type(c.type)) for cells, c in zip(zip(*rows, strict=True), EXACT, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in EXACT])


ROWS = [
    (Decimal("10.00"), b"", "1"),
    (Decimal("9.99"), b"\xff", "[]"),
    (Decimal("-1.00"), b"\x80", "[]"),
    (Decimal("-1.00"), b"\x7f\xff", "{}"),
    (Decimal("-1.00"), b"\x7f", "{}"),
]


@pytest.mark.parametrize(
    ("conditions", "keys", "count"),
    [
        ({"price": "-1"}, KeyRange((-100,), (-99,)), 3),
        ({"price": "-1.000", "data": "fw=="}, KeyRange((-100, "7f"), (-100, "7f\0")), 1),
        ({"price": "9.99", "data": "/w==", "doc": "[ ]"}, KeyRange((999, "ff", "[]"), (999, "ff", "[]\0")), 1),
        ({"doc": " {} "}, KeyRange(), 2),
        ({"data": ""}, KeyRange(), 1),
    ],
)
def test_keys_of_exact_types_are_found(conditions: dict[str, str], keys: KeyRange, count: int) -> None:
    asked = conditions_of(KEYED_BY_ALL, conditions)
    assert keys_within(KEYED_BY_ALL, asked) == keys
    assert asked.fitting(keyed(ROWS)).num_rows == count


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ({"name": None}, KeyRange((NULL,), (BEHIND_NULL,))),
        ("name IS NULL", KeyRange((NULL,), (BEHIND_NULL,))),
        ("name IS NULL AND number = 3", KeyRange((NULL, 3), (NULL, 4))),
        ("name = 'k' AND number IS NULL AND day IS NULL", KeyRange(("k", NULL, NULL), ("k", NULL, BEHIND_NULL))),
        ({"name": [None, "k"]}, KeyRange(None, ("k\0",))),
        ("name IS NULL AND name = 'k'", KeyRange((), ())),
        ("name IS NOT NULL", KeyRange()),
        ("name IS NULL OR name = 'k'", KeyRange(None, ("k\0",))),
    ],
)
def test_null_keys_are_found(where: Where, keys: KeyRange) -> None:
    assert keys_within(NULLABLE, conditions_of(NULLABLE, where)) == keys


@pytest.mark.parametrize(
    "conditions",
    [
        *({"price": "1.005"}, {"price": "1,0"}, {"price": "NaN"}, {"data": "ff"}),
        *({"doc": "x"}, {"doc": "[NaN]"}, {"doc": ["x"]}, {"doc": [{1}]}),
    ],
)
def test_what_is_no_value_of_its_column_is_refused(conditions: dict[str, str]) -> None:
    with pytest.raises(InvalidUsage, match=r"is of type .* is no value of it|is json; .* holds"):
        conditions_of(KEYED_BY_ALL, conditions)


@pytest.mark.parametrize(
    ("asked", "count"),
    [(["[]", "1"], 3), (["[]", None], 2), ([[]], 2), ((1, {}), 3), ([[], {}], 4), ([], 0), ("[]", 2), ("1", 1)],
    ids=repr,
)
def test_a_list_beside_json_is_any_of_them_as_beside_any_column(asked: Any, count: int) -> None:
    """An array of JSON is a text, or a list within the list."""
    assert conditions_of(KEYED_BY_ALL, {"doc": asked}).fitting(keyed(ROWS)).num_rows == count


def test_they_are_shown_in_all_digits_and_as_text() -> None:
    most = Decimal("-" + "9" * 36 + ".99")
    rows = pa.record_batch(
        {
            "d": pa.array([most, Decimal("0.00"), None], pa.decimal128(38, 2)),
            "small": pa.array([Decimal("1e-20"), Decimal(0), None], pa.decimal128(38, 20)),
            "b": [b"\xff\x00", b"", None],
        }
    )
    assert plain_rows(rows) == [
        ("-" + "9" * 36 + ".99", "0.00000000000000000001", "/wA="),
        ("0.00", "0.00000000000000000000", ""),
        (None, None, None),
    ]


@pytest.mark.parametrize(
    ("stored", "wanted", "cells", "expected"),
    [
        (pa.decimal128(5, 2), pa.decimal128(38, 20), [Decimal("-1.25"), None], [Decimal("-1.25"), None]),
        (pa.int64(), pa.decimal128(38, 19), [2**63 - 1, -(2**63)], [Decimal(2**63 - 1), Decimal(-(2**63))]),
        (pa.int64(), pa.decimal128(3, 2), [9, -9, None], [Decimal(9), Decimal(-9), None]),
        (pa.bool_(), pa.decimal128(1, 0), [True, False, None], [Decimal(1), Decimal(0), None]),
    ],
    ids=str,
)
def test_a_narrower_column_is_read_as_decimals(
    stored: pa.DataType, wanted: pa.DataType, cells: list[Any], expected: list[Any]
) -> None:
    rows = pa.record_batch({"a": pa.array(cells, stored)})
    read = as_wanted(rows, found(rows.schema, pa.schema([("a", wanted)])), len(cells))
    assert read.schema.field("a").type == wanted
    assert read.column("a").to_pylist() == expected


def test_an_int_beyond_a_decimal_is_no_value_of_it() -> None:
    rows = pa.record_batch({"a": [10]})
    with pytest.raises(pa.ArrowInvalid, match="does not fit in precision"):
        as_wanted(rows, found(rows.schema, pa.schema([("a", pa.decimal128(3, 2))])), 1)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.decimal128(5, 2), pa.float64()),
        (pa.float64(), pa.decimal128(38, 10)),
        (pa.binary(), pa.string()),
        (pa.string(), pa.binary()),
        (pa.bool_(), pa.decimal128(2, 2)),
    ],
    ids=str,
)
def test_other_columns_are_not_read_as_each_other(stored: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(KeyError, match=r"which is not .* nor narrower"):
        found(pa.schema([("a", stored)]), pa.schema([("a", wanted)]))


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_units_are_the_digits_of_a_decimal(count: int, scale: int) -> None:
    number = from_units(count, scale)
    assert units(number, DecimalType(38, scale)) == units(f"{number:f}", DecimalType(38, scale)) == count
