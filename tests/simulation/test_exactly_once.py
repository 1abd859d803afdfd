"""A source file counts once: listed again, moved, touched, tried again, killed, raced, and years later."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.script import row
from support.faulty import InterruptedStore
from support.inprocess import InProcessRunner
from support.relanded import relanded
from support.world import World, collection, interval
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import LedgerMerged
from tidemark.model.collection import Envelope
from tidemark.storage.sidecars import ledger

pytestmark = pytest.mark.simulation
ROWS = [row(1, "a", 3), row(2, "b", 4)]


def made(folder: Path, envelope: Envelope = Envelope.APPEND) -> World:
    world = World(folder / "landing", collection(envelope))
    world.land(0, "a", ROWS)
    world.land(0, "b", [row(3, "c", 5)])
    return world


def take(world: World, day: int = 0, root: Path | None = None) -> Callable[[Job], dict[str, Any]]:
    return lambda job: ingest(job, interval(day), landing_root=str(root or world.landing))


def settle(world: World, day: int) -> None:
    world.run(lambda job: seal(job, interval(day)))
    world.run(lambda job: drain(job, interval(day)))
    world.run(lambda job: compact(job, interval(day)))


def nothing(world: World) -> None:
    pass


def drained(world: World) -> None:
    settle(world, 0)


def aged(world: World) -> None:
    """Days later: everything was drained and compacted, and the ledger merged into runs of several levels."""
    for day in range(1, 12):
        world.land(day, "a", [row(day, "x", day * 10)])
        world.run(take(world, day))
        settle(world, day)
    assert {run.level for run in world.state.ledger} >= {1}


def collected(world: World) -> None:
    """Every run of the ledger became one, of many small blocks."""
    head = world.head
    key = "ledger/all.json"
    run = ledger.write_run(world.truth, key, ledger.entries(world.truth, head.state.ledger), level=9)
    inputs = tuple(merged.object.key for merged in head.state.ledger)
    world.log().commit(head, LedgerMerged(inputs, run))


def again(world: World) -> Path:
    return world.landing


def touched(world: World) -> Path:
    """The same content with another change token."""
    for path in world.landing.rglob("*.jsonl"):
        os.utime(path, ns=(1, 1))
    return world.landing


def rewritten(world: World) -> Path:
    """The same content in a new file of the same name."""
    for path in world.landing.rglob("*.jsonl"):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    return world.landing


def moved(world: World) -> Path:
    """The landing, mounted elsewhere."""
    there = world.landing.parent / "elsewhere"
    shutil.move(world.landing, there)
    return there


@pytest.mark.parametrize("comes_back", [again, touched, rewritten, moved])
@pytest.mark.parametrize("meanwhile", [nothing, drained, aged, collected])
@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.DEBEZIUM])
def test_a_file_that_comes_again_is_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envelope: Envelope, meanwhile: Any, comes_back: Any
) -> None:
    monkeypatch.setattr(ledger, "LEAF", 2)
    monkeypatch.setattr(ledger, "FAN_OUT", 2)
    world = made(tmp_path, envelope)
    assert world.run(take(world))["rows"] == 3
    meanwhile(world)
    counted = world.state.totals.rows_ingested
    root = comes_back(world)
    assert world.run(take(world, root=root))["outcome"] == "nothing to do"
    assert world.state.totals.rows_ingested == counted
    (root / "0" / "c.jsonl").write_bytes((root / "0" / "a.jsonl").read_bytes())
    assert world.run(take(world, root=root))["files"] == 1, "a file beside them is new, whatever is in it"


def test_other_content_under_a_known_name_is_refused_at_any_age(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.run(take(world))
    aged(world)
    for other in ([*ROWS, row(4, "d", 6)], [row(1, "z", 3), *ROWS[1:]]):  # longer, and as long
        world.land(0, "a", other)
        with pytest.raises(InvalidUsage, match=r"0/a\.jsonl changed after it was ingested"):
            world.run(take(world))


@pytest.mark.parametrize("name", ["open_output", "create", "keys"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("other", [0, 1], ids=["the same interval", "an interval that lists the same files"])
def test_of_two_ingests_at_once_each_file_counts_in_one(tmp_path: Path, name: str, after: bool, other: int) -> None:
    declared = collection()
    source = replace(declared.landed.source, path="{{ landing }}/*/*.jsonl")
    world = World(tmp_path / "landing", relanded(declared, source=source))
    world.land(0, "a", ROWS)
    world.land(1, "a", [row(9, "z", 12)])
    slow = world.job()
    slow.store = interrupted = InterruptedStore(world.truth, name, lambda: world.run(take(world, other)), after=after)
    slow.runner = lambda: InProcessRunner(interrupted)
    slow.log = world.log(interrupted)
    world.run(lambda job: take(world)(slow))
    assert interrupted.interrupted
    assert world.state.totals.rows_ingested == 3
    entries = list(ledger.entries(world.truth, world.state.ledger))
    assert [(entry.path, entry.rows) for entry in entries] == [("0/a.jsonl", 2), ("10/a.jsonl", 1)]
    assert {entry.batch for entry in entries} == {batch.id for batch in world.state.unsealed}
    settle(world, 0)
    rows = as_of(world.truth, world.state, time=9).to_pylist()
    assert [(one["k"], one["_multiplicity"]) for one in rows] == [(1, 1), (2, 1)]
