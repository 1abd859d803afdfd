"""The same files, the same collection: however first runs are grouped, ordered, cut, run side by side or retried, the
history and the late table are those of daily runs in order (docs/decisions/0048)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import BIG, COUNTS, RANKED, derived
from simulation.rows_read import read_updates
from simulation.schedules import (
    COUNT,
    Answers,
    Schedule,
    daily,
    drawn_files,
    history,
    late_table,
    learned,
    made,
    read,
    seal_and_drain,
)
from simulation.script import row
from simulation.sea import Sea
from support.budget import budget
from support.relanded import relanded
from support.world import DAY, World, collection, interval
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Redefined
from tidemark.model.collection import Envelope, Late
from tidemark.plan.read import plan_updates

pytestmark = pytest.mark.simulation
ENVELOPES = [Envelope.APPEND, Envelope.UPDATES, Envelope.UPSERT, Envelope.DEBEZIUM]
POLICIES = [Late("discard"), Late("next_window"), Late("reemit"), Late("reemit", 12)]
GRACES = [0, 4, 15]
COMBINATIONS = list(product(ENVELOPES, POLICIES, GRACES, ["column", "arrival"], ["event time", "one time"]))
SEEDS, SCHEDULES = budget(ci=(1, 1), deep=(4, 3))
PAIRS = [*product(ENVELOPES, POLICIES)][:: budget(ci=5, deep=1)]
"""In make test each envelope and each policy once."""


@pytest.mark.parametrize(("envelope", "policy"), PAIRS, ids=str)
def test_any_schedule_of_first_runs_gives_what_daily_runs_give(
    tmp_path: Path, envelope: Envelope, policy: Late
) -> None:
    late = 0
    for at, (_, _, grace, time, event_time) in enumerate(c for c in COMBINATIONS if c[:2] == (envelope, policy)):
        declared: dict[str, Any] = {"late": policy, "grace": grace, "event_time": event_time == "event time"}
        declared |= {"time": None} if time == "arrival" else {}
        for seed in range(SEEDS):
            chance = random.Random(f"{envelope} {policy} {at} {seed}")
            files = drawn_files(chance)
            once = daily(made(tmp_path / f"{at} {seed} daily", envelope, **declared), files)
            wanted = Answers.of(once)
            for number in range(SCHEDULES):
                folder = tmp_path / f"{at} {seed} {number}"
                assert Answers.of(Schedule(made(folder, envelope, **declared), files, chance).run()) == wanted
            late += once.state.totals.rows_late_applied + once.state.totals.rows_late_discarded
    assert late > 10, "the law is about late rows"


# Each row of the table in the decision.


def reasons(world: World) -> list[tuple[Any, ...]]:
    found = late_rows(world.truth, world.state, limit=9).rows
    return [(r["k"], r["_applied"], r["_reason"], r["_complete_below"], r["_time"]) for r in found]


def in_one_run(world: World, days: range) -> None:
    for day in days:
        world.run(read(world, day))
    seal_and_drain(world, days[-1])


def test_a_row_on_time_that_was_reported_before_its_interval_is_learned_with_it(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND)
    world.land(2, "a", [row(1, "x", 18, 21)])
    in_one_run(world, range(3))
    assert (learned(world), reasons(world)) == ([(1, 20, 21)], [])


def test_a_late_row_of_a_range_is_late_as_in_its_own_run(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND)
    world.land(2, "a", [row(1, "x", 22, 4)])
    in_one_run(world, range(3))
    assert learned(world) == [(1, 20, 4)]
    assert reasons(world) == [(1, True, "before its interval", 20, 20)]


def test_a_seal_retried_between_two_cuts_moves_no_row(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND)
    world.run(read(world, 0))
    seal_and_drain(world, 0)
    for k, happened in ((1, 4), (2, 6)):
        world.land(1, f"{k}", [row(k, "x", 12, happened)])
        world.run(read(world, 1, COUNT))
        seal_and_drain(world, 0)
    world.run(read(world, 1))
    seal_and_drain(world, 1)
    assert learned(world) == [(1, 10, 4), (2, 10, 6)]


def test_a_day_read_before_the_one_before_it_has_the_same_late_rows(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND)
    for name in ("a", "b"):
        world.land(2, name, [row(1, name, 23, 12)])
    for day in (0, 2, 1):
        world.run(read(world, day))
        seal_and_drain(world, day)
    assert reasons(world) == 2 * [(1, True, "before its interval", 20, 20)]


def redeclared(world: World, **landed: Any) -> None:
    world.log().commit(world.head, Redefined(relanded(world.state.collection, **landed)))
    world.forget()


def test_with_a_raised_grace_rows_are_judged_by_what_is_complete(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND)
    world.run(read(world, 0))
    seal_and_drain(world, 0)
    redeclared(world, grace=15)
    world.land(1, "a", [row(1, "x", 12, 4)])
    world.run(read(world, 1))
    seal_and_drain(world, 1)
    assert reasons(world) == [(1, True, "below the seal", 10, 10)]
    assert (world.state.complete_below, world.state.seal) == (10, 11)


def test_an_hourly_collection_that_turns_daily_is_judged_by_the_wider_intervals(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, schedule="@hourly")
    world.run(read(world, 0))
    seal_and_drain(world, 0)
    redeclared(world, schedule="@daily")
    for day in (2, 1):
        world.land(day, "a", [row(day, "x", day * DAY + 3, day * DAY - 2)])
        world.run(read(world, day))
    seal_and_drain(world, 2)
    assert [(k, time) for k, _, _, _, time in sorted(reasons(world))] == [(1, 10), (2, 20)]


def test_a_second_file_counts_as_the_first_until_its_interval_is_complete(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, grace=2)
    world.land(1, "a", [row(1, "x", 12, 3)])
    world.run(read(world, 1))
    world.land(1, "b", [row(2, "x", 12, 3)])
    world.run(read(world, 1))
    world.run(read(world, 0))
    seal_and_drain(world, 1)
    assert reasons(world) == [(k, True, "before its interval", 8, 8) for k in (1, 2)]
    world.land(1, "c", [row(3, "x", 12, 3)])
    world.run(read(world, 1))
    seal_and_drain(world, 1)
    assert reasons(world)[-1] == (3, True, "below the seal", 18, 18)
    assert (world.state.complete_below, world.state.seal) == (18, 19), "and can be read at once"


def test_intervals_that_share_their_files_are_judged_by_what_is_complete(tmp_path: Path) -> None:
    """A flat path, last day first: whichever day is read first takes all files, and none of their rows is late."""
    source = replace(collection().landed.source, path="{{ landing }}/*/*.jsonl")
    world = made(tmp_path, Envelope.APPEND, source=source)
    for day in range(3):
        world.land(day, "a", [row(day, "x", day * DAY + 3, day and day * DAY - 4)])
    notes: list[str] = []
    job = world.job()
    job.note = notes.append
    ingest(job, interval(2), landing_root=str(world.landing))
    assert any("source.path names the same files for" in note for note in notes)
    in_one_run(world, range(2))
    seal_and_drain(world, 2)
    assert [(k, event) for k, _, event in learned(world)] == [(0, 0), (1, 6), (2, 16)]
    assert reasons(world) == []


def test_an_ingest_before_its_turn_says_why_rows_are_dead_letters(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, late=Late("discard"))
    world.land(2, "a", [row(1, "x", 22, 4)])
    notes: list[str] = []
    job = world.job()
    job.note = notes.append
    ingest(job, interval(2), landing_root=str(world.landing))
    (said,) = [note for note in notes if "dead letters" in note]
    assert said.startswith("1 row of [1970-01-01T00:00:00.000020Z, ")
    assert "`tidemark late replay` applies them" in said


@pytest.mark.parametrize("as_now", [False, True])
def test_a_letter_that_is_replayed_before_its_turn_is_learned_in_it(tmp_path: Path, as_now: bool) -> None:
    world = made(tmp_path, Envelope.APPEND, late=Late("discard"))
    world.land(2, "a", [row(1, "x", 22, 4)])
    world.run(read(world, 2))
    assert world.state.seal == 0
    world.run(lambda job: replay(job, as_now=as_now))
    seal_and_drain(world, 2)
    assert world.state.seal == 0, "it waits for the days before"
    in_one_run(world, range(2))
    seal_and_drain(world, 2)
    assert learned(world) == [(1, 20, 4)]


def test_what_next_window_moved_before_its_turn_is_the_same_when_read_again(tmp_path: Path) -> None:
    world = made(tmp_path, Envelope.APPEND, late=Late("next_window"), reprocess_for=1000, batching=None)
    world.land(2, "a", [row(1, "x", 22, 4), row(2, "y", 23)])
    world.run(read(world, 2))
    in_one_run(world, range(2))
    seal_and_drain(world, 2)
    assert learned(world) == [(1, 20, 20), (2, 23, 23)]
    world.land(2, "a", [row(2, "y", 23), row(1, "x", 22, 4)])
    result = world.run(read(world, 2))
    assert (result["corrected"], result["added"], result["retracted"]) == (1, 0, 0)


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
def test_a_file_mended_before_its_interval_is_complete_leaves_no_trace(tmp_path: Path, envelope: Envelope) -> None:
    files = {
        (0, "a"): [row(1, "a", 3)],
        (1, "a"): [row(1, "x", 12, 4), row(2, "y", 14)],
        (2, "a"): [row(2, "z", 21, 5)],
    }
    clean = daily(made(tmp_path / "clean", envelope), files, 3)
    world = made(tmp_path / "mended", envelope)
    for (day, name), rows in files.items():
        world.land(day, name, rows if day != 1 else [row(1, "wrong", 12, 4), row(9, "wrong", 11)])
    for day in (2, 1):
        world.run(read(world, day))
    wrong = next(batch.id for batch in world.state.unsealed if batch.interval == interval(1))
    world.run(lambda job: quarantine(job, wrong))
    world.land(1, "a", files[1, "a"])
    world.run(read(world, 1))
    world.run(read(world, 0))
    seal_and_drain(world, 2)
    assert (history(world), late_table(world)) == (history(clean), late_table(clean))


def test_at_the_end_of_a_collection_the_grace_is_over(tmp_path: Path) -> None:
    """No interval is to come that could bring rows of the last two instants, so they can be read."""
    world = made(tmp_path, Envelope.APPEND, grace=2, end=20)
    world.land(1, "a", [row(1, "x", 19)])
    for day in range(2):
        world.run(read(world, day))
        result = world.run(lambda job, day=day: seal(job, interval(day)))
        at = f"1970-01-01T00:00:00.0000{day}0Z" if day else "1970-01-01T00:00:00Z"
        assert result["completed"] == [{"lower": at, "upper": f"1970-01-01T00:00:00.0000{day + 1}0Z"}]
        world.run(lambda job, day=day: drain(job, interval(day)))
    assert (world.state.complete_below, world.state.seal, learned(world)) == (20, 20, [(1, 19, 19)])


# What is computed from it.

D = 86_400_000_000
SPAN = D // DAY


def derived_history(sea: Sea) -> tuple[list[tuple[int, int]], Counter[str]]:
    state = sea.worlds["d"].state
    frontiers = [(one.complete_below, one.upper) for one in state.consumptions]
    updates = read_updates(sea.worlds["d"].truth, plan_updates(state))
    return frontiers, Counter({repr(update): diff for update, diff in updates.items()})


@pytest.mark.parametrize("select", [BIG, COUNTS, RANKED], ids=["by row", "by key", "whole"])
def test_catching_up_stops_where_daily_runs_stop_under_a_grace(tmp_path: Path, select: str) -> None:
    """The ends of intervals less the grace; so by key and whole the same frontiers, and the same changes."""
    grace, found = D // 4, []
    rows = [
        [
            row(day, "a", day * D + 5, max(0, day * D - 9)),
            row(9, "b", (day + 1) * D - 7),
            row(day, "b", day * D + D // 2),
        ]
        for day in range(4)
    ]
    for ranges in ([[0], [1], [2], [3]], [[0], [1, 2, 3]]):
        sea = Sea(tmp_path / str(len(ranges)))
        sea.add(relanded(collection(name="tides"), grace=grace))
        sea.add(derived("d", select))
        for days in ranges:
            for day in days:
                until = "compact" if day == days[-1] else "ingest"
                sea.ingest("tides", day * SPAN, ("a", rows[day]), until=until, days=SPAN)
            sea.correct("d")
        found.append(derived_history(sea))
    assert found[0] == found[1]
    assert [complete for complete, _ in found[0][0]] == [(day + 1) * D - grace for day in range(4)]
