"""Windows on the event times of an input's updates: no column says when a row happened. A day is ten instants.

The machine's rows are counted by hand from what landed, by a calculation that shares nothing with ours."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import windows_of
from simulation.script import row
from simulation.sea import Sea
from simulation.test_windows import history
from support.world import DAY, collection
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late
from tidemark.model.retention import Retention
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Windows

COUNT = Aggregate("n", Function.COUNT)
DAYS = Windows((), "event_time", Tumbling(DAY), (COUNT,))


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    made = Sea(tmp_path)
    made.landed("tides", reprocess_for=1_000 * DAY)
    return made


def day(sea: Sea, number: int, *at: int, name: str = "a", **more: Any) -> dict[str, Any]:
    """A day on which rows come that happened so, all of one key and value, and the windows after it."""
    sea.ingest("tides", number, (name, [row(1, "a", number * DAY + 1, e, **more) for e in at]))
    return sea.correct("w")


def tumbled(*at: int, close: int) -> Counter[tuple[int, int, int]]:
    """Days by hand: how many happened in each that is closed."""
    found = Counter(e // DAY for e in at)
    return Counter({(d * DAY, (d + 1) * DAY, n): 1 for d, n in found.items() if (d + 1) * DAY <= close})


def test_equal_rows_count_when_each_happened_late_ones_and_those_to_come_too(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    landed: list[int] = []
    for number, at in enumerate([(3, 3, 14), (12, 4), (25, 9, 21, 27)]):
        landed += at
        assert day(sea, number, *at)["unplaced"] == 0
        assert sea.rows_as_of("w", (number + 1) * DAY - 1) == tumbled(*landed, close=(number + 1) * DAY)
    assert sea.law("w") == 3
    assert history(sea)[(0, 10, 2), 9] == 1, "as of the first day it is as it was emitted"


def test_a_file_that_was_wrong_takes_its_rows_back_when_they_happened(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    day(sea, 0, 3, 7)
    day(sea, 1, 12)
    day(sea, 0, 3, 5, 6)
    assert sea.rows_as_of("w", sea.worlds["w"].state.complete - 1) == tumbled(3, 5, 6, 12, close=20)
    day(sea, 0, 14)
    assert sea.rows_as_of("w", sea.worlds["w"].state.complete - 1) == tumbled(14, 12, close=20)
    reports: list[Any] = []
    sea.run("w", lambda job: reports.append(verify_definition(sea.joined(job))))
    assert [(report.sound, report.checked) for report in reports] == [(True, 1)]
    assert sea.correct("w", check=True)["repaired"] == 0


def test_a_row_that_is_retracted_at_another_event_time_is_refused(tmp_path: Path) -> None:
    sea = Sea(tmp_path)
    sea.add(replace(collection(Envelope.UPDATES), name="tides"))
    sea.add(windows_of("w", DAYS))
    day(sea, 0, 3, 7)
    day(sea, 1, 3, d=-1)
    assert sea.rows_as_of("w", 19) == {(0, 10, 1): 1}
    with pytest.raises(InvalidUsage, match="fewer times than never"):
        day(sea, 2, 8, d=-1)


KINDS = [Hopping(20, 7), Sliding(5), Session(4, max_length=11)]


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_windows_are_those_of_a_column_that_holds_the_same(tmp_path: Path, kind: WindowKind) -> None:
    """`k` is when a row happened, and so is its event time."""
    sea = Sea(tmp_path)
    sea.landed("tides", reprocess_for=1_000 * DAY)
    for on in ("event_time", "k"):
        sea.add(windows_of(on, replace(DAYS, on=on, kind=kind, by=("v",), grace=3)))
    for number, at in [(0, (3, 7, 26)), (1, (12, 4, 18)), (2, (25, 9)), (0, (3, 6, 7))]:
        rows = [row(e, "ab"[e % 2], number * DAY + 1, e) for e in at]
        sea.ingest("tides", number, ("a", rows))
        for on in ("event_time", "k"):
            sea.correct(on)
        assert history(sea, "event_time") == history(sea, "k"), number
    assert sea.law("event_time") == 4


def test_an_input_is_kept_from_its_beginning_on_whatever_retention_it_is_given(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    day(sea, 0, 3, 7)
    day(sea, 1, 12)
    declared = sea.worlds["tides"].collection
    shorter = replace(declared, retention=Retention("full_merge"))
    sea.run("tides", lambda job: declare_collection(job, shorter))
    sea.ingest("tides", 2, ("a", [row(1, "a", 21, 4)]))
    assert sea.worlds["tides"].state.since == 0
    job = sea.joined(sea.worlds["w"].job())
    with pytest.raises(InvalidUsage, match=r"tides keeps the newest complete time, .* write retention: all"):
        correct(job)
    sea.run("tides", lambda job: declare_collection(job, declared))
    sea.correct("w")
    assert sea.rows_as_of("w", 29) == tumbled(3, 4, 7, 12, close=30)


def with_column(made: Collection, name: str) -> Collection:
    return replace(made, value=(*made.value, Column(name, ColumnType.INT)))


def test_a_column_of_that_name_goes_before_and_one_that_comes_has_all_recomputed(sea: Sea) -> None:
    sea.add(windows_of("w", DAYS))
    day(sea, 0, 3, 7)
    before = sea.worlds["tides"].collection
    sea.run("tides", lambda job: declare_collection(job, with_column(before, "event_time")))
    job = sea.joined(sea.worlds["w"].job())
    result = correct(job)
    assert (result["mode"], result["why"]) == ("whole", "columns of its inputs changed")
    assert sea.rows_as_of("w", sea.worlds["w"].state.complete - 1) == {}, "no row has a value there"


REFUSED = {
    "an update of tides says when a value became another": collection(Envelope.UPSERT),
    "tides is made of full snapshots": collection(Envelope.SNAPSHOT),
    ".* each diff happens when it is learned": collection(Envelope.UPDATES, event_time=False),
    ".* a late diff happens in the next window": collection(Envelope.UPDATES, late=Late("next_window")),
    "tides keeps the last instant of every 1h": replace(
        collection(), retention=Retention("time_boundary", interval=3_600_000_000)
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_inputs_that_do_not_tell_event_times_are_refused(tmp_path: Path, why: str) -> None:
    sea = Sea(tmp_path)
    sea.add(REFUSED[why])
    sea.add(windows_of("w", DAYS))
    sea.ingest("tides", 0)
    with pytest.raises(
        InvalidUsage, match=rf"windows\.on: rows are placed by .*, and {why}.*, or keep that as a column"
    ):
        correct(sea.joined(sea.worlds["w"].job()))
