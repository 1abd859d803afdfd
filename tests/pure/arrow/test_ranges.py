"""Aggregates of ranges of rows are those of the law (model/window/evaluate.py), of every function and type, also of
ranges that overlap, as sliding windows do."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.kernels.aggregates.ranges import Ranges, aggregated, means
from tidemark.arrow.kernels.aggregates.sums import Overflowed, sums
from tidemark.definition.recipe import AggregateColumn
from tidemark.model.collection import ColumnType, DecimalType, ValueType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import evaluate

pytestmark = pytest.mark.pure

INT, FLOAT, TEXT, BOOL = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING, ColumnType.BOOL
COLUMNS: dict[str, tuple[pa.DataType, ValueType, list[Any]]] = {
    "n": (pa.int64(), INT, [None, 0, 1, -7, 2**53 + 1, 5]),
    "m": (pa.int64(), INT, [None, 2**63 - 1, -(2**63), 2**62, 2**62 + 511, -3]),
    "x": (pa.float64(), FLOAT, [None, 0.0, -0.0, 0.1, 1e16, -1e16, math.nan, math.inf, 5e-324, 2.5]),
    "p": (pa.decimal128(6, 2), DecimalType(6, 2), [None, Decimal("0.00"), Decimal("1.25"), Decimal("-9999.99")]),
    "t": (pa.string(), TEXT, [None, "", "a", "ü", 'say "x"', "\n", "\U0001f600"]),
    "b": (pa.bool_(), BOOL, [None, True, False]),
}
ASKED = [
    *((Function.COUNT, name, INT) for name in COLUMNS),
    *((function, name, of) for function in (Function.MIN, Function.MAX) for name, (_, of, _) in COLUMNS.items()),
    *((function, name, of) for function in (Function.FIRST, Function.LAST) for name, (_, of, _) in COLUMNS.items()),
    *((function, name, INT) for function in (Function.COUNT_DISTINCT, Function.APPROX_DISTINCT) for name in COLUMNS),
    *((Function.COLLECT, name, TEXT) for name in ("n", "p", "t", "b")),
    (Function.SUM, "n", INT),
    (Function.SUM, "x", FLOAT),
    (Function.SUM, "p", DecimalType(16, 2)),
    (Function.AVG, "n", FLOAT),
    (Function.AVG, "m", FLOAT),
    (Function.AVG, "x", FLOAT),
    (Function.AVG, "p", DecimalType(10, 6)),
    *((Function.APPROX_QUANTILE, name, FLOAT) for name in ("n", "x")),
]
ROW = st.tuples(
    st.sampled_from(["a", "b"]), st.integers(0, 6), *(st.sampled_from(some) for _, _, some in COLUMNS.values())
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@examples(100)
@given(st.lists(ROW, min_size=1, max_size=25), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=6))
def test_they_are_those_of_the_law(rows: list[tuple[Any, ...]], picks: list[tuple[int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[:2])
    keys, at = [row[0] for row in rows], np.array([row[1] for row in rows], np.int64)
    begins = np.array([place == 0 or keys[place] != keys[place - 1] for place in range(len(rows))])
    runs = [place for place in range(len(rows)) if place == 0 or rows[place][:2] != rows[place - 1][:2]] + [len(rows)]
    chosen = [(runs[a % len(runs)], runs[b % len(runs)]) for a, b in [*picks, (0, len(runs) - 1)]]
    chosen = [(min(one), max(one)) for one in chosen if one[0] != one[1]]
    lo, hi = (np.array([one[side] for one in chosen], np.int64) for side in (0, 1))
    batch = pa.record_batch(
        {
            name: pa.array([row[2 + place] for row in rows], of)
            for place, (name, (of, _, _)) in enumerate(COLUMNS.items())
        }
    )
    ranges = Ranges(lo, hi, at, begins)
    places = {name: 2 + place for place, name in enumerate(COLUMNS)}
    for function, name, of in ASKED:
        quantile = 0.5 if function is Function.APPROX_QUANTILE else None
        found = aggregated(AggregateColumn("a", function, name, of, at=quantile), batch, ranges).to_pylist()
        law = Aggregate("a", function, name, at=quantile)
        for (a, b), one in zip(chosen, found, strict=True):
            # The order of rows of two keys is no question: instants of the second come after those of the first.
            contained = Counter({(place, 100 * (keys[place] == "b") + int(at[place])): 1 for place in range(a, b)})
            (wanted,) = evaluate((law,), contained, lambda _, place, at=places[name]: rows[place][at], lambda *_: True)
            assert same(one, wanted), (function, name, rows[a:b])


def test_a_mean_that_has_more_digits_than_its_type_is_refused() -> None:
    """As of 35 digits before the point where the type has room for 34."""
    of = DecimalType(38, 4)
    values = pa.array([Decimal(10**33), Decimal(10**34)])
    assert means(of, values[:1], np.array([1])).to_pylist() == [Decimal(10**33)]
    with pytest.raises(Overflowed, match=r"an average of decimals is beyond decimal\(38, ?4\)"):
        means(of, values, np.array([1, 1]))


def test_a_sum_is_refused_where_it_does_not_fit_and_not_where_a_part_of_it_does_not() -> None:
    batch = pa.record_batch({"n": pa.array([2**62, 2**62, -(2**62), 1])})
    total = AggregateColumn("a", Function.SUM, "n", INT)
    at, begins = np.arange(4), np.array([True, False, False, False])
    lo, hi = np.array([0, 3, 0]), np.array([1, 4, 3])
    assert aggregated(total, batch, Ranges(lo, hi, at, begins)).to_pylist() == [2**62, 1, 2**62]
    with pytest.raises(Overflowed):
        aggregated(total, batch, Ranges(np.array([0]), np.array([2]), at, begins))


@pytest.mark.parametrize(
    ("of", "some", "sum_"),
    [
        (pa.int64(), [2**62, 2**62 - 1, 2**62, -(2**62)], 2**63 - 1),
        (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(1 - 10**38)], Decimal(1 - 10**38)),
        (pa.decimal128(3, 1), [Decimal("99.9"), Decimal("-0.1"), Decimal("0.1")], Decimal("99.9")),
    ],
)
def test_a_sum_that_fits_is_exact_and_one_that_does_not_is_refused(of: pa.DataType, some: list[Any], sum_: Any) -> None:
    column, none = pa.array([None, *some], of), np.array([0])
    assert sums(column, none, np.array([len(some) + 1])).to_pylist() == [sum_]
    assert sums(column, none, none + 1).to_pylist() == [None]
    below = Context(prec=60).minus(some[0]) if isinstance(some[0], Decimal) else -some[0]
    for one in (some[0], below):
        with pytest.raises(Overflowed, match="beyond"):
            sums(pa.array([one, one, one], of), none, np.array([3]))
