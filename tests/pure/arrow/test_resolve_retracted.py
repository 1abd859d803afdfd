"""Resolving facts of which some are retracted, against an oracle that shares no code: a list of what was ever said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import KEYED, as_updates, of_facts, of_updates, write
from tests.support.budget import laws
from tidemark.arrow.kernels.merge import Tally
from tidemark.arrow.kernels.resolve import updates_from
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.fact import Fact
from tidemark.model.update import Update
from tidemark.plan.tasks import KeyRange, ResolveTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

LAST = 8
FIRST = 2
"""When the oldest remembered fact happened; the horizon is the instant before. What is older is in the trace only."""

Points = dict[tuple[int, str], int]


@dataclass(frozen=True)
class Said:
    """At `time` the source begins (+1) or ceases (-1) to say that a key became `word` (None: nothing) at a place."""

    time: int
    key: int
    event_time: int
    row: int
    word: str | None
    diff: int

    @property
    def fact(self) -> Fact:
        value = None if self.word is None else (self.word, 0.5)
        return Fact((self.key,), value, self.time, self.event_time, (None, "f", self.row))


@st.composite
def sources(draw: st.DrawFn, *, keys: int = 3) -> list[Said]:
    lines: list[Said] = []
    now: dict[tuple[int, int, int], str | None] = {}
    for time in sorted(draw(st.sets(st.integers(0, LAST), min_size=1, max_size=4))):
        for _ in range(draw(st.integers(0, 6))):
            place = (draw(st.integers(1, keys)), draw(st.integers(FIRST, LAST)), draw(st.integers(0, 1)))
            word = draw(st.sampled_from(["a", "b", None, "gone", "gone"]))
            if place in now:
                lines.append(Said(time, *place, now.pop(place), -1))
            if word != "gone":
                now[place] = word
                lines.append(Said(time, *place, word, +1))
    return draw(st.permutations(lines))


def expected_at(base: dict[int, str], lines: list[Said], time: int, event_time: int) -> Points:
    """What the keys hold at a point: each the word of the last of its places of which more is said than retracted."""
    said: dict[tuple[int, int, int, str | None], int] = {}
    for line in lines:
        if line.time <= time and line.event_time <= event_time:
            place = (line.key, line.event_time, line.row, line.word)
            said[place] = said.get(place, 0) + line.diff
    words: dict[int, str | None] = dict(base)
    for (key, _, _, word), count in sorted(said.items(), key=lambda one: one[0][:3]):
        if count:
            words[key] = word
    return {(key, word): 1 for key, word in words.items() if word is not None}


def summed(updates: list[Update], time: int, event_time: int) -> Points:
    found: Points = {}
    for update in updates:
        if update.time <= time and update.event_time <= event_time:
            at = (update.key[0], update.value[0])
            found[at] = found.get(at, 0) + update.diff  # type: ignore[index,arg-type]
    return {at: count for at, count in found.items() if count}  # type: ignore[return-value]


def parts_of(store: MemoryStore, lines: list[Said], batches: int) -> tuple[Part, ...]:
    """What was said, and in parts of their own what was retracted, over several batches, or, where these are so many
    that it pays to look at few of them, in slices of time and event time."""
    written: list[Part] = []
    slices = [lines[at::batches] for at in range(batches)]
    if batches > 3:
        some, size = sorted(lines, key=lambda line: (line.time, line.event_time)), -(-len(lines) // batches) or 1
        slices = [some[start : start + size] for start in range(0, len(some), size)]
    for batch, sign in product(slices, (+1, -1)):
        facts = [line.fact for line in batch if line.diff == sign]
        written += write(store, KEYED, of_facts(KEYED, facts), facts=True, retracted=sign < 0)
    return tuple(written)


def task_of(
    store: MemoryStore, lines: list[Said], trace: list[Update], lower: int, upper: int, batches: int = 1
) -> ResolveTask:
    trace_parts = write(store, KEYED, of_updates(KEYED, trace))
    facts = parts_of(store, lines, batches)
    return ResolveTask(KEYED, facts, trace_parts, KeyRange(), lower, upper, FIRST - 1, "out")


def drained(
    lines: list[Said], trace: list[Update], lower: int, upper: int, batches: int, buffered: int
) -> list[Update]:
    store = MemoryStore()
    task = task_of(store, lines, trace, lower, upper, batches)
    return as_updates(KEYED, updates_from(store, task, Tally(), buffered_rows=buffered))


bases = st.dictionaries(st.integers(1, 3), st.sampled_from(["a", "old"]))


@laws
@given(sources(), st.lists(st.integers(0, LAST + 1), max_size=2), bases, st.integers(1, 12), st.integers(1, 20))
def test_drains_write_the_history_of_what_is_said_at_every_time(
    lines: list[Said], cuts: list[int], base: dict[int, str], batches: int, buffered: int
) -> None:
    """Whatever is drained with what, and in however many parts it is: at every (time, event time) the sum of what
    was written is what the source says."""
    trace = [Update((key,), (word, 0.5), 0, 0, 1) for key, word in sorted(base.items())]
    bounds = [0, *sorted(cuts), LAST + 1]
    for lower, upper in pairwise(bounds):
        trace += drained(lines, trace, lower, upper, batches, buffered)
    for time, event_time in product(range(LAST + 1), range(LAST + 1)):
        assert summed(trace, time, event_time) == expected_at(base, lines, time, event_time)


@laws
@given(sources(), st.integers(1, 400))
def test_what_is_wide_is_retracted_a_few_keys_at_a_time(lines: list[Said], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.arrow.parts.lookup.NARROW", 0)
        patch.setattr("tidemark.arrow.kernels.resolve.BLOCK_BYTES", most)
        patch.setattr("tidemark.arrow.kernels.resolve.PIECE_BYTES", most)
        patch.setattr("tidemark.arrow.kernels.retracted.PIECE_BYTES", most)
        first = drained(lines, [], 0, LAST, 2, 2**18)
        second = drained(lines, first, LAST, LAST + 1, 2, 2**18)
    for time, event_time in product(range(LAST + 1), range(LAST + 1)):
        assert summed(first + second, time, event_time) == expected_at({}, lines, time, event_time)


def test_the_value_before_is_looked_up_where_known_facts_are_among_new_ones() -> None:
    """One part holds the fact that is retracted, which was drained, and new ones: it comes before its retraction."""
    base = [Update((1,), ("old", 0.5), 0, 1, 1)]
    lines = [Said(3, 1, 2, 0, "new", 1), Said(3, 3, 2, 0, "x", 1), Said(7, 2, 2, 0, "y", 1)]
    lines += [replace(line, time=7, diff=-1) for line in lines[:2]]
    trace = base + drained(lines, base, 0, 6, 1, 2**18)
    assert summed(trace + drained(lines, trace, 6, 9, 1, 2**18), 8, 5) == {(1, "old"): 1, (2, "y"): 1}


@pytest.mark.parametrize("beside", [[], [Said(9, 2, 4, 0, "Z", -1)]], ids=["alone", "beside a new one"])
def test_what_was_retracted_before_is_not_what_follows_on_a_new_fact(beside: list[Said]) -> None:
    """B is said no more, so A is followed by C, which is in a part that begins after B happened."""
    said = [Said(3, 1, 5, 0, "B", 1), Said(3, 2, 4, 0, "Z", 1)]
    parts = [said, [Said(3, 1, 7, 0, "C", 1)], [Said(6, 1, 5, 0, "B", -1), *beside], [Said(9, 1, 3, 0, "A", 1)]]
    store = MemoryStore()
    written = [
        write(store, KEYED, of_facts(KEYED, [line.fact for line in part]), facts=True, retracted=part[0].diff < 0)
        for part in parts
    ]
    lines = sorted((line for part in parts for line in part), key=lambda line: line.time)
    trace = drained(lines, [], 0, 9, 1, 2**18)
    trace_parts, facts = write(store, KEYED, of_updates(KEYED, trace)), tuple(part for some in written for part in some)
    task = ResolveTask(KEYED, facts, trace_parts, KeyRange(), 9, 10, FIRST - 1, "out")
    updates = as_updates(KEYED, updates_from(store, task, Tally()))
    assert [update for update in updates if update.key == (1,)] == [
        Update((1,), ("A", 0.5), 9, 3, 1),
        Update((1,), ("A", 0.5), 9, 7, -1),
    ]


def test_what_is_retracted_at_the_horizon_is_refused() -> None:
    """History may have been moved up to the horizon, and with it what the fact hid."""
    lines = [Said(3, 1, FIRST, 0, "new", 1), Said(7, 1, FIRST, 0, "new", -1)]
    store = MemoryStore()
    task = replace(task_of(store, lines, [], 6, 9), horizon=FIRST)
    with pytest.raises(Corruption, match="retracts a fact that happened at the horizon 2"):
        list(updates_from(store, task, Tally()))


@pytest.mark.parametrize("lower", [5, 8], ids=["as new", "as known"])
def test_what_was_never_said_cannot_be_retracted(lower: int) -> None:
    lines = [Said(2, 1, 3, 0, "a", 1), Said(6, 1, 3, 1, "a", -1), Said(8, 1, 5, 0, "b", 1)]
    store = MemoryStore()
    task = task_of(store, lines, [], lower, 9)
    with pytest.raises(Corruption, match=r"a fact of key \(1,\) that happened at 3 is retracted, but was never said"):
        list(updates_from(store, task, Tally()))


def test_a_part_that_retracts_some_of_its_facts_is_corruption() -> None:
    store = MemoryStore()
    task = task_of(store, [Said(3, 1, 3, 0, "a", 1), Said(3, 1, 4, 0, "a", 1)], [], 0, 9)
    wrong = replace(task, facts=tuple(replace(part, retractions=1) for part in task.facts))
    with pytest.raises(Corruption, match="retract 1 of its 2 facts"):
        list(updates_from(store, wrong, Tally()))
