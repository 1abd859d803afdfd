"""Sessions that take late rows for a while only, through all steps: a row joins what is open when it comes, however old
it is, and no session that is frozen changes, whatever runs there were. Days are real ones, and a row happened at its
`k`, as in test_late_windows.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulation.plain_definitions import happened, windows_of
from simulation.sea import Sea
from simulation.test_late_windows import COUNT, HOUR, LEAST, SEEDS, D, Days, came, walked
from support.budget import budget
from support.world import collection
from tidemark.api.windowed import late_by
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.correct import correct
from tidemark.model.collection import Envelope
from tidemark.model.window.contents import Rule
from tidemark.model.window.kinds import Session
from tidemark.model.window.lateness import Lateness, judge, lateness
from tidemark.model.window.windows import Late, Windows

(DAYS,) = budget(ci=(6,), deep=(12,))
MET = Windows((), "k", Session(10 * HOUR), (COUNT,), late=Late.DISCARD)
END = 10 * HOUR


@pytest.fixture
def days(tmp_path: Path) -> Days:
    sea = Sea(tmp_path)
    sea.add(replace(collection(Envelope.UPDATES), name="tides"))
    return Days(sea)


def test_what_comes_late_joins_what_is_open_and_nothing_else(days: Days) -> None:
    """Of the first day's sessions the earlier one closed with the day."""
    days.sea.add(windows_of("w", MET))
    days.day(0, HOUR, 20 * HOUR)
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", D - 1) == {(HOUR, HOUR + END, 1): 1}
    days.day(1, 2 * HOUR, 13 * HOUR)
    result = days.sea.correct("w")
    assert days.sea.rows_as_of("w", 2 * D - 1) == {(HOUR, HOUR + END, 1): 1, (13 * HOUR, 20 * HOUR + END, 2): 1}
    assert result["late"] == {"rows_late_for_all": 1, "rows_late_for_some": 0, "window_updates_late": 1}
    assert days.law() == 2


def test_a_row_that_was_late_counts_after_all_where_what_is_learned_with_it_opens_a_session(days: Days) -> None:
    """It came after its day was complete, and what the next day's file tells is learned at that same end of a day."""
    days.sea.add(windows_of("w", MET))
    days.day(0, HOUR)
    days.sea.correct("w")
    days.day(0, 5 * HOUR, name="late")
    assert days.sea.correct("w")["late"]["rows_late_for_all"] == 1
    before = days.sea.rows_as_of("w", 2 * D)
    assert before == {(HOUR, HOUR + END, 1): 1}
    days.day(1, 14 * HOUR)
    assert days.sea.correct("w")["late"]["rows_late_for_all"] == -1
    assert days.sea.rows_as_of("w", 2 * D - 1) == {(HOUR, HOUR + END, 1): 1, (5 * HOUR, 14 * HOUR + END, 2): 1}
    assert late_by(days.sea.worlds["w"].state, 9 * D) == Lateness()
    assert days.law() == 3


def test_sessions_are_refused_of_what_does_not_keep_when_its_rows_came(days: Days) -> None:
    sea = days.sea
    days.day(0, HOUR)
    sea.add(windows_of("plain", replace(MET, late=Late.REEMIT)))
    sea.correct("plain")
    sea.add(windows_of("w", replace(MET, on="window_start"), "plain"))
    with pytest.raises(InvalidUsage, match=r"^windows\.late: .* plain is derived, .*; take the windows over the coll"):
        correct(sea.joined(sea.worlds["w"].job()))
    days.merged()
    sea.add(windows_of("v", MET))
    with pytest.raises(
        InvalidUsage, match=r"tides is merged below .*; create it again from its files, or leave late out"
    ):
        correct(sea.joined(sea.worlds["v"].job()))


DECLARED = {
    "met": Windows(("v",), "k", Session(7 * HOUR), (COUNT, LEAST), late=Late.DISCARD),
    "lasting": Windows((), "k", Session(9 * HOUR), (COUNT,), late=Late.REEMIT, max_lateness=20 * HOUR, early=True),
    "cut": Windows((), "k", Session(9 * HOUR, False, 11 * HOUR), (LEAST, COUNT), grace=6 * HOUR, late=Late.DISCARD),
}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_no_frozen_session_changes(tmp_path: Path, seed: int) -> None:
    days = walked(tmp_path, seed, DECLARED, DAYS)
    for name, windows in DECLARED.items():
        consumed = days.sea.worlds[name].state.consumed
        assert consumed is not None
        rows = [
            {"k": k, "v": v, "_learned": came(time), "_diff": diff}
            for ((k, v), time, _), diff in days.learned.items()
            if time < consumed.inputs[0].upper
        ]
        assert consumed.late == lateness(judge(Rule.of(windows), happened(windows, rows))) != Lateness()
