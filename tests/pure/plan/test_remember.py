"""How many batches of remembered facts a state has, and how often each fact is written, after many drains."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from support.drawn import trace_batch, unsealed_batch
from support.world import collection
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.change import Remembered
from tidemark.model.collection import Collection, Envelope, Late
from tidemark.model.interval import Interval
from tidemark.model.transition import Applied, Stale, apply
from tidemark.plan.remember import FAN_IN, plan_remember

pytestmark = pytest.mark.pure

FENCE = Fence("remember", Interval(0, 1), "token", unannounced=True)


def drained(of: Collection, hours: int) -> tuple[Arrangement, Counter[str], int]:
    """A state after a drain each hour, each followed by the merge due; how often each hour was written, and the most
    batches there were after one."""
    state, written, most = Arrangement(of), Counter[str](), 0
    contained: dict[str, tuple[str, ...]] = {}
    for hour in range(hours):
        batch = replace(unsealed_batch([f"b{hour}", f"{hour}..{hour}"], hour), interval=Interval(hour, hour + 1))
        contained[batch.id] = (batch.id,)
        trace = trace_batch(["t", f"[0][{hour + 1}][0]", "0", "0"])
        frontiers = {"complete_below": hour + 1, "seal": hour + 1, "trace": (trace,)}
        state = replace(state, unsealed=(*state.unsealed, batch), **frontiers)
        while (request := plan_remember(state)) is not None:
            inputs = tuple(one.id for one in request.inputs)
            times = [time for one in request.inputs for time in (one.first_event_time, one.last_event_time)]
            one = unsealed_batch([f"m{hour}", "0..0", f"events={min(times)}..{max(times)}"], 0)
            merged = replace(one, interval=request.interval, level=request.level)
            contained[merged.id] = tuple(name for each in inputs for name in contained[each])
            written.update(contained[merged.id])
            outcome = apply(state, Remembered(FENCE, inputs, merged))
            assert isinstance(outcome, Applied)
            state = outcome.state
        levels = [batch.level for batch in state.remembered]
        assert levels == sorted(levels, reverse=True)
        names = [name for one in (*state.remembered, *state.unsealed) for name in contained[one.id]]
        assert names == [f"b{earlier}" for earlier in range(hour + 1)]
        most = max(most, len(names := [*state.remembered, *state.unsealed]))
    return state, written, most


def test_ninety_days_of_hours_are_few_batches_and_no_fact_is_written_often() -> None:
    of = collection(Envelope.UPSERT, reprocess_for=10_000, late=Late("discard"))
    state, written, most = drained(of, 2_160)
    assert (len(state.remembered), len(state.unsealed), most) == (11, 0, 24)
    assert max(written.values()) == 3
    assert state.horizon == -1


def test_what_is_remembered_without_a_bound_grows_by_a_logarithm() -> None:
    assert [drained(collection(Envelope.UPSERT, late=Late("reemit")), count)[2] for count in (60, 500)] == [13, 20]


def test_nothing_is_merged_of_a_collection_that_remembers_none() -> None:
    state = Arrangement(collection(Envelope.APPEND))
    assert plan_remember(replace(state, unsealed=())) is None


def test_a_merge_whose_inputs_are_gone_is_planned_again() -> None:
    state, _, _ = drained(collection(Envelope.UPSERT, late=Late("reemit")), FAN_IN - 1)
    outcome = apply(state, Remembered(FENCE, ("b0", "b9"), None))
    assert outcome == Stale("remembered batch b9 was evicted or merged meanwhile")


def test_a_merge_does_not_forget_what_may_be_needed_again() -> None:
    state, _, _ = drained(collection(Envelope.UPSERT, late=Late("reemit", 2)), FAN_IN - 1)
    assert state.horizon == 5
    assert isinstance(apply(state, Remembered(FENCE, ("b0", "b1"), None, 5)), Applied)
    assert isinstance(apply(state, Remembered(FENCE, ("b0", "b1"), None, 6)), Stale)
