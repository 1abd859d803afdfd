"""The collector beside a publication: what a published table may name stays, until it is let go."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation.script import DAYS, steps
from simulation.test_collect import collected, idle, keys
from support.world import World, collection, interval
from tidemark.jobs.steps.compact import compact
from tidemark.model.change import Published, Publishing, Unpublished
from tidemark.model.collection import Envelope
from tidemark.model.publication import TableFormat, pin_of
from tidemark.storage.log.log import Committed
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.verify.collection import verify_objects

pytestmark = pytest.mark.simulation
ICE = TableFormat.ICEBERG


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, collection(Envelope.APPEND, live_batches=2), MemoryStore())
    for day, files in enumerate(DAYS):
        for name, rows in files.items():
            made.land(day, name, rows)
    return made


def test_pinned_parts_outlive_their_batch(world: World) -> None:
    merges = list(steps(world.landing))
    for step in merges[: len(merges) // 2]:
        world.run(step)
    pins = tuple(pin_of(batch.parts) for batch in world.state.trace if batch.parts)
    files = {p.file.key for batch in world.state.trace for p in parts_table.parts_of(world.truth, [batch])}
    assert files
    log = world.log()
    assert isinstance(log.commit(log.load(), Publishing(ICE, "db.t", "a1", pins)), Committed)
    for step in merges[len(merges) // 2 :]:
        world.run(step)
    world.run(lambda job: compact(job, interval(9)))
    live = {p.file.key for batch in world.state.live for p in parts_table.parts_of(world.truth, [batch])}
    assert files - live, "some of what is published was merged away since"
    for hours in (0, 26, 26, 26):
        idle(world)
        collected(world, hours=hours)
    assert files <= keys(world, "data/"), "no file that the table names is missing"
    # Verified as what batches name is.
    gone = min(files - live)
    content = world.truth.objects.pop(gone)
    (finding,) = verify_objects(world.truth, world.state)
    assert finding.detail == f"{gone} that a published table names is missing"
    world.truth.objects[gone] = content

    log.commit(log.load(), Published(ICE, "db.t", "a1", "1", 1, 9, 40, tuple(pin.name for pin in pins[:1])))
    log.commit(log.load(), Unpublished(ICE))
    for hours in (0, 26, 26, 26):
        idle(world)
        collected(world, hours=hours)
    assert not (files - live) & keys(world, "data/"), "let go, and removed"
