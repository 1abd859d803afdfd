"""Tables of parts: in the state, as an object, as a tree of blocks of which a read opens what it can need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.faulty import WrappedStore
from support.world import collection
from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.chunk.bounds import Bounds, TimelineBounds
from tidemark.model.chunk.hull import hull_of
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Envelope
from tidemark.model.interval import Interval
from tidemark.plan.read import at_rest, plan_as_of, plan_changes
from tidemark.plan.tasks import KeyRange
from tidemark.storage.sidecars import parts_table, sidecar
from tidemark.storage.sidecars.parts_table import PartsNode
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

pytestmark = pytest.mark.pure
GROUPS = 61
KEY = "data/b/parts-1.json"
DECLARED = collection(Envelope.APPEND)


class Counting(WrappedStore):
    """What is read, by its key, in bytes."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.seen: dict[str, int] = {}

    def read(self, key: str) -> bytes:
        data = self.inner.read(key)
        self.seen[key] = len(data)
        return data


def part(at: int, *, groups: int = 1, first: int | None = None, last: int | None = None, **more: Any) -> Part:
    """Of keys that follow those of the parts before it, or of others."""
    lowest = at * groups * 10 if first is None else first
    highest = lowest + groups * 10 - 1 if last is None else last
    keys = [((lowest + n * (highest - lowest) // groups,), 16_384) for n in range(groups)]
    file = ObjectRef(f"data/b/{at:032x}.parquet", 10_000_000 + at, f"{at:064x}")
    times = {"first_time": at, "last_time": at + 5, "first_event_time": at, "last_event_time": at + 9}
    return Part(file, 16_384 * groups, at, tuple(keys), (highest,), **{**times, **more})


def large(count: int) -> list[Part]:
    """Parts of full size, each with a day of a timeline of its own."""
    day = 86_400_000_000
    some = (part(at, groups=GROUPS, first=10**15 + at * 1000, last=10**15 + at * 1000 + 999) for at in range(count))
    return [
        replace(one, timelines=(TimelineBounds(3, at * day, at * day + day - 1, 0),)) for at, one in enumerate(some)
    ]


def state_of(table: ObjectRef | tuple[Part, ...], parts: Sequence[Part]) -> Arrangement:
    rows = sum(one.rows for one in parts)
    batch = TraceBatch("b", Description(0, 10**9), 0, rows, 10, 0, table, len(parts))
    return Arrangement(DECLARED, complete_below=10**9, seal=10**9, trace=(batch,))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_small_table_is_in_the_state(count: int):
    store = MemoryStore()
    some = tuple(part(at) for at in range(count))
    assert parts_table.save(store, KEY, some) == some
    assert parts_table.load(store, some) == some
    assert not store.objects
    if count:
        saved = parts_table.save_separately(store, KEY, some)
        assert (parts_table.load(store, saved), list(store.objects)) == (some, [KEY])


@pytest.mark.parametrize(("count", "objects"), [(25, 1), (35, 6), (400, 59)])
def test_a_table_of_more_than_64_kib_is_a_tree(count: int, objects: int):
    store, parts = MemoryStore(), large(count)
    table = parts_table.save(store, KEY, parts)
    assert isinstance(table, ObjectRef)
    assert table.key == KEY
    assert parts_table.load(store, table) == tuple(parts)
    assert len(store.objects) == objects
    assert all(len(data) <= 64 * 1024 for data in store.objects.values())
    named = [ref.key for ref in parts_table.objects(store, table)]
    assert sorted(named) == sorted({*store.objects, *(one.file.key for one in parts)})
    assert all(parts_table.is_one(ref) for ref in parts_table.objects(store, table) if ref.key.endswith(".json"))


def test_a_planner_over_100_000_row_groups_reads_little_for_a_narrow_question():
    """One key, or one hour of knowledge: at most 100 KB of 3.8 MB, and every part that can matter."""
    store, parts = Counting(MemoryStore()), large(1_640)
    table = parts_table.save(store, KEY, parts)
    assert isinstance(table, ObjectRef)
    assert sum(len(one.groups) for one in parts) > 100_000
    whole = sum(map(len, store.inner.objects.values()))  # type: ignore[attr-defined]
    assert whole > 3_000_000
    state = state_of(table, parts)
    for at in (0, 7, 819, 1_639):
        one = parts[at]
        key = KeyRange(one.first_key, (one.first_key[0] + 1,))
        for request in (plan_as_of(state, keys=key), plan_changes(state, at, at + 1)):
            store.seen.clear()
            request, found = parts_table.opened_read(store, request)
            assert one in [some for each in at_rest(request, found) for some in each.parts]
            assert sum(store.seen.values()) <= 100_000, store.seen
            assert len(store.seen) <= 5
    for at, day in ((5, 5 * 86_400_000_000), (1_000, 1_000 * 86_400_000_000)):
        store.seen.clear()
        some = parts_table.load_some(
            store, table, lambda hull, day=day: _meets(hull.bounds_of(3), day, day + 3_600_000_000)
        )
        assert parts[at] in some
        assert sum(store.seen.values()) <= 100_000


def _meets(bounds: Bounds | None, lower: int, upper: int) -> bool:
    return Span(3, ((lower, upper),)).meets(bounds)


def test_a_read_of_everything_reads_each_block_once():
    store, parts = Counting(MemoryStore()), large(60)
    table = parts_table.save(store, KEY, parts)
    _, found = parts_table.opened_read(store, plan_as_of(state_of(table, parts)))  # type: ignore[arg-type]
    assert found["b"] == tuple(parts)
    assert len(store.seen) == len(store.inner.objects)  # type: ignore[attr-defined]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part has a leaf of its own, and nodes have two children."""
    for name, value in (("SMALL", 0), ("WHOLE", 0), ("LEAF", 1), ("FAN_OUT", 2)):
        monkeypatch.setattr(parts_table, name, value)


TIMES = st.integers(0, 12)
SPANS = st.tuples(TIMES, TIMES).map(sorted)


@st.composite
def some_parts(draw: st.DrawFn) -> list[Part]:
    parts = []
    for at in range(draw(st.integers(1, 9))):
        (first, last), (low, high), (early, late) = draw(SPANS), draw(SPANS), draw(SPANS)
        bounds = draw(st.lists(st.sampled_from([2, 3]), unique=True))
        kept = [
            TimelineBounds(number, *draw(st.one_of(SPANS.map(tuple), st.just((None, None)))), 0) for number in bounds
        ]
        times = {"first_time": low, "last_time": high, "first_event_time": early, "last_event_time": late}
        one = part(at, first=first, last=last, cancels=draw(st.booleans()), **times)
        parts.append(replace(one, timelines=tuple(kept)))
    return parts


@settings(deadline=None, max_examples=150)
@given(some_parts(), SPANS, SPANS, st.booleans(), TIMES, st.integers(0, 3))
def test_no_block_is_passed_over_that_has_a_part_the_read_takes(
    parts: list[Part], keys: list[int], times: list[int], sums: bool, happened: int, event_from: int
):
    """Whatever the parts, the tasks of a read are those that the whole table gives."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("SMALL", 0), ("WHOLE", 0), ("LEAF", 1), ("FAN_OUT", 2)):
            patch.setattr(parts_table, name, value)
        store = MemoryStore()
        table = parts_table.save_separately(store, KEY, parts)
        lower, upper = (None if sums else (keys[0],)), (keys[1] + 1,)
        for source in (table, tuple(parts)):
            state = state_of(source, parts)
            request = plan_as_of(state, times[1], happened) if sums else plan_changes(state, times[0], times[1])
            request = replace(request, keys=KeyRange(lower, upper), event_from=event_from)
            opened, found = parts_table.opened_read(store, request)
            answer = [some.parts for some in at_rest(opened, found)]
            if source is table:
                by_blocks = answer
        assert by_blocks == answer


@settings(deadline=None, max_examples=150)
@given(some_parts(), SPANS)
def test_a_hull_has_all_that_its_parts_have(parts: list[Part], span: list[int]):
    hull = hull_of(parts, parts=len(parts), bytes=1)
    assert hull.rows == sum(one.rows for one in parts)
    for one in parts:
        assert hull.first_key <= one.first_key <= one.last_key <= hull.last_key
        assert hull.first_time <= one.first_time <= one.last_time <= hull.last_time
        for number in (2, 3):
            taken = _meets(one.bounds_of(number), *span)
            assert not taken or _meets(hull.bounds_of(number), *span)


def test_a_timeline_that_one_part_says_nothing_of_is_not_known_of_the_hull():
    one = replace(part(1), timelines=(TimelineBounds(2, 1, 2, 0), TimelineBounds(3, None, None, 4)))
    other = replace(part(2), timelines=(TimelineBounds(3, 5, 6, 1),))
    hull = hull_of([one, other], parts=2, bytes=1)
    assert (hull.bounds_of(2), hull.bounds_of(3)) == (None, Bounds(5, 6, 5))


NARROWER: dict[str, Any] = {
    "last_key": (0,),
    "first_time": 99,
    "last_event_time": 0,
    "rows": 1,
    "timelines": (TimelineBounds(3, 1, 1, 0),),
}


@pytest.mark.parametrize("field", NARROWER)
def test_a_hull_that_is_not_that_of_its_parts_is_corruption(field: str):
    """A hull that is too narrow would hide parts: whoever opens the block sees it."""
    store = MemoryStore()
    table = parts_table.save(store, KEY, large(40))
    assert isinstance(table, ObjectRef)
    root = parts_table.open_block(store, table)
    assert isinstance(root, PartsNode)
    wrong = replace(root.blocks[1], hull=replace(root.blocks[1].hull, **{field: NARROWER[field]}))
    narrowed = sidecar.write(store, "data/b/parts-2.json", replace(root, blocks=(root.blocks[0], wrong)))
    with pytest.raises(Corruption, match=f"{wrong.object.key} has parts of .*, recorded were"):
        parts_table.load(store, narrowed)


def test_a_block_that_is_gone_or_altered_is_named(tiny: None):
    parts = [part(at) for at in range(3)]
    for damage in ("gone", "altered"):
        store = MemoryStore()
        table = parts_table.save(store, KEY, parts)
        assert isinstance(table, ObjectRef)
        assert len(store.objects) == 6
        leaf = "data/b/parts-1-00002.json"
        data = store.objects.pop(leaf)
        if damage == "altered":
            store.objects[leaf] = data[:-2] + b" ]"
        with pytest.raises(Corruption, match=leaf):
            parts_table.load(store, table)


def test_unsealed_batches_of_updates_are_opened_where_they_can_matter(tiny: None):
    store, parts = Counting(MemoryStore()), [part(at) for at in range(8)]
    table = parts_table.save(store, KEY, parts)
    batch = UnsealedBatch("b", Interval(0, 20), table, 8, 8, 8, 0, 0, 13, 0, 17)
    state = Arrangement(DECLARED, complete_below=20, seal=20, unsealed=(batch,))
    request, found = parts_table.opened_read(store, plan_as_of(state, keys=KeyRange((30,), (31,))))
    assert found == {"b": (parts[3],)}
    assert [some.parts for some in at_rest(request, found)] == [(), (parts[3],)]
