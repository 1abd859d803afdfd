"""Dead letters are applied after all, each exactly once: whatever fails, races, is taken out or comes between."""

from __future__ import annotations

from collections import Counter
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
from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import CompactionAllowed, Redefined
from tidemark.model.collection import Column, ColumnType, Envelope, Late
from tidemark.model.evolution import evolved
from tidemark.model.interval import Interval
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation
LETTERS = [row(1, "x", 21, 5), row(7, "y", 22, 12, d=2), row(1, "on time", 23, 20)]
"""In the third day's file: two rows of days that are sealed by then, and one that is not late."""


def made(folder: Path, envelope: Envelope = Envelope.APPEND, store: Any = None, **changes: Any) -> World:
    """Two days in the trace, and a third that brought LETTERS, which `discard` kept."""
    declared = collection(envelope, **{"late": Late("discard"), **changes})
    world = World(folder, declared, store or MemoryStore())
    world.land(0, "a", [row(1, "a", 3), row(2, "b", 4)])
    world.land(1, "a", [row(1, "c", 14), row(3, "d", 15)])
    world.land(2, "a", LETTERS)
    for day in range(2):
        world.run(take(world, day))
        world.run(lambda job, day=day: seal(job, interval(day)))
        world.run(lambda job, day=day: drain(job, interval(day)))
    world.run(take(world, 2))
    return world


def take(world: World, day: int) -> Any:
    return lambda job: ingest(job, interval(day), landing_root=str(world.landing))


def settle(world: World, day: int = 2) -> None:
    """Seal and drain all there is, so that it can be read."""
    world.run(lambda job: seal(job, interval(day)))
    world.run(lambda job: drain(job, interval(day)))


def rows_as_of(world: World, **when: int) -> Counter[tuple[int, str]]:
    rows = as_of(world.truth, world.state, **{"time": world.state.seal - 1, **when}).to_pylist()
    return Counter({(r["k"], r["v"]): r["_multiplicity"] for r in rows})


def test_dead_letters_are_applied_at_the_seal_with_the_event_times_they_have(tmp_path):
    world = made(tmp_path)
    assert late_rows(world.truth, world.state).discarded == 2
    result = world.run(replay)
    assert (result["outcome"], result["rows"], result["moved"], result["left"]) == ("applied", 2, 0, 0)
    batch = world.state.unsealed[-1]
    assert (batch.id, batch.first_time, batch.last_time) == (result["batch"], 20, 20)
    assert (batch.first_event_time, batch.last_event_time) == (5, 12)
    assert world.state.ingested.members == (Interval(0, 30),)
    settle(world)
    assert rows_as_of(world, event_time=12) == {(1, "a"): 1, (2, "b"): 1, (1, "x"): 1, (7, "y"): 1}
    assert rows_as_of(world, event_time=11) == {(1, "a"): 1, (2, "b"): 1, (1, "x"): 1}
    assert rows_as_of(world, time=19) == {(1, "a"): 1, (2, "b"): 1, (1, "c"): 1, (3, "d"): 1}
    assert world.state.totals.rows_replayed == 2


def test_a_second_replay_finds_nothing_to_do_for_ever(tmp_path):
    """Also after the drain, a compaction, merges of the ledger, and new files."""
    world = made(tmp_path)
    world.run(replay)
    assert world.run(replay)["outcome"] == "nothing to do"
    settle(world)
    for day in range(3, 14):
        world.land(day, "a", [row(day, "n", day * 10)])
        world.run(take(world, day))
        settle(world, day)
        world.run(lambda job, day=day: compact(job, interval(day)))
    assert any(run.level for run in world.state.ledger)
    assert world.run(replay)["outcome"] == "nothing to do"
    assert world.run(take(world, 2))["outcome"] == "nothing to do"
    assert rows_as_of(world)[(7, "y")] == 1
    assert world.state.totals.rows_replayed == 2


def allow(world: World, since: int) -> None:
    log = world.log()
    log.commit(log.load(), CompactionAllowed(since))


def test_what_happened_below_since_is_left_and_said_unless_it_may_apply_as_of_now(tmp_path):
    world = made(tmp_path)
    allow(world, 10)
    first = world.run(replay)
    assert (first["rows"], first["left"]) == (1, 1)
    assert first["reason"] == (
        "1 dead letter happened up to 1970-01-01T00:00:00.000005Z, and history below 1970-01-01T00:00:00.000010Z can "
        "no longer be corrected; --as-now applies it as of the seal"
    )
    again = world.run(replay)
    assert (again["outcome"], again["rows"], again["left"]) == ("nothing to do", 0, 1)
    assert world.state.fences == ()
    halfway = late_rows(world.truth, world.state, limit=9)
    assert [r["_replayed_by"] for r in halfway.rows] == [None, first["batch"]]
    forced = world.run(lambda job: replay(job, as_now=True))
    assert (forced["rows"], forced["moved"], forced["left"], forced["reason"]) == (1, 1, 0, None)
    assert [r["_replayed_by"] for r in late_rows(world.truth, world.state, limit=9).rows] == [
        forced["batch"],
        first["batch"],
    ]
    assert world.run(lambda job: replay(job, as_now=True))["outcome"] == "nothing to do"
    settle(world)
    assert rows_as_of(world)[(1, "x")] == rows_as_of(world)[(7, "y")] == 1
    assert rows_as_of(world, event_time=19)[(1, "x")] == 0
    assert rows_as_of(world, event_time=20)[(1, "x")] == 1
    totals = world.state.totals
    assert (totals.rows_late_discarded, totals.rows_late_moved, totals.rows_replayed) == (2, 1, 2)


@pytest.mark.parametrize("envelope", [Envelope.UPSERT, Envelope.DEBEZIUM])
def test_beyond_max_lateness_a_replay_corrects_what_is_still_remembered(tmp_path, envelope):
    """Facts at 12 and later are remembered: a delete and a value go where they belong in their keys' past."""
    world = made(tmp_path, envelope, late=Late("reemit", 8))
    world.land(3, "a", [row(1, None, 31, 14, gone=True, o=9), row(3, "z", 32, 16), row(2, "q", 33, 3)])
    log = world.log()
    log.commit(log.load(), Redefined(collection(envelope, late=Late("discard"))))
    world.run(take(world, 3))
    assert late_rows(world.truth, world.state).files[-1].discarded == 3
    result = world.run(lambda job: replay(job, path="30/a"))
    assert (result["rows"], result["left"]) == (2, 1)
    settle(world, 3)
    assert rows_as_of(world, event_time=16) == {(2, "b"): 1, (3, "z"): 1, (7, "y"): 1}
    assert rows_as_of(world)[(1, "on time")] == 1


def test_replays_choose_by_interval_path_and_batch(tmp_path):
    world = made(tmp_path)
    world.land(2, "b", [row(8, "b", 24, 6)])
    world.land(3, "c", [row(9, "c", 31, 7)])
    world.run(take(world, 2))
    world.run(take(world, 3))
    of_third = world.state.unsealed[0].id
    assert world.run(lambda job: replay(job, intervals=[interval(3)]))["rows"] == 1
    assert world.run(lambda job: replay(job, path="/b."))["rows"] == 1
    assert world.run(lambda job: replay(job, batch="nothing"))["outcome"] == "nothing to do"
    assert world.run(lambda job: replay(job, batch=of_third))["rows"] == 2
    assert world.run(replay)["outcome"] == "nothing to do"


@pytest.mark.parametrize("name", ["open_input", "open_output", "create"])
@pytest.mark.parametrize("after", [False, True])
def test_of_two_replays_at_once_one_applies(tmp_path, name, after):
    world = made(tmp_path)
    slow = world.job()
    results: list[Any] = []

    def the_other() -> None:
        results.append(world.run(replay))

    slow.store = interrupted = InterruptedStore(world.truth, name, the_other, after=after)
    slow.runner = lambda: InProcessRunner(interrupted)
    slow.log = world.log(interrupted)
    results.append(world.run(lambda job: replay(slow)))
    assert interrupted.interrupted
    assert sorted(result["rows"] for result in results) == [0, 2]
    settle(world)
    assert rows_as_of(world)[(7, "y")] == 1
    assert world.state.totals.rows_replayed == 2


def test_a_file_whose_letters_were_replayed_is_not_taken_out_before_they_are(tmp_path):
    world = made(tmp_path)
    origin = world.state.unsealed[-1].id
    replayed = world.run(replay)["batch"]
    with pytest.raises(
        InvalidUsage, match=rf"dead letters of 20/a\.jsonl were replayed as batch {replayed}; quarantine"
    ):
        quarantine(world.job(), origin)
    world.run(lambda job: quarantine(job, replayed))
    assert late_rows(world.truth, world.state).replayed == 0
    world.run(lambda job: quarantine(job, origin))
    world.land(2, "a", [*LETTERS, row(9, "mended", 24)])
    world.run(take(world, 2))
    with pytest.raises(
        InvalidUsage, match=rf"dead letters of batch {replayed} came in 20/a\.jsonl, which was taken out"
    ):
        release(world.job(), replayed)
    assert world.run(replay)["rows"] == 2
    settle(world)
    assert rows_as_of(world)[(7, "y")] == 1


def test_a_replay_taken_out_can_be_put_back_or_replayed_again_but_not_both(tmp_path):
    world = made(tmp_path)
    first = world.run(replay)["batch"]
    world.run(lambda job: quarantine(job, first))
    second = world.run(replay)["batch"]
    with pytest.raises(InvalidUsage, match="was ingested again as batch"):
        release(world.job(), first)
    world.run(lambda job: quarantine(job, second))
    world.run(lambda job: release(job, first))
    assert world.run(replay)["outcome"] == "nothing to do"
    settle(world)
    assert rows_as_of(world)[(7, "y")] == 1


@pytest.mark.usefixtures("nothing_is_small")
def test_a_file_taken_out_while_its_letters_are_replayed_takes_them_along(tmp_path):
    world = made(tmp_path)
    origin = world.state.unsealed[-1].id
    slow = world.job()
    slow.store = InterruptedStore(
        world.truth, "create", lambda: world.run(lambda job: quarantine(job, origin)), after=False
    )
    assert replay(slow)["outcome"] == "nothing to do"
    assert world.state.quarantined
    assert world.state.totals.rows_replayed == 0


@pytest.mark.usefixtures("nothing_is_small")
def test_letters_replayed_while_their_file_is_taken_out_keep_it_in(tmp_path):
    world = made(tmp_path)
    origin = world.state.unsealed[-1].id
    slow = world.job()
    slow.store = InterruptedStore(world.truth, "create", lambda: world.run(replay), after=False)
    with pytest.raises(Contention, match="another run"):
        quarantine(slow, origin)
    assert not world.state.quarantined
    with pytest.raises(InvalidUsage, match="were replayed as batch"):
        quarantine(world.job(), origin)


def test_letters_of_an_earlier_declaration_are_applied_as_columns_are_now(tmp_path):
    world = made(tmp_path)
    log = world.log()
    current = log.load().state.collection
    asked = replace(
        current,
        value=(Column("word", ColumnType.STRING), Column("n", ColumnType.INT)),
        renames=(("v", "word"),),
    )
    log.commit(log.load(), Redefined(evolved(current, asked)))
    assert world.run(replay)["rows"] == 2
    settle(world)
    rows = as_of(world.truth, world.state, time=29).to_pylist()
    assert ({"k": 7, "word": "y", "n": None}) in [{n: r[n] for n in ("k", "word", "n")} for r in rows]


def test_letters_that_lack_what_the_declaration_needs_are_refused(tmp_path):
    world = made(tmp_path, Envelope.UPDATES)
    log = world.log()
    declared = log.load().state.collection
    log.commit(log.load(), Redefined(relanded(declared, source=replace(declared.landed.source, diff="sign"))))
    with pytest.raises(
        InvalidUsage, match=r"do not fit collection tides as it is declared now: column sign was not read"
    ):
        replay(world.job())
