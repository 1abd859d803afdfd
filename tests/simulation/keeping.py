"""Rules of the state machine about what is kept of the past: policies, holds, since by hand, and trimming."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from simulation.depths import reached
from simulation.oracle import Oracle
from support.world import World, interval
from tests.support.reading import as_of, changes
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.retain import drop_hold, hold
from tidemark.jobs.steps.trim import trim
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import CompactionAllowed, Redefined
from tidemark.model.frontier import Rung
from tidemark.model.instant import format_instant
from tidemark.model.retention import Retention, Step
from tidemark.plan.compact import budget, due

SECOND = 1_000_000
policies = st.sampled_from(
    [
        *[Retention()] * 6,
        Retention("full_merge"),
        Retention("tiered", keep_recent=2),
        Retention("time_boundary", interval=5),
        Retention("time_boundary", interval=4),
        Retention("ladder", steps=(Step(None, 12), Step(2, 30), Step(10))),
        Retention("ladder", steps=(Step(5, 20), Step(10, 40))),
        Retention("adaptive"),
    ]
)
budgets = st.sampled_from([2, 2, 3, 4])
rungs = st.none() | st.tuples(st.sampled_from([2, 5, 10]), st.integers(0, 3))


class Keeping(RuleBasedStateMachine):
    """What these rules need of the machine they are part of."""

    world: World
    oracle: Oracle

    def run(self, step: Any) -> Any:
        raise NotImplementedError

    def observe(self) -> None:
        raise NotImplementedError

    @rule(retention=policies)
    def redefine_retention(self, retention):
        head = self.world.head
        intervals = {rung.interval for rung in head.state.rungs}
        if any(one % other and other % one for one in intervals for other in retention.intervals):
            reached("intervals that do not go together")
            with pytest.raises(InvalidUsage, match="choose an interval"):
                self.world.log().commit(head, Redefined(replace(head.state.collection, retention=retention)))
        else:
            self.world.log().commit(head, Redefined(replace(head.state.collection, retention=retention)))
        self.observe()

    @rule(back=st.integers(-12, 25), wanted=rungs)
    def allow_compaction(self, back, wanted):
        """Since by hand: also beyond the seal, and with instants kept below it; refused where it may not be."""
        head = self.world.head
        since = max(head.state.since, head.state.seal - back)
        if head.state.collection.kind.facts and head.state.horizon < since:
            reached("since beyond the horizon")
        change = CompactionAllowed(since)
        units = head.state.collection.retention.intervals
        if wanted is not None and all(unit % wanted[0] == 0 or wanted[0] % unit == 0 for unit in units):
            unit, buckets = wanted
            since = since // unit * unit
            lower = max(0, since - buckets * unit)
            change = CompactionAllowed(since, (Rung(lower, unit),) if lower < since else ())
        self.world.log().commit(head, change)
        self.observe()
        if self.world.state.since > self.world.state.seal:
            reached("since beyond the seal")

    @rule(name=st.sampled_from(["reader", "other"]), back=st.integers(0, 30), lasts=st.sampled_from([None, 1, 3]))
    def place_hold(self, name, back, lasts):
        state = self.world.state
        since = max(0, state.seal - back)
        if since >= state.since:
            self.run(lambda job: hold(job, name, since=since, for_=lasts and lasts * SECOND))
            return
        with pytest.raises(InvalidUsage) as refused:
            hold(self.world.job(log=self.world.log()), name, since=since)
        assert all(near in str(refused.value) for near in self.nearest(since)), refused.value

    @precondition(lambda self: hasattr(self, "world") and self.world.state.holds)
    @rule()
    def let_go(self):
        name = self.world.state.holds[0].name
        try:
            self.run(lambda job: drop_hold(job, name))
        except InvalidUsage:
            # Said again after an answer that got lost.
            assert name not in [each.name for each in self.world.state.holds]

    @rule(seconds=st.sampled_from([1, 2, 5]))
    def time_passes(self, seconds):
        self.world.clock.pause(seconds)

    @rule(run=st.integers(0, 1))
    def trim(self, run):
        """Whatever can go goes, be it a single row."""
        self.run(lambda job: trim(job, interval(run), least_share=0.0))

    @invariant()
    def holds_are_not_passed(self):
        if hasattr(self, "world"):
            state = self.world.state
            assert all(state.since <= each.since for each in state.holds)

    def compacted(self) -> None:
        """What must be so after a compaction: nothing is due, as few batches as promised, since where it should be."""
        state = self.world.state
        assert due(state) == ()
        top = max((batch.level for batch in state.trace), default=0)
        if state.collection.compact_ahead:
            assert len(state.trace) <= budget(state.collection.live_batches, top)
        stopped = [each.since for each in state.holds]
        wanted = self.since_by_policy(state)
        if state.since < wanted:
            assert stopped, (
                f"since {state.since}, rungs {state.rungs}, should be {wanted} at {state.complete_below}; no hold"
            )
            assert wanted > min(stopped)
            reached("a hold stops since")

    @staticmethod
    def since_by_policy(state: Arrangement) -> int:
        """Where since should be at least: less what late rows may still correct."""
        late, retention = state.collection.landed.late, state.collection.retention
        least = state.complete_below - (late.max_lateness or 0)
        if retention.policy == "full_merge":
            return min(state.complete_below - 1, least)
        if retention.policy == "time_boundary":
            return max(0, least) // retention.interval * retention.interval
        return 0

    def nearest(self, time: int) -> list[str]:
        """How the oracle would name the readable times on both sides."""
        kept = self.oracle.kept()
        sides = [max((t for t in kept if t < time), default=None), min((t for t in kept if t >= time), default=None)]
        return [format_instant(near) for near in sides if near is not None]

    def what_is_not_kept_is_refused(self) -> None:
        """By name of the nearest times that can be read, for both coordinates and for changes."""
        state = self.world.state
        lost = [time for time in range(min(state.since, state.seal)) if not self.oracle.keeps(time)]
        for time in lost[-1:]:
            for read in (
                lambda time=time: as_of(self.world.truth, state, time=time),
                lambda time=time: as_of(self.world.truth, state, time=state.seal - 1, event_time=time),
                lambda time=time: changes(self.world.truth, state, after=time),
            ):
                with pytest.raises(InvalidUsage) as refused:
                    read()
                readable = state.since < state.seal or self.oracle.keeps(state.seal - 1)
                assert not readable or all(near in str(refused.value) for near in self.nearest(time)), refused.value
