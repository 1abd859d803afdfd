"""Joins of rows in memory against two loops."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.joined import joined
from tidemark.arrow.rows.schema import DIFF

pytestmark = pytest.mark.pure

LEFT = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.float64()), (DIFF, pa.int64())])
RIGHT = pa.schema([("c", pa.int64()), ("d", pa.string()), ("m", pa.int64()), (DIFF, pa.int64())])
EQUAL = (("a", "c"), ("b", "d"))
KEYS = st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, "", "x", "ü"]), st.none() | st.integers(0, 9))
ROWS = st.lists(st.tuples(KEYS, st.integers(-3, 3)), max_size=12)


def table(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    names = schema.names
    return pa.Table.from_pylist([dict(zip(names, (*keys, diff), strict=True)) for keys, diff in rows], schema)


@given(ROWS, ROWS, st.integers(1, 2))
def test_they_are_the_pairs_that_are_equal(left: list[Any], right: list[Any], pairs: int) -> None:
    """A null is equal to nothing; the diff of a pair is the product of those of its rows."""
    wanted: Counter[Any] = Counter()
    for one, diff in left:
        for other, times in right:
            if all(one[at] is not None and one[at] == other[at] for at in range(pairs)):
                wanted[(*one, *other, diff * times)] += 1
    found = joined(table(LEFT, left), table(RIGHT, right), EQUAL[:pairs], most=1000)
    assert found is not None
    columns = [found.column(name).to_pylist() for name in ("a", "b", "n", "c", "d", "m", DIFF)]
    assert Counter(zip(*columns, strict=True)) == wanted


@given(ROWS, ROWS)
def test_a_column_may_equal_several(left: list[Any], right: list[Any]) -> None:
    """`c` is equal to `a`, and so is `m`."""
    wanted: Counter[Any] = Counter()
    for one, diff in left:
        for other, times in right:
            if one[0] is not None and one[0] == other[0] == other[2]:
                wanted[(*one, *other, diff * times)] += 1
    found = joined(table(LEFT, left), table(RIGHT, right), (("a", "c"), ("a", "m")), most=1000)
    assert found is not None
    columns = [found.column(name).to_pylist() for name in ("a", "b", "n", "c", "d", "m", DIFF)]
    assert Counter(zip(*columns, strict=True)) == wanted


def test_more_rows_than_there_is_room_for_are_not_joined() -> None:
    many = table(LEFT, [((1, "x", 0), 1)] * 10)
    assert joined(many, table(RIGHT, [((1, "x", 0), 1)] * 10), EQUAL, most=99) is None
    found = joined(many, table(RIGHT, [((1, "x", 0), 1)] * 10), EQUAL, most=100)
    assert found is not None
    assert found.num_rows == 100


def test_a_multiplicity_that_is_too_large_is_refused() -> None:
    with pytest.raises(Overflowed):
        joined(table(LEFT, [((1, "x", 0), 2**40)]), table(RIGHT, [((1, "x", 0), 2**40)]), EQUAL, most=9)
