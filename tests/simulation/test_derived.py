"""Derived collections through all their steps: the law at every frontier, in every mode; holds, waits, kills, races."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import (
    BIG,
    BIGGER,
    COUNTS,
    JOINED,
    MEANS,
    MET,
    OFFERED,
    RANKED,
    SUMS,
    TALLIES,
    derived,
)
from simulation.script import row
from simulation.sea import Sea, write_by_hand
from support.faulty import Fault, FaultyStore, InterruptedStore, WrappedStore
from support.world import certify
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.queries.explain import explain
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Column, ColumnType, Gate
from tidemark.model.derived import Mode, Validity
from tidemark.model.retention import Retention, Step

FIRST = [row(1, "a", 3), row(2, "b", 4), row(3, "b", 5), row(4, None, 6)]
SECOND = [row(5, "b", 12), row(2, "c", 13, 4), row(1, "a", 14)]
LOOKS = 4
"""Of the calls that only look, one in so many is made to fail."""


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    made = Sea(tmp_path)
    made.landed("tides")
    return made


@pytest.mark.parametrize(
    ("select", "mode"),
    [(BIG, Mode.BY_ROW), (COUNTS, Mode.BY_KEY), (SUMS, Mode.BY_KEY), (RANKED, Mode.WHOLE)],
    ids=["by row", "by key", "sums", "whole"],
)
def test_it_is_what_its_definition_says_day_by_day(sea: Sea, select: str, mode: Mode) -> None:
    sea.add(derived("d", select))
    sea.ingest("tides", 0, ("a", FIRST))
    report = sea.correct("d")
    assert (report["outcome"], report["mode"], report["why"]) == ("applied", "whole", "first build")
    assert sea.worlds["d"].state.complete_below == 10
    sea.ingest("tides", 1, ("a", SECOND))
    report = sea.correct("d")
    assert report["mode"] == mode
    assert sea.law("d") == 2
    assert [computed.mode for computed in sea.asked] == [Mode.WHOLE, mode]


def test_nothing_new_commits_nothing_and_computes_nothing(sea: Sea) -> None:
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", FIRST))
    sea.correct("d")
    version, asked = sea.worlds["d"].head.version, len(sea.asked)
    assert sea.correct("d")["outcome"] == "nothing to do"
    assert (sea.worlds["d"].head.version, len(sea.asked)) == (version, asked)


def test_a_run_that_finds_nothing_new_looks_at_each_input_once(sea: Sea) -> None:
    sea.landed("moons")
    sea.add(derived("d", JOINED))
    for name in ("tides", "moons"):
        sea.ingest(name, 0, ("a", FIRST))
    sea.correct("d")
    for name in ("tides", "moons"):
        world = sea.worlds[name]
        once, idle = FaultyStore(world.truth, None), FaultyStore(world.truth, None)
        world.log(once).load()
        world.store = idle
        assert sea.run("d", correct)["outcome"] == "nothing to do"
        assert idle.calls == once.calls
        world.store = world.truth


def test_a_quiet_day_moves_the_frontier_and_computes_nothing(sea: Sea) -> None:
    sea.add(derived("d", RANKED))
    sea.ingest("tides", 0, ("a", FIRST))
    sea.correct("d")
    sea.ingest("tides", 1)
    report = sea.correct("d")
    assert (report["outcome"], report["complete_below"], report["batches"], len(sea.asked)) == ("applied", 20, [], 1)
    assert sea.law("d") == 2


class Counted(WrappedStore):
    """A store whose calls are counted, and made to fail, together with those of others."""

    def __init__(self, inner: Any, together: FaultyStore) -> None:
        super().__init__(inner)
        self.together = together

    def _call(self, name: str, key: str, action: Any, *, writes: bool) -> Any:
        return self.together._call(name, key, action, writes=writes)


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
@pytest.mark.parametrize("dies", [True, False], ids=["killed", "refused or unanswered"])
def test_whatever_call_fails_the_step_again_ends_as_if_none_had(sea: Sea, after: bool, dies: bool) -> None:
    """Every call of every store: those that read and hold the input, too."""
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", FIRST))
    sea.correct("d")
    sea.ingest("tides", 1, ("a", SECOND))
    before = {name: dict(world.truth.objects) for name, world in sea.worlds.items()}

    def restored() -> None:
        for name, objects in before.items():
            sea.worlds[name].truth.objects = dict(objects)
            sea.worlds[name].forget()

    def ended() -> list[Any]:
        state, input = sea.worlds["d"].state, sea.worlds["tides"].state
        return [sea.rows_as_of("d", 100), state.consumed.upper, [h.since for h in input.holds], len(state.unsealed)]

    def ran(fault: Fault | None) -> FaultyStore:
        together = FaultyStore(sea.worlds["d"].truth, fault)
        for world in sea.worlds.values():
            world.store = Counted(world.truth, together)
        sea.run("d", correct)
        for world in sea.worlds.values():
            world.store = world.truth
        return together

    calls = ran(None)
    expected, fired = ended(), set()
    for nth in range(1, (len(calls.wrote) if after else calls.calls) + 1):
        if not after and nth not in calls.wrote and (nth + dies) % LOOKS:
            continue
        restored()
        faulty = ran(Fault(nth, after, dies))
        assert faulty.fired
        fired.add(faulty.fired.split("/")[0])
        assert ended() == expected, f"call {nth}: {faulty.fired}"
    assert sea.law("d") == 2
    assert {"create versions", "close_output data"} <= fired


def test_two_runs_side_by_side_end_as_one(sea: Sea) -> None:
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", FIRST))
    world = sea.worlds["d"]
    others: list[Any] = []

    def meanwhile() -> None:
        world.store = world.truth
        others.append(sea.run("d", correct))

    world.store = InterruptedStore(world.truth, "close_output", meanwhile, after=True)
    report = sea.run("d", correct)
    assert others[0]["outcome"] == "applied"
    assert report["outcome"] == "nothing to do"
    assert len(world.state.unsealed) == len(world.state.consumptions) == 1
    sea.correct("d")
    assert sea.law("d") == 1


def test_late_rows_settle_in_what_is_derived_of_them(sea: Sea) -> None:
    """A tick of the input makes one of the derived collection; the answer of before stays what it was."""
    sea.add(derived("d", COUNTS))
    sea.ingest("tides", 0, ("a", FIRST))
    sea.ingest("tides", 1, ("a", SECOND))
    sea.correct("d")
    was = sea.rows_as_of("d", 19)
    sea.ingest("tides", 1, ("late", [row(7, "b", 15, 2)]))
    assert sea.worlds["tides"].state.seal == 21
    sea.correct("d")
    assert sea.rows_as_of("d", 19) == was
    assert sea.rows_as_of("d", 20)["b", 4, 17, 7] == 1
    assert sea.law("d") == 2


def test_a_kill_between_a_commit_and_its_seal_counts_nothing_twice(sea: Sea) -> None:
    """+5 committed at u = 20 and not sealed, then +1 by 30: as of 19 it is 5, as of 29 it is 6."""
    sea.add(derived("d", SUMS))
    sea.ingest("tides", 0)
    sea.ingest("tides", 1, ("a", [row(5, "a", 12)]))
    sea.correct("d", until="correct")
    sea.ingest("tides", 2, ("a", [row(1, "a", 22)]))
    sea.correct("d")
    assert sea.rows_as_of("d", 19) == {("a", 1, 5): 1}
    assert sea.rows_as_of("d", 29) == {("a", 2, 6): 1}
    assert sea.law("d") == 2


def test_history_of_before_the_first_build_is_refused_not_answered_with_nothing(sea: Sea) -> None:
    sea.add(derived("d", COUNTS))
    for day in range(3):
        sea.ingest("tides", day, ("a", [row(day, "a", day * 10 + 1)]))
    sea.correct("d")
    assert sea.worlds["d"].state.since == 29


def test_with_history_a_first_build_stops_at_each_of_its_frontiers(sea: Sea) -> None:
    sea.add(derived("d", COUNTS, history=10))
    for day in range(3):
        sea.ingest("tides", day, ("a", [row(day, "a", day * 10 + 1)]))
    report = sea.correct("d")
    assert report["commits"] == 3
    assert [one.complete_below for one in sea.worlds["d"].state.consumptions] == [10, 20, 30]
    assert sea.law("d") == 3


LADDER = Retention("ladder", steps=(Step(None, 10), Step(5, 20), Step(10)))


@pytest.mark.parametrize("select", [BIG, COUNTS, RANKED], ids=["by row", "by key", "whole"])
@pytest.mark.parametrize(
    ("retention", "history", "built"),
    [
        (Retention("time_boundary", interval=10), 10, ([10, 20, 30, 40, 50], 0)),
        (Retention("time_boundary", interval=20), 10, ([20, 40, 50], 2)),
        (LADDER, 5, ([10, 20, 30, 35, 40, 45, 50], 3)),
        (Retention("full_merge"), 10, ([50], 4)),
    ],
    ids=["midnights", "every other midnight", "a ladder", "nothing"],
)
def test_with_history_each_instant_that_inputs_keep_is_built(
    tmp_path: Path, select: str, retention: Retention, history: int, built: tuple[list[int], int]
) -> None:
    sea, (stops, lost) = Sea(tmp_path), built
    sea.landed("tides", retention=retention)
    sea.add(derived("d", select, history=history))
    for day in range(5):
        rows = [row(day, "a", day * 10 + 1), row(day + 9, "b", day * 10 + 6), row(1, "c", day * 10 + 7)]
        sea.ingest("tides", day, ("a", rows))
    notes: list[str] = []
    planned = sea.run("d", explain)["next"]
    assert planned.get("history_lost", 0) == lost
    sea.run("d", lambda job: correct(replace(job, note=notes.append)))
    sea.run("d", lambda job: certify(job, Gate.UNSEALED))
    for step in ("seal", "drain", "compact"):
        sea.run("d", sea._moving(4)[step])
    state = sea.worlds["d"].state
    assert [consumption.complete_below for consumption in state.consumptions] == stops
    assert sea.law("d") == len(stops)
    readable = [time for time in range(50) if state.function.keeps(time)]
    assert {stop - 1 for stop in stops} <= {*readable}
    merged = sea.worlds["tides"].state.function
    assert all(merged.keeps(time) for time in readable), "what its input does not know it does not, either"
    said = [note for note in notes if "history" in note]
    assert (len(said), f"{lost} of" in "".join(said)) == ((1, True) if lost else (0, False)), notes


class TestSeveralInputs:
    def test_an_input_that_is_ahead_waits_for_the_other(self, sea: Sea) -> None:
        sea.landed("moons")
        sea.add(derived("d", JOINED))
        sea.ingest("tides", 0, ("a", [row(1, "a", 3)]))
        report = sea.correct("d", until="correct")
        assert (report["outcome"], report["waits_for"]) == ("waits", "moons")
        sea.ingest("moons", 0, ("a", [row(1, "x", 3), row(2, "y", 3)]))
        sea.ingest("tides", 1, ("a", [row(2, "b", 13)]))
        assert sea.correct("d")["complete_below"] == 10
        assert sea.rows_as_of("d", 9) == {(1, "a", "x"): 1}
        sea.ingest("moons", 1)
        report = sea.correct("d")
        assert (report["mode"], sea.rows_as_of("d", 19)) == ("by_key", {(1, "a", "x"): 1, (2, "b", "y"): 1})
        assert sea.law("d") == 2

    def test_an_input_that_was_never_created_is_named(self, sea: Sea) -> None:
        sea.add(derived("d", JOINED))
        sea.ingest("tides", 0, ("a", FIRST))
        report = sea.correct("d", until="correct")
        assert (report["outcome"], report["waits_for"]) == ("waits", "moons")
        assert "never created" in report["waits"]

    def test_what_is_beyond_the_time_asked_for_is_left(self, sea: Sea) -> None:
        sea.add(derived("d", COUNTS))
        for day in range(3):
            sea.ingest("tides", day, ("a", [row(day, "a", day * 10 + 1)]))
        report = sea.worlds["d"].run(lambda job: correct(sea.joined(job), until=20))
        assert (report["complete_below"], sea.law("d")) == (20, 1)
        report = sea.worlds["d"].run(lambda job: correct(sea.joined(job), until=50))
        assert (report["complete_below"], report["waits_for"], report["unfinished"]) == (30, "tides", True)
        sea.correct("d")
        report = sea.worlds["d"].run(lambda job: correct(sea.joined(job), until=50))
        assert (report["waits_for"], report["unfinished"]) == ("tides", False)


class TestDiamonds:
    @pytest.fixture
    def diamond(self, sea: Sea) -> Sea:
        sea.add(derived("big", BIG))
        sea.add(derived("counts", COUNTS))
        sea.add(derived("met", MET))
        return sea

    def test_the_arms_are_never_torn(self, diamond: Sea) -> None:
        """One arm has consumed a day and a tick that the other has not: the join waits and names the laggard."""
        diamond.ingest("tides", 0, ("a", FIRST))
        for name in ("big", "counts", "met"):
            diamond.correct(name)
        diamond.ingest("tides", 0, ("late", [row(9, "b", 5, 4)]))
        diamond.correct("counts")
        report = diamond.correct("met")
        assert (report["outcome"], report.get("waits_for")) in (("waits", "big"), ("nothing to do", None))
        diamond.correct("big")
        assert diamond.correct("met")["outcome"] == "applied"
        assert diamond.law("met") == 2
        assert diamond.rows_as_of("met", 100)[9, "b", 3] == 1


class TestHolds:
    def test_it_holds_its_input_where_it_is_consumed(self, sea: Sea) -> None:
        sea.add(derived("d", COUNTS))
        for day in range(2):
            sea.ingest("tides", day, ("a", [row(day, "a", day * 10 + 1)]))
            sea.correct("d")
            assert [(hold.name, hold.since) for hold in sea.worlds["tides"].state.holds] == [
                ("derived.d", 10 * day + 9)
            ]

    def test_a_hold_that_was_lost_makes_the_next_run_whole(self, sea: Sea) -> None:
        sea.add(derived("d", COUNTS, max_lag=1_000_000))
        sea.ingest("tides", 0, ("a", FIRST))
        sea.correct("d")
        sea.ingest("tides", 1, ("a", SECOND))
        sea.clock.now += 10
        log = sea.log("tides")
        log.commit(log.load(), CompactionAllowed(19, (), int(log.wall() * 1_000_000)))
        report = sea.correct("d")
        assert report["mode"] == "whole"
        assert "merged below" in report["why"]
        assert sea.law("d") == 1
        sea.ingest("tides", 2, ("a", [row(6, "b", 25)]))
        assert sea.correct("d")["mode"] == "by_key"
        assert sea.law("d") == 2

    def test_an_input_that_is_none_any_more_is_let_go(self, sea: Sea) -> None:
        sea.landed("moons")
        sea.add(derived("d", JOINED))
        for name in ("tides", "moons"):
            sea.ingest(name, 0, ("a", [row(1, "a", 3)]))
        sea.correct("d")
        sea.run("d", lambda job: declare_collection(job, derived("d", BIG)))
        sea.correct("d")
        assert [len(sea.worlds[name].state.holds) for name in ("tides", "moons")] == [1, 0]


class TestChecks:
    @pytest.mark.parametrize("select", [BIG, COUNTS, RANKED])
    def test_rows_written_and_lost_by_others_are_put_right_and_reported(self, sea: Sea, select: str) -> None:
        sea.add(derived("d", select))
        sea.ingest("tides", 0, ("a", FIRST))
        sea.correct("d")
        assert sea.correct("d", check=True) | {"repaired": 0, "checked": True, "outcome": "nothing to do"}
        was = sea.rows_as_of("d", 100)
        lost = next(iter(was))
        write_by_hand(sea, "d", {lost: -1, (*lost[:-1], None): +2})
        assert sea.rows_as_of("d", 100) != was
        report = sea.correct("d", check=True)
        assert (report["outcome"], report["repaired"], report["mode"], report["why"]) == (
            "applied",
            3,
            "whole",
            "checked",
        )
        assert sea.rows_as_of("d", 100) == was
        assert sea.correct("d", check=True)["repaired"] == 0


class TestValidity:
    """Of key k rows are there from 7 k on, for 20."""

    def test_what_is_not_due_waits_ahead_and_counts_from_when_it_begins_until_it_ends(self, sea: Sea) -> None:
        sea.add(derived("d", OFFERED, validity=Validity("since", valid_for=20)))
        sea.ingest("tides", 0, ("a", [row(0, "a", 3), row(1, "b", 4), row(5, "c", 5)]))
        report = sea.correct("d")
        assert [batch.id for batch in sea.worlds["d"].state.ahead] == report["batches"]
        assert [sorted(k for k, *_ in sea.rows_as_of("d", at)) for at in (9, 20, 27, 35, 55)] == [
            [0, 1],
            [1],
            [],
            [5],
            [],
        ]
        for day in (1, 2, 3):
            sea.ingest("tides", day)
            sea.correct("d")
        report = sea.correct("d", check=True)
        assert (report["checked"], report["repaired"]) == (True, 0)
        assert [sorted(k for k, *_ in sea.rows_as_of("d", at)) for at in (9, 20, 27, 35)] == [[0, 1], [1], [], [5]]
        assert sea.law("d") == 4


class TestOtherDefinitions:
    def test_another_definition_is_a_whole_difference_at_the_next_frontier(self, sea: Sea) -> None:
        sea.add(derived("d", BIG))
        sea.ingest("tides", 0, ("a", FIRST))
        sea.correct("d")
        was = sea.rows_as_of("d", 9)
        sea.run("d", lambda job: declare_collection(job, derived("d", BIGGER)))
        report = sea.correct("d")
        assert (report["outcome"], report["mode"], report["why"]) == ("applied", "whole", "another definition")
        assert sea.rows_as_of("d", 9) == was
        assert sea.rows_as_of("d", 10) == {(3, "b"): 1}
        assert sea.law("d") == 1

    def test_a_column_that_went_and_came_back_is_computed_again(self, sea: Sea) -> None:
        """The definition is the one that was computed last, and of the column nothing is left."""
        sea.add(derived("d", SUMS))
        sea.ingest("tides", 0, ("a", FIRST))
        sea.correct("d")
        was = sea.rows_as_of("d", 9)
        for select in (TALLIES, SUMS):
            sea.run("d", lambda job, select=select: declare_collection(job, derived("d", select)))
        report = sea.correct("d")
        assert (report["mode"], report["why"]) == ("whole", "it is kept in other columns")
        assert sea.rows_as_of("d", 10) == was
        assert sea.law("d") == 1


class TestInputsThatGetWider:
    """Averages of whole numbers are kept in sums and grown by what changed; those of floats are recomputed. The
    definition gives the same columns either way."""

    @pytest.fixture
    def wide(self, tmp_path: Path) -> Sea:
        made = Sea(tmp_path)
        made.landed("tides", value=(Column("v", ColumnType.STRING), Column("w", ColumnType.INT)))
        made.add(derived("d", MEANS))
        made.ingest("tides", 0, ("a", [one | {"w": at} for at, one in enumerate(FIRST)]))
        made.correct("d")
        current = made.worlds["tides"].state.collection
        wider = replace(current, value=(current.value[0], replace(current.value[1], type=ColumnType.FLOAT)))
        made.run("tides", lambda job: declare_collection(job, wider))
        made.ingest("tides", 1, ("a", [one | {"w": 0.5} for one in SECOND]))
        return made

    def test_all_is_computed_once_and_kept_in_other_columns(self, wide: Sea) -> None:
        before = wide.worlds["d"].state.collection
        assert [(column.name, str(column.type)) for column in before.hidden] == [
            ("_rows", "int"),
            ("_part1", "int"),
            ("_part2", "decimal(30, 0)"),
        ]
        job = wide.joined(wide.worlds["d"].job())
        assert explain(job)["next"] | {"mode": "whole", "why": "it is kept in other columns"} == explain(job)["next"]
        (frontier,) = verify_definition(wide.joined(wide.worlds["d"].job())).frontiers
        assert frontier.not_compared.startswith("columns of its inputs changed")
        report = wide.correct("d")
        assert (report["mode"], report["why"]) == ("whole", "it is kept in other columns")
        after = wide.worlds["d"].state.collection
        assert (after.hidden, after.columns) == ((), before.columns)
        wide.ingest("tides", 2, ("a", [row(1, "a", 22) | {"w": 7.25}]))
        assert wide.correct("d")["mode"] == "by_key"
        assert wide.law("d") == 2
