"""Sessions of rows that are here, against the law of windows in plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.test_grouped import AGGREGATES, COLUMNS, bits, plain
from tests.support.budget import examples
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.kernels.windows.keys import GROUP, keys_in
from tidemark.arrow.kernels.windows.sessions import can_be_merged, merged_sessions, sessions_in_order, sessions_of
from tidemark.definition.recipe import AggregateColumn
from tidemark.definition.windows.rows import END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import Windows

COMPUTED = (
    *(one for one in AGGREGATES if not one.kept),
    *(AggregateColumn(f"first_{name}", Function.FIRST, name, of) for name, (of, _, _) in COLUMNS.items()),
    *(AggregateColumn(f"last_{name}", Function.LAST, name, of) for name, (of, _, _) in COLUMNS.items()),
)
IN_PARTS = tuple(one for one in COMPUTED if one.function is not Function.COUNT_DISTINCT)
SCHEMA = pa.schema(
    [
        ("kind", pa.int64()),
        ("shop", pa.string()),
        ("at", pa.int64()),
        *((name, of) for name, (_, of, _) in COLUMNS.items()),
    ]
)
FAR = 2**61
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from([1, 2]),
            "shop": st.sampled_from(["", "a", "é"]),
            "at": st.integers(-12, 12) | st.sampled_from([-FAR, FAR]),
            **{name: drawn for name, (_, _, drawn) in COLUMNS.items()},
        }
    ),
    max_size=14,
)
KINDS = st.builds(Session, st.integers(1, 7) | st.just(FAR), st.booleans(), st.none() | st.integers(1, 12))
Rows = list[dict[str, Any]]


def same(value: Any) -> Any:
    return bits(plain(value)) if isinstance(value, float) else value


def kernel(rows: Rows, by: tuple[str, ...], kind: Session) -> list[tuple[Any, ...]]:
    """The sessions in the order they come in."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    keys = keys_in(table, by)
    found = sessions_of(table, keys.numbers, table.column("at").to_numpy(), kind, COMPUTED)
    of = keys.values.take(found.column(GROUP)).to_pylist() if by else [{}] * found.num_rows
    columns = [found.column(name).to_pylist() for name in (START, END, *(one.name for one in COMPUTED))]
    return [(*key.values(), *map(same, values)) for key, *values in zip(of, *columns, strict=True)]


def law(rows: Rows, by: tuple[str, ...], kind: Session) -> list[tuple[Any, ...]]:
    windows = Windows(by, "at", kind, tuple(Aggregate(one.name, one.function, one.of or "") for one in COMPUTED))
    happened = [
        Happened(tuple(row[name] for name in by), (number, *row.items()), row["at"], 0)
        for number, row in enumerate(rows)
    ]
    found = window_rows(windows, happened, lambda one, row: dict(row[1:])[one.of])
    ordered = sorted(found, key=lambda row: (row[0], row[1]))
    return [(*key, *window, *map(same, values)) for key, window, values in ordered]


@examples(100)
@given(ROWS, st.sampled_from([(), ("kind",), ("shop", "kind")]), KINDS)
def test_sessions_come_in_order_and_are_what_the_law_says(rows: Rows, by: tuple[str, ...], kind: Session) -> None:
    assert kernel(rows, by, kind) == law(rows, by, kind)


@examples(100)
@given(ROWS, st.sampled_from([(), ("kind",), ("shop", "kind")]), KINDS, st.integers(1, 4))
def test_sessions_of_rows_in_order_are_emitted_as_they_come(
    rows: Rows, by: tuple[str, ...], kind: Session, of_a_batch: int
) -> None:
    ordered = sorted(rows, key=lambda row: (*(row[name] for name in by), row["at"]))
    batches = pa.Table.from_pylist(ordered, SCHEMA).to_batches(max_chunksize=of_a_batch)
    for asked in (COMPUTED, IN_PARTS):
        names = [*by, START, END, *(one.name for one in asked)]
        found = [row for some in sessions_in_order(batches, by, "at", kind, asked) for row in some.to_pylist()]
        at = [(*by, START, END, *(one.name for one in COMPUTED)).index(name) for name in names]
        wanted = [tuple(row[one] for one in at) for row in kernel(ordered, by, kind)]
        assert [tuple(same(row[name]) for name in names) for row in found] == wanted


def test_the_first_and_last_are_of_instants_that_have_values() -> None:
    """A key that has none at its last instant does not get that of the next key."""
    rows = pa.table({"at": [0, 0, 0, 5, 5, 5], "x": pa.array([None, 7, 3, 1, 9, None], pa.int64())})
    one = [
        AggregateColumn("a", Function.FIRST, "x", ColumnType.INT),
        AggregateColumn("z", Function.LAST, "x", ColumnType.INT),
    ]
    for numbers, values in ([0] * 6, [(3, 9)]), ([0, 0, 0, 1, 1, 1], [(3, 7), (1, 9)]):
        at = rows.column("at").to_numpy()
        found = sessions_of(rows, pa.array(numbers).to_numpy(), at, Session(9), one)
        assert list(zip(found.column("a").to_pylist(), found.column("z").to_pylist(), strict=True)) == values


def test_what_does_not_fit_is_refused() -> None:
    rows = pa.table({"x": [1]})
    at, beyond = (pa.array([instant]).to_numpy() for instant in (FAR, FAR + 1))
    with pytest.raises(Overflowed, match="beyond 64 bits"):
        sessions_of(rows, at * 0, at, Session(FAR + 1), ())
    with pytest.raises(InvalidUsage, match="beyond 2\\^61"):
        sessions_of(rows, at * 0, beyond, Session(1), ())
    assert sessions_of(rows, at * 0, at, Session(FAR), ()).column(END).to_pylist() == [2 * FAR]


MERGED = tuple(one for one in COMPUTED if can_be_merged(Session(1), (one,)))


@examples(100)
@given(ROWS, st.data(), st.sampled_from([(), ("shop", "kind")]), KINDS)
def test_sessions_of_any_parts_of_rows_are_put_together(
    rows: Rows, data: st.DataObject, by: tuple[str, ...], kind: Session
) -> None:
    """However the rows come into parts, which overlap then."""
    kind = replace(kind, max_length=None)
    table = pa.Table.from_pylist(rows, SCHEMA)
    numbers, at = keys_in(table, by).numbers, table.column("at").to_numpy()
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    inside = [np.flatnonzero(np.array(drawn, np.int64) == part) for part in range(3)]
    parts = [sessions_of(table.take(pa.array(some)), numbers[some], at[some], kind, MERGED) for some in inside]
    found = merged_sessions(pa.Table.from_batches(parts), kind, MERGED)
    of_all = sessions_of(table, numbers, at, kind, MERGED)
    shown = [[[same(value) for value in row.values()] for row in one.to_pylist()] for one in (found, of_all)]
    assert shown[0] == shown[1]
    assert found.schema == parts[0].schema


def test_what_depends_on_the_rows_of_a_session_is_not_put_together() -> None:
    """Where it is cut, what is first in it, and sums of floats, which are rounded once."""
    assert {one.function for one in MERGED} == {Function.COUNT, Function.SUM, Function.MIN, Function.MAX}
    assert can_be_merged(Session(3), MERGED)
    assert not can_be_merged(Session(3, max_length=9), MERGED)
    sums = {one.name for one in COMPUTED if one.function is Function.SUM} - {one.name for one in MERGED}
    assert sums == {"sum_float"}


def test_sums_of_parts_that_may_not_fit_are_not_put_together() -> None:
    total = (AggregateColumn("total", Function.SUM, "whole", ColumnType.INT),)
    rows = [{"kind": 1, "shop": "", "at": at, "whole": 2**62} for at in (1, 2)]
    parts = [
        sessions_of(pa.Table.from_pylist([row], SCHEMA), np.array([0]), np.array([row["at"]]), Session(5), total)
        for row in rows
    ]
    with pytest.raises(Overflowed):
        merged_sessions(pa.Table.from_batches(parts), Session(5), total)
