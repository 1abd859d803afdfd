"""The reader without a JVM, against the model's as-of and changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import (
    APPEND,
    KEY,
    KEYED,
    KEYED_BY_ALL,
    NULLABLE,
    SMALL,
    collection,
    of_facts,
    of_updates,
    rows,
    updates,
    values,
    write,
)
from tests.pure.arrow.test_resolve import by_the_model
from tests.support.budget import budget, laws
from tests.support.reading import as_of, as_of_batches, changes, changes_batches
from tidemark.arrow import runs
from tidemark.arrow.kernels import merge
from tidemark.arrow.read import changes_of, rows_as_of
from tidemark.errors import InvalidUsage
from tidemark.model import update as model
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late
from tidemark.model.evolution import evolved
from tidemark.model.fact import Fact
from tidemark.model.interval import Interval
from tidemark.model.update import Row, Update
from tidemark.plan.read import plan_as_of, plan_changes, read_tasks
from tidemark.plan.tasks import KeyRange
from tidemark.storage.sidecars import parts_table
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


def trace(
    store: MemoryStore, of: Collection, name: str, description: Description, some: Iterable[Update]
) -> TraceBatch:
    inside = [u for u in some if description.lower <= u.time < description.upper]
    moved = model.consolidate(model.advance(inside, description.function))
    parts = write(store, of, of_updates(of, moved))
    ref = parts_table.save(store, f"{name}.json", parts) if parts else None
    return TraceBatch(name, description, 0, sum(p.rows for p in parts), 0, 0, ref, len(parts))


def unsealed(store: MemoryStore, name: str, sequence: int, parts: tuple[Part, ...]) -> UnsealedBatch:
    return UnsealedBatch(
        name,
        Interval(0, 1),
        parts_table.save(store, f"{name}.json", parts),
        len(parts),
        sum(part.rows for part in parts),
        1,
        0,
        min(part.first_time for part in parts),
        max(part.last_time for part in parts),
        min(part.first_event_time for part in parts),
        max(part.last_event_time for part in parts),
        (sequence, sequence + 1),
    )


def arranged(store: MemoryStore, of: Collection, some: list[Update], at: Sequence[int]) -> Arrangement:
    """Two trace batches, of which the older is moved up to since, and the rest unsealed in two batches, as it came.

    `at` are since, the time at which the trace batches meet, the trace upper and the seal.
    """
    since, cut, upper, seal = at
    bounds = [(0, cut, since), (cut, upper, 0)]
    trace_batches = [trace(store, of, f"t{lo}", Description(lo, up, s), some) for lo, up, s in bounds if lo < up]
    rest = [u for u in some if u.time >= upper]
    waiting = [write(store, of, of_updates(of, part)) for part in (rest[::2], rest[1::2])]
    batches = [unsealed(store, f"u{n}", n, parts) for n, parts in enumerate(waiting) if parts]
    return Arrangement(
        of, complete_below=seal, seal=seal, since=since, trace=tuple(trace_batches), unsealed=tuple(batches)
    )


def current_rows(table: pa.Table, of: Collection) -> list[tuple[Row, Row, int]]:
    width = len(of.key)
    return [(row[:width], row[width:-1], row[-1]) for row in rows(table)]  # type: ignore[misc]


frontiers = st.tuples(*(st.integers(0, 12) for _ in range(4))).map(sorted).filter(lambda f: f[3] > f[0])


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """So little that groups and keys straddle what is in memory."""
    monkeypatch.setattr(runs, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "BUFFERED_ROWS", 8)
    monkeypatch.setattr(merge, "PIECE_BYTES", 200)


@pytest.mark.parametrize(
    "of", [SMALL, APPEND, KEYED_BY_ALL, NULLABLE], ids=["small", "all types", "keys of exact types", "keys of nulls"]
)
def test_reads_agree_with_the_model(of: Collection) -> None:
    @laws
    @given(updates(of, most=20), frontiers, st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
    def check(some: list[Update], at: list[int], time: int, after: int, event_time: int) -> None:
        since, _, _, seal = at
        time, after, event_time = (
            min(max(time, since), seal - 1),
            min(max(after, since), seal - 1),
            max(event_time, since),
        )
        store = MemoryStore()
        state = arranged(store, of, some, at)
        best = 2**63 - 1
        assert current_rows(as_of(store, state, time=time), of) == model.as_of(some, time=time, event_time=best)
        assert current_rows(as_of(store, state), of) == model.as_of(some, time=seal - 1, event_time=best)
        found = as_of(store, state, time=time, event_time=event_time)
        assert current_rows(found, of) == model.as_of(some, time=time, event_time=event_time)
        after, upto = sorted((after, time))
        expected = model.changes(model.advance(some, state.function), after=after, upto=upto)
        assert changed(changes(store, state, after=after, upto=upto), of) == expected
        net = rows(changes(store, state, after=after, upto=upto, net=True))
        inside = [u._replace(time=0, event_time=0) for u in some if after < u.time <= upto]
        summed = [((*u.key, *u.value), kind(u.diff), u.diff) for u in model.consolidate(inside)]
        assert [(row[:-2], row[-2], row[-1]) for row in net] == summed

    check()


THREE = collection(
    Envelope.UPDATES,
    key=KEY[:1],
    value=tuple(Column(f"a_{of}", of) for of in (ColumnType.BOOL, ColumnType.STRING, ColumnType.DATE)),
)
ADDED = Column("added", ColumnType.FLOAT)


@pytest.mark.parametrize("kept", [(1, 2), (0, 2), (0, 1), (2,), ()], ids=str)
def test_reads_under_todays_columns_agree_with_the_model(kept: tuple[int, ...]) -> None:
    """Columns were dropped before, between and behind others, the last got wider, and one came: in order, and summed up
    again, also where groups straddle what is in memory."""
    value = [THREE.value[at] if at < 2 else replace(THREE.value[at], type=ColumnType.TIMESTAMP) for at in kept]
    today = evolved(THREE, replace(THREE, value=(ADDED, *value)))
    day = 86_400_000_000

    def seen(u: Update) -> Update:
        cells = [u.value[at] if at < 2 or u.value[at] is None else u.value[at] * day for at in kept]  # type: ignore[operator]
        return u._replace(value=(*cells, None))

    @settings(laws, max_examples=budget(ci=8, deep=50))
    @given(updates(THREE, most=30), frontiers, st.integers(0, 12), st.integers(0, 12))
    def check(some: list[Update], at: list[int], time: int, after: int) -> None:
        since, _, _, seal = at
        time, after = (min(max(one, since), seal - 1) for one in (time, after))
        store = MemoryStore()
        state = replace(arranged(store, THREE, some, at), collection=today)
        visible = [seen(u) for u in some]
        assert current_rows(as_of(store, state, time=time), today) == model.as_of(
            visible, time=time, event_time=2**63 - 1
        )
        after, upto = sorted((after, time))
        expected = model.changes(model.advance(visible, state.function), after=after, upto=upto)
        assert changed(changes(store, state, after=after, upto=upto), today) == expected
        net = changes(store, state, after=after, upto=upto, net=True)
        inside = [u._replace(time=0, event_time=0) for u in visible if after < u.time <= upto]
        assert [row[: len(today.columns)] for row in rows(net)] == [
            (*u.key, *u.value) for u in model.consolidate(inside)
        ]

    check()


def kind(diff: int) -> str:
    return "insert" if diff > 0 else "delete"


def changed(table: pa.Table, of: Collection) -> list[Update]:
    """The rows as updates; what is said twice must agree."""
    width, end = len(of.key), len(of.columns)
    found = []
    for row in rows(table):
        change_type, version, timestamp, event_time, diff = row[end:]
        assert isinstance(diff, int)
        assert change_type == kind(diff)
        assert timestamp == version
        found.append(Update(row[:width], row[width:end], version, event_time, diff))  # type: ignore[arg-type]
    return found


def test_the_columns_are_those_of_spark_changes() -> None:
    store = MemoryStore()
    state = arranged(store, SMALL, [Update((1,), ("a",), 3, 2, 2)], (0, 1, 4, 5))
    (row,) = changes(store, state, after=-1).to_pylist()
    assert row == {
        "number": 1,
        "word": "a",
        "_change_type": "insert",
        "_commit_version": 3,
        "_commit_timestamp": datetime(1970, 1, 1, 0, 0, 0, 3, tzinfo=UTC),
        "_event_time": 2,
        "diff": 2,
    }
    assert changes(store, state, after=3).num_rows == 0
    assert changes(store, state, after=3).schema == changes(store, state, after=-1).schema
    assert as_of(store, state, time=2).schema == as_of(store, state).schema
    assert as_of(store, state).to_pylist() == [{"number": 1, "word": "a", "_multiplicity": 2}]


@pytest.mark.parametrize(
    "read_it",
    [
        lambda store, state: as_of(store, state, time=10_000_000),
        lambda store, state: as_of(store, state, time=999_999),
        lambda store, state: as_of(store, state, event_time=999_999),
        lambda store, state: changes(store, state, after=999_999),
        lambda store, state: changes(store, state, after=1_000_000, upto=10_000_000),
    ],
)
def test_a_read_outside_since_and_seal_is_refused(read_it: Callable[[MemoryStore, Arrangement], object]) -> None:
    store = MemoryStore()
    state = arranged(store, SMALL, [Update((1,), ("a",), 3, 3, 1)], (1_000_000, 5_000_000, 10_000_000, 10_000_000))
    with pytest.raises(InvalidUsage, match="1970-01-01T00:00:01Z"):
        read_it(store, state)


def test_a_range_of_keys() -> None:
    store = MemoryStore()
    some = [Update((n,), (f"{n}",), n, n, 1) for n in range(40)]
    state = arranged(store, SMALL, some, (0, 10, 20, 40))
    found = as_of(store, state, keys=KeyRange((7,), (31,)))
    assert found["number"].to_pylist() == list(range(7, 31))


def test_answers_stream() -> None:
    store = MemoryStore()
    some = [Update((n,), ("w",), n % 10, n % 10, 1) for n in range(300)]
    state = arranged(store, SMALL, some, (0, 3, 6, 10))
    batches = list(as_of_batches(store, state))
    assert sum(batch.num_rows for batch in batches) == 300
    assert max(batch.num_rows for batch in batches) <= 30
    assert max(batch.num_rows for batch in changes_batches(store, state, after=-1)) <= 30


@st.composite
def fact_cases(draw: st.DrawFn, last_key: int = 2) -> tuple[list[Fact], list[int]]:
    since, upper, seal = sorted(draw(st.lists(st.integers(0, 10), min_size=3, max_size=3)))
    time = st.integers(0, 10)
    facts = []
    for row in range(draw(st.integers(0, 12))):
        learned, happened = draw(time), draw(time)
        # Nothing is ingested that happened below `since`, once what is below the trace upper is drained.
        happened = max(happened, since) if learned >= upper else happened
        value = draw(st.one_of(st.none(), values(KEYED)))
        facts.append(Fact((draw(st.integers(0, last_key)),), value, learned, happened, (None, f"f{row % 2}", row)))
    return facts, [since, upper, max(seal, 1, since + 1)]


DRAINED_IN_PART = (
    [
        Fact((1,), None, 2, 2, (None, "f0", 0)),
        Fact((1,), (None, None), 0, 0, (None, "f1", 1)),
        Fact((0,), None, 0, 1, (None, "f0", 2)),
    ],
    [2, 2, 3],
)
"""A batch with a row below the trace upper, which happened below since: it holds the horizon there."""


@laws
@example(DRAINED_IN_PART, 0, 0)
@given(fact_cases(), st.integers(0, 10), st.integers(0, 10))
def test_facts_beyond_the_trace_are_read_by_the_law_of_the_drain(
    case: tuple[list[Fact], list[int]], time: int, event_time: int
) -> None:
    facts, (since, upper, seal) = case
    of = relanded(KEYED, late=Late("reemit"))
    time, event_time = min(max(time, since), seal - 1), max(event_time, since)
    everything = by_the_model([], facts)
    store = MemoryStore()
    waiting = [write(store, of, of_facts(of, some), facts=True) for some in (facts[::2], facts[1::2])]
    batches = [unsealed(store, f"u{n}", n, parts) for n, parts in enumerate(waiting) if parts]
    # No compaction forwards the trace beyond what facts to come are resolved against.
    horizon = min([since, *(batch.first_event_time for batch in batches if batch.last_time >= upper)])
    description = Description(0, upper, horizon) if upper else None
    trace_batches = (trace(store, of, "t", description, everything),) if description else ()
    state = Arrangement(of, complete_below=seal, seal=seal, since=since, trace=trace_batches, unsealed=tuple(batches))
    found = current_rows(as_of(store, state, time=time, event_time=event_time), of)
    assert found == model.as_of(everything, time=time, event_time=event_time)
    if since <= upper:
        learned = model.changes(model.advance(everything, state.function), after=since, upto=seal - 1)
        table = changes(store, state, after=since)
        check_images(table, learned)


@settings(laws, max_examples=10)
@given(updates(SMALL, most=20), frontiers)
def test_a_read_cut_into_ranges_of_keys_answers_as_one(some: list[Update], at: list[int]) -> None:
    store = MemoryStore()
    state = arranged(store, SMALL, some, at)
    tasks = read_tasks(*opened_read(store, plan_as_of(state)), target_rows=8)
    whole = as_of(store, state)
    assert whole == pa.Table.from_batches([r for task in tasks for r in rows_as_of(store, task)], schema=whole.schema)
    in_ranges = [
        row
        for task in tasks
        for batch in rows_as_of(store, task, event_times=True)
        for row in rows(pa.Table.from_batches([batch]))
    ]
    happened = [u._replace(time=0) for u in model.advance(some, state.function) if u.time < state.seal]
    assert in_ranges == [(*u.key, *u.value, u.event_time, u.diff) for u in model.consolidate(happened)]
    first, last = state.since, state.since + 3
    near = replace(plan_as_of(state), event_from=first, event_upto=last)
    some_of = read_tasks(*opened_read(store, near))
    found = [row for task in some_of for batch in rows_as_of(store, task, event_times=True) for row in rows(batch)]
    assert [row for row in found if row[-2] >= first] == [row for row in in_ranges if first <= row[-2] <= last]
    request = opened_read(store, plan_changes(state, at[0]))
    batches = [r for task in read_tasks(*request, target_rows=8) for r in changes_of(store, task, net=False)]
    whole = changes(store, state, after=at[0])
    assert whole == pa.Table.from_batches(batches, schema=whole.schema)


def check_images(table: pa.Table, learned: list[Update]) -> None:
    """Pre- and postimage exactly where, at one time and event time, one value of the key replaces one other."""
    together: dict[tuple[Row, int, int], list[int]] = defaultdict(list)
    for u in learned:
        together[u.key, u.time, u.event_time].append(u.diff)
    expected = []
    for u in learned:
        replaced = sorted(together[u.key, u.time, u.event_time]) == [-1, 1]
        image = "update_postimage" if u.diff > 0 else "update_preimage"
        expected.append((*u.key, *u.value, image if replaced else kind(u.diff), u.time, u.time, u.event_time, u.diff))
    assert rows(table) == expected


def test_net_changes_of_a_key_are_one_replacement() -> None:
    of = KEYED
    store = MemoryStore()
    said = [Fact((1,), (word, 0.5), t, t, (None, "f", t)) for t, word in enumerate(["a", "b", "c"], 1)]
    state = Arrangement(
        of,
        complete_below=9,
        seal=9,
        unsealed=(unsealed(store, "u", 0, write(store, of, of_facts(of, said), facts=True)),),
    )
    net = changes(store, state, after=1, net=True)
    assert rows(net) == [(1, "a", 0.5, "update_preimage", -1), (1, "c", 0.5, "update_postimage", 1)]
    assert net.schema.names == ["number", "word", "x", "_change_type", "diff"]
