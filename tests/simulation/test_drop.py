"""A collection is dropped: beside running steps, by whoever is killed at any call, and with its way back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from simulation.script import answers, row, steps
from simulation.script import world as world_of_days
from simulation.test_removed_by_hand import STEPS
from support.faulty import Fault, FaultyStore, WrappedStore
from support.world import World
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import GRACES, SECOND, collect
from tidemark.jobs.steps.drop import drop, undo
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Created
from tidemark.model.collection import Envelope
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = pytest.mark.simulation
KEEP = 2 * 3600 * SECOND
NAME = "tides"


def dropped(job: Job) -> Any:
    return drop(job, NAME, others=(), folder=Path("nowhere"))


def collected(job: Job) -> Any:
    return collect(job, keep=KEEP, graces=GRACES)


@pytest.fixture(scope="module")
def four_days(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("days")
    made = world_of_days(folder, Envelope.APPEND, MemoryStore())
    for step in steps(folder):
        made.run(step)
    made.land(4, "a", [row(9, "new", 41)])
    return made


def copied(world: World, wrap: Callable[[MemoryStore], WrappedStore]) -> World:
    """The world again, over a store of its own, with the jobs' calls wrapped."""
    truth = MemoryStore()
    truth.objects, truth.modified = dict(world.truth.objects), dict(world.truth.modified)  # type: ignore[attr-defined]
    made = World.__new__(World)
    clock = type(world.clock)(world.clock.now)
    made.__dict__ |= vars(world) | {"truth": truth, "store": wrap(truth), "clock": clock, "_head": None}
    truth.clock = made.wall
    return made


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_any_single_fault_then_the_same_again(four_days: World, looks: int, after: bool, dies: bool) -> None:
    """Dropped, listed by a collector, brought back, dropped again, and removed for good.

    Some calls fail, at each depth others.
    """
    expected = answers(four_days)
    fired = 0
    for nth in count(1):
        if (nth + dies) % (looks if after else 4 * looks):
            continue
        faulty = None

        def wrap(truth: MemoryStore, nth: int = nth) -> FaultyStore:
            nonlocal faulty
            faulty = FaultyStore(truth, Fault(nth, after, dies))
            return faulty

        world = copied(four_days, wrap)
        for step in (dropped, collected, undo_it):
            world.run(step)
        assert answers(world) == expected, f"call {nth}"
        assert list(verify_history(world.log())) == []
        assert list(verify_objects(world.truth, world.state)) == []
        world.run(dropped)
        for _ in range(6):
            world.run(collected)
            world.clock.now += 25 * 3600
        left = [key for key in world.truth.objects if not key.startswith("collect/")]  # type: ignore[attr-defined]
        assert all(key.startswith("versions/") for key in left), left
        assert len(left) <= 17
        assert world.head.arrangement is None
        assert faulty is not None
        if not faulty.fired:
            break
        fired += 1
    assert fired > (18 // looks if after else 40 // looks)


def undo_it(job: Job) -> Any:
    return undo(job, NAME)


class DroppedBeside(WrappedStore):
    """Somebody drops the collection before the nth call; and where `again`, creates another one of its name."""

    def __init__(self, inner: MemoryStore, nth: int, drop_it: Callable[[], None]) -> None:
        super().__init__(inner)
        self.left = nth
        self.drop_it = drop_it

    def _call(self, name: str, key: str, action: Callable[[], Any], *, writes: bool) -> Any:
        self.left -= 1
        if not self.left:
            self.drop_it()
        return action()


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "dropped and created"])
@pytest.mark.parametrize("number", range(len(STEPS)), ids=["ingest", "seal", "drain", "compact", "collect"])
def test_a_step_beside_a_drop_ends_in_a_line_and_makes_no_half_collection(
    four_days: World, tmp_path: Path, number: int, again: bool
) -> None:
    ready = copied(four_days, lambda truth: WrappedStore(truth))
    for before in STEPS[:number]:
        ready.run(lambda job, before=before: before(job, four_days.landing))  # type: ignore[misc]
    for nth in count(1):
        states: list[Arrangement] = []
        others: list[World] = []

        def drop_it(states: list[Arrangement] = states, others: list[World] = others) -> None:
            (world,) = others
            log = world.log()
            states.append(log.load().state)
            dropped(Job(world.truth, log, lambda: None, "other", world.new_id))  # type: ignore[arg-type,return-value]
            if again:
                log.commit(log.load(), Created(four_days.collection, "another"))

        beside = copied(ready, lambda truth, nth=nth, drop_it=drop_it: DroppedBeside(truth, nth, drop_it))  # type: ignore[misc]
        others.append(beside)
        with suppress(TidemarkError):
            beside.run(lambda job: STEPS[number](job, four_days.landing), attempts=1)
        if not states:
            assert nth > 3
            return
        assert list(verify_history(beside.log())) == [], nth
        if not again:
            assert beside.head.arrangement is None
            with pytest.raises(InvalidUsage, match="it was dropped"):
                beside.run(lambda job: STEPS[0](job, four_days.landing))
            if number < 4:  # the collector removed at once what no version names
                beside.run(undo_it)
                assert beside.state == states[0]
            continue
        assert beside.state.incarnation == "another"
        batches = {batch.id for batch in states[0].batches}
        assert not batches & {batch.id for batch in beside.state.batches}, "the new one has rows of the old one"
        assert list(verify_objects(beside.truth, beside.state)) == []
