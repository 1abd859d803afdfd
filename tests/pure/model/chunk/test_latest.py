"""The law of latest-at and range against brute force, on signed rows in overlapping chunks with loose bounds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.chunk.chunk import Chunk, Row
from tidemark.model.chunk.latest import BoundedChunk, Question, bounded, latest_at, may_stop, opening_order
from tidemark.model.chunk.metadata import UNKNOWN, Ends

pytestmark = pytest.mark.pure
COLUMNS = ("t", "x", "y")
small = st.none() | st.integers(-4, 4)
rows = st.builds(lambda t, x, y: {"t": t, "x": x, "y": y}, small, small, small)
slack = st.tuples(st.integers(0, 3), st.integers(0, 3))


@st.composite
def histories(draw: st.DrawFn) -> list[BoundedChunk]:
    """Rows with a multiplicity of one or more, and rows that were retracted, anywhere in any of several chunks."""
    chunks: list[list[Row]] = [[] for _ in range(draw(st.integers(1, 5)))]
    places = st.sampled_from(chunks)
    for values in draw(st.lists(rows, max_size=12)):
        for diff in draw(st.sampled_from([(1,), (1, 1), (1, -1), (-1, 1, 1), (2, -1), (1, -1, 1, -1)])):
            draw(places).append(Row(values, diff))
    return [loosened(each, draw(slack), draw(st.booleans())) for each in chunks]


def chunk(*members: Row) -> Chunk:
    return Chunk(("k",), frozenset(["t"]), members, {"x": "int", "y": "int"})


def loosened(members: list[Row], by: tuple[int, int], unknown: bool) -> BoundedChunk:
    exact = bounded(chunk(*members), "t")
    bounds = exact.bounds and Ends(exact.bounds.first - by[0], exact.bounds.last + by[1])
    return BoundedChunk(UNKNOWN if unknown else bounds, members)


def current_rows(chunks: list[BoundedChunk]) -> list[tuple[int | None, ...]]:
    """Every row as often as its multiplicity says."""
    times: Counter[tuple[int | None, ...]] = Counter()
    for each in chunks:
        for row in each.rows:
            times[row.cells(COLUMNS)] += row.diff  # type: ignore[index]
    return list(times.elements())


def nulls_first(cells: tuple[int | None, ...]) -> list[tuple[bool, int]]:
    return [(each is not None, each or 0) for each in cells]


def brute(chunks: list[BoundedChunk], at: int, within: int | None, ties: tuple[int, ...], column: int | None):
    lowest = -99 if within is None else at - within
    seen = [row for row in current_rows(chunks) if row[0] is not None and lowest <= row[0] <= at]
    seen = [row for row in seen if column is None or row[column] is not None]
    return max(
        seen, key=lambda row: (row[0], nulls_first(tuple(row[tie] for tie in ties)), nulls_first(row)), default=None
    )


@given(
    histories(),
    st.integers(-6, 6),
    st.none() | st.integers(0, 5),
    st.sampled_from([(), (2,), (2, 1)]),
    st.sampled_from([None, 1, 2]),
)
def test_latest_at_is_what_brute_force_finds(chunks, at, within, ties, column):
    asked = Question("t", COLUMNS, tuple(COLUMNS[tie] for tie in ties), None if column is None else COLUMNS[column])
    found = latest_at(chunks, asked, at, within)
    assert (found.row and found.row.cells(COLUMNS)) == brute(chunks, at, within, ties, column)
    assert set(found.opened) <= {position for _, position in opening_order([c.bounds for c in chunks], at, within)}


def at(time: int, diff: int = 1, **values: int) -> Row:
    return Row({"t": time, **values}, diff)


@pytest.mark.parametrize(
    ("found", "next_bound", "stops"),
    [(None, None, True), (None, 1, False), (2, 1, True), (1, 1, False), (1, None, True)],
)
def test_when_reading_may_stop(found: int | None, next_bound: int | None, stops: bool):
    assert may_stop(found, next_bound) is stops


def test_the_order_of_opening():
    some = [Ends(0, 9), None, Ends(5, 7), UNKNOWN, Ends(8, 9), Ends(0, 1)]
    assert opening_order(some, 7) == [(7, 0), (7, 2), (7, 3), (1, 5)]
    assert opening_order(some, 7, within=5) == [(7, 0), (7, 2), (7, 3)]
