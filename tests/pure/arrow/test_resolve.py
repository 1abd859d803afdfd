"""Resolving facts, against the model's law over everything that was ever said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby, pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.arrow.samples import (
    EXACT,
    KEYED,
    as_updates,
    collection,
    keys,
    of_facts,
    of_updates,
    read,
    rows,
    values,
    write,
)
from tests.support.budget import laws
from tidemark.arrow.kernels.merge import Tally, merge_range
from tidemark.arrow.kernels.resolve import resolve_range, updates_from
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.order import sort_key_of
from tidemark.errors import Corruption
from tidemark.model import fact as model
from tidemark.model.batch import Part
from tidemark.model.collection import Envelope
from tidemark.model.fact import Fact
from tidemark.model.frontier import CompactionFunction
from tidemark.model.update import Row, Update, advance, consolidate, sort_key
from tidemark.plan.tasks import KeyRange, MergeTask, ResolveTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

ORDERED = relanded(
    collection(Envelope.UPSERT, key=EXACT[1:], value=KEYED.value), source=replace(KEYED.landed.source, order_by="x")
)
LAST = 9
EVERYTHING = KeyRange()


def by_the_model(known: Iterable[Fact], new: Iterable[Fact]) -> list[Update]:
    """The updates of all keys when every fact ever known is remembered."""
    found: list[Update] = []
    facts = sorted([*((f, False) for f in known), *((f, True) for f in new)], key=lambda one: one[0].key)  # type: ignore[arg-type,return-value]
    for _, group in groupby(facts, key=lambda one: one[0].key):
        some = [(replace(f, order=(sort_key_of(f.order[:1]), *f.order[1:])), is_new) for f, is_new in group]  # type: ignore[arg-type]
        found += model.resolve(None, [f for f, is_new in some if not is_new], [f for f, is_new in some if is_new])
    return sorted(found, key=sort_key)


class Said(NamedTuple):
    """Facts, and how far earlier drains and compactions have come."""

    facts: list[Fact]
    lower: int
    upper: int
    horizon: int
    since: int
    cut: int

    @property
    def known(self) -> list[Fact]:
        return [f for f in self.facts if f.time < self.lower]

    @property
    def new(self) -> list[Fact]:
        return [f for f in self.facts if self.lower <= f.time < self.upper]


@st.composite
def said(draw: st.DrawFn) -> Said:
    lower = draw(st.integers(0, LAST))
    upper = draw(st.integers(lower + 1, LAST + 1))
    horizon = draw(st.integers(0, LAST))
    time = st.integers(0, LAST)
    facts = []
    for row in range(draw(st.integers(0, 14))):
        learned, happened = draw(time), draw(time)
        order = (draw(st.sampled_from([None, float("nan"), 1.0, 2.0])), f"f{row % 2}", row)
        value = draw(st.one_of(st.none(), values(ORDERED)))
        # Nothing is ingested that happened below the horizon of what is drained already.
        happened = max(happened, horizon) if learned >= lower else happened
        facts.append(Fact(draw(keys(ORDERED, 2)), value, learned, happened, order))
    return Said(facts, lower, upper, horizon, draw(st.integers(0, horizon)), draw(st.integers(0, LAST)))


def trace_of(store: MemoryStore, case: Said) -> tuple[Part, ...]:
    """What the known facts resolved to: older batches behind `since`, younger ones as they were."""
    learned = by_the_model([], case.known)
    older = consolidate(advance([u for u in learned if u.time < case.cut], CompactionFunction(case.since)))
    younger = [u for u in learned if u.time >= case.cut]
    return tuple(part for some in (older, younger) for part in write(store, ORDERED, of_updates(ORDERED, some)))


def task_of(store: MemoryStore, case: Said, batches: int = 1, keys: KeyRange = EVERYTHING) -> ResolveTask:
    tables = [of_facts(ORDERED, case.facts[at::batches]) for at in range(batches)]
    facts = tuple(part for table in tables for part in write(store, ORDERED, table, facts=True))
    return ResolveTask(ORDERED, facts, trace_of(store, case), keys, case.lower, case.upper, case.horizon, "out")


@laws
@given(said(), st.integers(1, 3), st.integers(1, 20))
def test_new_facts_resolve_as_if_every_fact_were_remembered(case: Said, batches: int, buffered: int) -> None:
    store, tally = MemoryStore(), Tally()
    task = task_of(store, case, batches)
    found = as_updates(ORDERED, updates_from(store, task, tally, buffered_rows=buffered))
    assert found == by_the_model(case.known, case.new)
    assert tally.rows == len(case.new)
    assert tally.digest == digest(of_facts(ORDERED, case.new))


@laws
@given(said(), st.integers(0, LAST))
def test_what_cancels_in_the_trace_counts_for_nothing(case: Said, settled: int) -> None:
    store, tally = MemoryStore(), Tally()
    task = task_of(store, case)
    merge = MergeTask(ORDERED, task.trace, EVERYTHING, 0, 2**63 - 1, CompactionFunction(), "out", settled)
    trace = merge_range(store, merge).parts
    found = as_updates(ORDERED, updates_from(store, replace(task, trace=trace), tally))
    assert found == by_the_model(case.known, case.new)


@laws
@given(said(), st.integers(1, 3), st.integers(1, 400))
def test_what_is_wide_resolves_a_few_keys_at_a_time(case: Said, batches: int, most: int) -> None:
    """The same with memory for a few bytes of facts, of what is looked up for them, and of updates."""
    store = MemoryStore()
    task = task_of(store, case, batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.parts.lookup.NARROW", 0)
        patch.setattr("tidemark.arrow.kernels.resolve.BLOCK_BYTES", most)
        patch.setattr("tidemark.arrow.kernels.resolve.PIECE_BYTES", most)
        found = as_updates(ORDERED, updates_from(store, task, Tally()))
    assert found == by_the_model(case.known, case.new)


@laws
@given(said(), st.lists(keys(ORDERED, 2), max_size=2, unique=True))
def test_key_ranges_resolve_separately(case: Said, cuts: list[Row]) -> None:
    store = MemoryStore()
    found: list[Update] = []
    for lower, upper in pairwise([None, *sorted(cuts), None]):  # type: ignore[type-var]
        found += as_updates(ORDERED, updates_from(store, task_of(store, case, 2, KeyRange(lower, upper)), Tally()))
    assert found == by_the_model(case.known, case.new)


def fact(key: int, word: str | None, time: int, event_time: int | None = None, row: int = 0) -> Fact:
    value = None if word is None else (word, 0.5)
    return Fact((key,), value, time, time if event_time is None else event_time, (None, f"{time}", row))


def resolve(facts: list[Fact], trace: list[Update], **bounds: int) -> list[Update]:
    store = MemoryStore()
    asked = {"lower": 10, "upper": 20, "horizon": 10} | bounds
    fact_parts = write(store, KEYED, of_facts(KEYED, facts), facts=True)
    trace_parts = write(store, KEYED, of_updates(KEYED, trace))
    answer = resolve_range(store, ResolveTask(KEYED, fact_parts, trace_parts, KeyRange(), prefix="out", **asked))
    return as_updates(KEYED, read(store, answer.parts))


def test_history_half_moved_up_is_not_mistaken_for_damage() -> None:
    """Older batch moved up to the horizon, younger one correcting it not: below the horizon they are not one value."""
    said = [("a", 10, 10, 1), ("a", 11, 4, -1), ("b", 11, 4, 1), ("b", 11, 10, -1), ("c", 11, 10, 1)]
    trace = [Update((1,), (tag, 0.5), time, event_time, diff) for tag, time, event_time, diff in said]
    old, new = fact(1, "c", 11, 10, row=7), fact(1, "d", 12, 10)
    assert resolve([old, new], trace, lower=12) == [Update((1,), (v, 0.5), 12, 10, d) for v, d in (("c", -1), ("d", 1))]
    assert resolve([old, replace(new, order=(None, "10", 0))], trace, lower=12) == []


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([("a", 1), ("b", 1)], r"key \(1,\) not one value before its facts, but multiplicities \[1, 1\]"),
        ([("a", 2)], r"multiplicities \[2\]"),
        ([("a", -1)], r"multiplicities \[-1\]"),
    ],
)
def test_a_trace_that_holds_anything_but_one_value_is_corruption(stored: list[tuple[str, int]], said: str) -> None:
    trace = [Update((1,), (word, 0.5), 3, 3, diff) for word, diff in stored]
    with pytest.raises(Corruption, match=said):
        resolve([fact(1, "new", 12)], trace)


def test_a_new_fact_below_the_horizon_is_corruption() -> None:
    with pytest.raises(Corruption, match="happened at 9, below the horizon 10"):
        resolve([fact(1, "new", 12, 9)], [])


def test_only_row_groups_that_can_hold_a_touched_key_are_read() -> None:
    store = MemoryStore()
    words = [f"{n * 7919 % 100_003:040d}" for n in range(60_000)]
    trace = [Update((n * 10,), (word, 0.5), 3, 3, 1) for n, word in enumerate(words)]
    trace_parts = write(store, KEYED, of_updates(KEYED, trace), group_rows=500, part_rows=10_000)
    # Three keys of the trace and one that is between keys of the trace.
    fact_parts = write(
        store, KEYED, of_facts(KEYED, [fact(k, "new", 12) for k in (50, 70, 300_005, 599_990)]), facts=True
    )
    task = ResolveTask(KEYED, fact_parts, trace_parts, KeyRange(), 10, 20, 10, "out")
    answer = resolve_range(store, task)
    assert sum(part.rows for part in answer.parts) == 7
    # The tail of a file that holds its footer is read at once.
    per_file = 64 * 1024
    assert answer.bytes_read < 4 * per_file + sum(part.file.bytes for part in trace_parts) / 20


def test_what_happened_after_the_fact_that_follows_is_not_looked_at() -> None:
    """Of a key whose next fact is known: the part that begins later is not there to be opened."""
    store = MemoryStore()
    known = [fact(key, f"{at}", 5, event_time=at) for at in (12, 14, 16) for key in (1, 2)]
    new = [fact(1, "late", 15, event_time=11), fact(2, "late", 15, event_time=13)]
    parts = [write(store, KEYED, of_facts(KEYED, some), facts=True) for some in (known[4:], known[2:4], known[:2], new)]
    task = ResolveTask(KEYED, (*parts[0], *parts[1], *parts[2], *parts[3]), (), KeyRange(), 10, 20, 10, "out")
    for part in parts[0]:
        store.delete(part.file.key)
    assert as_updates(KEYED, updates_from(store, task, Tally())) == by_the_model(known, new)


def test_key_only_collections_resolve_too() -> None:
    of = replace(KEYED, value=())
    store = MemoryStore()
    facts = [Fact((k,), v, 12, 12, (None, "f", k)) for k, v in ((1, ()), (2, None), (3, ()))]
    parts = write(store, of, of_facts(of, facts), facts=True)
    trace_parts = write(store, of, of_updates(of, [Update((k,), (), 3, 3, 1) for k in (2, 3)]))
    (found,) = updates_from(store, ResolveTask(of, parts, trace_parts, KeyRange(), 10, 20, 10, ""), Tally())
    assert rows(found) == [(1, 12, 12, 1), (2, 12, 12, -1)]
