"""Trimming: an unsealed batch that was partly drained is rewritten smaller, and nobody can tell."""

from __future__ import annotations

from pathlib import Path

from support.world import World, collection, interval
from tests.support.reading import as_of
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.jobs.steps.trim import trim
from tidemark.model.collection import Envelope, Late


def ahead(folder: Path, envelope: Envelope = Envelope.APPEND, **changes: object) -> World:
    """Day 0 brings rows of days 0 to 3; then days 0 and 1 are sealed and drained, the latter trims."""
    world = World(folder, collection(envelope, **changes))
    rows = [{"k": n, "v": "x", "t": n, "e": n, "o": 0, "gone": False} for n in range(40)]
    world.land(0, "a", rows)
    world.run(lambda job: ingest(job, interval(0), landing_root=str(folder)))
    world.run(lambda job: ingest(job, interval(1), landing_root=str(folder)))
    return world


def drained(world: World, day: int) -> int:
    world.run(lambda job: seal(job, interval(day)))
    return int(world.run(lambda job: drain(job, interval(day))).get("trimmed", 0))


def answers(world: World) -> list[list[dict[str, object]]]:
    return [as_of(world.truth, world.state, time=time).to_pylist() for time in range(0, world.state.seal, 3)]


def sound(world: World) -> bool:
    return verify(world.job(), data=True).sound


def test_remembered_facts_go_once_none_can_be_placed_before_them(tmp_path: Path) -> None:
    """Rows may come up to ten late: of a drained batch those facts stay that happened in the last ten."""
    world = World(tmp_path, collection(Envelope.UPSERT, late=Late("reemit", 10)))
    rows = [{"k": n % 3, "v": f"v{n}", "t": n, "e": n, "o": 0, "gone": False} for n in range(20)]
    world.land(0, "a", rows)
    for day in (0, 1):
        world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(tmp_path)))
    assert drained(world, 1) == 1
    (after,) = world.state.unsealed
    assert (after.rows, after.first_event_time, world.state.forgotten_below) == (10, 10, 10)
    before = answers(world)
    late = {"k": 1, "v": "late", "t": 20, "e": 12, "o": 0, "gone": False}
    world.land(2, "b", [late, late | {"e": 9}])
    world.run(lambda job: ingest(job, interval(2), landing_root=str(tmp_path)))
    drained(world, 2)
    assert answers(world)[: len(before)] == before
    at_12 = as_of(world.truth, world.state, event_time=12).to_pylist()
    assert {row["k"]: row["v"] for row in at_12} == {0: "v12", 1: "late", 2: "v11"}
    assert sound(world)


def test_facts_that_later_ones_are_placed_among_stay(tmp_path: Path) -> None:
    """However late rows may come, nothing is forgotten, so nothing can go."""
    world = ahead(tmp_path, Envelope.UPSERT)
    assert [drained(world, 0), drained(world, 1)] == [0, 0]
    assert world.run(lambda job: trim(job, interval(1), least_share=0.0)) == 0
    assert world.state.unsealed[0].rows == 40
