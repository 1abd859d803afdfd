"""Change messages of Debezium and the same feed as upserts: one collection, whatever comes in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulation.script import row
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of, changes
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope

pytestmark = pytest.mark.simulation
BOTH = [Envelope.UPSERT, Envelope.DEBEZIUM]


def run_day(world: World, day: int, *, settle: bool) -> None:
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    if settle:
        world.run(lambda job: seal(job, interval(day)))
        world.run(lambda job: drain(job, interval(day)))
        world.run(lambda job: compact(job, interval(day)))


def rows_at(world: World, **when: int) -> dict[int, str]:
    rows = as_of(world.truth, world.state, **{"time": world.state.seal - 1, **when}).to_pylist()
    assert all(one["_multiplicity"] == 1 for one in rows)
    return {one["k"]: one["v"] for one in rows}


# Where merges of other systems go wrong: what comes first, what comes second, and what is right.
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], dict[int, str]]] = {
    "older update arrives late": ([row(1, "a", 1), row(1, "c", 5)], [row(1, "b", 12, 3)], {1: "c"}),
    "two updates of a key in one batch": ([row(1, "a", 1)], [row(1, "b", 12), row(1, "c", 13)], {1: "c"}),
    "two inserts of a new key in one batch": ([row(2, "z", 1)], [row(1, "a", 12), row(1, "b", 12)], {1: "b", 2: "z"}),
    "late update after a delete": ([row(1, "a", 1), row(1, None, 5, gone=True)], [row(1, "b", 12, 3)], {}),
    "delete arrives before its insert": ([row(1, None, 5, gone=True)], [row(1, "a", 12, 3)], {}),
    "late delete older than the row": ([row(1, "a", 1), row(1, "c", 5)], [row(1, None, 12, 3, gone=True)], {1: "c"}),
    "same batch again": ([row(1, "a", 1), row(1, "b", 5)], [row(1, "a", 11, 1), row(1, "b", 15, 5)], {1: "b"}),
    "newer but equal value": ([row(1, "a", 1)], [row(1, "a", 12)], {1: "a"}),
}
UNCHANGED = ("same batch again", "newer but equal value", "older update arrives late")


@pytest.mark.parametrize("envelope", BOTH)
@pytest.mark.parametrize("when", ["in one drain", "after a drain and compaction"])
@pytest.mark.parametrize("case", CASES)
def test_what_peers_get_wrong_is_right(tmp_path: Path, envelope: Envelope, when: str, case: str) -> None:
    first, second, right = CASES[case]
    world = World(tmp_path, collection(envelope))
    world.land(0, "z", first)
    world.land(1, "a", second)
    run_day(world, 0, settle=when != "in one drain")
    run_day(world, 1, settle=True)
    assert rows_at(world) == right
    if case in UNCHANGED and when != "in one drain":
        updates = changes(world.truth, world.state, after=DAY - 1).to_pylist()
        assert [one for one in updates if one["_event_time"] > 5] == []
        assert len(updates) in (0, 4), "an older value changes the past it belongs to, and nothing else anything"
