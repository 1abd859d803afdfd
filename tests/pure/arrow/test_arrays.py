"""Arrays that are made without pandas are those that Arrow makes, and what Arrow refuses is refused."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.rows.arrays import bools_of, no_rows, of_bools, of_numbers, of_values, scalar_of
from tidemark.model import decimals

pytestmark = pytest.mark.pure
DIGITS = pa.decimal128(38, 10)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(),
    pa.binary(): st.binary(),
    DIGITS: st.integers(-(10**38) + 1, 10**38 - 1).map(lambda units: decimals.from_units(units, 10)),
}


@pytest.mark.parametrize("of", list(VALUES), ids=str)
@examples(100)
@given(data=st.data())
def test_a_column_is_as_arrow_makes_it(of: pa.DataType, data: st.DataObject):
    values = data.draw(st.lists(st.none() | VALUES[of], max_size=20))
    made = of_values(values, of)
    made.validate(full=True)
    assert made.type == of
    assert repr(made.to_pylist()) == repr(pa.array(values, of).to_pylist())
    if values:
        assert scalar_of(values[0], of).equals(pa.scalar(values[0], of)) or values[0] != values[0]


@pytest.mark.parametrize("of", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()], ids=str)
@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=9))
def test_times_are_whole_numbers(of: pa.DataType, numbers: list[int | None]):
    plain = pa.int32() if of == pa.date32() else pa.int64()
    assert of_values(numbers, of).equals(pa.array(numbers, plain).cast(of))


@pytest.mark.parametrize(
    ("values", "of"),
    [
        *(([2**63], pa.int64()), ([-(2**31) - 1], pa.int32()), (["1"], pa.int64()), ([1], pa.string())),
        *(([float("nan")], pa.string()), ([1, None], pa.bool_()), ([Decimal("1.23")], pa.decimal128(3, 1))),
        *(([Decimal(1000)], pa.decimal128(3, 0)), ([Decimal("NaN")], pa.decimal128(3, 0)), (["\ud800"], pa.string())),
        ([date(2024, 1, 1)], pa.float64()),
    ],
)
def test_what_arrow_refuses_is_refused(values: list[Any], of: pa.DataType):
    kinds = (ValueError, TypeError, ArithmeticError)
    with pytest.raises(kinds):
        pa.array(values, of)
    with pytest.raises(kinds):
        of_values(values, of)


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 40), st.integers(0, 40))
@example([True] * 17, 8, 9)
def test_truths_go_and_come_back_from_any_place(booleans: list[bool], start: int, length: int):
    truths = np.array(booleans, bool)
    assert of_bools(truths).equals(pa.array(booleans, pa.bool_()))
    assert bools_of(of_bools(truths).slice(start, length)).tolist() == booleans[start : start + length]


@given(st.lists(st.none() | st.integers(-9, 9), max_size=40))
def test_numbers_may_be_missing(numbers: list[int | None]):
    missing = np.array([one is None for one in numbers], bool)
    made = of_numbers(np.array([one or 0 for one in numbers], np.int64), missing)
    assert made.equals(pa.array(numbers, pa.int64()))
    assert made.null_count == missing.sum()


def test_numbers_are_not_copied():
    numbers = np.arange(10)
    assert of_numbers(numbers).buffers()[1].address == numbers.ctypes.data


def test_no_rows_have_the_schema():
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", DIGITS)], metadata={"x": "y"})
    assert no_rows(schema).schema.equals(schema, check_metadata=True)
    assert no_rows(schema).num_rows == 0
