"""What is learned of days that are complete can be read at once; what was known before stays what it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simulation.script import row
from support.world import World, collection, gated, interval
from tests.support.reading import as_of, changes
from tidemark.errors import InvalidUsage, Uncertified
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Late
from tidemark.model.retention import Retention
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation
EACH = pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES, Envelope.UPSERT, Envelope.DEBEZIUM])


def made(folder: Path, envelope: Envelope = Envelope.APPEND, *, store: Any = None, **changed: Any) -> World:
    """Two rows in two days, and none to come: the collection ended at 20."""
    world = World(folder / "landing", collection(envelope, **{"end": 20, **changed}), store or MemoryStore())
    world.land(0, "a", [row(1, "a", 3)])
    world.land(1, "a", [row(2, "b", 14)])
    for day in range(2):
        pass_day(world, day)
    return world


def pass_day(world: World, day: int) -> list[dict[str, Any]]:
    """A day's run, or once more: what each of its steps reported."""
    steps = (
        lambda job: ingest(job, interval(day), landing_root=str(world.landing)),
        lambda job: seal(job, interval(day)),
        lambda job: drain(job, interval(day)),
        lambda job: compact(job, interval(day)),
    )
    return [world.run(step) for step in steps]


def late(world: World, name: str = "late", **cells: Any) -> list[dict[str, Any]]:
    """A late row comes with a file more of the second day, and that day's run is cleared."""
    world.land(1, name, [{**row(3, "c", 15, 4), **cells}])
    return pass_day(world, 1)


def count(world: World, **when: int) -> int:
    return sum(as_of(world.truth, world.state, **when).column("_multiplicity").to_pylist())


def rows_as_of(world: World, **when: int) -> Counter[tuple[int, str]]:
    rows = as_of(world.truth, world.state, **when).to_pylist()
    return Counter({(r["k"], r["v"]): r["_multiplicity"] for r in rows})


def frontiers(world: World) -> tuple[int, int, int]:
    state = world.state
    return state.complete_below, state.seal, state.trace_upper


@EACH
def test_a_late_row_is_read_without_an_interval_more(tmp_path: Path, envelope: Envelope):
    world = made(tmp_path, envelope)
    assert (count(world), frontiers(world)) == (2, (20, 20, 20))
    late(world)
    assert frontiers(world) == (20, 21, 21)
    assert count(world) == 3
    assert count(world, time=19) == 2, "as known before"
    assert count(world, event_time=4) == 2
    assert count(world, event_time=3) == 1
    updates = changes(world.truth, world.state, after=19).to_pylist()
    assert [(r["k"], r["_commit_version"], r["_event_time"]) for r in updates] == [(3, 20, 4)]


def test_a_run_once_more_finds_nothing_to_do(tmp_path: Path):
    world = made(tmp_path)
    late(world)
    version = world.head.version
    assert {result["outcome"] for result in pass_day(world, 1)} == {"nothing to do"}
    assert world.head.version == version


def test_an_older_fact_that_is_learned_at_once_changes_the_past_it_belongs_to(tmp_path: Path):
    world = made(tmp_path, Envelope.UPSERT)
    late(world, k=2, v="older")
    assert rows_as_of(world) == {(1, "a"): 1, (2, "b"): 1}
    assert rows_as_of(world, event_time=10) == {(1, "a"): 1, (2, "older"): 1}
    assert rows_as_of(world, event_time=19, time=19) == {(1, "a"): 1, (2, "b"): 1}


def test_a_day_without_late_rows_makes_no_tick_and_no_version_more(tmp_path: Path):
    world = made(tmp_path, end=None)
    before = world.head.version
    world.land(2, "a", [row(9, "n", 20), row(9, "n", 29)])
    pass_day(world, 2)
    records = [record.change.kind for record in world.log().history() if record.version > before]
    assert sorted(records) == sorted(["ingested", "certified", "sealed", "certified", "drained"]), (
        "a first attempt announces nothing"
    )
    assert frontiers(world) == (30, 30, 30)


def test_late_is_counted_from_what_is_complete_not_from_the_ticks(tmp_path: Path):
    """`max_lateness` 16 reaches down to 4, however often something was learned."""
    world = made(tmp_path, Envelope.UPSERT, late=Late("reemit", 16))
    for number in range(5):
        result = late(world, f"late{number}", k=10 + number)[0]
        assert (result["late_applied"], result["late_discarded"]) == (1, 0)
    found = late_rows(world.truth, world.state, limit=9)
    assert {(r["_lateness"], r["_complete_below"]) for r in found.rows} == {(16, 20)}
    assert sorted(r["_time"] for r in found.rows) == [20, 21, 22, 23, 24]


def test_what_a_day_beyond_a_missing_one_brought_late_waits_for_that(tmp_path: Path):
    """In its turn it would be learned at 30, when all before is complete; so it is, whoever comes first."""
    world = made(tmp_path, end=None)
    world.land(3, "a", [row(3, "c", 31, 4), row(9, "n", 35)])
    result = pass_day(world, 3)[1]
    assert frontiers(world) == (20, 20, 20)
    assert (result["complete_below"], result["seal"]) == (20, 20)
    assert result["waiting_for"] == str(interval(2))
    assert rows_as_of(world) == {(1, "a"): 1, (2, "b"): 1}
    pass_day(world, 2)
    assert frontiers(world) == (40, 40, 40)
    assert count(world) == 4
    updates = changes(world.truth, world.state, after=19).to_pylist()
    assert [(r["k"], r["_commit_version"], r["_event_time"]) for r in updates] == [(3, 30, 4), (9, 35, 35)]


def test_a_tick_is_certified_like_any_seal(tmp_path: Path):
    world = made(tmp_path)
    world.land(1, "late", [row(3, "c", 15, 4)])
    world.run(lambda job: ingest(job, interval(1), landing_root=str(world.landing)))
    with pytest.raises(Uncertified, match="below 21 is not certified"):
        seal(world.job(), interval(1))
    gated(world.job(), lambda job: seal(job, interval(1)))
    assert frontiers(world) == (20, 21, 20)
    with pytest.raises(Uncertified, match="certified up to 20, the seal is 21"):
        drain(world.job(), interval(1))
    assert count(world) == 3, "known, though not drained"
    world.run(lambda job: drain(job, interval(1)))
    assert count(world) == 3


def test_a_batch_that_a_tick_has_passed_is_not_put_back(tmp_path: Path):
    world = made(tmp_path)
    for name in ("late", "other"):
        world.land(1, name, [row(3, "c", 15, 4)])
        world.run(lambda job: ingest(job, interval(1), landing_root=str(world.landing)))
    batch = world.state.unsealed[-1].id
    world.run(lambda job: quarantine(job, batch))
    world.run(lambda job: seal(job, interval(1)))
    with pytest.raises(InvalidUsage, match="the seal 21 has passed the batch's first time 20; ingest its files again"):
        world.run(lambda job: release(job, batch))
    assert count(world) == 3
    pass_day(world, 1)
    assert (frontiers(world), count(world)) == ((20, 22, 22), 4)


@pytest.mark.parametrize("retention", [Retention("tiered", keep_recent=2), Retention("full_merge")])
def test_ticks_do_not_push_days_out_of_what_is_kept(tmp_path: Path, retention: Retention):
    world = made(tmp_path, retention=retention, late=Late("reemit", 0))
    since = world.state.since
    world.land(1, "late", [row(3, "c", 15, 4)])
    pass_day(world, 1)
    world.run(lambda job: replay(job, as_now=True))
    pass_day(world, 1)
    assert frontiers(world) == (20, 21, 21)
    assert world.state.since == since
    assert count(world, time=19) == 2
