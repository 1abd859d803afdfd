"""Dead letters are applied after all, each exactly once: whatever fails, races, is taken out or comes between."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from simulation.script import row
from support.faulty import Fault, FaultyStore, InterruptedStore
from support.inprocess import InProcessRunner
from support.relanded import relanded
from support.world import World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.errors import Contention, InvalidUsage, Uncertified
from tidemark.jobs.job import Job
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import SECOND, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, CompactionAllowed, Redefined
from tidemark.model.collection import Column, ColumnType, Envelope, Gate, Late
from tidemark.model.evolution import evolved
from tidemark.model.interval import Interval
from tidemark.storage.stores.local import LocalStore
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


def test_the_late_table_says_which_batch_replayed_a_row(tmp_path):
    world = made(tmp_path)
    before = late_rows(world.truth, world.state, limit=9)
    assert [r["_replayed_by"] for r in before.rows] == [None, None]
    batch = world.run(replay)["batch"]
    found = late_rows(world.truth, world.state, limit=9)
    assert (found.applied, found.discarded, found.replayed) == (0, 2, 2)
    assert [(f.path, f.discarded, f.replayed, f.replayed_by) for f in found.files] == [("20/a.jsonl", 2, 2, (batch,))]
    assert [(r["_applied"], r["_original_event_time"], r["_replayed_by"]) for r in found.rows] == [
        (False, 5, batch),
        (False, 12, batch),
    ]
    assert [f.path for f in late_rows(world.truth, world.state, batch=batch).files] == ["20/a.jsonl"]


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
def test_of_a_keyed_collection_the_forgotten_past_is_left_too(tmp_path, envelope):
    world = made(tmp_path, envelope)
    result = world.run(replay)
    # The drain has forgotten the facts below the seal of then: discard lets none apply there.
    assert (result["rows"], result["left"]) == (0, 2)
    assert world.state.forgotten_below == 20
    assert world.run(lambda job: replay(job, as_now=True))["moved"] == 2
    settle(world)
    # Moved to the seal, "x" happened when "on time" did, and came before it in the file.
    assert rows_as_of(world) == {(1, "on time"): 1, (2, "b"): 1, (3, "d"): 1, (7, "y"): 1}
    assert rows_as_of(world, event_time=19) == {(1, "c"): 1, (2, "b"): 1, (3, "d"): 1}


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


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT, Envelope.DEBEZIUM])
def test_what_replays_leave_behind_verifies_and_outlives_a_collection_of_garbage(tmp_path, envelope):
    world = made(tmp_path, envelope, late=Late("reemit", 8))
    world.land(3, "a", [row(1, "p", 31, 14), row(3, "z", 32, 16), row(2, "q", 33, 3)])
    log = world.log()
    log.commit(log.load(), Redefined(relanded(world.collection, late=Late("discard"))))
    allow(world, 5)
    world.run(take(world, 3))
    assert world.run(lambda job: replay(job, path="30/a"))["left"] == 1
    settle(world, 3)
    assert verify(world.job(), data=True).findings == ()
    for number in range(40):
        log.commit(log.load(), Attempted(Fence("drain", interval(number), "token")))
    removed = 0
    for _ in range(6):
        world.clock.now += 25 * 3600
        removed += len(world.run(lambda job: collect(job, keep=2 * 3600 * SECOND)).removed)
    assert removed > 32
    world.forget()
    assert verify(world.job(), data=True).findings == ()
    assert world.run(lambda job: replay(job, path="30/a", as_now=True))["rows"] == 1
    assert late_rows(world.truth, world.state, path="30/a", limit=9).replayed == 3


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


def test_a_replayed_batch_goes_through_the_gate_like_any_other(tmp_path):
    world = made(tmp_path)
    world.run(lambda job: certify(job, Gate.UNSEALED))
    replay(world.job())
    with pytest.raises(Uncertified):
        seal(world.job(), interval(2))
    assert certify(world.job(), Gate.UNSEALED)
    assert seal(world.job(), interval(2))["seal"] == 30


def so_far(world: World) -> Any:
    world.forget()
    state = world.state
    updates = changes(world.truth, state, after=state.since).to_pylist()
    late = late_rows(world.truth, state, limit=9)
    files = [(f.path, f.applied, f.discarded, f.replayed, len(f.replayed_by)) for f in late.files]
    shape = (state.totals, len(state.unsealed), state.ingested, state.fences, state.seal, state.trace_upper)
    return [updates, files, [r["_replayed_by"] is None for r in late.rows], shape]


STEPS = [
    lambda job: replay(job),
    lambda job: seal(job, interval(2)),
    lambda job: drain(job, interval(2)),
    lambda job: replay(job, as_now=True),
    lambda job: replay(job, as_now=True),
]


@pytest.mark.usefixtures("nothing_is_small")
@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_any_single_fault_then_the_replay_again_changes_nothing(tmp_path, envelope, after, dies):
    world = made(tmp_path, envelope)
    allow(world, 10)
    fired: set[str] = set()
    for at, step in enumerate(STEPS):
        before = dict(world.truth.objects)
        world.run(step)
        then, expected = dict(world.truth.objects), so_far(world)
        for nth in count(1):
            world.truth.objects = dict(before)
            world.forget()
            world.store = faulty = FaultyStore(world.truth, Fault(nth, after, dies))
            world.run(step)
            if faulty.fired is None:
                break
            fired.add(faulty.fired.split("/")[0])
            assert so_far(world) == expected, f"step {at}, call {nth}: {faulty.fired}"
        world.store = world.truth
        world.truth.objects = then
        world.forget()
    assert {"create versions", "create ledger", "create data", "close_output data"} <= fired
    assert after or {"open_input data", "open_output data", "keys versions"} <= fired
    assert world.state.totals.rows_replayed == 2


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


def test_many_replays_at_once_apply_once(tmp_path):
    world = made(tmp_path / "landing", store=LocalStore(str(tmp_path / "root")))
    world.clock.pause = lambda seconds: None  # type: ignore[method-assign]
    barrier = Barrier(6)

    def one(number: int) -> int:
        barrier.wait()
        return world.run(lambda job: replay(job, as_now=bool(number % 2)), attempts=20)["rows"]

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(one, range(6))) == [0, 0, 0, 0, 0, 2]
    settle(world)
    assert rows_as_of(world)[(1, "x")] == 1


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


def test_a_job_is_needed_only_where_letters_wait(tmp_path):
    world = made(tmp_path)
    world.run(replay)

    def no_runner() -> Any:
        raise AssertionError("nothing is to be read")

    job = world.job()
    assert replay(Job(job.store, job.log, no_runner, "x", world.new_id))["outcome"] == "nothing to do"
