"""What is reported of windows beside their rows, against a walk through the history of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.test_read import arranged, little_memory  # noqa: F401
from tests.support.budget import examples
from tidemark.arrow.windows import WindowQuery, known_windows, windows_schema
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import MAX_TIME
from tidemark.model.update import Update
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Hopping, Sliding, WindowKind
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Late, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
SIZE, GRACE = 4, 1


def collection(kind: WindowKind, late: Late = Late.REEMIT, max_lateness: int | None = None) -> Collection:
    windows = Windows(("k",), "at", kind, (Aggregate("n", Function.COUNT),), "", GRACE, late, max_lateness)
    key = (Column("k", ColumnType.INT), Column(WINDOW_START, ColumnType.INT), Column(WINDOW_END, ColumnType.INT))
    return Collection("w", key, (Column("n", ColumnType.INT),), Derived(("rows",), Definition(windows=windows)))


History = dict[tuple[int, int], dict[int, int | None]]
"""For each window, by key and start, its row's value from each time on; None: it has no rows."""
histories = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 6)),
    st.dictionaries(st.integers(0, 14), st.none() | st.integers(1, 3), min_size=1, max_size=4),
    max_size=6,
)


def updates_of(history: History) -> list[Update]:
    found = []
    for (key, start), values in history.items():
        row: int | None = None
        for time in sorted(values):
            for value, diff in ((row, -1), (values[time], 1)):
                if value is not None and row != values[time]:
                    found.append(Update((key, start, start + SIZE), (value,), time, time, diff))
            row = values[time]
    return found


def expected(history: History, since: int, upto: int, close: int, *, open_too: bool) -> list[Mapping[str, Any]]:
    reported = []
    for (key, start), given_values in sorted(history.items()):
        values: dict[int, int | None] = {}
        for time in sorted(given_values):
            values[max(time, since)] = given_values[time]
        row, changed, due = None, [], None
        for time, value in sorted(values.items()):
            if time > upto:
                due = value
            elif value != row:
                row = value
                changed.append(time)
        is_open = row is None and open_too and due is not None
        if row is None and not is_open:
            continue
        reported.append(
            {
                "window": (key, start, start + SIZE, due if is_open else row),
                "closed": start + SIZE + 1 + GRACE <= close,
                "revision": max(0, len(changed) - 1),
                "first": changed[0] if changed else None,
                "last": changed[-1] if changed else None,
            }
        )
    return reported


@examples(150)
@given(histories, st.tuples(*(st.integers(0, 12) for _ in range(4))).map(sorted), st.data())
def test_windows_are_reported_as_their_history_has_them(history: History, at: list[int], data: st.DataObject) -> None:
    since, _, _, seal = at
    if not seal:
        return
    newest = data.draw(st.booleans())
    upto = seal - 1 if newest else data.draw(st.integers(min(since, seal - 1), seal - 1))
    since = min(since, seal - 1)
    close = data.draw(st.integers(0, 12))
    store, of = MemoryStore(), collection(Sliding(SIZE))
    state = arranged(store, of, updates_of(history), [since, max(since, at[1]), max(since, at[2]), seal])
    request = plan_updates(state, MAX_TIME - 1 if newest else upto)
    windows = of.derived.definition.windows
    assert windows is not None
    query = WindowQuery(windows, upto, close, open=newest)
    rows = []
    for task in read_tasks(*opened_read(store, request)):
        for batch in known_windows(store, task, query):
            assert batch.schema == windows_schema(of)
            rows += batch.to_pylist()

    def instant(value: Any) -> int | None:
        return None if value is None else value.microsecond

    assert [
        {
            "window": (row["k"], row[WINDOW_START], row[WINDOW_END], row["n"]),
            "closed": row["_closed"],
            "revision": row["_revision"],
            "first": instant(row["_first_told"]),
            "last": instant(row["_last_told"]),
        }
        for row in rows
    ] == expected(history, since, upto, close, open_too=newest)
    assert {row["_end_inclusive"] for row in rows} <= {True}


@pytest.mark.parametrize(
    ("late", "max_lateness", "final"),
    [(Late.REEMIT, None, []), (Late.REEMIT, 2, [0, 1]), (Late.DISCARD, None, [0, 1, 2, 3])],
)
def test_a_window_is_final_once_no_late_row_counts_in_it(
    late: Late, max_lateness: int | None, final: list[int]
) -> None:
    store, of = MemoryStore(), collection(Hopping(SIZE, 1), late, max_lateness)
    history: History = {(0, start): {start + SIZE: 1} for start in range(6)}
    state = arranged(store, of, updates_of(history), [0, 0, 0, 12])
    windows = of.derived.definition.windows
    assert windows is not None
    (task,) = read_tasks(*opened_read(store, plan_updates(state)))
    (batch,) = known_windows(store, task, WindowQuery(windows, 11, 8, open=True))
    rows = batch.to_pylist()
    assert [row[WINDOW_START] for row in rows if row["_closed"]] == [0, 1, 2, 3]
    assert [row[WINDOW_START] for row in rows if row["_final"]] == final
    assert not any(row["_end_inclusive"] for row in rows)
