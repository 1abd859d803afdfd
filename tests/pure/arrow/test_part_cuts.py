"""Whole batches are cut where the law cuts their rows, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.arrow.parts.cuts import first_cut
from tidemark.arrow.rows.columns import row_bytes
from tidemark.model.chunk.cuts import Arrival, CutReason, CutRules, cut

pytestmark = pytest.mark.pure
SCHEMA = pa.schema([("b", pa.int64()), ("t", pa.int64()), ("u", pa.timestamp("us", "UTC")), ("w", pa.string())])
Row = tuple[int, int | None, int | None, str | None]
TIME = st.none() | st.integers(-3, 9)
ROWS = st.lists(st.tuples(st.integers(0, 2), TIME, TIME, st.none() | st.text("w", max_size=60)), max_size=40)
LIMIT = st.none() | st.integers(1, 9)


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[]] * len(SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA.names)


def by_law(rules: CutRules, rows: Sequence[Row], sizes: Sequence[int], placed: bool) -> list[tuple[int, str]]:
    arrivals = [
        Arrival({"t": t, "u": u}, bytes=size, bucket=b if placed else None)
        for (b, t, u, _), size in zip(rows, sizes, strict=True)
    ]
    return [(each.chunk.rows, each.reason.value) for each in cut(rules, arrivals)]


def whole(rules: CutRules, table: pa.Table, placed: bool, more: Iterator[int] | None = None) -> list[tuple[int, str]]:
    """The chunks of a table; with `more` it comes in pieces of so many rows."""
    found, start, seen = [], 0, table.num_rows if more is None else 0
    while start < table.num_rows:
        ended = first_cut(table.slice(start, seen - start), rules, ["t", "u"], "b" if placed else None)
        if ended is None and seen < table.num_rows:
            seen += next(more)
            continue
        length, reason = ended or (table.num_rows - start, CutReason.END)
        found.append((length, reason.value))
        start += length
    return found


@given(ROWS, LIMIT, st.none() | st.integers(1, 300), LIMIT, st.none() | st.integers(0, 5), st.data())
def test_batches_are_cut_as_the_law_cuts_rows(
    rows: list[Row], most: int | None, room: int | None, unsorted: int | None, least: int | None, data: Any
) -> None:
    table = table_of(rows)
    placed = least is not None
    rules = CutRules(rows=most, most_bytes=room, unsorted_rows=unsorted, bucket_rows=least or 0)
    wanted = by_law(rules, rows, row_bytes(table).tolist() if rows else [], placed)
    assert whole(rules, table, placed) == wanted
    pieces = iter(lambda: data.draw(st.integers(1, 8)), None)
    assert whole(rules, table, placed, pieces) == wanted
