"""What corrections cost in bytes: what is kept for them and for nothing else, counted against the store itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.relanded import relanded
from support.world import World, certify, collection, interval
from tidemark.jobs.queries.reprocessing import _TABLES, reprocess_bytes
from tidemark.jobs.queries.status import status
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Redefined
from tidemark.model.collection import Envelope, Gate
from tidemark.storage.log.versions import CHECKPOINT_EVERY

pytestmark = pytest.mark.simulation
DAYS = 8


def made(folder: Path, reprocess_for: int) -> World:
    """Days of one row each, every one of them through all steps, four live batches at most."""
    world = World(folder, collection(Envelope.APPEND, reprocess_for=reprocess_for, live_batches=4))
    for day in range(DAYS):
        world.land(day, "a", [{"k": day, "v": "x" * 200, "t": 10 * day + 3, "e": 10 * day + 3}])
        world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(folder)))
        world.run(lambda job, day=day: seal(job, interval(day)))
        certify(world.job(), Gate.FRONTIER)
        world.run(lambda job, day=day: drain(job, interval(day)))
        world.run(lambda job, day=day: compact(job, interval(day)))
    return world


def stored(world: World) -> int:
    """The bytes of parts and their tables that are left once all is collected that nothing needs. What a version
    recorded since the last checkpoint stays with it, so there are as many first that record nothing."""
    log = world.log()
    for _ in range(CHECKPOINT_EVERY):
        log.commit(log.load(), Attempted(Fence("drain", interval(0), world.new_id())))
    for _ in range(2):
        collect(world.job(), keep=0, graces=AT_ONCE)
    return sum(info.bytes for info in world.truth.list("data/"))


@pytest.mark.parametrize("reprocess_for", [25, 1000])
def test_it_is_what_goes_once_nothing_may_be_corrected_any_more(tmp_path: Path, reprocess_for: int) -> None:
    """Compaction has rewritten rows of old days: their first parts are kept for corrections only."""
    world = made(tmp_path, reprocess_for)
    reported, before = reprocess_bytes(world.truth, world.state), stored(world)
    assert reported is not None
    assert reported > 0
    log = world.log()
    log.commit(log.load(), Redefined(relanded(world.state.collection, reprocess_for=0)))
    assert reprocess_bytes(world.truth, world.state) is None
    assert before - stored(world) == reported


def test_where_nothing_may_be_corrected_it_costs_nothing_and_nothing_is_said(tmp_path: Path) -> None:
    world = made(tmp_path, 0)
    assert reprocess_bytes(world.truth, world.state) is None
    shown = status(world.head).as_dict()
    assert (shown["correctable_from"], shown["correctable_from_text"], shown["reprocess_bytes"]) == (None, None, None)


def test_an_older_version_whose_old_days_are_collected_still_has_a_status(tmp_path: Path) -> None:
    """What could be corrected then is gone by now, and an older version does not hold it."""
    world = made(tmp_path, 1000)
    then = world.head
    log = world.log()
    log.commit(log.load(), Redefined(relanded(world.state.collection, reprocess_for=0)))
    before = reprocess_bytes(world.truth, then.state)
    stored(world)
    _TABLES.clear()
    after = reprocess_bytes(world.truth, then.state)
    assert before is not None
    assert after is not None
    assert 0 <= after < before
