"""A file that cannot be taken stops its interval, and never what others did with it meanwhile."""

from __future__ import annotations

import pytest

from support.faulty import InterruptedStore
from support.world import World, collection, interval
from tidemark.errors import Contention, GateFailed
from tidemark.jobs.ingest import ingest
from tidemark.jobs.job import Job

pytestmark = pytest.mark.model
GOOD = [{"k": 1, "v": "a", "t": 3, "e": 3}]


def take(world: World):
    def step(job: Job):
        return ingest(job, interval(0), landing_root=str(world.landing))

    return step


def test_a_refusal_that_comes_after_the_mended_file_was_counted_changes_nothing(tmp_path, stores):
    world = World(tmp_path, collection(), stores())
    world.land(0, "a", [{"k": "not a number", "v": "a", "t": 3, "e": 3}])

    def mended_and_taken() -> None:
        world.land(0, "a", GOOD)
        newer = world.run(take(world))
        assert newer["rows"] == 1

    truth = world.truth
    # The slow attempt has read the bad file when it writes what the ledger shall remember of it.
    interrupted = InterruptedStore(truth, "create", mended_and_taken, after=False)
    slow = world.job()
    slow.store = interrupted
    with pytest.raises(Contention):
        take(world)(slow)
    assert interrupted.interrupted
    assert world.run(take(world))["outcome"] == "nothing to do"
    assert world.state.totals.rows_ingested == 1


def test_a_mended_file_is_taken_after_the_refusal(tmp_path, stores):
    world = World(tmp_path, collection(), stores())
    world.land(0, "a", [{"k": "not a number", "v": "a", "t": 3, "e": 3}])
    with pytest.raises(GateFailed, match=r"a\.jsonl"):
        world.run(take(world))
    world.land(0, "a", GOOD)
    assert world.run(take(world))["rows"] == 1
    assert world.run(take(world))["outcome"] == "nothing to do"
