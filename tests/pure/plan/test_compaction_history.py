"""Retention and compaction day by day over a few real updates, by the planners, the transitions and the laws alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.world import collection, interval
from tests.support.rules import of_trace_rows
from tidemark.model.admission import of_merge
from tidemark.model.arrangement import Arrangement, Certificate, Fence
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.model.change import Compacted, CompactionAllowed
from tidemark.model.collection import Gate
from tidemark.model.frontier import EMPTY
from tidemark.model.invariants import check
from tidemark.model.retention import Retention, Step
from tidemark.model.transition import Applied, apply
from tidemark.model.update import Update, advance, as_of, changes, consolidate
from tidemark.plan.bounds import bounds
from tidemark.plan.compact import CompactionRequest, due, plan_compaction
from tidemark.plan.retain import plan_retention

pytestmark = pytest.mark.pure

DAY = 6
POLICIES = [
    Retention(),
    Retention("full_merge"),
    Retention("tiered", keep_recent=2),
    Retention("time_boundary", interval=4),
    Retention("ladder", steps=(Step(None, 12), Step(2, 30), Step(6))),
    Retention("ladder", steps=(Step(3, 20), Step(6, 40))),
]


@dataclass
class Kept:
    """A trace with its rows beside it, and all that was ever drained."""

    retention: Retention
    live_batches: int
    ahead: bool = True
    state: Arrangement = field(init=False)
    rows: dict[str, list[Update]] = field(default_factory=dict)
    updates: list[Update] = field(default_factory=list)
    fewer: int = 0

    def __post_init__(self) -> None:
        declared = collection(live_batches=self.live_batches, retention=self.retention, compact_ahead=self.ahead)
        self.state = Arrangement(declared)

    def day(self, some: list[Update]) -> None:
        """Drain a day's updates, move since, compact until nothing is due."""
        lower = self.state.seal
        upper = lower + DAY
        self.updates += some
        drained = self._batch(f"d{lower}", Description(lower, upper), 0, consolidate(some))
        seals = (*self.state.seals, upper)[-self.state.collection.retention.recent :]
        totals = replace(
            self.state.totals,
            drains=self.state.totals.drains + 1,
            rows_drained=self.state.totals.rows_drained + drained.rows,
        )
        self.state = replace(
            self.state, complete_below=upper, seal=upper, seals=seals, trace=(*self.state.trace, drained), totals=totals
        )
        moved = plan_retention(self.state, 0)
        if moved is not None:
            self._apply(moved)
        while (request := self._planned()) is not None:
            self._merge(request)

    def _planned(self) -> CompactionRequest | None:
        suite = self.state.collection.suite(Gate.TRACE)
        self.state = replace(self.state, certificates=tuple(Certificate(b.id, suite) for b in self.state.trace))
        return plan_compaction(self.state)

    def _merge(self, request: CompactionRequest) -> None:
        function = request.description.function
        check(of_merge([replace(b.description, since=0, rungs=()) for b in request.inputs], function))
        assert all(function.absorbs(b.description.function) for b in request.with_data)
        rows = [row for b in request.with_data for row in self.rows[b.id]]
        merged = consolidate(advance(rows, function))
        if request.moves_no_data:
            assert merged == rows
        check(of_trace_rows(request.description, [merged]))
        assert all(row.time <= request.description.last_possible for row in merged)
        name = f"m{len(self.rows)}"
        output = self._batch(name, request.description, request.level(len(merged)), merged)
        if request.moves_no_data:
            level = max(b.level for b in request.inputs)
            output = replace(output, level=level, parts=next((b.parts for b in request.with_data), None))
        self.fewer += len(rows) - len(merged)
        fence = Fence("compact", interval(0), name)
        self.state = replace(self.state, fences=(fence,))
        self._apply(Compacted(fence, tuple(b.id for b in request.inputs), output))

    def _batch(self, name: str, description: Description, level: int, some: list[Update]) -> TraceBatch:
        self.rows[name] = some
        parts = ObjectRef(name, 1, "0") if some else None
        retractions = sum(row.diff < 0 for row in some)
        return TraceBatch(name, description, level, len(some), 1, 0, parts, int(bool(some)), retractions)

    def _apply(self, change: CompactionAllowed | Compacted) -> None:
        outcome = apply(self.state, change)
        assert isinstance(outcome, Applied), outcome
        self.state = outcome.state

    @property
    def stored(self) -> list[Update]:
        return [row for b in self.state.trace for row in self.rows[b.id]]

    @property
    def readable(self) -> list[int]:
        return [time for time in range(self.state.seal) if self.state.function.keeps(time)]


def days(chance: random.Random, count: int, keys: int) -> Iterator[list[Update]]:
    """Inserts and retractions, most of them of current rows, some without sense; some days are quiet."""
    current: list[Update] = []
    for day in range(count):
        some = []
        for _ in range(chance.choice([0, 1, 3, 3, 8])):
            time = day * DAY + chance.randrange(DAY)
            event_time = max(0, time - chance.choice([0, 0, 2, 9]))
            if current and chance.random() < 0.5:
                old = current.pop(chance.randrange(len(current)))
                some.append(old._replace(time=time, event_time=event_time, diff=-1))
            else:
                diff = -1 if chance.random() < 0.1 else 1
                some.append(Update((chance.randrange(keys),), (chance.choice("ab"),), time, event_time, diff))
                current += [some[-1]] if diff > 0 else []
        yield some


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6), st.sampled_from(POLICIES), st.integers(2, 5), st.sampled_from([True, True, False]), st.data()
)
def test_every_kept_instant_reads_as_it_did_whatever_was_merged(
    seed: int, retention: Retention, live_batches: int, ahead: bool, data: st.DataObject
) -> None:
    chance = random.Random(seed)
    made = Kept(retention, live_batches, ahead)
    for some in days(chance, 14, 3):
        made.day(some)
        found = bounds(made.state)
        assert found.live_bound is None or found.live_batches <= found.live_bound
    stored, updates, readable = made.stored, made.updates, made.readable
    for time in readable:
        assert as_of(stored, time=time, event_time=10**9) == as_of(updates, time=time, event_time=10**9)
        for event_time in data.draw(st.lists(st.sampled_from(readable), max_size=3)):
            assert as_of(stored, time=time, event_time=event_time) == as_of(updates, time=time, event_time=event_time)
    after, upto = sorted((data.draw(st.sampled_from(readable)), data.draw(st.sampled_from(readable))))
    function = made.state.function
    now = consolidate(advance(changes(stored, after=after, upto=upto), function))
    assert now == changes(advance(updates, function), after=after, upto=upto)


@pytest.mark.parametrize("retention", POLICIES, ids=lambda retention: f"{retention.policy} {len(retention.steps)}")
@pytest.mark.parametrize("live_batches", [2, 6])
def test_rows_written_stay_within_what_is_published(retention: Retention, live_batches: int) -> None:
    """With half of all rows retractions, for 300 days: what merges behind since write is paid by what vanishes."""
    chance = random.Random(7)
    made = Kept(retention, live_batches)
    for some in days(chance, 300, 40):
        made.day(some)
        found = bounds(made.state)
        assert found.live_bound is not None
        assert found.written_bound is not None
        assert found.live_batches <= found.live_bound
        assert (found.written or 0) <= found.written_bound
    assert (made.fewer > 0) == (retention.policy != "all")


def test_history_behind_since_shrinks_to_the_current_rows() -> None:
    """A thousand rows that are replaced every day: with all merged the trace is a small multiple of the
    current rows."""
    made = Kept(Retention("full_merge"), 12)
    for day in range(40):
        time = day * DAY
        old = [Update((key,), (f"{day - 1}",), time, time, -1) for key in range(10) if day]
        made.day([*old, *(Update((key,), (f"{day}",), time, time, 1) for key in range(10))])
        assert sum(b.rows for b in made.state.trace) <= 60
    assert not due(made.state)
    # Half of what is merged vanishes: no row is written more than a few times for it.
    assert (bounds(made.state).written or 0) < 3


def test_rows_that_were_forwarded_stay_lawful_where_since_is_empty() -> None:
    """Since beyond the seal puts rows past the upper of their batch; merged on under the empty frontier they stay."""
    made = Kept(Retention(), 2)

    def go_on(count: int) -> None:
        for _ in range(count):
            time = made.state.seal
            made.day([Update((time,), ("a",), time, time, 1)])

    go_on(2)
    made._apply(CompactionAllowed(100))
    go_on(1)
    assert [row.time for row in made.stored] == [100, 100, 100]
    made._apply(CompactionAllowed(EMPTY))
    while made.state.trace[0].description.since != EMPTY:
        go_on(1)
    assert [row.time for row in made.stored][:3] == [100, 100, 100]
    assert made.state.trace[0].description.last_possible == EMPTY
