"""For n = 1, 2, …: the nth call to storage fails while history is trimmed, kept by a hold, allowed to go and merged."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.faulty import Fault, FaultyStore, LostAckStore
from support.world import World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.jobs.job import Job
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.retain import drop_hold, hold
from tidemark.jobs.steps.seal import seal
from tidemark.jobs.steps.trim import trim
from tidemark.model.collection import Envelope, Gate, Late
from tidemark.model.retention import Retention, Step
from tidemark.storage.stores.store import AlreadyExists, Indeterminate

pytestmark = pytest.mark.simulation

LADDER = Retention("ladder", steps=(Step(None, 8), Step(2, 20), Step(10)))
DAYS = 3
Work = Callable[[Job], Any]


def made(folder: Path, envelope: Envelope) -> World:
    """Three days of a collection that keeps a ladder and few batches; files bring rows of days to come, too."""
    declared = collection(envelope, live_batches=2, retention=LADDER, late=Late("reemit", 5))
    world = World(folder, declared)
    for day in range(DAYS):
        rows = [
            {"k": n % 3, "v": f"{day}{n}", "t": day * 10 + n, "e": day * 10 + max(0, n - 4), "o": 0, "gone": n == 7}
            for n in range(0, 22, 3)
        ]
        world.land(day, "a", rows)
    return world


def work(folder: Path) -> list[Work]:
    """What is interrupted; all else is in between."""
    steps: list[Work] = []
    for day in range(DAYS):
        steps += [
            lambda job, day=day: prepared(job, folder, day),
            lambda job, day=day: trim(job, interval(day), least_share=0.0),
            lambda job: hold(job, "reader", since=12) if job.log.load().state.since <= 12 else None,
            lambda job, day=day: compact(job, interval(day)),
        ]
    steps.append(lambda job: drop_hold(job, "reader") if job.log.load().state.holds else None)
    steps.append(lambda job: compact(job, interval(DAYS)))
    return steps


def prepared(job: Job, folder: Path, day: int) -> None:
    ingest(job, interval(day), landing_root=str(folder))
    certify(job, Gate.UNSEALED)
    seal(job, interval(day))
    certify(job, Gate.FRONTIER)
    drain(job, interval(day))
    certify(job, Gate.TRACE)


def seen(world: World) -> list[Any]:
    """All that can be read at the times that are kept, and the shape of what is stored."""
    world.forget()
    state = world.state
    kept = [time for time in range(state.seal) if state.function.keeps(time)]
    rows = [as_of(world.truth, state, time=time).to_pylist() for time in {*kept[:1], *kept[-1:], *kept[::9]}]
    updates = changes(world.truth, state, after=kept[0]).to_pylist() if kept else []
    trace = [(b.description, b.level, b.rows, b.digest, b.retractions) for b in state.trace]
    waiting = (*state.unsealed, *state.ahead)
    unsealed = [(b.first_time, b.last_time, b.rows, b.digest, b.trimmed) for b in waiting]
    totals = (state.totals.rows_compacted, state.totals.rows_drained, state.totals.rows_ingested)
    return [
        rows,
        updates,
        trace,
        unsealed,
        totals,
        state.function,
        [h.name for h in state.holds],
        state.forgotten_below,
    ]


def restore(world: World, objects: dict[str, bytes]) -> None:
    world.truth.objects = dict(objects)
    world.forget()


@pytest.fixture(scope="module", params=[Envelope.APPEND, Envelope.UPSERT], ids=str)
def clean(request, tmp_path_factory) -> tuple[Envelope, list[Any]]:
    folder = tmp_path_factory.mktemp("clean")
    world = made(folder, request.param)
    for step in work(folder):
        world.run(step)
    state = world.state
    assert any(b.description.rungs for b in state.trace)
    # What is still to come: of updates it is put ahead, of facts its batch is trimmed to it.
    assert state.ahead if request.param is Envelope.APPEND else any(b.trimmed for b in state.unsealed)
    assert state.since > 12
    assert verify(world.job(), data=True).sound
    return request.param, seen(world)


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_any_single_fault_then_the_step_again_changes_nothing(tmp_path, clean, after, dies):
    envelope, expected = clean
    world = made(tmp_path, envelope)
    fired: list[str] = []
    for at, step in enumerate(work(tmp_path)):
        before = dict(world.truth.objects)
        world.run(step)
        then, answers = dict(world.truth.objects), seen(world)
        # The last day, and what comes after it.
        for nth in count(1) if at > 4 * (DAYS - 1) else ():
            restore(world, before)
            world.store = faulty = FaultyStore(world.truth, Fault(nth, after, dies))
            world.run(step)
            if faulty.fired is None:
                break
            fired.append(faulty.fired.split("/")[0])
            assert seen(world) == answers, f"step {at}, call {nth}: {faulty.fired}"
        world.store = world.truth
        restore(world, then)
    assert seen(world) == expected
    assert {"create versions", "create data", "close_output data"} <= set(fired)


@pytest.mark.parametrize("error", [AlreadyExists, Indeterminate])
def test_lost_acknowledgements_leave_the_same(tmp_path, clean, error):
    envelope, expected = clean
    world = made(tmp_path, envelope)
    world.store = lossy = LostAckStore(world.truth, error)
    for step in work(tmp_path):
        world.run(step)
    assert seen(world) == expected
    assert lossy.lost > 20
    assert verify(world.job(), data=True).sound
