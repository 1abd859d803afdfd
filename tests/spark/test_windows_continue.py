"""Windows that an older version wrote are gone on with: recomputed they change no row, and where one row of their
input changes only those rows are written that the SQL oracle says differ.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.followed_windows import Followed, Multiset, differences, emitted_rows, land
from tests.oracles.random_windows import DAY, START
from tests.oracles.written_windows import DEFINITIONS, WINDOWS, Written
from tests.spark.test_derived import Deriving
from tidemark.jobs.steps.correct import correct
from tidemark.model.collection import Envelope
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import Windows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
Given = tuple[Followed, dict[str, Deriving]]
EACH = pytest.mark.parametrize("envelope", DEFINITIONS, ids=str)


@pytest.fixture
def copied(spark: Any, tmp_path: Path) -> dict[Envelope, Given]:
    """The inputs and the windows over them, in a copy."""
    shutil.copytree(WINDOWS, tmp_path / "root")
    return {followed.envelope: (followed, each) for followed, each in Written(tmp_path, spark).inputs()}


def files(one: Deriving) -> list[str]:
    """What a collection has in its store but versions."""
    folder = one.events.root / one.name
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def counts_exactly_now(windows: Windows) -> bool:
    """Whether it has a count that was a sketch in the version before."""
    functions = {one.function for one in windows.aggregates}
    return isinstance(windows.kind, Session) and Function.APPROX_DISTINCT in functions


@EACH
def test_recomputed_they_change_no_row_and_are_what_sql_says(copied: dict[Envelope, Given], envelope: Envelope) -> None:
    followed, each = copied[envelope]
    oracle = followed.oracle()
    for name, one in each.items():
        before, windows = files(one), DEFINITIONS[envelope][name]
        report = correct(one.job())
        if counts_exactly_now(windows):
            assert (report["mode"], report["why"]) == ("whole", "approx_distinct in sessions is exact now")
            assert (report["added"], report["retracted"]) == (0, 0), "of so few values the sketch was exact, too"
        else:
            assert report["outcome"] == "nothing to do", name
            assert correct(one.job(), whole=True)["outcome"] == "nothing to do", name
        assert files(one) == before, name
        ours = emitted_rows(one, windows, oracle.close)
        assert ours[0] != Counter(), name
        columns = one.job().log.load().state.collection.columns
        theirs = oracle.rows(windows, columns)
        assert ours == theirs, f"{name}\n{differences(ours[0], theirs[0], columns)}"
    oracle.done()


@EACH
def test_one_changed_row_writes_what_differs_and_nothing_else(
    copied: dict[Envelope, Given], envelope: Envelope
) -> None:
    followed, each = copied[envelope]
    before = {name: emitted_rows(one, DEFINITIONS[envelope][name], 0)[0] for name, one in each.items()}
    changed(followed)
    oracle, written = followed.oracle(), 0
    for name, one in each.items():
        windows: Windows = DEFINITIONS[envelope][name]
        columns = one.job().log.load().state.collection.columns
        report, after = correct(one.job()), oracle.rows(windows, columns)
        differ = difference(after[0], before[name])
        assert emitted_rows(one, windows, oracle.close) == after, name
        added = sum(count for count in differ.values() if count > 0)
        retracted = -sum(count for count in differ.values() if count < 0)
        assert (report["added"], report["retracted"]) == (added, retracted), name
        written += added + retracted
    assert written > 0
    oracle.done()


def changed(followed: Followed) -> None:
    """A day on which one row changes, or is there besides where nothing is retracted."""
    row = next(row for row in followed.there if None not in (row["at"], row["ti"], row["day"], row["cal"], row["m"]))
    new = row | {"m": 3, "s": "new", "learned": START + followed.days * DAY, "change": 1}
    old = row | {"learned": START + followed.days * DAY, "change": -1}
    followed.days += 1
    land(followed.made, followed.days, [old, new] if followed.envelope is Envelope.UPDATES else [new])


def difference(after: Multiset, before: Multiset) -> Multiset:
    """How often each row is there more than before, or less."""
    return Counter({row: many for row in {*after, *before} if (many := after[row] - before[row])})


def test_every_kind_and_function_is_there_and_small() -> None:
    every = [windows for each in DEFINITIONS.values() for windows in each.values()]
    kinds = {windows.kind.kind for windows in every}
    assert kinds == {"tumbling", "hopping", "cumulate", "calendar", "sliding", "session"}
    assert kinds == {one.kind.kind for one in every if one.counts_late_for is not None} | {"hopping", "cumulate"}
    assert {one.function for windows in every for one in windows.aggregates} == set(Function)
    assert sum(path.stat().st_size for path in WINDOWS.rglob("*") if path.is_file()) < 600_000
