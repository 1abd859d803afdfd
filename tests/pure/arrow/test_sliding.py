"""The kernel of sliding windows against windows found by moving a start instant by instant, in plain Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.arrow.kernels.windows.sliding import CHUNK, Slide, sliding
from tidemark.definition.recipe import BAND, AggregateColumn
from tidemark.definition.windows.rows import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function

INT = ColumnType.INT
ASKED = (AggregateColumn("rows", Function.COUNT, None, INT), AggregateColumn("last", Function.LAST, "n", INT))
SCHEMA = pa.schema([("key", pa.string()), (AT, pa.int64()), ("n", pa.int64())])
Cell = dict[str, Any]


def brute(cells: list[Cell], size: int, clamp: bool = False) -> dict[tuple[str, int], list[Cell]]:
    """The cells of each window by its key and start: the smallest start of each set that a start moved up meets."""
    found: dict[tuple[str, int], list[Cell]] = {}
    for key in {cell["key"] for cell in cells}:
        mine = sorted((cell for cell in cells if cell["key"] == key), key=lambda cell: cell[AT])
        before: list[Cell] = []
        lowest = 0 if clamp else mine[0][AT] - size - 2
        for start in range(lowest, mine[-1][AT] + 2):
            inside = [cell for cell in mine if start <= cell[AT] <= start + size]
            if inside and inside != before:
                found[key, start] = inside
            before = inside
    return found


def batches(cells: list[Cell], each: int, schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    names = [name for name in ("key", CHUNK, BAND, AT) if name in schema.names]
    ordered = sorted(cells, key=lambda cell: [cell[name] for name in names])
    for at in range(0, len(ordered), each):
        yield pa.RecordBatch.from_pylist(ordered[at : at + each], schema=schema)


def slid(cells: list[Cell], slide: Slide, each: int = 10_000, schema: pa.Schema = SCHEMA, **how: int) -> list[Cell]:
    return [row for batch in sliding(batches(cells, each, schema), slide, **how) for row in batch.to_pylist()]


def check_windows(wanted: dict[tuple[str, int], list[Cell]], size: int, rows: list[Cell]) -> None:
    assert sorted((row["key"], row[START]) for row in rows) == sorted(wanted)
    for row in rows:
        inside = wanted[row["key"], row[START]]
        assert row[END] == row[START] + size
        assert (row["rows"], row["last"]) == (len(inside), inside[-1]["n"])


def drawn_cells(lowest: int) -> st.SearchStrategy[list[Cell]]:
    def made(places: set[tuple[str, int]]) -> list[Cell]:
        return [{"key": key, AT: at, "n": n} for n, (key, at) in enumerate(sorted(places))]

    places = st.sets(st.tuples(st.sampled_from("xy"), st.integers(lowest, 25)), min_size=1, max_size=12)
    return st.builds(made, places)


@given(
    drawn_cells(-20),
    st.integers(0, 6),
    st.booleans(),
    st.integers(1, 5),
    st.sets(st.integers(-25, 25), max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_bands_of_starts_tell_windows_of_cells_of_their_own(
    cells: list[Cell], size: int, chunks: bool, each: int, some: set[int], draw: Random, clamp: bool
) -> None:
    """Each band has some of the cells: its windows are those of these, and no others start in it."""
    cells = [cell for cell in cells if cell[AT] >= 0] or [{**cells[0], AT: 3}] if clamp else cells
    bounds, width = tuple(sorted(some)), size + 3 if chunks else None
    banded = [{**cell, BAND: band} for band in range(len(bounds) + 1) for cell in cells if draw.random() < 0.7]
    wanted = {
        (key, start): inside
        for band in range(len(bounds) + 1)
        if (mine := [cell for cell in banded if cell[BAND] == band])
        for (key, start), inside in brute(mine, size, clamp).items()
        if bisect_right(bounds, start) == band
    }
    columns = [SCHEMA.field("key"), (BAND, pa.int64()), *(SCHEMA.field(at) for at in range(1, len(SCHEMA)))]
    if width is not None:
        columns.insert(1, (CHUNK, pa.int64()))
        banded = [
            {**cell, CHUNK: chunk}
            for cell in banded
            for chunk in range((cell[AT] - size) // width, (cell[AT] + 1) // width + 1)
        ]
    slide = Slide(("key",), size, ASKED, clamp, width, bounds)
    check_windows(wanted, size, slid(banded, slide, each, pa.schema(columns)))


def integers(ats: list[int], **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({AT: pa.array(ats, pa.int64()), **columns})


def starts_of(ats: list[int], size: int) -> list[int]:
    (found,) = sliding([integers(ats)], Slide((), size, ()))
    return sorted(found.column(START).to_pylist())


def test_a_late_row_between_two_makes_the_windows_of_its_own() -> None:
    assert starts_of([0, 10, 11], 10) == [-10, 0, 1, 11]
    assert starts_of([5], 0) == [5]
    assert starts_of([5, 6], 0) == [5, 6]


def test_distances_and_sizes_may_be_great() -> None:
    far = 2**61
    assert starts_of([-far, far], far - 1) == [-far - far + 1, 1]
    many = pa.record_batch({"key": pa.array(range(40)), AT: pa.array([7] * 40, pa.int64())})
    found = pa.Table.from_batches(sliding([many], Slide(("key",), far - 1, ())))
    assert found.column(START).to_pylist() == [7 - far + 1] * 40
    with pytest.raises(InvalidUsage, match="beyond 2\\^61"):
        starts_of([far + 1], 3)
    with pytest.raises(InvalidUsage, match="size of a sliding window is -1"):
        Slide((), -1, ())


def test_what_is_carried_is_what_windows_reach_and_what_grows_is_emitted_in_small_batches() -> None:
    """A group of many cells comes in small blocks: none holds more than a few windows of it."""
    count, size = 20_000, 50
    cells = pa.record_batch({AT: pa.array(np.arange(count)), "text": pa.array(["x" * 100] * count)})
    most = 0

    def stream() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for first in range(0, count, 100):
            most = max(most, pa.total_allocated_bytes() - before)
            yield cells.slice(first, 100)

    rows, before = 0, pa.total_allocated_bytes()
    for batch in sliding(
        stream(),
        Slide((), size, (AggregateColumn("all", Function.COLLECT, "text", ColumnType.STRING),)),
        rows=1000,
        room=100_000,
    ):
        assert batch.nbytes < 300_000
        rows += len(batch)
    assert rows == count + size, "each cell ends a window, and the last ones begin one"
    assert most < 1_000_000 < cells.nbytes
