"""Sliding windows of rows are those of the law, however rows come in batches, and in order of key and start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.kernels.windows.sliding import CHUNK, Slide, sliding, sliding_in_order
from tidemark.definition.recipe import AggregateColumn
from tidemark.definition.windows.rows import AT, END, START
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.evaluate import evaluate
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Sliding

pytestmark = pytest.mark.pure

INT, FLOAT, TEXT = ColumnType.INT, ColumnType.FLOAT, ColumnType.STRING
PUT_TOGETHER = (
    AggregateColumn("rows", Function.COUNT, None, INT),
    AggregateColumn("known", Function.COUNT, "t", INT),
    AggregateColumn("sum", Function.SUM, "n", INT),
    AggregateColumn("mean", Function.AVG, "n", FLOAT),
    AggregateColumn("floats", Function.SUM, "x", FLOAT),
    AggregateColumn("mean_of_floats", Function.AVG, "x", FLOAT),
    AggregateColumn("least", Function.MIN, "t", TEXT),
    AggregateColumn("most", Function.MAX, "x", FLOAT),
    AggregateColumn("first", Function.FIRST, "t", TEXT),
    AggregateColumn("last", Function.LAST, "x", FLOAT),
)
"""Aggregates of which rows at one instant are put together."""
AS_THEY_ARE = (
    *PUT_TOGETHER,
    AggregateColumn("all", Function.COLLECT, "t", TEXT),
    AggregateColumn("kinds", Function.COUNT_DISTINCT, "t", INT),
    AggregateColumn("median", Function.APPROX_QUANTILE, "n", FLOAT, at=0.5),
)
ASKED = st.sampled_from([PUT_TOGETHER, AS_THEY_ARE])
Asked = tuple[AggregateColumn, ...]
PLACES = {"n": 0, "x": 1, "t": 2}
ROW = st.tuples(
    st.sampled_from([None, "a", "b"]),
    st.integers(-9, 30),
    st.sampled_from([None, 0, 5, -(2**40)]),
    st.sampled_from([None, 0.1, 0.2, 1e16, -1e16, math.nan]),
    st.sampled_from([None, "", "x", "y"]),
)
Row = tuple[Any, ...]


def law(rows: list[Row], kind: Sliding, aggregates: Asked) -> list[Row]:
    happened = [Happened((row[0] or "",), (place, row[2:]), row[1], 0) for place, row in enumerate(rows)]
    found = []
    for (key, window), inside in contents(Rule(kind, clamp_start_at_zero=kind.clamp_start_at_zero), happened).items():
        asked = [Aggregate(one.name, one.function, one.of or "", at=one.at) for one in aggregates]
        values = evaluate(asked, inside, lambda one, value: value[1][PLACES[one.of]], lambda *_: True)
        found.append((key[0] or None, *window, *values))
    return sorted(found, key=lambda row: (row[0] or "", row[1]))


def canonical(rows: list[Row]) -> list[Row]:
    return [tuple("NaN" if one != one else one for one in row) for row in rows]


def cut(batch: pa.RecordBatch, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    first = 0
    for size in [*sizes, batch.num_rows]:
        yield batch.slice(first, size)
        first = min(first + size, batch.num_rows)


@examples(100)
@given(st.lists(ROW, max_size=30), st.integers(0, 12), st.booleans(), st.lists(st.integers(0, 7), max_size=9), ASKED)
def test_they_are_those_of_the_law(rows: list[Row], size: int, clamp: bool, sizes: list[int], asked: Asked) -> None:
    rows = sorted(rows, key=lambda row: (row[0] is not None, row[0] or "", row[1]))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    types = [pa.string(), pa.int64(), pa.int64(), pa.float64(), pa.string()]
    names = ["key", AT, "n", "x", "t"]
    batch = pa.RecordBatch.from_arrays([pa.array(one, of) for one, of in zip(columns, types, strict=True)], names)
    slide = Slide(("key",), size, asked, clamp)
    found = [tuple(row.values()) for some in sliding_in_order(cut(batch, sizes), slide) for row in some.to_pylist()]
    assert canonical(found) == canonical(law(rows, Sliding(size, clamp), asked))


@examples(100)
@given(
    st.lists(ROW, max_size=30), st.integers(0, 12), st.integers(0, 5), st.lists(st.integers(0, 7), max_size=9), ASKED
)
def test_chunks_of_starts_are_all_windows_together(
    rows: list[Row], size: int, more: int, sizes: list[int], asked: Asked
) -> None:
    """A row is in the chunks whose windows it is in, or starts."""
    width = size + 2 + more
    placed = sorted(
        {
            (row[0] is not None, row[0] or "", chunk, row[1], place)
            for place, row in enumerate(rows)
            for chunk in ((row[1] - size) // width, (row[1] + 1) // width)
        }
    )
    chosen = [rows[place] for *_, place in placed]
    batch = pa.record_batch(
        {
            "key": pa.array([row[0] for row in chosen], pa.string()),
            CHUNK: pa.array([chunk for _, _, chunk, _, _ in placed], pa.int64()),
            AT: pa.array([row[1] for row in chosen], pa.int64()),
            "n": pa.array([row[2] for row in chosen], pa.int64()),
            "x": pa.array([row[3] for row in chosen], pa.float64()),
            "t": pa.array([row[4] for row in chosen], pa.string()),
        }
    )
    slide = Slide(("key",), size, asked, width=width)
    found = [tuple(row.values()) for some in sliding_in_order(cut(batch, sizes), slide) for row in some.to_pylist()]
    assert canonical(found) == canonical(law(rows, Sliding(size), asked))
    assert all(row[2] - row[1] == size for row in found), (START, END)


def test_windows_that_share_a_long_value_come_some_at_a_time() -> None:
    """All of them together would be as large as the value times the windows that it is in."""
    asked = (AggregateColumn("most", Function.MAX, "t", TEXT), AggregateColumn("first", Function.FIRST, "t", TEXT))
    texts = ["long" * 1000 if at == 0 else None if at % 3 else "x" for at in range(200)]
    batch = pa.record_batch({AT: pa.array(range(200), pa.int64()), "t": texts})
    slide = Slide((), 500, asked)
    found = list(sliding([batch], slide, room=20_000))
    assert len(found) > 200 // 6, "five of the windows that have it fit"
    assert max(some.column("most").nbytes + some.column("first").nbytes for some in found) < 25_000
    rows = [row for some in found for row in some.to_pylist()]
    assert {row["first"] for row in rows if row[START] <= 0} == {texts[0]}
    assert sum(len(row["first"] or "") for row in rows) > 800_000
