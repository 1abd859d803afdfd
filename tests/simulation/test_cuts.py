"""What has landed of an interval that goes on is ingested by load: whatever is cut, whatever dies, the collection is
what it would have been had the interval been read once, at its end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulation.script import DAYS, row
from support.budget import budget
from support.faulty import InterruptedStore
from support.inprocess import InProcessRunner
from support.relanded import relanded
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.batching.cutting import Batching
from tidemark.model.batching.reason import Cut, Reason
from tidemark.model.collection import Envelope
from tidemark.storage.sidecars import ledger

pytestmark = pytest.mark.simulation
AT_ONCE = Batching(count=1, settle=0)
COUNT = Cut(Reason.COUNT, (Reason.BYTES,), 2.5, opened=1, at=None)
FILES = [(day, name, rows) for day, files in enumerate(DAYS) for name, rows in files.items()]


def made(folder: Path, envelope: Envelope = Envelope.APPEND, **landed: Any) -> World:
    return World(folder / "landing", relanded(collection(envelope), **{"batching": AT_ONCE, **landed}))


def take(world: World, day: int = 0, cut: Cut | None = None, **options: Any) -> Callable[[Job], dict[str, Any]]:
    return lambda job: ingest(job, interval(day), landing_root=str(world.landing), cut=cut, **options)


def sealed(world: World, day: int) -> None:
    world.run(lambda job: seal(job, interval(day)))
    world.run(lambda job: drain(job, interval(day)))


def rows_at(world: World, time: int) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in as_of(world.truth, world.state, time=time).to_pylist()), key=repr)


ENVELOPES = [Envelope.APPEND, Envelope.UPDATES, Envelope.UPSERT, Envelope.DEBEZIUM]


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("seed", range(budget(ci=1, deep=3)))
def test_any_cuts_give_what_one_reading_at_the_end_gives(tmp_path: Path, envelope: Envelope, seed: int) -> None:
    drawn, once, cut = random.Random(seed), made(tmp_path / "once", envelope), made(tmp_path / "cut", envelope)
    cuts = 0
    for day in range(len(DAYS)):
        files = [(name, rows) for at, name, rows in FILES if at == day]
        for name, rows in drawn.sample(files, len(files)):
            once.land(day, name, rows)
            cut.land(day, name, rows)
            if drawn.random() < 0.7:
                cuts += cut.run(take(cut, day, COUNT))["outcome"] == "applied"
        assert not cut.state.ingested.covers(interval(day)), "an interval that is cut goes on"
        for world in (once, cut):
            (world.landing / str(day * DAY)).mkdir(parents=True, exist_ok=True)
            world.run(take(world, day))
            sealed(world, day)
    assert cuts
    end = once.state.seal
    assert (cut.state.complete_below, cut.state.ingested) == (once.state.complete_below, once.state.ingested)
    assert cut.state.totals.rows_ingested == once.state.totals.rows_ingested
    assert cut.state.totals.rows_late_applied == once.state.totals.rows_late_applied
    for time in range(end):
        assert rows_at(cut, time) == rows_at(once, time), f"as of {time}"


def test_a_cut_completes_nothing_and_the_reason_is_recorded(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.land(0, "a", [row(1, "a", 3)])
    report = world.run(take(world, 0, COUNT))
    assert (report["rows"], report["files"], report["cut"]["reason"], report["cut"]["also"]) == (
        1,
        1,
        "count",
        ["bytes"],
    )
    sealed(world, 0)
    assert (world.state.complete_below, world.state.ingested.members) == (0, ())
    world.land(0, "b", [row(2, "b", 4)])
    assert world.run(take(world))["cut"] == {"reason": "end_of_input", "also": ["count"]}
    sealed(world, 0)
    assert world.state.complete_below == DAY
    changes = [record.change for record in world.log().history() if record.change.kind == "ingested"]
    assert [change.cut for change in changes] == [Cut(Reason.END_OF_INPUT, (Reason.COUNT,)), COUNT]
    assert " so far: 1 row of 1 file as " in changes[1].words
    assert "; cut by count, also bytes; 2.5 rows/s; 1 key; " in changes[1].words


def test_an_empty_batch_is_never_cut_and_one_of_an_interval_that_was_read_neither(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.land(0, "a", [row(1, "a", 3)])
    world.run(take(world, 0, COUNT))
    version = world.head.version
    assert world.run(take(world, 0, COUNT))["outcome"] == "nothing to do"
    assert world.run(take(world, 1, COUNT))["outcome"] == "nothing to do", "its folder is not there yet"
    assert world.head.version == version
    world.run(take(world))
    world.land(0, "c", [row(3, "c", 5)])
    assert world.run(take(world, 0, COUNT))["outcome"] == "nothing to do"
    assert world.state.totals.rows_ingested == 1


def test_a_file_that_is_young_is_left_for_the_next_and_taken_at_the_end(tmp_path: Path) -> None:
    world = made(tmp_path, batching=Batching(count=1, settle=3_600_000_000))
    world.land(0, "a", [row(1, "a", 3)])
    assert world.run(take(world, 0, COUNT))["outcome"] == "nothing to do"
    assert world.run(take(world))["rows"] == 1


def test_a_wrong_file_stops_its_own_cut_once_and_then_the_reading_at_the_end(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.land(0, "good", [row(1, "a", 3)])
    world.land(0, "wrong", [{"nothing": "of it"}])
    with pytest.raises(FileRefused, match=r"wrong\.jsonl"):
        world.run(take(world, 0, COUNT))
    assert world.run(take(world, 0, COUNT))["files"] == 1, "what is wrong is left alone until it changes"
    with pytest.raises(FileRefused, match=r"wrong\.jsonl"):
        world.run(take(world))
    world.land(0, "wrong", [row(2, "b", 4)])
    assert world.run(take(world, 0, COUNT))["files"] == 1
    world.run(take(world))
    assert world.state.totals.rows_ingested == 2


def test_a_file_that_went_on_growing_is_reported_by_the_reading_at_the_end_or_corrected_there(tmp_path: Path) -> None:
    for reprocess_for in (0, 10 * DAY):
        world = made(tmp_path / str(reprocess_for), reprocess_for=reprocess_for)
        world.land(0, "a", [row(1, "a", 3)])
        world.run(take(world, 0, COUNT))
        world.land(0, "a", [row(1, "a", 3), row(2, "b", 4)])
        assert world.run(take(world, 0, COUNT))["outcome"] == "nothing to do"
        if not reprocess_for:
            with pytest.raises(InvalidUsage, match=r"a\.jsonl changed after it was ingested"):
                world.run(take(world))
            continue
        assert world.run(take(world))["corrected"] == 1
        sealed(world, 0)
        assert len(rows_at(world, DAY - 1)) == 2


@pytest.mark.parametrize("cut", [COUNT, None])
def test_a_file_that_vanishes_after_it_was_listed_is_as_if_it_had_not_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: Cut | None
) -> None:
    world, reads = made(tmp_path), InProcessRunner.run
    for name in ("a", "b"):
        world.land(0, name, [row(1, name, 3)])

    def too_late(runner: InProcessRunner, name: str, tasks: Any) -> list[Any]:
        (world.landing / "0" / "a.jsonl").unlink(missing_ok=True)
        return reads(runner, name, tasks)

    monkeypatch.setattr(InProcessRunner, "run", too_late)
    assert world.run(take(world, 0, cut))["files"] == 1
    assert not (world.landing / "0" / "a.jsonl").exists(), "it was there when the run listed"
    monkeypatch.setattr(InProcessRunner, "run", reads)
    assert world.run(take(world, 0, cut))["outcome"] == "nothing to do"
    world.run(take(world))
    sealed(world, 0)
    assert len(rows_at(world, DAY - 1)) == 1


def test_what_is_one_whole_is_not_cut(tmp_path: Path) -> None:
    world = World(tmp_path / "landing", collection(Envelope.SNAPSHOT))
    world.land(0, "a", [row(1, "a", 3)])
    with pytest.raises(InvalidUsage, match="full snapshot is all files of its interval together"):
        world.run(take(world, 0, COUNT))


@pytest.mark.parametrize("name", ["open_output", "create"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("slow_is_cut", [True, False], ids=["the end comes during a cut", "a cut comes during the end"])
def test_a_cut_and_the_reading_at_the_end_at_once(tmp_path: Path, name: str, after: bool, slow_is_cut: bool) -> None:
    """Neither fences the other off: the seal waits for no cut, and each file counts in one of them."""
    world = made(tmp_path)
    world.land(0, "a", [row(1, "a", 3)])
    world.land(0, "b", [row(2, "b", 4)])
    slow, quick = (take(world, 0, COUNT if is_cut else None) for is_cut in (slow_is_cut, not slow_is_cut))
    job = world.job()
    job.store = interrupted = InterruptedStore(world.truth, name, lambda: world.run(quick), after=after)
    job.runner = lambda: InProcessRunner(interrupted)
    job.log = world.log(interrupted)
    slow(job)
    assert interrupted.interrupted
    assert world.state.ingested.covers(interval(0))
    assert world.state.totals.rows_ingested == 2
    assert len(list(ledger.entries(world.truth, world.state.ledger))) == 2
    sealed(world, 0)
    assert len(rows_at(world, DAY - 1)) == 2
