"""What a change of rows can reach of sliding windows, beside all windows before and after it by the law."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.budget import examples
from tidemark.arrow.kernels.windows.keys import GROUP
from tidemark.arrow.kernels.windows.reached import rows_around, starts_reached
from tidemark.arrow.kernels.windows.regions import in_regions
from tidemark.arrow.kernels.windows.sliding import sliding_of
from tidemark.arrow.rows.columns import Ints
from tidemark.definition.recipe import AggregateColumn
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Windows

AGGREGATES = (Aggregate("rows", Function.COUNT), Aggregate("total", Function.SUM, "n"))
COMPUTED = (
    AggregateColumn("rows", Function.COUNT, None, ColumnType.INT),
    AggregateColumn("total", Function.SUM, "n", ColumnType.INT),
)
Row = tuple[int, int, int]
"""Group, instant, value."""
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-3, 9) | st.sampled_from([-(2**61), 2**61]), st.integers(0, 3))
)
kinds = st.builds(Sliding, st.integers(0, 4), st.booleans())
WindowValues = dict[tuple[int, int, int], tuple[int, ...]]


def law(some: list[Row], kind: Sliding) -> WindowValues:
    """By group, start and end what each window tells."""
    happened = [Happened((group,), value, at, number, 1) for number, (group, at, value) in enumerate(some)]
    computed = window_rows(Windows(("b",), "t", kind, AGGREGATES), happened, lambda one, value: value)
    return {(*key, *window): values for key, window, values in computed}


def kernel(some: list[Row], kind: Sliding) -> WindowValues:
    group, at, value = columns(some)
    found = sliding_of(pa.table({"n": value}), group, at, kind, COMPUTED)
    names = (GROUP, START, END, "rows", "total")
    computed = (tuple(row[name] for name in names) for windows in found for row in windows.to_pylist())
    return {row[:3]: row[3:] for row in computed}


def columns(some: list[Row]) -> tuple[Ints, Ints, Ints]:
    group, at, value = (np.array([row[column] for row in some], np.int64) for column in range(3))
    return group, at, value


@given(rows, rows, rows, kinds)
@example([(0, 0, 1), (0, 5, 1)], [(0, 10, 1)], [], Sliding(9))  # only the row at 0 tells of [1, 10] then
@examples(300)
def test_what_a_change_reaches_is_computed_from_the_rows_around(
    there: list[Row], gone: list[Row], new: list[Row], kind: Sliding
):
    before, after = law([*there, *gone], kind), law([*there, *new], kind)
    group, at, _ = columns([*gone, *new])
    starts = starts_reached(group, at, kind.size)
    group, at, _ = columns([*there, *new])
    near = in_regions(group, at, rows_around(starts, kind.size))
    some = kernel([row for row, is_near in zip([*there, *new], near, strict=True) if is_near], kind)
    windows = sorted({*before, *after, *some})
    reached = in_regions(*(np.array([one[column] for one in windows], np.int64) for column in range(2)), starts)
    for one, is_reached in zip(windows, reached, strict=True):
        if is_reached:
            assert some.get(one) == after.get(one)
        else:
            assert before.get(one) == after.get(one)
