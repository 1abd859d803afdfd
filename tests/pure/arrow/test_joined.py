"""Joins of rows in memory against two loops."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.joined import Side
from tidemark.arrow.rows.schema import DIFF

pytestmark = pytest.mark.pure

TYPES = [("int", pa.int64()), ("text", pa.string()), ("float", pa.float64()), ("price", pa.decimal128(28, 3))]
VALUES: dict[str, list[Any]] = {
    "int": [None, 0, 1, -(2**63)],
    "text": [None, "", "x", "ü"],
    "float": [None, 0.0, -0.0, math.nan, math.inf, 0.1],
    "price": [None, Decimal("0.000"), Decimal("0.001"), Decimal("9" * 25 + ".999")],
}
LEFT, RIGHT = (
    pa.schema([*((side + name, of) for name, of in TYPES), (side + "n", pa.int64()), (DIFF, pa.int64())])
    for side in "lr"
)
ROWS = st.lists(
    st.tuples(*(st.sampled_from(VALUES[name]) for name, _ in TYPES), st.integers(0, 3), st.integers(-3, 3)), max_size=12
)
BY = st.lists(st.sampled_from([name for name, _ in TYPES]), min_size=1, max_size=4, unique=True)


def table(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def equal(one: Any, other: Any) -> bool:
    """As SQL has it."""
    if one is None or other is None:
        return False
    return one == other or (one != one and other != other)


def rows_of(found: pa.RecordBatch) -> list[Any]:
    names = [*LEFT.names[:-1], *RIGHT.names[:-1], DIFF]
    return [repr(row) for row in zip(*(found.column(name).to_pylist() for name in names), strict=True)]


@given(ROWS, ROWS, BY, st.booleans())
def test_they_are_the_pairs_that_are_equal(left: list[Any], right: list[Any], by: list[str], keeps_all: bool) -> None:
    """In the order of the rows, and of the side; the diff of a pair is the product of those of its rows. Executors get
    a side as it is pickled."""
    at = [[name for name, _ in TYPES].index(one) for one in by]
    wanted = []
    for one in left:
        pairs = [other for other in right if all(equal(one[i], other[i]) for i in at)]
        wanted += [(*one[:-1], *other[:-1], one[-1] * other[-1]) for other in pairs]
        if keeps_all and not pairs:
            wanted.append((*one[:-1], *[None] * (len(RIGHT) - 1), one[-1]))
    side = Side(table(RIGHT, right), [("l" + name, "r" + name) for name in by], keeps_all=keeps_all)
    found = pickle.loads(pickle.dumps(side)).joined(table(LEFT, left), most=1000)
    assert found is not None
    assert rows_of(found) == [repr(row) for row in wanted]


@given(ROWS, ROWS)
def test_a_column_may_equal_several(left: list[Any], right: list[Any]) -> None:
    """`rint` is equal to `lint`, and so is `rn`."""
    wanted = Counter(
        repr((*one[:-1], *other[:-1], one[-1] * other[-1]))
        for one in left
        for other in right
        if equal(one[0], other[0]) and one[0] == other[-2]
    )
    found = Side(table(RIGHT, right), [("lint", "rint"), ("lint", "rn")]).joined(table(LEFT, left), most=1000)
    assert found is not None
    assert Counter(rows_of(found)) == wanted


def test_more_rows_than_there_is_room_for_are_not_joined() -> None:
    row = (1, "x", 0.5, Decimal(1), 1, 1)
    many, side = table(LEFT, [row] * 10), Side(table(RIGHT, [row] * 10), [("lint", "rint")])
    assert side.joined(many, most=99) is None
    found = side.joined(many, most=100)
    assert found is not None
    assert found.num_rows == 100


def test_a_multiplicity_that_is_too_large_is_refused() -> None:
    row = (1, "x", 0.5, Decimal(1), 1, 2**40)
    with pytest.raises(Overflowed):
        Side(table(RIGHT, [row]), [("lint", "rint")]).joined(table(LEFT, [row]), most=9)
