"""Parts that a read answers with as they are, and the merge of all others, give the answer of the merge of all.

What Spark's reader makes of such a part is done here by Arrow: the rows within the bounds, shown as they are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import KEYED, SMALL, of_facts, of_updates, rows, values, write
from tests.pure.arrow.test_read import ADDED, fact_cases, frontiers, unsealed
from tests.pure.arrow.test_resolve import by_the_model
from tests.support.budget import examples, laws
from tests.support.reading import as_of, changes
from tidemark.arrow.kernels.merge import merge_range
from tidemark.arrow.parts.reader import read_groups
from tidemark.arrow.read import as_of_schema, changes_of, changes_schema, rows_as_of
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, updates_schema
from tidemark.errors import InvalidUsage
from tidemark.model import update as model
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, TraceBatch
from tidemark.model.collection import Collection, ColumnType, Late
from tidemark.model.evolution import evolved
from tidemark.model.fact import Fact
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import MAX_TIME
from tidemark.model.update import Row, Update
from tidemark.plan.read import ReadRequest, plan_as_of, plan_changes, read_tasks, read_tasks_within
from tidemark.plan.tasks import KeyRange, MergeTask
from tidemark.plan.unmerged import unmerged
from tidemark.storage.sidecars.parts_table import opened_read
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


def split_answer(
    store: MemoryStore,
    request: ReadRequest,
    *,
    net: bool | None,
    columns: list[str] | None = None,
    ranges: Sequence[KeyRange] = (),
) -> tuple[list[Row], int]:
    """The rows of as_of (`net` None) or changes, sorted, and how many of them came from parts as they are."""
    request, parts = opened_read(store, request)
    of, times = request.collection, net is False
    plain = unmerged(request, parts, times=times, ranges=ranges)
    found: list[Row] = []
    for some in plain:
        for part in some.parts:
            for batch in read_groups(store, part, schema=updates_schema(of)):
                found += _as_it_is(batch, request, some.after, net, columns)
    count = len(found)
    but = {part.file.key for some in plain for part in some.parts}
    if ranges:
        tasks = read_tasks_within(request, parts, ranges, target_rows=8, but=but)
    else:
        tasks = read_tasks(request, parts, target_rows=8, but=but)
    for task in tasks:
        batches = rows_as_of(store, task, columns) if net is None else changes_of(store, task, net=net, columns=columns)
        found += [row for batch in batches for row in rows(batch)]
    return sorted(found, key=repr), count


def _as_it_is(
    batch: pa.RecordBatch, request: ReadRequest, after: int, net: bool | None, columns: list[str] | None
) -> list[Row]:
    time, happened, diffs = (integers(batch, name) for name in (TIME, EVENT_TIME, DIFF))
    inside = (time > after) & (time <= request.upto) & (happened <= request.event_upto)
    names = [column.name for column in request.collection.columns] if columns is None else columns
    arrays = [batch.column(name) for name in names]
    if net is not None:
        arrays.append(pa.array(["insert" if diff > 0 else "delete" for diff in diffs.tolist()]))
    if net is False:
        arrays += [batch.column(TIME), batch.column(TIME), batch.column(EVENT_TIME)]
    arrays.append(batch.column(DIFF))
    answer = pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])
    return rows(answer.filter(pa.array(inside)))


RANGES = (KeyRange((1,), (2,)), KeyRange((3,), (5,)), KeyRange((8,), None))


def within(row: Row, keys: KeyRange) -> bool:
    assert keys.lower is not None
    return row[:1] >= keys.lower and (keys.upper is None or row[:1] < keys.upper)


def checked(store: MemoryStore, state: Arrangement, time: int, event_time: int, after: int) -> int:
    """Each read answers alike in both ways; how many rows came from parts as they are."""
    plain = 0
    for at, happened in ((time, event_time), (state.seal - 1, MAX_TIME)):
        found, count = split_answer(store, plan_as_of(state, at, happened), net=None)
        whole = sorted(rows(as_of(store, state, time=at, event_time=happened)), key=repr)
        assert found == whole
        some, _ = split_answer(store, plan_as_of(state, at, happened), net=None, ranges=RANGES)
        assert some == [row for row in whole if any(within(row, keys) for keys in RANGES)]
        plain += count
    for start, upto in (sorted((after, time)), (after, state.seal - 1)):
        for net in (False, True):
            found, count = split_answer(store, plan_changes(state, start, upto), net=net)
            whole = rows(changes(store, state, after=start, upto=upto, net=net))
            assert found == sorted(whole, key=repr), (start, upto, net)
            plain += count
    return plain


def trace(store: MemoryStore, of: Collection, description: Description, some: Iterable[Update]) -> TraceBatch:
    """A trace batch of what is due, in parts so small that keys straddle them."""
    inside = [u for u in some if description.lower <= u.time < description.upper]
    moved = model.consolidate(model.advance(inside, description.function))
    parts = write(store, of, of_updates(of, moved), part_rows=2, group_rows=1)
    return TraceBatch(f"t{description.lower}", description, 0, len(moved), 0, 0, parts or None, len(parts))


many_keys = st.builds(Update, st.tuples(st.integers(0, 9)), values(SMALL), *[st.integers(0, 5)] * 2, st.integers(-1, 2))


@examples(100)
@example([Update((1,), ("a",), 1, 1, 1)] * 2, [0, 0, 0, 5], 4, 0, 4, True)
@given(st.lists(many_keys, max_size=24), frontiers, *(st.integers(0, 12) for _ in range(3)), st.booleans())
def test_updates(some: list[Update], at: list[int], time: int, after: int, event_time: int, one_ingest: bool) -> None:
    since, cut, upper, seal = at
    store = MemoryStore()
    bounds = [(0, cut, since), (cut, upper, 0)]
    trace_batches = [
        trace(store, SMALL, Description(lower, middle, s), some) for lower, middle, s in bounds if lower < middle
    ]
    rest = [of_updates(SMALL, [u for u in some if u.time >= upper][n::2]) for n in (0, 1)]
    waiting = [write(store, SMALL, few, part_rows=2, group_rows=1, records_consolidated=True) for few in rest]
    # Either two ingests, or the files of one, in tasks of their own.
    if one_ingest:
        waiting = [tuple(part for parts in waiting for part in parts)]
    batches = [unsealed(store, f"u{n}", n, parts) for n, parts in enumerate(waiting) if parts]
    state = Arrangement(
        SMALL, complete_below=seal, seal=seal, since=since, trace=tuple(trace_batches), unsealed=tuple(batches)
    )
    time, after = (min(max(one, since), seal - 1) for one in (time, after))
    event("some as they are" if checked(store, state, time, max(event_time, since), after) else "all merged")


@laws
@given(fact_cases(9), *(st.integers(0, 10) for _ in range(3)))
def test_facts(case: tuple[list[Fact], list[int]], time: int, event_time: int, after: int) -> None:
    facts, (since, upper, seal) = case
    of = relanded(KEYED, late=Late("reemit"))
    everything = by_the_model([], facts)
    store = MemoryStore()
    waiting = [write(store, of, of_facts(of, some), facts=True) for some in (facts[::2], facts[1::2])]
    batches = [unsealed(store, f"u{n}", n, parts) for n, parts in enumerate(waiting) if parts]
    horizon = min([since, *(batch.first_event_time for batch in batches if batch.last_time >= upper)])
    bounds = [(0, upper // 2), (upper // 2, upper)]
    trace_batches = [trace(store, of, Description(lo, up, horizon), everything) for lo, up in bounds if lo < up]
    state = Arrangement(
        of, complete_below=seal, seal=seal, since=since, trace=tuple(trace_batches), unsealed=tuple(batches)
    )
    time, after = (min(max(one, since), seal - 1) for one in (time, after))
    event("some as they are" if checked(store, state, time, max(event_time, since), after) else "all merged")


def loaded(
    of: Collection, *, upto: int, changed: Iterable[int] = (), since: int = 0
) -> tuple[MemoryStore, Arrangement]:
    """Keys below `upto` came at one instant, in parts of 9; later some were changed, which is a batch of its own."""
    store = MemoryStore()
    value = tuple("a" if column.type is ColumnType.STRING else 0.5 for column in of.value)
    other = ("b", *value[1:])
    first = [Update((key,), value, 3, 3, 1) for key in range(upto)]
    later = [Update((key,), some, 12, 12, diff) for key in changed for some, diff in ((value, -1), (other, 1))]
    trace_batches = []
    for lower, some in ((0, first), (10, later)):
        if parts := write(store, of, of_updates(of, some)):
            description = Description(lower, lower + 10, since)
            trace_batches.append(TraceBatch(f"t{lower}", description, 0, len(some), 0, 0, parts, len(parts)))
    return store, Arrangement(of, complete_below=20, seal=20, since=since, trace=tuple(trace_batches))


@pytest.mark.parametrize("of", [SMALL, KEYED], ids=["additive", "keyed"])
def test_keys_that_came_in_order_leave_whole_parts_alone(of: Collection) -> None:
    """Of three parts the last was touched; a touched key at either end of it would not matter."""
    store, state = loaded(of, upto=27, changed=range(18, 22))
    assert split_answer(store, plan_as_of(state), net=None)[1] == 18
    assert split_answer(store, plan_as_of(state, 11), net=None)[1] == 27, "what changed later is not read"
    assert split_answer(store, plan_changes(state, -1), net=False)[1] == 18
    assert split_answer(store, plan_changes(state, 5), net=True)[1] == (0 if of is KEYED else 8)
    assert checked(store, state, 11, 19, 5) == (45 if of is KEYED else 61)
    store, state = loaded(of, upto=27, changed=[0, 26])
    assert split_answer(store, plan_as_of(state), net=None)[1] == 0, "its one part spans all keys"


def test_current_rows_are_read_as_they_are_once_what_cancels_is_separate() -> None:
    """Of three values a key had two; the second came back. Before the merge each key has a retraction."""
    store = MemoryStore()
    some = [
        Update((key,), (value, 0.5), at, at, diff)
        for key in range(20)
        for value, at, diff in (("a", 1, 1), ("a", 3, -1), ("b", 3, 1), ("b", 5, -1), ("a", 5, 1))
    ]
    before = trace(store, KEYED, Description(0, 20), some)
    state = Arrangement(KEYED, complete_below=20, seal=20, trace=(before,))
    assert split_answer(store, plan_as_of(state), net=None)[1] == 0
    assert isinstance(before.parts, tuple)
    asked = MergeTask(KEYED, before.parts, KeyRange(), 0, 20, CompactionFunction(0), "out", separate_upto=20)
    parts = merge_range(store, asked).parts
    after = replace(state, trace=(replace(before, id="separated", parts=parts, part_count=len(parts)),))
    found, plain = split_answer(store, plan_as_of(after), net=None)
    assert (found, plain) == (sorted(rows(as_of(store, state)), key=repr), 20)
    assert checked(store, after, 4, 4, 2) == 20, "but for the past"


def test_times_shown_otherwise_than_they_are_stored_are_not_read_as_they_are() -> None:
    """Since has moved on and no compaction has come by: event times are shown as since."""
    store, state = loaded(SMALL, upto=9)
    moved = replace(state, since=5)
    assert split_answer(store, plan_changes(state, -1), net=False)[1] == 9
    assert split_answer(store, plan_changes(moved, 5), net=False)[1] == 0
    assert split_answer(store, plan_as_of(moved), net=None)[1] == 9
    checked(store, moved, 7, 19, 5)


def test_columns_that_changed_are_not_read_as_they_are() -> None:
    store, state = loaded(SMALL, upto=9)
    today = replace(state, collection=evolved(SMALL, replace(SMALL, value=(*SMALL.value, ADDED))))
    assert split_answer(store, plan_as_of(today), net=None)[1] == 0
    assert checked(store, today, 7, 19, 5) == 0
    without = replace(state, collection=evolved(SMALL, replace(SMALL, value=())))
    assert checked(store, without, 7, 19, 5) == 0


@pytest.mark.parametrize("of", [SMALL, KEYED], ids=["additive", "keyed"])
@pytest.mark.parametrize("columns", [["word"], ["word", "number"], ["number"]], ids=str)
def test_some_columns_are_those_of_the_whole_answer(of: Collection, columns: list[str]) -> None:
    """Of rows that differ in others, too: equal ones may come several times, and add up to their multiplicity."""

    def added_up(some: Iterable[Row]) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for row in some:  # columns, what sort of change if it is one, times if shown, how many
            found[(*row[: len(columns)], *row[len(columns) + 1 : -1])] += row[-1]
        return Counter({row: count for row, count in found.items() if count})

    store, state = loaded(of, upto=27, changed=range(18, 22))
    for of_whole, request, net in (
        (as_of(store, state), plan_as_of(state), None),
        (changes(store, state, after=-1), plan_changes(state, -1), False),
        (changes(store, state, after=5, net=True), plan_changes(state, 5), True),
    ):
        own = of_whole.schema.names[len(of.columns) :]
        found, _ = split_answer(store, request, net=net, columns=columns)
        whole = rows(of_whole.select([*columns, *own]))
        assert added_up(found) == added_up(whole)
        if set(columns) == {"number", "word"}:  # what changed, and the key: each row is shown by itself
            assert found == sorted(whole, key=repr)


def test_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(InvalidUsage, match="sample has no column wrod; did you mean 'word'"):
        as_of_schema(SMALL, ["number", "wrod"])
    with pytest.raises(InvalidUsage, match="named twice"):
        changes_schema(SMALL, net=True, columns=["word", "word"])
    with pytest.raises(InvalidUsage, match="columns is empty"):
        as_of_schema(SMALL, [])
