"""Files that are corrected: an interval is run again, and exactly what differs is learned, as of what was known."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.correcting import (
    corrections,
    day,
    made,
    objects,
    redefined,
    row,
    rows_at,
    run,
    sealed,
    sound,
    without_the_gone,
)
from support.faulty import WrappedStore
from support.relanded import relanded
from support.world import World, collection, interval
from tests.support.reading import as_of
from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.model.change import Redefined
from tidemark.model.collection import Column, ColumnType, Envelope, Late
from tidemark.storage.sidecars import ledger

pytestmark = pytest.mark.simulation


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES])
def test_a_corrected_file_changes_what_differs_and_nothing_known_before(tmp_path: Path, envelope: Envelope) -> None:
    world = made(tmp_path, envelope)
    more = {"d": 1} if envelope is Envelope.UPDATES else {}
    rows = [row(k, "a", 3 + k, **more) for k in range(4)]
    day(world, 0, rows)
    world.land(0, "a", [*rows[:1], row(1, "b", 4, **more), *rows[2:], row(9, "new", 8, **more)])
    assert corrections(run(world, 0)) == (1, 1, 2, [4, 8])
    assert run(world, 0)["outcome"] == "nothing to do"
    day(world, 1, [])
    assert rows_at(world, 9) == {(k, "a"): 1 for k in range(4)}
    assert rows_at(world) == {(0, "a"): 1, (1, "b"): 1, (2, "a"): 1, (3, "a"): 1, (9, "new"): 1}
    assert rows_at(world, event_time=4) == {(0, "a"): 1, (1, "b"): 1}
    assert sound(world)


def test_a_correction_is_known_at_once_and_after_the_end_too(tmp_path: Path) -> None:
    """No interval comes any more: the seal step moves the seal one instant past what was learned, and no further."""
    world = made(tmp_path, end=20)
    for number in (0, 1):
        day(world, number, [row(number, "a", 10 * number + 3)])
    world.land(0, "a", [row(0, "b", 3), row(5, "b", 4)])
    assert corrections(day(world, 0)) == (1, 1, 2, [3, 4])
    assert (world.state.complete_below, world.state.seal) == (20, 21)
    assert rows_at(world) == {(0, "b"): 1, (5, "b"): 1, (1, "a"): 1}
    assert rows_at(world, 19) == {(0, "a"): 1, (1, "a"): 1}
    assert day(world, 0)["outcome"] == "nothing to do"
    assert world.state.seal == 21
    assert sound(world)


def test_other_bytes_that_say_the_same_are_an_entry_of_the_ledger_and_no_data(world: World) -> None:
    rows = [row(1, "a", 3), row(2, "b", 4)]
    day(world, 0, rows)
    path = world.land(0, "a", rows[::-1])
    before = {key for key in objects(world) if key.startswith("data/")}
    done = run(world, 0)
    assert (corrections(done), done["batch"]) == ((1, 0, 0, None), None)
    assert {key for key in objects(world) if key.startswith("data/")} == before
    assert run(world, 0)["outcome"] == "nothing to do"
    (entry,) = ledger.known(world.truth, world.state.ledger, [path]).values()
    assert (entry.rows, len(entry.contributed)) == (2, 1)
    world.land(0, "a", rows[:1])
    assert corrections(run(world, 0)) == (1, 1, 0, [4, 4])


def test_a_correction_is_released_where_nothing_came_between_and_only_there(world: World) -> None:
    day(world, 0, [row(1, "x", 3)])
    world.land(0, "a", [row(1, "x", 3), row(2, "y", 4)])
    first = run(world, 0)["batch"]
    world.run(lambda job: quarantine(job, first))
    assert world.run(lambda job: release(job, first))["outcome"] == "applied"
    assert run(world, 0)["outcome"] == "nothing to do"
    world.run(lambda job: quarantine(job, first))
    second = run(world, 0)["batch"]
    with pytest.raises(InvalidUsage, match="was corrected or taken out since"):
        world.run(lambda job: release(job, first))
    world.run(lambda job: quarantine(job, second))
    world.run(lambda job: release(job, first))
    day(world, 1, [])
    assert rows_at(world) == {(1, "x"): 1, (2, "y"): 1}


def test_what_was_corrected_is_taken_out_after_its_correction(world: World) -> None:
    """Both are not drained yet: first the correction goes, then the file, and then it is a file like any other."""
    world.land(0, "a", [row(1, "x", 3)])
    first = run(world, 0)["batch"]
    world.land(0, "a", [row(1, "y", 3)])
    second = run(world, 0)["batch"]
    world.land(0, "a", [row(1, "z", 3)])
    third = run(world, 0)["batch"]
    for batch, by in ((first, third), (second, third)):
        with pytest.raises(InvalidUsage, match=f"was corrected as batch {by}; quarantine that batch first"):
            world.run(lambda job, batch=batch: quarantine(job, batch))
    for batch in (third, second, first):
        world.run(lambda job, batch=batch: quarantine(job, batch))
    assert "corrected" not in run(world, 0)
    sealed(world, 0)
    assert rows_at(world) == {(1, "z"): 1}


def test_what_was_corrected_is_not_taken_out_though_the_ledger_has_merged_its_entry_away(world: World) -> None:
    """Found by the machine: the entry of the first reading went with a merge of the ledger's runs."""
    world.land(0, "a", [row(1, "x", 3)])
    first = run(world, 0)["batch"]
    world.land(0, "a", [row(1, "y", 3)])
    second = run(world, 0)["batch"]
    for number in range(1, ledger.FAN_IN):
        world.land(number, "a", [row(2, "z", 10 * number)])
        run(world, number)
    world.run(lambda job: compact(job, interval(0)))
    assert len(world.state.ledger) < ledger.FAN_IN
    with pytest.raises(InvalidUsage, match=f"was corrected as batch {second}; quarantine that batch first"):
        world.run(lambda job: quarantine(job, first))
    world.run(lambda job: quarantine(job, second))
    world.run(lambda job: quarantine(job, first))
    assert "corrected" not in run(world, 0)


def test_a_row_that_is_not_due_is_retracted_when_it_would_be(world: World) -> None:
    """Seal 10, a row at 15 is dropped by the corrected file: as of 12 it is 0, never -1, as of 15 it is 0."""
    day(world, 0, [row(1, "soon", 15), row(2, "now", 5)])
    world.land(0, "a", [row(2, "now", 5)])
    run(world, 0)
    day(world, 1, [])
    assert [rows_at(world, time) for time in (9, 12, 14, 15, 19)] == [{(2, "now"): 1}] * 5
    assert sound(world)


@pytest.mark.parametrize("policy", ["discard", "next_window", "reemit"])
def test_lateness_is_judged_as_it_was_at_first(tmp_path: Path, policy: str) -> None:
    """A row that was on time stays so, one that was late stays late: only what differs is written."""
    world = made(tmp_path, late=Late(policy))
    world.land(0, "a", [row(1, "on time", 3)])
    day(world, 0)
    day(world, 1, [row(2, "late", 12, 5), row(3, "on time", 13)])
    world.land(1, "a", [row(2, "late", 12, 5), row(3, "corrected", 13), row(4, "late too", 14, 6)])
    done = run(world, 1)
    applied = policy != "discard"
    assert (done["retracted"], done["added"]) == (1, 2 if applied else 1)
    assert (done["late_applied"], done["late_discarded"]) == ((1, 0) if applied else (0, 1))
    day(world, 2, [])
    late = {(2, "late"): 1, (4, "late too"): 1} if applied else {}
    assert rows_at(world) == {(1, "on time"): 1, (3, "corrected"): 1, **late}
    happened = {"reemit": 6, "next_window": 10}.get(policy)
    if happened is not None:
        assert (4, "late too") in rows_at(world, event_time=happened)
        assert (4, "late too") not in rows_at(world, event_time=happened - 1)


def test_corrections_come_in_any_order_and_several_at_once(world: World) -> None:
    for number in range(4):
        day(world, number, [row(number, "a", 10 * number + 3), row(9, "all", 10 * number + 4)])
    for number in (2, 0, 3):
        world.land(number, "a", [row(number, "b", 10 * number + 3)])
        world.land(number, "more", [row(number, "c", 10 * number + 5)])
    for number in (3, 0, 2):
        done = run(world, number)
        assert (done["corrected"], done["retracted"], done["added"], done["files"]) == (1, 2, 1, 2)
    day(world, 4, [])
    world.land(0, "a", [row(0, "again", 3)])
    assert corrections(run(world, 0)) == (1, 1, 1, [3, 3])
    day(world, 5, [])
    expected = {(n, v): 1 for n in (2, 3) for v in "bc"} | {(0, "again"): 1, (0, "c"): 1, (1, "a"): 1, (9, "all"): 1}
    assert rows_at(world) == expected
    assert rows_at(world, 39) == {(n, "a"): 1 for n in range(4)} | {(9, "all"): 4}
    assert sound(world)


def test_what_is_kept_is_collected_when_it_is_needed_no_more(tmp_path: Path) -> None:
    world = made(tmp_path, reprocess_for=20)
    written: dict[int, set[str]] = {}
    for number in range(4):
        before = objects(world)
        day(world, number, [row(number, "a", 10 * number + 3), row(number, "b", 10 * number + 4)])
        written[number] = {key for key in objects(world) - before if "/parts-" in key}
        world.run(lambda job, number=number: compact(job, interval(number)))
        collect(world.job(), keep=0, graces=AT_ONCE)
        assert sound(world)
    assert [len(written[number] & objects(world)) for number in range(4)] == [0, 0, 1, 1]
    world.land(2, "a", [row(2, "b", 24)])
    assert corrections(run(world, 2)) == (1, 1, 0, [23, 23])
    world.land(0, "a", [row(0, "b", 4)])
    with pytest.raises(InvalidUsage, match=r"reprocess_for 20us lets intervals be corrected that begin at .* or later"):
        run(world, 0)
    day(world, 4, [])
    expected = {(n, v): 1 for n in range(4) for v in "ab"}
    del expected[2, "a"]
    assert rows_at(world) == expected


def test_what_was_not_kept_does_not_come_back_when_more_is_asked_for(tmp_path: Path) -> None:
    world = made(tmp_path, reprocess_for=0)
    day(world, 0, [row(0, "a", 3)])
    world.land(0, "a", [row(0, "b", 3)])
    with pytest.raises(InvalidUsage, match="put the correction in a new file, or quarantine batch"):
        run(world, 0)
    redefined(world, 1000)
    with pytest.raises(InvalidUsage, match=r"begin at .*10.* or later"):
        run(world, 0)
    day(world, 1, [row(1, "a", 13)])
    world.land(1, "a", [row(1, "b", 13)])
    assert corrections(run(world, 1)) == (1, 1, 1, [13, 13])
    day(world, 2, [])
    assert rows_at(world) == {(0, "a"): 1, (1, "b"): 1}


def test_a_corrected_file_that_cannot_be_read_is_left_where_others_go_on(tmp_path: Path) -> None:
    of = collection(Envelope.APPEND, reprocess_for=1000)
    world = World(tmp_path, relanded(of, source=replace(of.landed.source, bad_files="quarantine")))
    path = world.land(0, "a", [row(1, "x", 3)])
    day(world, 0, [row(2, "y", 4)], "b")
    (world.landing / path).write_text("no json")
    world.land(0, "b", [row(2, "z", 4)])
    done = run(world, 0)
    assert (corrections(done), done["bad_files"]) == ((1, 1, 1, [4, 4]), 1)
    day(world, 1, [])
    assert rows_at(world) == {(1, "x"): 1, (2, "z"): 1}
    world.land(0, "a", [row(1, "w", 3)])
    assert corrections(run(world, 0)) == (1, 1, 1, [3, 3])
    day(world, 2, [])
    assert rows_at(world) == {(1, "w"): 1, (2, "z"): 1}
    assert sound(world)


def test_a_file_is_read_as_declared_now_and_compared_with_what_it_said_then(world: World) -> None:
    """A column was added between the readings, and the one there was renamed: equal rows are equal still."""
    day(world, 0, [row(1, "x", 3), row(2, "y", 4)])
    then = world.state.collection
    value = (replace(then.value[0], name="word"), Column("note", ColumnType.STRING, 9))
    world.log().commit(world.head, Redefined(replace(then, value=value, schema=then.schema + 1)))
    rows = [{"k": k, "word": v, "note": None, "t": t, "e": t} for k, v, t in ((1, "x", 3), (2, "y", 4))]
    world.land(0, "a", rows)
    assert corrections(run(world, 0)) == (1, 0, 0, None)
    world.land(0, "a", [rows[0], rows[1] | {"note": "seen"}])
    assert corrections(run(world, 0)) == (1, 1, 1, [4, 4])
    day(world, 1, [])
    table = as_of(world.truth, world.state)
    assert sorted(zip(table["k"].to_pylist(), table["word"].to_pylist(), table["note"].to_pylist(), strict=True)) == [
        (1, "x", None),
        (2, "y", "seen"),
    ]
    assert sound(world)


def test_what_was_trimmed_is_kept_for_corrections(world: World) -> None:
    """A batch loses its drained rows as rows far ahead wait; what its file contributed is there all the same."""
    rows = [row(k, "a", 3) for k in range(50)] + [row(99, "far", 5000)]
    day(world, 0, rows)
    world.run(lambda job: compact(job, interval(0)))
    assert [batch.rows for batch in world.state.ahead] == [1]
    collect(world.job(), keep=0, graces=AT_ONCE)
    world.land(0, "a", rows[1:-1])
    assert corrections(run(world, 0)) == (1, 2, 0, [3, 5000])
    day(world, 1, [])
    assert rows_at(world) == {(k, "a"): 1 for k in range(1, 50)}
    assert sound(world)


def test_a_file_that_vanished_is_withdrawn_where_that_is_asked_for(world: World) -> None:
    """It counts no more; should it come back, it is judged as ever, and what it says then is all that is written."""
    gone = world.land(0, "a", [row(1, "x", 3), row(5, "soon", 25)])
    day(world, 0, [row(2, "y", 4)], "b")
    day(world, 1, [row(3, "z", 13)])
    (world.landing / gone).unlink()
    assert corrections(without_the_gone(world, 0)) == (1, 2, 0, [3, 25])
    assert without_the_gone(world, 0)["outcome"] == "nothing to do"
    day(world, 2, [])
    assert rows_at(world) == {(2, "y"): 1, (3, "z"): 1}
    assert rows_at(world, 19) == {(1, "x"): 1, (2, "y"): 1, (3, "z"): 1}
    world.land(0, "a", [row(1, "x", 3)])
    again = run(world, 0)
    assert (corrections(again), again["late_applied"]) == ((1, 0, 1, [3, 3]), 0)
    day(world, 3, [])
    assert rows_at(world) == {(1, "x"): 1, (2, "y"): 1, (3, "z"): 1}
    assert sound(world)


def test_an_empty_listing_withdraws_nothing_unless_it_is_said_twice(world: World) -> None:
    path = world.land(0, "a", [row(1, "x", 3)])
    day(world, 0)
    (world.landing / path).unlink()
    with pytest.raises(InvalidUsage, match=r"1 files of .* are ingested: a landing may just have expired; say --yes"):
        without_the_gone(world, 0)
    assert corrections(without_the_gone(world, 0, yes=True)) == (1, 1, 0, [3, 3])
    day(world, 1, [])
    assert rows_at(world) == {}


def test_a_file_that_cannot_be_corrected_is_not_withdrawn_either(tmp_path: Path) -> None:
    world = made(tmp_path, reprocess_for=0)
    path = world.land(0, "a", [row(1, "x", 3)])
    day(world, 0, [row(2, "y", 4)], "b")
    (world.landing / path).unlink()
    with pytest.raises(InvalidUsage, match="is gone, and what it said cannot be retracted; put the correction"):
        without_the_gone(world, 0)


class Meanwhile(WrappedStore):
    """A store in which something happens once, just before a part's table is written."""

    happens: Callable[[], Any] | None = None

    def create(self, key: str, data: bytes) -> None:
        happens, self.happens = self.happens, None if "/parts-" in key else self.happens
        if happens and "/parts-" in key:
            happens()
        super().create(key, data)


@pytest.mark.parametrize("other", ["a run again", "another correction", "a quarantine", "a replay", "a drain"])
def test_what_comes_between_makes_a_correction_plan_again(tmp_path: Path, other: str) -> None:
    """Whatever is committed while a correction is on its way: what the file says last counts once."""
    world = made(tmp_path)
    day(world, 0, [row(1, "x", 3)])
    world.land(0, "a", [row(1, "y", 3)])
    first = run(world, 0)["batch"]
    world.land(0, "a", [row(1, "z", 3), row(2, "z", 4)])
    between = {
        "a run again": lambda: run(world, 0),
        "another correction": lambda: (world.land(0, "b", [row(3, "b", 3)]), run(world, 0)),
        "a quarantine": lambda: quarantine(world.job(), first),
        "a replay": lambda: replay(world.job()),
        "a drain": lambda: day(world, 1, []),
    }[other]
    store = Meanwhile(world.truth)
    store.happens = lambda: (setattr(world, "store", world.truth), between())
    world.store = store
    with suppress(Contention):
        ingest(world.job(), interval(0), landing_root=str(world.landing))
    assert store.happens is None
    world.store = world.truth
    run(world, 0)
    for number in (1, 2):
        day(world, number, [])
    beside = {(3, "b"): 1} if other == "another correction" else {}
    assert rows_at(world) == {(1, "z"): 1, (2, "z"): 1, **beside}
    assert sound(world)
