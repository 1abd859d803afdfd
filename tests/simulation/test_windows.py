"""Windows through all steps: which are there at which frontier, what late rows do to them, and what is lost to nothing.

A day is ten instants, and a row happened at its `k`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import SOMETIMES, derived, windows_of
from simulation.rows_read import read_updates
from simulation.script import row
from simulation.sea import Sea
from support.world import DAY, collection
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Envelope
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Tumbling
from tidemark.model.window.windows import Windows
from tidemark.plan.read import plan_updates

COUNT = Aggregate("n", Function.COUNT)
DAYS = Windows((), "k", Tumbling(DAY), (COUNT,))
OVERNIGHT = replace(DAYS, kind=Tumbling(DAY, DAY // 2))


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    made = Sea(tmp_path)
    made.landed("tides")
    return made


def day(sea: Sea, number: int, *at: int, **more: Any) -> dict[str, Any]:
    """A day on which rows come that happened so, and the windows after it."""
    rows = [row(k, "a", number * DAY + 1, **more) for k in at]
    sea.ingest("tides", number, (f"of {number}", rows))
    return sea.correct("w")


def history(sea: Sea, name: str = "w") -> Counter[tuple[Any, int]]:
    """What a collection holds as updates: row and time."""
    found: Counter[tuple[Any, int]] = Counter()
    world = sea.worlds[name]
    for (item, time, _), diff in read_updates(world.truth, plan_updates(world.state)).items():
        found[item, time] += diff
    return Counter({update: diff for update, diff in found.items() if diff})


def test_a_window_over_the_end_of_a_day_is_there_once_and_whole(sea: Sea) -> None:
    """[5, 15), with frontiers at 10 and 20: at 10 nothing is emitted for it."""
    sea.add(windows_of("w", OVERNIGHT))
    day(sea, 0, 7)
    assert sea.worlds["w"].state.complete_below == DAY
    assert sea.rows_as_of("w", DAY - 1) == {}
    day(sea, 1, 12)
    assert sea.rows_as_of("w", 2 * DAY - 1) == {(5, 15, 2): 1}
    day(sea, 2)
    assert history(sea) == {((5, 15, 2), 2 * DAY - 1): 1}
    assert sea.law("w") == 3


def test_a_frontier_that_moves_on_closes_windows_without_an_input_and_without_a_row(sea: Sea) -> None:
    sea.add(windows_of("w", replace(OVERNIGHT, grace=DAY)))
    day(sea, 0, 7)
    written = sea.worlds["w"].state.totals.rows_ingested
    for number, there in ((1, {}), (2, {(5, 15, 1): 1}), (3, {(5, 15, 1): 1})):
        result = day(sea, number)
        assert (result["outcome"], result["rows"]) == ("applied", 0)
        assert sea.rows_as_of("w", (number + 1) * DAY - 1) == there
    assert sea.worlds["w"].state.totals.rows_ingested == written
    assert sea.law("w") == 4


def test_what_becomes_of_an_open_window_leaves_no_trace(sea: Sea) -> None:
    """It changes twice before it closes: then its row is there, and that is all there ever was."""
    sea.add(windows_of("w", replace(DAYS, kind=Tumbling(5 * DAY))))
    day(sea, 0, 7)
    day(sea, 1, 12, 13)
    day(sea, 2, 22)
    assert history(sea) == {((0, 50, 4), 49): 1}
    for number in (3, 4):
        day(sea, number)
    assert sea.rows_as_of("w", 48) == {}
    assert sea.rows_as_of("w", 49) == {(0, 50, 4): 1}


def test_a_late_row_corrects_the_window_and_history_tells_both(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    day(sea, 0, 7)
    day(sea, 1, 7)
    assert history(sea) == {((0, 10, 1), 9): 1, ((0, 10, 1), 19): -1, ((0, 10, 2), 19): 1}


def test_a_retraction_empties_the_window_it_was_in_whatever_was_merged(tmp_path: Path) -> None:
    """A value of day 3, whose time was moved to day 9, and which is retracted on day 12: day 3 empties, and on day 9
    nothing happens."""
    sea = Sea(tmp_path)
    sea.add(replace(collection(Envelope.UPDATES), name="tides"))
    sea.add(windows_of("w", DAYS))
    for number in range(3):
        day(sea, number)
    day(sea, 3, 35)
    day(sea, 4)
    for number in range(5, 12):
        day(sea, number, *([95] if number == 9 else []))
    log = sea.log("tides")
    log.commit(log.load(), CompactionAllowed(9 * DAY, (), 0))
    sea.ingest("tides", 12, ("gone", [row(35, "a", 12 * DAY + 1, d=-1)]))
    sea.correct("w")
    assert sea.rows_as_of("w", 12 * DAY - 1) == {(30, 40, 1): 1, (90, 100, 1): 1}
    assert sea.rows_as_of("w", 13 * DAY - 1) == {(90, 100, 1): 1}
    touched = {window for (window, time), _ in history(sea).items() if time >= 12 * DAY}
    assert touched == {(30, 40, 1)}


def test_another_grace_retracts_what_is_to_come_and_tells_it_at_its_own_time(sea: Sea) -> None:
    sea.add(windows_of("w", OVERNIGHT))
    day(sea, 0, 7)
    sea.run("w", lambda job: declare_collection(job, windows_of("w", replace(OVERNIGHT, grace=DAY))))
    assert day(sea, 1)["why"] == "another definition"
    assert history(sea) == {((5, 15, 1), 24): 1}
    day(sea, 2)
    assert sea.rows_as_of("w", 23) == {}
    assert sea.rows_as_of("w", 24) == {(5, 15, 1): 1}


def test_rows_at_no_time_are_in_no_window_and_counted_and_null_is_a_value_of_by(
    sea: Sea,
) -> None:
    sea.add(derived("some", SOMETIMES))
    sea.add(windows_of("w", replace(DAYS, on="at"), "some"))
    unplaced = []
    for number, rows in enumerate([[row(7, "a", 1), row(3, "b", 1), row(4, None, 1)], [row(8, "b", 11)]]):
        sea.ingest("tides", number, ("a", rows))
        sea.correct("some")
        unplaced.append(sea.correct("w")["unplaced"])
    assert unplaced == [2, 1]
    assert sea.rows_as_of("w", 2 * DAY - 1) == {(0, 10, 1): 1}
    sea.add(windows_of("by", replace(DAYS, by=("v",))))
    assert sea.correct("by")["unplaced"] == 0
    assert sea.rows_as_of("by", 2 * DAY - 1) == {(None, 0, 10, 1): 1, ("a", 0, 10, 1): 1, ("b", 0, 10, 2): 1}


def test_half_a_window_is_not_shown_after_what_completed_it_was_taken_out(sea: Sea) -> None:
    """[5, 15) is open at 10; the batch by which the second day completes it is quarantined before it is sealed. What
    comes next is at 30, and from 15 on the first day's half must not be there."""
    sea.add(windows_of("w", OVERNIGHT))
    day(sea, 0, 7)
    sea.ingest("tides", 1, ("of 1", [row(12, "a", DAY + 1)]))
    sea.correct("w", until="correct")
    batch = sea.worlds["w"].state.consumptions[-1].batch
    assert batch
    sea.run("w", lambda job: quarantine(job, batch))
    day(sea, 2, 22)
    assert [sea.rows_as_of("w", time) for time in (14, 19, 28)] == [{}, {}, {}]
    assert sea.rows_as_of("w", 3 * DAY - 1) == {(5, 15, 2): 1, (15, 25, 1): 1}
    assert sea.law("w") == 2
