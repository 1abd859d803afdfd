"""Policies at one seal after another: `since` and every rung only move on, and holds stop them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.world import collection
from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement, Hold
from tidemark.model.change import CompactionAllowed, Redefined, Sealed
from tidemark.model.frontier import CompactionFunction
from tidemark.model.retention import Retention, Step
from tidemark.model.transition import AlreadyApplied, Applied, apply
from tidemark.plan.retain import ladder, plan_retention

pytestmark = pytest.mark.pure

TIMES = range(400)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    """Steps whose intervals divide each other and which reach further back one by one."""
    interval, reach = draw(st.sampled_from([None, 1, 2, 5])), 0
    found = []
    for last in [*[False] * draw(st.integers(0, 3)), True]:
        reach += draw(st.integers(1, 40))
        found.append(Step(interval, None if last and draw(st.booleans()) else reach))
        interval = (interval or 1) * draw(st.sampled_from([1, 2, 3]))
    return tuple(found)


@st.composite
def retentions(draw: st.DrawFn) -> Retention:
    policy = draw(st.sampled_from(["all", "full_merge", "tiered", "time_boundary", "ladder"]))
    if policy == "tiered":
        return Retention(policy, keep_recent=draw(st.integers(1, 3)))
    if policy == "time_boundary":
        return Retention(policy, interval=draw(st.sampled_from([1, 2, 4, 8])))
    return Retention(policy, steps=draw(steps()) if policy == "ladder" else ())


@given(steps(), st.lists(st.integers(0, 300), min_size=1, max_size=6).map(sorted))
def test_a_ladder_moves_on_with_the_seal_and_keeps_what_its_steps_say(some: tuple[Step, ...], seals: list[int]) -> None:
    before = CompactionFunction()
    for seal in seals:
        now = ladder(seal, some)
        assert now.absorbs(before)
        both = before.then(now)
        assert both.absorbs(now)
        assert now.absorbs(both)
        assert now.since <= seal
        check_kept(now, some, seal)
        before = now


def check_kept(function: CompactionFunction, some: tuple[Step, ...], seal: int) -> None:
    """Of times up to a step's reach its instants are readable, those of older steps too, as they are multiples."""
    younger = 0
    for step in some:
        reach = seal if step.reach is None else step.reach
        for time in TIMES:
            if seal - reach <= time < seal - younger and (time + 1) % (step.interval or 1) == 0:
                assert function.keeps(time), (time, step)
        younger = reach


@given(st.lists(st.tuples(st.integers(1, 30), retentions(), st.none() | st.integers(0, 60)), min_size=1, max_size=8))
def test_policies_change_holds_come_and_go_and_since_only_moves_on(days: list[tuple]) -> None:
    """What is planned always applies; no hold is passed; said twice it is said already."""
    state = Arrangement(collection())
    for now, (step, retention, back) in enumerate(days):
        # Refused where intervals do not go with those kept; what is accepted can be planned for ever.
        with suppress(InvalidUsage):
            state = applied(state, Redefined(replace(state.collection, retention=retention)))
        state = applied(state, Sealed(state.seal + step, state.seal + step, state.seal + step))
        if back is not None and state.seal - back >= state.since:
            state = replace(state, holds=(Hold("reader", state.seal - back, now + 2),))
        before = state
        change = plan_retention(state, now)
        if change is None:
            continue
        state = applied(state, change)
        assert isinstance(apply(state, change), AlreadyApplied)
        assert plan_retention(state, now) is None
        assert state.function.absorbs(before.function)
        for hold in state.holds:
            assert hold.expires is not None
            assert hold.expires > now
            assert all(state.function(time) == time for time in range(hold.since, hold.since + 50))
        assert state.function.keeps(max(state.seal - 1, state.since))


def applied(state: Arrangement, change: Redefined | Sealed | CompactionAllowed) -> Arrangement:
    outcome = apply(state, change)
    if isinstance(outcome, AlreadyApplied):
        return state
    assert isinstance(outcome, Applied), outcome
    return outcome.state
