"""Data-driven windows, through all steps: what late rows, bridges and retractions make of them.

A day is ten instants, and a row happened at its `k`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import windows_of
from simulation.script import row
from simulation.sea import Sea
from support.world import DAY, collection
from tidemark.model.collection import Envelope
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.windows import Windows

COUNT = Aggregate("n", Function.COUNT)
MET = Windows((), "k", Session(10), (COUNT,), early=True)
SLID = Windows((), "k", Sliding(10), (COUNT,), early=True)


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    made = Sea(tmp_path)
    made.add(replace(collection(Envelope.UPDATES), name="tides"))
    return made


def day(sea: Sea, number: int, at: tuple[int, ...] = (), gone: tuple[int, ...] = ()) -> dict[str, Any]:
    """A day on which rows come that happened so, and rows are retracted, and the windows after it."""
    rows = [row(k, "a", number * DAY + 1, d=1) for k in at] + [row(k, "a", number * DAY + 1, d=-1) for k in gone]
    sea.ingest("tides", number, (f"of {number}", rows))
    return sea.correct("w")


def test_a_bridge_makes_one_session_of_two_and_is_retracted(sea: Sea) -> None:
    sea.add(windows_of("w", MET))
    day(sea, 0, (0, 10, 25))
    two = {(0, 20, 2): 1, (25, 35, 1): 1}
    assert sea.rows_as_of("w", 9) == two
    day(sea, 1, (18,))
    assert sea.rows_as_of("w", 19) == {(0, 35, 4): 1}
    result = day(sea, 2, gone=(18,))
    assert sea.rows_as_of("w", 29) == two
    assert result["rows"] == 3
    assert sea.law("w") == 3


def test_a_late_row_changes_sliding_windows_and_makes_one(sea: Sea) -> None:
    sea.add(windows_of("w", SLID))
    day(sea, 0, (0, 10))
    assert sea.rows_as_of("w", 9) == {(-10, 0, 1): 1, (0, 10, 2): 1, (1, 11, 1): 1}
    day(sea, 1, (11,))
    assert sea.rows_as_of("w", 19) == {(-10, 0, 1): 1, (0, 10, 2): 1, (1, 11, 2): 1, (11, 21, 1): 1}
    day(sea, 2, gone=(11,))
    assert sea.rows_as_of("w", 29) == sea.rows_as_of("w", 9)


@pytest.mark.parametrize("windows", [MET, SLID])
def test_the_same_windows_from_one_run_or_many(tmp_path: Path, windows: Windows) -> None:
    """Three days as three ingests with a run after each, or one run after all; closed ones alone are there."""
    found: list[Counter[Any]] = []
    for daily in (True, False):
        sea = Sea(tmp_path / str(daily))
        sea.landed("tides")
        sea.add(windows_of("w", replace(windows, early=False)))
        for number, at in enumerate([(3, 17), (12, 4), (2, 3, 7)]):
            sea.ingest("tides", number, ("a", [row(k, "a", number * DAY + 1) for k in at]))
            if daily:
                sea.correct("w")
        sea.correct("w")
        found.append(Counter(sea.rows_as_of("w", 3 * DAY - 1)))
    assert found[0] == found[1]
    assert found[0] == ({(2, 27, 7): 1} if windows is MET else found[0])
    assert all(end < 3 * DAY for (_, end, _) in found[0])
