"""Dead letters of files that are corrected: what was replayed counts on as long as the file says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simulation.correcting import corrections, day, made, redefined, row, rows_at, run, sound
from support.world import World
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope, Late

pytestmark = pytest.mark.simulation


def lettered(folder: Path, envelope: Envelope = Envelope.APPEND, **landed: Any) -> tuple[World, str]:
    """Day 1 brought two equal dead letters, another, and a row on time; they were replayed. The batch of that, too."""
    world = made(folder, envelope, **{"late": Late("discard"), **landed})
    day(world, 0, [row(1, "x", 3)])
    day(world, 1, LETTERS)
    return world, world.run(lambda job: replay(job))["batch"]


LETTERS = [row(2, "dead", 12, 4), row(2, "dead", 12, 4), row(3, "dead", 14, 5), row(4, "y", 13)]
REPLAYED = {(1, "x"): 1, (2, "dead"): 2, (3, "dead"): 1}


def test_replayed_dead_letters_count_on_where_another_line_of_their_file_changes(tmp_path: Path) -> None:
    world, _ = lettered(tmp_path)
    day(world, 2, [])
    world.land(1, "a", [*LETTERS[:3], row(4, "z", 13)])
    assert corrections(run(world, 1)) == (1, 1, 1, [13, 13])
    day(world, 3, [])
    assert rows_at(world) == {**REPLAYED, (4, "z"): 1}
    assert rows_at(world, 29) == {**REPLAYED, (4, "y"): 1}
    assert rows_at(world, event_time=4) == {(1, "x"): 1, (2, "dead"): 2}
    found = late_rows(world.truth, world.state, limit=9)
    assert (found.discarded, found.replayed, [r["_replayed_by"] is None for r in found.rows]) == (3, 3, [False] * 3)
    assert world.run(lambda job: replay(job))["outcome"] == "nothing to do"
    assert sound(world)


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES])
def test_a_replayed_letter_that_is_gone_is_retracted_and_a_new_one_waits(tmp_path: Path, envelope: Envelope) -> None:
    """Of two equal ones one is dropped, one that is new is a dead letter like any, and can be replayed."""
    more = {"d": 1} if envelope is Envelope.UPDATES else {}
    letters = [letter | more for letter in LETTERS]
    world = made(tmp_path, envelope, late=Late("discard"))
    day(world, 0, [row(1, "x", 3, **more)])
    day(world, 1, letters)
    world.run(lambda job: replay(job))
    fresh = row(5, "new", 15, 6, **more)
    world.land(1, "a", [fresh, letters[3], letters[2], letters[0]])
    assert corrections(run(world, 1)) == (1, 1, 0, [4, 4])
    day(world, 2, [])
    assert rows_at(world) == {(1, "x"): 1, (2, "dead"): 1, (3, "dead"): 1, (4, "y"): 1}
    found = late_rows(world.truth, world.state, limit=9)
    assert [(r["k"], r["_replayed_by"] is None) for r in found.rows] == [(5, True), (3, False), (2, False)]
    assert (found.discarded, found.replayed) == (3, 2)
    totals = world.state.totals
    assert (totals.rows_late_discarded, totals.rows_replayed) == (3, 2)
    assert world.run(lambda job: replay(job))["rows"] == 1
    world.land(1, "a", [letters[3], fresh])
    assert corrections(run(world, 1)) == (1, 2, 0, [4, 5])
    day(world, 3, [])
    assert rows_at(world) == {(1, "x"): 1, (4, "y"): 1, (5, "new"): 1}
    assert sound(world)


def test_letters_that_a_file_says_more_often_than_were_replayed_wait(tmp_path: Path) -> None:
    world, _ = lettered(tmp_path)
    world.land(1, "a", [*LETTERS, *LETTERS[:3], LETTERS[0]])
    assert corrections(run(world, 1)) == (1, 0, 0, None)
    day(world, 2, [])
    assert rows_at(world) == {**REPLAYED, (4, "y"): 1}
    late = late_rows(world.truth, world.state, limit=9)
    assert (late.discarded, late.replayed) == (7, 3)
    assert sound(world)


def test_letters_applied_as_of_the_seal_stay_where_that_put_them(tmp_path: Path) -> None:
    """Their history was merged when they were replayed: they happened at the seal of then, in every reading to come."""
    world = made(tmp_path, late=Late("discard"))
    day(world, 0, [row(1, "x", 3)])
    day(world, 1, LETTERS)
    world.log().commit(world.head, CompactionAllowed(5))
    assert world.run(lambda job: replay(job))["left"] == 2
    day(world, 2, [])
    assert world.run(lambda job: replay(job, as_now=True))["moved"] == 2
    day(world, 3, [])
    world.land(1, "a", [row(4, "z", 13), *LETTERS[:3]])
    assert corrections(run(world, 1)) == (1, 1, 1, [13, 13])
    world.land(1, "a", LETTERS[1:3])
    assert corrections(run(world, 1)) == (1, 2, 0, [13, 30])
    day(world, 4, [])
    assert rows_at(world) == {(1, "x"): 1, (2, "dead"): 1, (3, "dead"): 1}
    assert rows_at(world, event_time=29) == {(1, "x"): 1, (3, "dead"): 1}
    assert sound(world)


def test_a_reading_that_wrote_nothing_goes_with_the_replay_below_it(tmp_path: Path) -> None:
    """Only the bytes differ; the replay is taken out, so the file is read again; it is put back, and counts on."""
    world, batch = lettered(tmp_path)
    world.land(1, "a", LETTERS[::-1])
    for _ in range(2):
        done = run(world, 1)
        assert (corrections(done), done["batch"]) == ((1, 0, 0, None), None)
        assert run(world, 1)["outcome"] == "nothing to do"
        assert late_rows(world.truth, world.state).replayed == 3
        world.run(lambda job: quarantine(job, batch))
        assert late_rows(world.truth, world.state).replayed == 0
        world.run(lambda job: release(job, batch))
        assert run(world, 1)["outcome"] == "nothing to do"
        assert late_rows(world.truth, world.state).replayed == 3
        world.land(1, "a", LETTERS)
    world.run(lambda job: quarantine(job, batch))
    world.land(1, "a", LETTERS[1:] + LETTERS[:1])
    assert corrections(run(world, 1)) == (1, 0, 0, None)
    with pytest.raises(InvalidUsage, match="was corrected or taken out since"):
        world.run(lambda job: release(job, batch))
    assert world.run(lambda job: replay(job))["rows"] == 3
    day(world, 2, [])
    assert rows_at(world) == {**REPLAYED, (4, "y"): 1}
    assert sound(world)


def test_letters_replayed_when_nothing_was_kept_are_not_forgotten_in_silence(tmp_path: Path) -> None:
    """The file is ahead of what is complete, so it can be corrected again once that is asked for again."""
    world = made(tmp_path, late=Late("discard"))
    day(world, 0, [row(1, "x", 3)])
    world.land(2, "a", [row(2, "dead", 12, 4), row(3, "y", 23)])
    run(world, 2)
    redefined(world, 0)
    batch = world.run(lambda job: replay(job))["batch"]
    redefined(world, 1000)
    world.land(2, "a", [row(2, "dead", 12, 4), row(3, "z", 23)])
    with pytest.raises(InvalidUsage, match=f"as batch {batch} when nothing was kept to correct them by"):
        run(world, 2)


def test_a_replay_of_what_another_left_is_put_back_only_where_its_file_says_it_still(tmp_path: Path) -> None:
    """Found by the machine: the letters it was of are named by what a correction has replaced since."""
    world = made(tmp_path, late=Late("discard"))
    day(world, 0, [row(1, "x", 3)])
    day(world, 1, LETTERS)
    world.run(lambda job: replay(job))
    world.land(1, "a", [*LETTERS, row(5, "new", 15, 6)])
    run(world, 1)
    second = world.run(lambda job: replay(job))["batch"]
    world.run(lambda job: quarantine(job, second))
    world.land(1, "a", LETTERS[2:])
    run(world, 1)
    with pytest.raises(
        InvalidUsage, match=f"letters of batch {second} came in 10/a.jsonl, which was taken out or inge"
    ):
        world.run(lambda job: release(job, second))
    day(world, 2, [])
    assert rows_at(world) == {(1, "x"): 1, (3, "dead"): 1, (4, "y"): 1}
    assert sound(world)
