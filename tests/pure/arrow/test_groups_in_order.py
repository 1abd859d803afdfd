"""Groups of a stream in order are those of all its rows, however rows come in batches; a long one takes few bytes."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.test_slides import AS_THEY_ARE, PUT_TOGETHER, cut
from tests.support.budget import examples
from tidemark.arrow.kernels.aggregates.groups import groups_by
from tidemark.arrow.kernels.aggregates.groups_in_order import groups_in_order
from tidemark.definition.recipe import AggregateColumn

pytestmark = pytest.mark.pure

SCHEMA = pa.schema(
    [("key", pa.string()), ("at", pa.int64()), ("n", pa.int64()), ("x", pa.float64()), ("t", pa.string())]
)
ROW = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.integers(0, 9),
    st.sampled_from([None, 0, 5, -(2**40)]),
    st.sampled_from([None, 0.1, 0.2, 1e16, -1e16, 1e300, math.inf, math.nan]),
    st.sampled_from([None, "", "x", "y"]),
)


@examples(100)
@given(
    st.lists(ROW, max_size=40),
    st.lists(st.integers(0, 7), max_size=9),
    st.sampled_from([1, 2, 5, 100]),
    st.sampled_from([PUT_TOGETHER, AS_THEY_ARE]),
    st.sampled_from([("key",), ()]),
)
def test_they_are_those_of_all_rows(
    rows: list[tuple[Any, ...]], sizes: list[int], most: int, asked: tuple[AggregateColumn, ...], keys: tuple[str, ...]
) -> None:
    if not keys:
        rows = [(None, *row[1:]) for row in rows]
    rows = sorted(rows, key=lambda row: (row[0] is not None, row[0] or "", row[1]))
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, of.type) for column, of in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    found = [
        row for some in groups_in_order(cut(batch, sizes), keys, "at", asked, rows=most) for row in some.to_pylist()
    ]
    wanted = groups_by(pa.Table.from_batches([batch]), ["key"], asked, batch.column("at").to_numpy())
    if not keys:
        wanted = wanted.drop_columns(["key"])
    assert repr(found) == repr(wanted.to_pylist())
