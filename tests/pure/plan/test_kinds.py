"""Each kind of collection has its strategy, and what it makes of unsealed rows is right in any cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import KINDS, Envelope
from tidemark.model.full_snapshot import FullSnapshot
from tidemark.model.interval import Interval
from tidemark.plan.kinds import plan_of, tasks_of
from tidemark.plan.ranges import split_within
from tidemark.plan.read import at_rest, plan_as_of, read_tasks
from tidemark.plan.tasks import DifferenceTask, KeyRange, MergeTask, ResolveTask
from tidemark.plan.unsealed import PartsOf


def part(name: str, *keys: int, first: int = 0, last: int = 9) -> Part:
    """A part with a row group of 10 rows at each key."""
    groups = tuple(((key,), 10) for key in keys)
    return Part(ObjectRef(name, 100, ""), 10 * len(keys), 0, groups, (keys[-1] + 5,), first, last, first, last)


def state_of(envelope: Envelope) -> Arrangement:
    """The trace holds [0, 20); sealed beyond it is what is at 20 and 29, not yet drained."""
    trace = TraceBatch("t", Description(0, 20), 0, 40, 1, 0, ObjectRef("t", 1, ""), 2)
    new = UnsealedBatch("u", Interval(20, 30), ObjectRef("u", 1, ""), 1, 20, 1, 0, 29, 29, 29, 29)
    snapshots = (FullSnapshot("u", Interval(20, 30), 20),) if envelope is Envelope.SNAPSHOT else ()
    return Arrangement(
        collection(envelope), complete_below=30, seal=30, trace=(trace,), unsealed=(new,), snapshots=snapshots
    )


PARTS: PartsOf = {"t": (part("t1", 0, 10), part("t2", 20, 30)), "u": (part("u1", 0, 25, first=29, last=29),)}
TASKS = {
    Envelope.APPEND: MergeTask,
    Envelope.UPDATES: MergeTask,
    Envelope.UPSERT: ResolveTask,
    Envelope.DEBEZIUM: ResolveTask,
    Envelope.SNAPSHOT: DifferenceTask,
}


@pytest.mark.parametrize("envelope", Envelope)
def test_every_envelope_has_a_kind_and_every_kind_a_plan(envelope: Envelope) -> None:
    state = state_of(envelope)
    assert state.collection.kind is KINDS[envelope]
    request = plan_of(state.collection.kind).request(state, 20, 30)
    assert [batch.id for batch in request.batches] == ["u"]
    (task,) = tasks_of(state.collection, request.among(PARTS), PARTS, prefix="data/x")
    assert type(task) is TASKS[envelope]
    assert task.prefix == "data/x"


@pytest.mark.parametrize(
    ("ends", "said", "retracted"), [(27, (["u"], 28), (["u"], 28)), (28, (["u"], 29), (["old", "u"], 5))]
)
def test_facts_are_placed_among_those_since_the_earliest_and_retracted_above_the_horizon(
    ends: int, said: tuple[list[str], int], retracted: tuple[list[str], int]
) -> None:
    """The horizon is the lowest that asks for no further batch: all the facts of those that are left out are below."""
    state = state_of(Envelope.UPSERT)
    request = plan_of(state.collection.kind).request(state, 20, 30)
    (batch,) = request.batches
    old = replace(batch, id="old", first_event_time=6, last_event_time=ends)
    request = replace(request, horizon=5, remembered=(old, *request.remembered))
    added = part("u1", 0, 25, first=29, last=29)
    found = [request.among({**PARTS, "u": (some,)}) for some in (added, replace(added, retractions=20))]
    assert [([each.id for each in one.remembered], one.horizon) for one in found] == [said, retracted]


def test_facts_that_are_placed_among_all_there_are_need_no_other_horizon_than_the_state_s() -> None:
    state = state_of(Envelope.UPSERT)
    for horizon in (-1, 5):
        request = replace(plan_of(state.collection.kind).request(state, 20, 30), horizon=horizon)
        assert request.among({**PARTS, "u": (part("u1", 0, 25, first=29, last=29),)}).horizon == horizon


@pytest.mark.parametrize("envelope", Envelope)
def test_the_tasks_of_a_read_share_no_key_and_miss_no_part(envelope: Envelope) -> None:
    """What a reader on many machines goes by: each range on its own, with all that overlaps it and nothing else."""
    request = plan_as_of(state_of(envelope))
    whole = read_tasks(request, PARTS)
    cut = read_tasks(request, PARTS, target_rows=20)
    assert [(task.keys.lower, task.keys.upper) for task in whole] == [(None, None)]
    bounds = [(task.keys.lower, task.keys.upper) for task in cut]
    assert len(bounds) > 1
    assert (bounds[0][0], bounds[-1][1]) == (None, None)
    assert [upper for _, upper in bounds[:-1]] == [lower for lower, _ in bounds[1:]]
    for task in cut:
        inside = [{each.file.key for each in some.parts if _within(each, task.keys)} for some in whole[0].at_rest]
        assert [{each.file.key for each in some.parts} for some in task.at_rest] == inside
        assert (task.unsealed is None) == (whole[0].unsealed is None)
        assert task.unsealed is None or task.unsealed.keys == task.keys


@pytest.mark.parametrize("envelope", Envelope)
def test_unsealed_rows_are_read_as_they_are_or_by_the_task_of_the_drain(envelope: Envelope) -> None:
    request = plan_as_of(state_of(envelope))
    _, pending = at_rest(request, PARTS)
    (task,) = read_tasks(request, PARTS)
    if TASKS[envelope] is MergeTask:
        assert ([each.file.key for each in pending.parts], pending.after) == (["u1"], 19)
        assert task.unsealed is None
    else:
        assert pending.parts == ()
        assert task.unsealed == tasks_of(request.collection, request.unsealed, PARTS)[0]


def test_ranges_stay_within_the_keys_asked_for() -> None:
    cut = split_within(KeyRange((10,), (30,)), PARTS["t"], target_rows=10)
    assert [(keys.lower, keys.upper) for keys in cut] == [((10,), (20,)), ((20,), (30,))]


def _within(candidate: Part, keys: KeyRange) -> bool:
    below = keys.upper is not None and candidate.first_key >= keys.upper
    return not below and (keys.lower is None or candidate.last_key >= keys.lower)
