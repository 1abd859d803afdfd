"""Landed collections that are ingested, ticked, merged and made again at their own speeds, and derived ones over them
in diamonds, corrected, sealed, drained, checked, quarantined and defined otherwise in any order: what each recorded
stays true for ever, and no two inputs ever tell of a shared root differently.

The rows are kept beside the states (support/derivations.py), each item with the collections that it came through: so
what a collection holds says by itself which changes of which root it has seen by which way. The oracle looks at nothing
else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.derivations import Derivations, Item, derived, landed
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Corrected, HoldDropped
from tidemark.model.collection import Collection, Gate
from tidemark.model.frontier import EMPTY
from tidemark.model.retention import Retention
from tidemark.model.transition import Applied, Stale
from tidemark.plan.correct import CorrectRequest, Waits, hold_name

pytestmark = pytest.mark.pure

MERGED = Retention("full_merge")
SHAPES: dict[str, tuple[Collection, ...]] = {
    "two arms": (landed("a"), derived("l", "a"), derived("r", "a"), derived("d", "l", "r")),
    "beside its own sums": (landed("a", retention=MERGED), landed("b"), derived("l", "a"), derived("d", "a", "l", "b")),
    "by row and by key": (
        landed("a"),
        landed("b", retention=MERGED),
        derived("l", "a", by_row=True),
        derived("r", "a", "b"),
        derived("d", "l", "r", "b"),
    ),
    "deep": (
        landed("a"),
        landed("b", end=40),
        derived("l", "a", by_row=True),
        derived("m", "l", by_row=True),
        derived("r", "a", "b"),
        derived("d", "m", "r"),
        derived("e", "d", "l"),
    ),
    "history": (
        landed("a", start=20),
        landed("b", retention=MERGED),
        derived("l", "a", history=15),
        derived("r", "a", "b"),
        derived("d", "r", "l", history=25),
    ),
}
STEPS = {"a": 10, "b": 20}
"""How long an interval of each root is."""
NAMES = st.integers(0, 63)
"""Some of the collections, a bit each."""
UPSETS = (
    *("quarantine", "quarantine", "lose_a_hold", "lose_a_hold", "check", "define_otherwise", "ask_for_all"),
    "make_again",
)
STOPS = range(0, 2000, 20)


REACHED = {
    "changes",
    "by_row",
    "late",
    "made again",
    "started",
    "quarantined",
    "holds lost",
    "several frontiers",
    "by several ways",
}
"""What a run that says anything has met."""
Executed = tuple[str, CorrectRequest, Corrected, Counter[Item]]
"""The collection, what was asked for and made, and the rows that this must give by our own count."""


def roots_seen(item: Item, way: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Item]:
    """The way an item came, and the row of a landed collection that it comes from."""
    name, inner = item
    return roots_seen(inner, (*way, name)) if isinstance(inner, tuple) else (way, item)


class Diamonds(RuleBasedStateMachine):
    depths: ClassVar[Counter[str]] = Counter()
    """How often what is hard to reach was reached, over all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Derivations()
        self.order: list[str] = []
        self.derived: list[str] = []
        self.said: dict[str, dict[int, Counter[Item]]] = defaultdict(dict)
        """What each recorded, by its frontier: what the definition made of the inputs then."""
        self.looked_at: dict[str, int] = {}
        self.skipped: dict[str, set[int]] = defaultdict(set)
        self.started: list[Executed] = []
        self.defined = 0

    @initialize(shape=st.sampled_from(sorted(SHAPES)))
    def declare(self, shape: str) -> None:
        self.w.add(*SHAPES[shape])
        self.order = [each.name for each in SHAPES[shape]]
        self.derived = [each.name for each in SHAPES[shape] if each.is_derived]
        self.come(0, 0, stops=False)
        self.come(0, 0, stops=False)

    def some(self, number: int, names: list[str]) -> str:
        return names[number % len(names)]

    @property
    def roots(self) -> list[str]:
        return [name for name in self.order if name not in self.derived]

    # What landed collections do.

    @rule(which=st.integers(0, 9), offsets=st.lists(st.integers(0, 9), max_size=3), ahead=st.booleans())
    def ingest(self, which: int, offsets: list[int], ahead: bool) -> None:
        name = self.some(which, self.roots)
        self.ingest_next(name, offsets, ahead)

    def ingest_next(self, name: str, offsets: list[int], ahead: bool = False) -> None:
        lower = self.w.state(name).complete
        end = self.w.state(name).collection.landed.end
        if end is not None and lower >= end:
            return
        upper = lower + STEPS[name]
        self.w.ingest(name, lower, upper, *(lower + offset for offset in offsets), *([upper + 25] if ahead else []))

    @rule(which=st.integers(0, 9), time=st.integers(0, 30))
    def late(self, which: int, time: int) -> None:
        name = self.some(which, self.roots)
        state = self.w.state(name)
        if state.complete_below > state.collection.start:
            lower = state.collection.start
            self.w.ingest(name, lower, lower + STEPS[name], min(time, state.complete_below - 1))
            self.depths["late"] += 1

    @rule(which=st.integers(0, 9), steps=st.integers(1, 4))
    def move(self, which: int, steps: int) -> None:
        """Some of the steps after the one that writes; the last is the gate by which the trace may be read."""
        name = self.some(which, self.order)
        self.w.seal(name, self.w.state(name).complete)
        if steps > 1:
            self.w.drain(name)
        if steps > 2:
            self.w.gate(name, Gate.TRACE)
        if steps > 3:
            self.w.retain(name)

    # What derived ones do.

    @rule(which=st.integers(0, 9), stops=st.booleans(), until=st.none() | st.integers(0, 9))
    def correct(self, which: int, stops: bool, until: int | None) -> None:
        name = self.some(which, self.derived)
        asked = {"stops": STOPS if stops else (), "until": None if until is None else 10 * until}
        self.commit(name, self.w.plan(name, **asked))

    @rule(which=st.integers(0, 9))
    def start(self, which: int) -> None:
        name = self.some(which, self.derived)
        request = self.w.plan(name)
        if isinstance(request, CorrectRequest):
            self.depths["started"] += 1
            self.w.hold(name, request, after=False)
            self.started.append(self.executed(name, request))

    @precondition(lambda self: self.started)
    @rule(which=st.integers(0, 9))
    def finish(self, which: int) -> None:
        """Any time later, however much has happened."""
        self.committed(self.started.pop(which % len(self.started)))

    def commit(self, name: str, request: CorrectRequest | Waits | None) -> None:
        self.depths["waits"] += isinstance(request, Waits)
        if isinstance(request, CorrectRequest):
            self.w.hold(name, request, after=False)
            self.committed(self.executed(name, request))

    def executed(self, name: str, request: CorrectRequest) -> Executed:
        for each in request.inputs:
            # What is read must be there to be read: not merged, and looked at by a gate.
            given = self.w.state(each.name)
            certified = {certificate.batch for certificate in given.certificates}
            waiting = [batch.description.lower for batch in given.trace if batch.id not in certified]
            assert given.since <= each.upto < min([given.trace_upper, *waiting])
            assert each.after is None or given.since <= each.after <= each.upto
        change = self.w.executed(name, request)
        return name, request, change, self.answer(name, change)

    def committed(self, executed: Executed) -> None:
        name, request, change, said = executed
        before = self.w.state(name)
        if not (request.moves or change.batch):
            return
        done = self.w.commit(name, change)
        if not isinstance(done, Applied):
            self.depths["stale"] += isinstance(done, Stale)
            return
        self.depths[str(change.mode)] += 1
        self.depths["all" if request.whole else "changes"] += 1
        self.depths["holds lost"] += "merged" in request.whole
        self.depths["several frontiers"] += len({h.upper for h in change.consumption.inputs}) > 1
        self.check_frontiers(name, before, request)
        self.check_not_torn(name, said)
        self.said[name][request.upper] = said
        if request.whole or (request.previous and request.previous.upper != request.interval.lower):
            self.skipped[name].add(request.upper)
        if request.inputs[0].name in self.w.tanks:
            self.w.hold(name, request, after=True) if self.is_current(request) else None

    def is_current(self, request: CorrectRequest) -> bool:
        return all(each.hold_after >= self.w.state(each.name).since for each in request.inputs)

    def answer(self, name: str, change: Corrected) -> Counter[Item]:
        """By our own count: each row of each input, as of just below where it was consumed to."""
        return Counter(
            {
                (name, item): diff
                for each in change.consumption.inputs
                for item, diff in self.w.tanks[each.input].as_of(each.upper - 1).items()
            }
        )

    def check_frontiers(self, name: str, before: Arrangement, request: CorrectRequest) -> None:
        after = self.w.state(name)
        assert after.complete == request.upper > before.complete
        consumed = request.consumption
        assert before.complete_below <= consumed.complete_below <= consumed.upper
        if before.consumed:
            assert before.consumed.complete_below <= consumed.complete_below
        seen: dict[str, set[Any]] = defaultdict(set)
        for each in consumed.inputs:
            for root in each.roots:
                seen[root.collection].add((root.upper, root.incarnation))
        assert all(len(uppers) == 1 for uppers in seen.values()), seen
        if not consumed.ended:
            for each in consumed.inputs:
                given = self.w.state(each.input)
                ended = not given.collection.is_derived and given.collection.landed.end is not None
                assert given.collection.is_derived or ended or each.upper >= consumed.complete_below

    # What befalls them.

    @rule(what=st.sampled_from(UPSETS), which=st.integers(0, 9))
    def upset(self, what: str, which: int) -> None:
        getattr(self, what)(which)

    def lose_a_hold(self, which: int) -> None:
        merged = [name for name in self.order if self.w.state(name).collection.retention == MERGED]
        name = self.some(which, merged or self.order)
        for hold in self.w.state(name).holds:
            self.w.do(name, HoldDropped(hold.name))
        if name in self.roots:
            self.bring_up(name, stops=False)
        self.w.retain(name)
        for above in self.derived:
            self.commit(above, self.w.plan(above))

    def make_again(self, which: int) -> None:
        name = self.some(which, self.roots)
        self.w.add(self.w.state(name).collection)
        self.depths["made again"] += 1

    def check(self, which: int) -> None:
        name = self.some(which, self.derived)
        self.commit(name, self.w.plan(name, check=True))

    def ask_for_all(self, which: int) -> None:
        name = self.some(which, self.derived)
        self.commit(name, self.w.plan(name, whole=True))

    def quarantine(self, which: int) -> None:
        name = self.some(which, self.derived)
        for root in self.roots:
            self.bring_up(root, stops=False)
        self.commit(name, self.w.plan(name))
        state = self.w.state(name)
        for batch in state.unsealed[-1:]:
            if isinstance(self.w.quarantine(name, batch.id), Applied):
                self.depths["quarantined"] += 1
                kept = {each.upper for each in self.w.state(name).consumptions}
                for each in state.consumptions:
                    if each.upper not in kept:
                        del self.said[name][each.upper]

    def define_otherwise(self, which: int) -> None:
        name = self.some(which, self.derived)
        self.defined += 1
        current = self.w.state(name).collection
        by_row = current.derived.definition.select.startswith("every row")
        query = f"{'every row' if by_row else 'groups'}, {self.defined}"
        definition = replace(current.derived.definition, select=query)
        self.w.redefine(name, replace(current, origin=replace(current.derived, definition=definition)))

    @rule(absent=NAMES, late=NAMES, days=st.integers(1, 2))
    def a_day_of_some(self, absent: int, late: int, days: int) -> None:
        """As schedules do: some come up to date, from their files to their traces, and others do not."""
        for _ in range(days):
            self.come(absent, late, stops=False)

    @rule(absent=NAMES, late=NAMES)
    def a_day_by_boundaries(self, absent: int, late: int) -> None:
        self.come(absent, late, stops=True)

    @rule(absent=NAMES)
    def a_tick_of_some(self, absent: int) -> None:
        """Late rows of one root, and some of those above it hear of them."""
        self.late(0, 2)
        self.w.settle(self.order[0], self.w.state(self.order[0]).complete)
        for at, name in enumerate(self.derived):
            if not absent >> at & 1:
                self.bring_up(name, stops=False)

    def come(self, absent: int, late: int, *, stops: bool) -> None:
        for at, name in enumerate(self.order):
            if not absent >> at & 1:
                if late >> at & 1 and name in self.roots:
                    self.late(self.roots.index(name), 1)
                self.bring_up(name, stops=stops)

    def bring_up(self, name: str, *, stops: bool) -> None:
        if name in self.derived:
            while isinstance(request := self.w.plan(name, stops=STOPS if stops else ()), CorrectRequest):
                self.commit(name, request)
        else:
            self.ingest_next(name, [3])
        self.w.settle(name, self.w.state(name).complete)

    # What must hold.

    @invariant()
    def what_was_recorded_is_so_for_ever(self) -> None:
        for name, said in self.said.items():
            tank = self.w.tanks[name]
            if self.looked_at.get(name) == tank.version:
                continue
            for upper, answer in said.items():
                assert tank.as_of(upper - 1) == answer, (name, upper)
            self.check_instants(name)
            self.looked_at[name] = tank.version

    def check_not_torn(self, name: str, answer: Counter[Item]) -> None:
        """By all ways that lead to a root the same of its rows were seen."""
        seen: dict[str, dict[tuple[str, ...], set[Item]]] = defaultdict(lambda: defaultdict(set))
        for item in answer:
            way, row = roots_seen(item)
            seen[str(row[0])][way[1:]].add(row)
        for root, ways in seen.items():
            expected = set(self.ways_to(name, root))
            self.depths["by several ways"] += len(expected) > 1
            assert set(ways) == expected, (name, root)
            assert len({frozenset(rows) for rows in ways.values()}) == 1, (name, ways)

    def ways_to(self, name: str, root: str) -> Iterator[tuple[str, ...]]:
        for each in self.w.state(name).collection.derived.inputs:
            if each == root:
                yield ()
            elif each in self.derived:
                yield from ((each, *way) for way in self.ways_to(each, root))

    def check_instants(self, name: str) -> None:
        """One that goes row by row is exact at every instant."""
        state = self.w.state(name)
        if not state.collection.derived.definition.select.startswith("every row"):
            return
        for older, newer in pairwise(state.consumptions[-4:]):
            (consumed,), (was,) = newer.inputs, older.inputs
            same = consumed.incarnation == was.incarnation == self.w.state(consumed.input).incarnation
            # What had to be computed whole, or again after a quarantine, is emitted at the end.
            skipped = newer.upper in self.skipped[name]
            if skipped or not same or older.definition != newer.definition or was.upper > older.upper:
                continue
            for time in range(older.upper, newer.upper - 1):
                expected = self.w.tanks[consumed.input].as_of(min(time, consumed.upper - 1))
                found = self.w.tanks[name].as_of(time)
                assert found == Counter({(name, item): diff for item, diff in expected.items()}), (name, time)

    def teardown(self) -> None:
        """Left alone, each has in the end the rows that it should have of all that landed."""
        if not self.order:
            return
        reached = max(self.w.state(name).complete_below for name in self.order)
        reached = max([reached, *(self.w.state(name).complete for name in self.order)])
        for root in self.roots:
            end = self.w.state(root).collection.landed.end
            while self.w.state(root).complete < min(reached + 20, end or EMPTY):
                self.ingest_next(root, [])
        for _ in range(3):
            for name in self.order:
                if name in self.derived:
                    self.bring_up(name, stops=False)
                else:
                    self.w.settle(name, self.w.state(name).complete)
        for name in self.derived:
            assert self.w.plan(name) is None, name
            inputs = self.w.state(name).collection.derived.inputs
            wanted = Counter({(name, i): n for each in inputs for i, n in self.now(each).items()})
            assert self.now(name) == wanted, name
            self.depths["settled"] += 1
            assert hold_name(name) in {hold.name for each in inputs for hold in self.w.state(each).holds}

    def now(self, name: str) -> Counter[Item]:
        return self.w.tanks[name].as_of(self.w.state(name).seal - 1)


def test_what_derived_collections_recorded_is_so_for_ever_and_nothing_is_torn() -> None:
    Diamonds.depths.clear()
    run_state_machine_as_test(
        Diamonds, settings=settings(deadline=None, max_examples=40, stateful_step_count=30, derandomize=True)
    )
    reached = {depth for depth, times in Diamonds.depths.items() if times}
    assert reached >= REACHED, REACHED - reached
