"""The point-in-time join, against a search through all rows for each probe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.pure.arrow.latest_oracle import TIMELINES, Below, latest, readings, some_updates
from tests.pure.arrow.samples import array, rows
from tests.pure.arrow.test_read import arranged, frontiers
from tests.support.budget import budget, laws
from tidemark.arrow import point_in_time, runs
from tidemark.arrow.kernels import merge
from tidemark.arrow.point_in_time import Join, joined_to, value_fields
from tidemark.arrow.rows.probes import Asking, Wanted, probes_of
from tidemark.arrow.rows.schema import arrow_type
from tidemark.arrow.winners import Latest
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import ColumnType
from tidemark.model.update import Update
from tidemark.plan.latest import plan_known
from tidemark.plan.read import plan_as_of, read_tasks
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure
INSTANT = pa.timestamp("us", "UTC")
Probe = tuple[int | None, int | None, int | None]
"""A key, a time, and what was known then."""


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little that keys straddle what is in memory, and probes what is put together at once."""
    for module in (runs, merge):
        monkeypatch.setattr(module, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "PIECE_BYTES", 200)
    monkeypatch.setattr(point_in_time, "PIECE_ROWS", 7)


def table_of(probes: Sequence[Probe], timeline: ColumnType) -> pa.Table:
    keys, times, known = zip(*probes, strict=True) if probes else ((), (), ())
    columns = {"number": array(keys, pa.int64()), "when": array(times, arrow_type(timeline))}
    return pa.table({**columns, "known": array(known, INSTANT), "id": pa.array(range(len(probes)), pa.int32())})


def asking(timeline: ColumnType, by_knowledge: bool) -> Asking:
    key = (Wanted("number", "the key", pa.int64()),)
    known = Wanted("known", "knowledge", INSTANT) if by_knowledge else None
    return Asking(key, Wanted("when", "the timeline", arrow_type(timeline)), known)


def answer(store: MemoryStore, state: Arrangement, table: pa.Table, of: Asking, join: Join) -> pa.Table:
    request = plan_known(state) if join.by_knowledge else plan_as_of(state)
    tasks = read_tasks(*opened_read(store, request))
    schema = pa.schema([*table.schema, *value_fields(state.collection, join.ask)])
    found = joined_to(store, tasks, table, probes_of(table, of), join, schema)
    return pa.Table.from_batches(found, schema=schema)


def probes(known: st.SearchStrategy[int]) -> st.SearchStrategy[list[Probe]]:
    """Few keys and times, so that many are equal; one key that is in no collection, and nulls."""
    one = st.tuples(
        st.sampled_from([None, 0, 1, 2, 3, 9]), st.sampled_from([None, -2, 0, 1, 2, 3, 4, 7]), st.none() | known
    )
    return st.lists(one, max_size=25)


@pytest.mark.parametrize("timeline", TIMELINES)
@pytest.mark.parametrize("by_knowledge", [False, True])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("least_diff", [0, -1])
def test_it_is_what_a_search_for_each_probe_finds(
    timeline: ColumnType, by_knowledge: bool, each: bool, least_diff: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_in_time, "MOST_KEYS", 1 if each else 100)  # keys one by one, or all between
    of = readings(timeline)
    names = st.lists(st.sampled_from([column.name for column in of.value]), max_size=2, unique=True)

    @settings(laws, max_examples=budget(ci=8, deep=50))
    @given(
        some_updates(40, least_diff=least_diff), frontiers, st.data(), st.sampled_from([None, 0, 1, 3, 2**70]), names
    )
    def check(some: list[Update], at: list[int], data: st.DataObject, within: int | None, ties: list[str]) -> None:
        since, _, _, seal = at
        asked = data.draw(probes(st.integers(since, seal - 1)))
        store = MemoryStore()
        state = arranged(store, of, some, at)
        join = Join(Latest("at", tuple(ties), ("x", "at", "word"), each), within, by_knowledge)
        # Rows are judged by the columns that are read, which end with the last one that the answer needs (0053).
        read = set(join.ask.read(of))
        seen = [column.name in read for column in of.value]
        as_read = [
            u._replace(
                time=max(u.time, since),
                value=tuple(cell if is_read else None for cell, is_read in zip(u.value, seen, strict=True)),
            )
            for u in some
        ]

        def expected(probe: Probe, value_of: str | None = None) -> dict[str, Any] | None:
            key, time, known = probe
            if key is None or time is None or (by_knowledge and known is None):
                return None
            upto = known if by_knowledge else seal - 1
            assert upto is not None
            return latest(as_read, of, (key,), time, within=within, known=upto, ties=ties, value_of=value_of)

        def wanted(place: int, probe: Probe) -> tuple[Any, ...]:
            row = expected(probe)
            cells: list[Any] = [*probe, place]
            for name in join.ask.shown:
                own = expected(probe, name) if each and name != "at" else row
                cells.append(None if own is None else own[name])
                cells += [None if own is None else own["at"]] if each and name != "at" else []
            return tuple(cells)

        table = table_of(asked, timeline)
        try:
            found = [wanted(place, probe) for place, probe in enumerate(asked)]
        except Below:
            event("below zero")
            with pytest.raises(InvalidUsage, match=r"a row of the key number=\d has a negative multiplicity"):
                answer(store, state, table, asking(timeline, by_knowledge), join)
            return
        event("some" if any(row[4] is not None for row in found) else "none")
        joined = answer(store, state, table, asking(timeline, by_knowledge), join)
        assert rows(joined) == found
        assert joined.schema.names[4:] == (["x", "x_at", "_at", "word", "word_at"] if each else ["x", "_at", "word"])

    check()


def test_many_probes_of_one_key_are_searched_and_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where most rows were not known yet: the levels of a tree are searched, not the rows before a probe."""
    monkeypatch.undo()
    of = readings(ColumnType.INT)
    many, count = 2_000, 200_000
    some = [Update((1,), ("a", at, None, None), many - at, many - at, 1) for at in range(many)]
    store = MemoryStore()
    state = arranged(store, of, some, (0, 0, many + 1, many + 1))
    rng = np.random.default_rng(7)
    times, known = rng.integers(-5, many + 5, count), rng.integers(0, many + 1, count)
    table = pa.table({"number": np.full(count, 1), "when": times, "known": pa.array(known).cast(INSTANT)})
    searches: list[int] = []
    searched = np.searchsorted

    def counted(ordered: Any, sought: Any, *more: Any) -> Any:
        searches.append(np.size(sought))
        return searched(ordered, sought, *more)

    monkeypatch.setattr(np, "searchsorted", counted)
    found = answer(
        store, state, table, asking(ColumnType.INT, True), Join(Latest("at", (), ("at",), False), None, True)
    )
    # Of rows up to `when` those are known that came at `known` or before: at many - known or later on the timeline.
    latest_row = np.minimum(times, many - 1)
    wanted = np.where((latest_row >= 0) & (latest_row >= many - known), latest_row, -1)
    assert (found["_at"].fill_null(-1).to_numpy() == wanted).all()
    levels = 2 * (many - 1).bit_length()
    assert count <= sum(searches) <= levels * count, "each probe is looked for a few times, however many rows there are"
