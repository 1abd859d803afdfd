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
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Envelope
from tidemark.model.retention import Retention
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


def test_what_is_retracted_stays_in_a_frozen_session_and_goes_from_an_open_one(days: Days) -> None:
    days.sea.add(windows_of("w", MET))
    days.day(0, HOUR, 2 * HOUR, 15 * HOUR, 20 * HOUR)
    days.sea.correct("w")
    days.day(1, gone=(HOUR, 20 * HOUR))
    days.sea.correct("w")
    assert days.sea.rows_as_of("w", 3 * D) == {(HOUR, 2 * HOUR + END, 2): 1, (15 * HOUR, 15 * HOUR + END, 1): 1}
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


@pytest.mark.parametrize("windows", [MET, replace(MET, kind=Session(10 * HOUR, False, 13 * HOUR), grace=5 * HOUR)])
def test_the_same_sessions_and_numbers_from_one_run_or_many(tmp_path: Path, windows: Windows) -> None:
    found = []
    for daily in (True, False):
        sea = Sea(tmp_path / str(daily))
        sea.add(replace(collection(Envelope.UPDATES), name="tides"))
        sea.add(windows_of("w", windows))
        days = Days(sea)
        for number, at in enumerate([(1, 8), (2, 25, 30), (9, 20, 33, 50), (3, 41, 60)]):
            days.day(number, *(hour * HOUR for hour in at))
            days.day(number, (7 * number - 3) * HOUR, name="late")
            if daily:
                sea.correct("w")
                days.merged()
                assert sea.worlds["tides"].state.since == 0, "its history is kept from its beginning on"
        sea.correct("w")
        days.law()
        found.append((sea.rows_as_of("w", 9 * D), late_by(sea.worlds["w"].state, 9 * D)))
    assert found[0] == found[1]
    assert found[0][1]


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


def test_an_input_is_kept_from_its_beginning_on_whatever_retention_it_is_given(days: Days) -> None:
    sea = days.sea
    sea.add(windows_of("w", MET))
    days.day(0, HOUR)
    sea.correct("w")
    declared = sea.worlds["tides"].collection
    shorter = replace(declared, retention=Retention("full_merge"))
    sea.run("tides", lambda job: declare_collection(job, shorter))
    days.day(1, D + HOUR)
    assert sea.worlds["tides"].state.since == 0
    with pytest.raises(
        InvalidUsage, match=r"windows\.late: .* tides keeps the newest complete time, .*; write retention: all"
    ):
        correct(sea.joined(sea.worlds["w"].job()))
    sea.run("tides", lambda job: declare_collection(job, declared))
    sea.correct("w")
    assert days.law() == 2


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
