"""Clocks that are put forward or back while an attempt runs and collectors come by: ages are wrong then, answers never.

The wall clock is the store's here, as on local files; what really passes is distinguished from it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from simulation.script import row
from simulation.script import world as world_of_days
from support.faulty import InterruptedStore, WrappedStore
from support.world import KILLED, World, interval
from tidemark.errors import Contention
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import SECOND, collect
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.collection import Envelope
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = pytest.mark.simulation
HOUR = 3600.0
KEEP = 2 * 3600 * SECOND


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = world_of_days(tmp_path, Envelope.APPEND, MemoryStore())
    made.land(4, "a", [row(9, "new", 41)])
    return made


def sound(world: World) -> None:
    log = world.log()
    assert list(verify_history(log)) == []
    for version in range(log.oldest_version(), log.newest_version() + 1):
        assert list(verify_objects(world.truth, log.load(version).state)) == [], f"version {version}"


def count_unsealed(world: World) -> int:
    return len(world.state.unsealed)


@pytest.mark.usefixtures("nothing_is_small")
def test_an_attempt_whose_objects_were_removed_meanwhile_writes_them_again(world: World, tmp_path: Path):
    """Whoever removed them: a collector misled by its clock, a rule of the bucket, a person."""

    def meanwhile() -> None:
        gone = [info.key for info in world.truth.list("data/")]
        assert gone
        world.truth.delete(gone[0])

    class Robbed(InterruptedStore):
        def _call(self, name, key, action, *, writes):
            # The last thing an ingest writes before its commit is its run of the ledger.
            if name != "create" or not key.startswith("ledger/"):
                return action()
            return super()._call(name, key, action, writes=writes)

    world.store = robbed = Robbed(world.truth, "create", meanwhile, after=True)
    result = world.run(lambda job: ingest(job, interval(4), landing_root=str(tmp_path)), attempts=1)
    assert robbed.interrupted
    assert result["outcome"] == "applied"
    assert (result["rows"], count_unsealed(world)) == (1, 1)
    sound(world)


class WatchedIngest(InterruptedStore):
    """What others do just before the version that ingests is created."""

    def __init__(self, inner, meanwhile):
        super().__init__(inner, "create", meanwhile, after=False)

    def create(self, key, data):
        self.data = data
        super().create(key, data)

    def _call(self, name, key, action, *, writes):
        if not (name == "create" and key.startswith("versions/") and b'"ingested"' in self.data):
            return action()
        return super()._call(name, key, action, writes=writes)


def test_what_a_misled_collector_is_about_to_remove_is_not_committed(world: World, tmp_path: Path):
    """A collector of an earlier release takes a step of the clock for a day that passed. It has committed and removed
    nothing yet when the attempt looks: all is there still, and will not be."""
    slow: list[World] = []

    class Slow(WrappedStore):
        """The collector's: it stands still at its first delete of data, until the attempt has committed."""

        def delete(self, key):
            (removed if key.startswith("data/") else kept).append(key)

    removed: list[str] = []
    kept: list[str] = []

    def misled() -> None:
        if slow:
            return
        slow.append(world)
        collect(world.job(), keep=KEEP)
        world.clock.now += 60
        world.stepped += 25 * HOUR
        trusting(world, Slow(world.truth))

    world.store = WatchedIngest(world.truth, misled)
    result = world.run(lambda job: ingest(job, interval(4), landing_root=str(tmp_path)), attempts=1)
    assert removed, "the objects of the first try"
    for key in removed:
        world.truth.delete(key)
    assert (result["outcome"], count_unsealed(world)) == ("applied", 1)
    sound(world)


def trusting(world: World, store: WrappedStore) -> None:
    """A collector on another machine, whose clocks all went with the store's."""
    log = world.log(store)
    log.monotonic, log.boot = world.wall, lambda: "another"
    job = Job(store, log, lambda: None, "collector", world.new_id)  # type: ignore[arg-type, return-value]
    try:
        collect(job, keep=KEEP)
    except Contention as error:
        raise AssertionError(error) from error


class Unsteady(WrappedStore):
    """A collector's: the wall clock, and the store's with it, is put by a day and back again while it works: at call
    `first`, and at each `every`th after it."""

    def __init__(self, world: World, step: float, every: int, first: int) -> None:
        super().__init__(world.truth)
        self.world, self.step, self.every = world, step, every
        self.left, self.steps = first, 0

    def _call(self, name, key, action, *, writes):
        self.left -= 1
        if self.left <= 0:
            self.left = self.every
            self.world.stepped = self.step - self.world.stepped
            self.steps += 1
        return action()


def unsteady_collect(world: World, step: float, every: int, first: int) -> int:
    """A collector while the clock goes to and fro; how often it did. It may give way, and nothing else."""
    store = Unsteady(world, step, every, first)
    job = Job(store, world.log(store), lambda: None, "collector", world.new_id)  # type: ignore[arg-type, return-value]
    with suppress(Contention):
        collect(job, keep=KEEP)
    world.forget()
    return store.steps


@pytest.mark.parametrize("step", [25 * HOUR, -25 * HOUR], ids=["ahead", "back"])
@pytest.mark.parametrize("every", [1, 2, 3, 5, 8, 13])
def test_a_clock_that_goes_a_day_to_and_fro_while_collectors_work_takes_nothing_early(
    world: World, tmp_path: Path, step: float, every: int
):
    """For less than an hour, in which some commit; then the clock is right, and in two days all goes that may."""
    world.truth.create(KILLED, b"1")
    before, steps = world.log().oldest_version(), 0
    for number in range(24):
        steps += unsteady_collect(world, step, every, first=number % 12 + 1)
        world.clock.now += 120
        if number % 6 == 0:
            world.land(5 + number, "a", [row(9, "new", (5 + number) * 10 + 1)])
            result = world.run(lambda job, n=number: ingest(job, interval(5 + n), landing_root=str(tmp_path)))
            assert result["outcome"] == "applied"
        assert world.log().oldest_version() == before, "its hour has not passed"
        assert KILLED in world.truth.objects, "its day has not passed"
    assert steps > 20
    sound(world)
    assert count_unsealed(world) == 4
    world.stepped = 0
    for _ in range(6):
        collect(world.job(), keep=KEEP)
        world.clock.now += 13 * HOUR
    assert KILLED not in world.truth.objects, "collectors came to rest for good"
    sound(world)
