"""The latest row of each key, against a search through all rows: signed updates, nulls, ties, little memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.pure.arrow.latest_oracle import TIMELINES, Below, latest, readings, some_updates
from tests.pure.arrow.samples import rows
from tests.pure.arrow.test_read import arranged, frontiers
from tests.support.budget import budget, laws
from tidemark.arrow import one_key, runs
from tidemark.arrow.kernels import merge
from tidemark.arrow.kernels.latest import whole_keys
from tidemark.arrow.latest import latest_of
from tidemark.arrow.winners import Latest, latest_schema
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.chunk.law import Span
from tidemark.model.collection import ColumnType
from tidemark.model.update import Update
from tidemark.plan.latest import asks_one_key
from tidemark.plan.read import plan_as_of, read_tasks
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
SHOWN = ("number", "word", "at", "x", "n")


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little that keys straddle what is in memory."""
    for module in (runs, merge):
        monkeypatch.setattr(module, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "PIECE_BYTES", 200)


def table_of(
    store: MemoryStore,
    state: Arrangement,
    ask: Latest,
    lower: int | None,
    upper: int,
    key: int | None = None,
    **asked: int | None,
) -> pa.Table:
    """The latest rows of all keys, or of one."""
    keys = ALL_KEYS if key is None else KeyRange((key,), (key + 1,))
    request = plan_as_of(state, **asked, keys=keys)
    (column,) = (column.id for column in state.collection.value if column.name == ask.timeline)
    [task] = read_tasks(*opened_read(store, replace(request, spans=(Span(column, ((lower, upper),)),))))
    assert asks_one_key(task) is (key is not None)
    return pa.Table.from_batches(latest_of(store, task, ask), schema=latest_schema(state.collection, ask))


def words_but_a(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array([word != "a" for word in batch.column("word").to_pylist()], pa.bool_()))


@pytest.mark.parametrize("timeline", TIMELINES)
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("buffered", [8, 2**18], ids=["little memory", "enough"])
def test_it_is_what_a_search_through_all_rows_finds(
    timeline: ColumnType, each: bool, buffered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_key, "BUFFERED_ROWS", buffered)  # little: the search of one key gives up
    of = readings(timeline)
    names = st.lists(st.sampled_from(SHOWN[1:]), max_size=2, unique=True)
    spans = st.sampled_from([None, 0, 1, 3])

    @settings(laws, max_examples=budget(ci=8, deep=50))
    @given(some_updates(least_diff=-1), frontiers, st.integers(-2, 5), spans, names, names, st.booleans())
    def check(
        some: list[Update], at: list[int], upto: int, within: int | None, ties: list[str], shown: list[str], fits: bool
    ) -> None:
        store = MemoryStore()
        state = arranged(store, of, some, at)
        columns = ("number", *shown) if shown else SHOWN
        looked_at, keep = (("word",), words_but_a) if fits else ((), None)
        ask = Latest("at", tuple(ties), columns, each, looked_at, keep)
        lower = None if within is None else upto - within
        read = set(ask.read(of))
        seen = [column.name in read for column in of.value]
        as_read = [
            u._replace(value=tuple(cell if is_read else None for cell, is_read in zip(u.value, seen, strict=True)))
            for u in some
        ]

        def expected(key: int, value_of: str | None = None) -> dict[str, Any] | None:
            """The latest row, by the columns that are read: a row is judged by these (0053)."""
            return latest(
                as_read,
                of,
                (key,),
                upto,
                within=within,
                known=state.seal - 1,
                ties=ties,
                value_of=value_of,
                fits=(lambda row: row["word"] != "a") if fits else None,
            )

        def wanted(key: int) -> list[tuple[Any, ...]]:
            if (row := expected(key)) is None:
                return []
            cells: list[Any] = []
            for name in columns:
                own = expected(key, name) if each and name not in ("number", "at") else None
                if name == "number":
                    cells.append(key)
                elif not each or name == "at":
                    cells.append(row[name])
                else:
                    cells += [None, None] if own is None else [own[name], own["at"]]
            return [tuple(cells)]

        answers: list[tuple[Any, ...]] | None = []
        for key in range(4):
            try:
                of_key = wanted(key)
            except Below:
                event("below zero")
                answers = None
                with pytest.raises(InvalidUsage, match=f"a row of the key number={key} has a negative multiplicity"):
                    table_of(store, state, ask, lower, upto, key)
                continue
            assert rows(table_of(store, state, ask, lower, upto, key)) == of_key
            answers = None if answers is None else answers + of_key
        if answers is None:
            with pytest.raises(InvalidUsage, match=r"a row of the key number=\d has a negative multiplicity"):
                table_of(store, state, ask, lower, upto)
            return
        event(f"{len(answers)} keys")
        assert rows(table_of(store, state, ask, lower, upto)) == answers

    check()


def test_it_is_so_at_every_time_of_knowledge_and_event_time() -> None:
    of = readings(ColumnType.INT)

    @laws
    @given(some_updates(least_diff=0), frontiers, st.integers(0, 12), st.integers(0, 12))
    def check(some: list[Update], at: list[int], time: int, happened: int) -> None:
        since, _, _, seal = at
        time, happened = min(max(time, since), seal - 1), max(happened, since)
        store = MemoryStore()
        state = arranged(store, of, some, at)
        table = table_of(store, state, Latest("at", (), SHOWN, False), None, 3, time=time, event_time=happened)
        advanced = [u._replace(time=max(u.time, since), event_time=max(u.event_time, since)) for u in some]
        found = [latest(advanced, of, (key,), 3, known=time, happened=happened) for key in range(4)]
        assert rows(table) == [
            (key, *(row[name] for name in SHOWN[1:])) for key, row in enumerate(found) if row is not None
        ]

    check()


def test_the_times_of_the_latest_values_have_the_type_of_the_timeline() -> None:
    ask = Latest("at", (), ("number", "x", "at"), True)
    for timeline, of in zip(TIMELINES, (pa.int64(), pa.date32(), pa.timestamp("us", "UTC")), strict=True):
        schema = latest_schema(readings(timeline), ask)
        assert (schema.names, schema.field("x_at").type) == (["number", "x", "x_at", "at"], of)


def test_only_columns_that_can_decide_are_read() -> None:
    of = readings(ColumnType.INT)
    assert Latest("at", (), ("number",), False).read(of) == ["number", "word", "at"]
    assert Latest("at", ("x",), ("word",), False).read(of) == ["number", "word", "at", "x"]
    assert Latest("at", (), SHOWN, True).read(of) == list(SHOWN)


@pytest.mark.parametrize("each", [False, True])
def test_memory_for_one_key_does_not_grow_with_its_rows(each: bool) -> None:
    """Of a key with many rows only those are kept that can still win."""
    sizes: list[int] = []

    def first_and_last(rows: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(rows.num_rows)
        return rows.take(pa.array([0, rows.num_rows - 1]))

    batches = [pa.record_batch({"k": np.full(100, 1), "v": np.arange(n, n + 100)}) for n in range(0, 5000, 100)]
    batches.append(pa.record_batch({"k": [2, 3], "v": [0, 1]}))
    found = list(whole_keys(iter(batches), ["k"], first_and_last))
    assert [batch.to_pydict() for batch in found] == [
        {"k": [1, 1], "v": [0, 4999]},
        {"k": [2], "v": [0]},
        {"k": [3, 3], "v": [1, 1]},
    ]
    assert max(sizes) == 102


spans = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 21)).map(sorted), max_size=40)
