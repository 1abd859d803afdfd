"""The way out of a failing gate: a batch taken out, its files mended, or the batch put back."""

from __future__ import annotations

import pytest

from support.faulty import WrappedStore
from support.world import World, collection, gated, interval
from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.storage.sidecars.ledger import FAN_IN

pytestmark = pytest.mark.simulation
ROW = {"k": 1, "v": "a", "t": 3, "e": 3}


@pytest.fixture
def world(tmp_path, stores):
    return World(tmp_path, collection(), stores())


def take(world: World, day: int = 0):
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))


def test_a_file_is_counted_once_whichever_way_its_batch_comes_back(world: World):
    world.land(0, "a", [ROW])
    batch = take(world)["batch"]
    world.run(lambda job: quarantine(job, batch))
    assert world.run(lambda job: release(job, batch))["outcome"] == "applied"
    assert take(world)["outcome"] == "nothing to do"
    world.run(lambda job: quarantine(job, batch))
    again = take(world)["batch"]
    assert again != batch
    with pytest.raises(InvalidUsage, match=f"ingested again as batch {again}"):
        world.run(lambda job: release(job, batch))


def test_a_batch_whose_files_the_ledger_no_longer_tells_of_is_not_put_back(world: World):
    """Taken, freed, taken again, freed again; a merge of the ledger keeps the last word on each file only."""
    world.land(0, "a", [ROW])
    first = take(world)["batch"]
    world.run(lambda job: quarantine(job, first))
    second = take(world)["batch"]
    world.run(lambda job: quarantine(job, second))
    for day in range(1, FAN_IN):
        world.land(day, "a", [{**ROW, "t": day * 10, "e": day * 10}])
        take(world, day)
    world.run(lambda job: compact(job, interval(0)))
    assert len(world.state.ledger) < FAN_IN
    with pytest.raises(InvalidUsage, match="ingest them"):
        release_of(world, first)
    assert world.run(lambda job: release(job, second))["outcome"] == "applied"
    assert take(world)["outcome"] == "nothing to do"


class Meanwhile(WrappedStore):
    """A store in which something happens once, just before the ledger is written to."""

    happens = None

    def create(self, key, data):
        happens, self.happens = self.happens, None
        if happens and key.startswith("ledger/"):
            happens()
        super().create(key, data)


@pytest.mark.usefixtures("nothing_is_small")
def test_who_is_overtaken_is_asked_to_run_again_and_who_is_wrong_is_not(world: World):
    """The error's class says so, whatever its words are."""
    world.land(0, "a", [ROW])
    batch = take(world)["batch"]
    world.run(lambda job: quarantine(job, batch))
    job = world.job()
    job.store = store = Meanwhile(world.truth)
    store.happens = lambda: take(world)
    with pytest.raises(Contention, match="ingested by another run"):
        release(job, batch)
    with pytest.raises(InvalidUsage, match="ingested again"):
        release(world.job(), batch)
    store.happens = lambda: drained(world)
    with pytest.raises(InvalidUsage, match="no unsealed batch"):
        quarantine(job, world.state.unsealed[0].id)


def drained(world: World):
    world.run(lambda job: seal(job, interval(0)))
    world.run(lambda job: drain(job, interval(0)))


def release_of(world: World, batch: str):
    def step(job: Job):
        return release(job, batch)

    return gated(world.job(), step)
