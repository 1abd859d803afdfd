"""Cases that a random search over commands did not find in the system this one descends from, each on its own.

Rows that compaction has not reached yet must be forwarded by the read; a listener that
follows a snapshot must see what is beyond the seal once. And since beyond the seal, the empty frontier, reads
while merges run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.world import World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope, Gate
from tidemark.model.frontier import EMPTY
from tidemark.model.transition import Stale

pytestmark = pytest.mark.simulation
ENVELOPES = pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT], ids=str)


def rows(day: int, *, late: bool) -> list[dict[str, Any]]:
    """Key 1 changes daily, key 2 does too and may be reported late, a new key comes each day."""

    def row(k: int, v: str, t: int, e: int) -> dict[str, Any]:
        return {"k": k, "v": v, "t": t, "e": e, "o": None, "gone": False}

    start = day * 10
    return [
        row(1, f"v{day % 2}", start + 3, start + 3),
        row(2, f"w{day}", start + 4, max(0, start - 5) if late else start + 4),
        row(10 + day, "n", start, start),
    ]


def made(folder: Path, envelope: Envelope, days: int, **declared: Any) -> World:
    world = World(folder, collection(envelope, **declared))
    for day in range(days):
        passed(world, day)
    return world


def passed(world: World, day: int, *, late: bool = True) -> None:
    """A day as a run of Airflow has it, without compaction."""
    world.land(day, "a", rows(day, late=late))
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(day)))
    world.run(lambda job: drain(job, interval(day)))


def allow(world: World, since: int) -> object:
    return world.run(lambda job: job.log.commit(job.log.load(), CompactionAllowed(since)))


def merge(world: World, day: int = 0) -> int:
    """Compact all there is to compact, whatever the budget of live batches; how many batches were merged."""
    before = len(world.state.trace)
    certify(world.job(), Gate.TRACE)
    world.run(lambda job: compact(job, interval(day)))
    return before - len(world.state.trace)


def readable(world: World, state: Arrangement) -> list[Any]:
    """All that can be read at and after since: the collection at every time, as of event times, and the changes."""
    since, seal = state.since, state.seal
    contents = [
        as_of(world.truth, state, time=time, event_time=event_time).to_pylist()
        for time in range(since, seal)
        for event_time in (None, since, max(since, seal - 7))
    ]
    return [contents, changes(world.truth, state, after=since).to_pylist()]


@ENVELOPES
def test_what_compaction_has_not_reached_yet_is_forwarded_by_the_read(tmp_path: Path, envelope: Envelope):
    world = made(tmp_path, envelope, 4, live_batches=2)
    allow(world, 25)
    unmerged = world.state
    assert [batch.description.since for batch in unmerged.trace] == [0, 0, 0, 0]
    before = readable(world, unmerged)
    assert merge(world)
    assert max(batch.description.since for batch in world.state.trace) > 0
    assert readable(world, world.state) == before
    for answer in before[1]:
        assert answer["_event_time"] >= 25


@ENVELOPES
def test_since_beyond_the_seal_waits_for_the_data(tmp_path: Path, envelope: Envelope):
    """It may be known before the data is: nothing can be read until the seal has passed it, and then all from it on.

    Rows that are late meanwhile tell of what may have been forgotten: they are dead letters, so there are none here."""
    world, plain = (made(tmp_path / name, envelope, 2, live_batches=2) for name in ("a", "b"))
    allow(world, 35)
    with pytest.raises(InvalidUsage, match=r"1970-01-01T00:00:00\.000035Z"):
        as_of(world.truth, world.state)
    for day in (2, 3):
        for each in (world, plain):
            passed(each, day, late=False)
        merge(world, day)
    assert world.state.since == 35
    for time in range(35, 40):
        answers = [as_of(each.truth, each.state, time=time).to_pylist() for each in (world, plain)]
        assert answers[0] == answers[1]
        assert answers[0]
    with pytest.raises(InvalidUsage, match=r"1970-01-01T00:00:00\.000035Z"):
        as_of(world.truth, world.state, time=34)


@ENVELOPES
def test_where_since_is_the_empty_frontier_nothing_is_read_and_nothing_forwarded(tmp_path: Path, envelope: Envelope):
    world = made(tmp_path, envelope, 3, live_batches=2)
    allow(world, EMPTY)
    for time in (0, 29, None):
        with pytest.raises(InvalidUsage):
            as_of(world.truth, world.state, time=time)
    passed(world, 3)
    merge(world, 3)
    assert len(world.state.trace) <= 2
    assert sum(batch.rows for batch in world.state.trace) > len(world.state.trace), "times were forwarded"
    assert isinstance(allow(world, 99), Stale)
    assert world.state.since == EMPTY
