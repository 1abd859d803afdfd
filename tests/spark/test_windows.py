"""Windows by Spark, through the real steps: what is there at each frontier is what the law says of the closed ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import tidemark
from tests.spark.support import APPEND, DAY, HOUR, START, Made, day_of
from tests.spark.test_derived import Deriving, rows_of
from tests.spark.ways import by_queries
from tests.spark.window_statistics import check_statistics
from tests.support.reading import as_of
from tests.support.world import certify
from tidemark.arrow.read import updates_of
from tidemark.config.collection_file import load
from tidemark.errors import InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import CompactionAllowed
from tidemark.model.collection import Gate
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.close import is_closed
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import AlignedKind, Calendar, Cumulate, Hopping, Session, Sliding, Tumbling
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.windows import Late, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark

COUNTS = (
    Aggregate("n", Function.COUNT),
    Aggregate("total", Function.SUM, "id", "id > 4"),
    Aggregate("mean", Function.AVG, "id"),
)
EXTREMES = (
    Aggregate("most", Function.MAX, "id"),
    Aggregate("last", Function.LAST, "kind"),
    Aggregate("ids", Function.COLLECT, "id", "id > 4"),
    Aggregate("amounts", Function.SUM, "amount"),
)
OVERNIGHT = Windows(("kind",), "at", Tumbling(HOUR, -HOUR // 2), COUNTS, where="id > 2")
DECLARED = {
    "overnight": OVERNIGHT,
    "hopping": Windows((), "at", Hopping(8 * HOUR, 3 * HOUR), EXTREMES, where="id > 2", grace=5 * HOUR),
    "days": Windows((), "at", Calendar(Unit.DAY, "America/New_York"), COUNTS, where="id > 2", early=True),
    "happened": Windows(("kind",), "event_time", Session(2 * HOUR), COUNTS[:2], where="id > 2"),
}
FOR_A_WHILE = {
    "discarding": Windows(
        ("kind",), "at", Hopping(8 * HOUR, 3 * HOUR), EXTREMES, "id > 2", grace=2 * HOUR, late=Late.DISCARD
    ),
    "growing": Windows(("id",), "at", Tumbling(5 * HOUR), COUNTS, "id > 2", max_lateness=9 * HOUR, early=True),
    "slid": Windows(("kind",), "at", Sliding(5 * HOUR), EXTREMES, "id > 2", grace=2 * HOUR, late=Late.DISCARD),
    "near": Windows((), "at", Sliding(40 * HOUR, True), COUNTS[:1], "id > 2", max_lateness=9 * HOUR, early=True),
}
MOVING = {
    "cumulating": Windows(
        ("kind",), "at", Cumulate(30 * HOUR, 10 * HOUR), EXTREMES, "id > 2", grace=2 * HOUR, late=Late.NEXT_WINDOW
    ),
    "adding": Windows(
        (), "at", Calendar(Unit.DAY, "America/New_York"), COUNTS, "id > 2", late=Late.NEXT_WINDOW, early=True
    ),
}


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, APPEND.replace("value: [kind, amount]", "value: [kind, amount, at]"))
    made.land(1, 200, keys=12)
    made.moved(1)
    made.step("trace", 1)
    return made


def happened(windows: Windows, rows: list[dict[str, Any]]) -> list[Happened]:
    """Rows, and where they are updates how often and when they came: with the day that they are of, late ones when the
    day before was complete."""
    return [
        Happened(
            tuple(row[by] for by in windows.by),
            tuple((name, cell) for name, cell in row.items() if name not in ("_time", "_event_time", "_diff")),
            from_datetime(row["at"]),
            row.get("_time", 0) // DAY * DAY,
            row.get("_diff", 1),
        )
        for row in rows
        if row["id"] > 2
    ]


def law(windows: Windows, rows: list[dict[str, Any]], close: int) -> Counter[tuple[Any, ...]]:
    found = window_rows(
        windows,
        happened(windows, rows),
        lambda one, row: dict(row)[one.of],
        lambda one, row: not one.where or dict(row)["id"] > 4,
    )
    there = [
        (key, window, values)
        for key, window, values in found
        if windows.early or is_closed(windows.kind, window.end, windows.grace, close)
    ]
    return Counter((*key, *window, *map(plain, values)) for key, window, values in there)


def plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else value


def rows_before(one: Deriving, close: int) -> Counter[tuple[Any, ...]]:
    job = one.job()
    rows = as_of(job.store, job.log.load().state, time=close - 1).to_pylist()
    micros = [
        {name: from_datetime(cell) if name.startswith("window_") else plain(cell) for name, cell in row.items()}
        for row in rows
    ]
    return Counter({tuple(row.values())[:-1]: row["_multiplicity"] for row in micros})


def test_closed_windows_are_there_and_right_after_each_day(spark: Any, events: Made) -> None:
    made = {
        name: Deriving(events, spark, name, Derived(("events",), Definition(windows=windows)))
        for name, windows in DECLARED.items()
    }
    for one in made.values():
        one.declared()
    modes: list[str] = []
    for day in (1, 2):
        if day == 2:
            events.land(2, 60, keys=12)
            events.moved(2)
            events.step("trace", 2)
        rows = rows_of(events)
        close = START + day * DAY
        for name, one in made.items():
            report = one.corrected()
            modes.append(report["mode"])
            assert report["unplaced"] == 0
            # What came late is there as of another event time than `at`: statistics, below, count by that.
            assert (name, day) == ("happened", 2) or rows_before(one, close) == law(DECLARED[name], rows, close), name
            if name == "overnight":
                # Its windows end at half past each hour: one is open at midnight, and is there once when it has closed.
                assert all(row[2] <= close for row in rows_before(one, close))
    assert modes == ["whole"] * 4 + ["by_key"] * 4
    assert verify_definition(made["hopping"].job()).sound
    for name, one in made.items():
        assert check_statistics(one, DECLARED[name], fits).reported > 0
    answer = tidemark.open(str(events.root), "happened").windows()
    answer.with_statistics(spark).to_spark(spark).createOrReplaceGlobalTempView("of_met")  # of a session of its own
    assert spark.sql("SELECT count(*) FROM global_temp.of_met").collect()[0][0] == answer.count() > 0
    seen = {"time": START + DAY - 1, "where": "kind <> 'a'"}
    assert check_statistics(made["overnight"], OVERNIGHT, fits, **seen).reported > 0


def fits(row: dict[str, Any]) -> bool:
    """What all windows here ask of a row."""
    return bool(row["id"] > 2)


def followed(spark: Any, events: Made, declared: dict[str, Windows], *, here: bool = True) -> dict[str, Deriving]:
    """Windows of two days' events, checked after each. Through `correct` alone, which does not wait for the steps after
    it."""
    made = {
        name: Deriving(events, spark, name, Derived(("events",), Definition(windows=windows)))
        for name, windows in declared.items()
    }
    rows: list[dict[str, Any]] = []
    for day in (1, 2):
        if day == 2:
            events.land(2, 60, keys=12)
            events.moved(2)
            events.step("trace", 2)
        known, rows = rows, learned(events)
        for name, windows in declared.items():
            if day == 1:
                made[name].declared()
            report = correct(made[name].job())
            assert report["mode"] == ("whole" if day == 1 else "by_key")
            if here:
                aligned = isinstance(windows.kind, AlignedKind)
                assert (report["way"]["place"] == "here") is aligned, (name, report["way"])
            assert stored_rows(made[name], START + day * DAY) == law(windows, rows, START + day * DAY), (name, day)
            was, now = (lateness(judge(Rule.of(windows), happened(windows, some))) for some in (known, rows))
            assert report["late"] == asdict(now - was), (name, day)
            assert any(report["late"].values()) == (day == 2)
    assert all(verify_definition(one.job()).sound for one in made.values())
    return made


def check_all_reported(made: dict[str, Deriving], declared: dict[str, Windows]) -> None:
    """Once they are sealed, statistics are reported for all windows, and some rows came late."""
    for name, one in made.items():
        certify(one.job(), Gate.UNSEALED)
        seal(one.job(), day_of(1))
        checked = check_statistics(one, declared[name], fits)
        assert (checked.reported > 0, checked.missing, checked.late > 0) == (True, 0, True)


def test_windows_hold_what_came_before_they_were_frozen(spark: Any, events: Made) -> None:
    made = followed(spark, events, FOR_A_WHILE)
    check_all_reported(made, FOR_A_WHILE)
    log = events.log
    log.commit(log.load(), CompactionAllowed(START + 2 * DAY - 1, (), 0))
    for one in made.values():
        assert correct(one.job(), whole=True)["outcome"] == "nothing to do"
    for name in ("growing", "near"):
        checked = check_statistics(made[name], FOR_A_WHILE[name], fits)
        assert (checked.reported > 0, checked.missing > 0) == (True, True)


def test_queries_compute_the_same_where_rows_are_too_many_for_this_process(
    spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_queries(monkeypatch)
    declared = {**FOR_A_WHILE, **MOVING}
    aligned = {name: windows for name, windows in declared.items() if isinstance(windows.kind, AlignedKind)}
    followed(spark, events, aligned, here=False)


def test_late_rows_count_in_the_window_that_is_open_when_they_come(spark: Any, events: Made) -> None:
    """As long as none is retracted: of an input whose files may be read again that is refused before anything is read,
    and of one where that has been, when the row is met."""
    made = followed(spark, events, MOVING)
    check_all_reported(made, MOVING)
    again = events.text + "reprocess_for: 5d\n"
    events.file.write_text(again)
    events.land(3, 20, keys=12, files=1)
    with pytest.raises(InvalidUsage, match="breaks what is derived from it: adding needs an edit"):
        events.moved(3)
    declare_collection(events.job(), load(events.file))  # as `init --break-derived`
    events.moved(3)
    file = events.landing / "events/2024-01-03/0.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(file).slice(0, 10), file)
    for text, refused in (
        (again, "when a file is read again; remove reprocess_for from its file, or write"),
        (events.text, r"events retracts a row of key .*, which late: next_window may have counted in another window"),
    ):
        events.file.write_text(text)
        events.moved(3)
        events.step("trace", 3)
        with pytest.raises(InvalidUsage, match=refused) as caught:
            correct(made["cumulating"].job())
        assert "\n" not in str(caught.value)


def test_late_rows_of_long_ago_count_in_the_window_that_is_open(spark: Any, events: Made) -> None:
    """No part has a row that happened in this window: when its rows happened does not say where they are."""
    most = (Aggregate("most", Function.MAX, "id"),)
    windows = Windows((), "id", Tumbling(HOUR), most, late=Late.NEXT_WINDOW, early=True)
    one = Deriving(events, spark, "moved", Derived(("events",), Definition(windows=windows)))
    one.declared()
    one.corrected()
    first = {row["id"] for row in rows_of(events)}
    events.land(2, 60, keys=20)
    events.moved(2)
    events.step("trace", 2)
    one.corrected()
    second = [row["id"] for row in learned(events) if row["_time"] >= START + DAY]
    found = as_of(one.job().store, one.job().log.load().state).to_pylist()
    assert sorted(tuple(row.values())[:3] for row in found) == [
        (0, HOUR, max(first)),
        (START + DAY, START + DAY + HOUR, max(second)),
    ]


def learned(events: Made) -> list[dict[str, Any]]:
    """The updates of the events, of which nothing is merged yet."""
    job = events.job()
    assert job.log.load().state.since == 0
    return at_rest(job)


def at_rest(job: Job) -> list[dict[str, Any]]:
    """All updates of a collection, sealed or not."""
    state = job.log.load().state
    names = [column.name for column in state.collection.columns]
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(state)))
    return [row for task in tasks for rows in updates_of(job.store, task, names) for row in rows.to_pylist()]


def stored_rows(one: Deriving, close: int) -> Counter[tuple[Any, ...]]:
    """What a collection holds before a time, also what is not sealed."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in at_rest(one.job()):
        if row["_time"] < close:
            cells = {name: cell for name, cell in row.items() if name not in ("_time", "_event_time", "_diff")}
            values = (
                from_datetime(cell) if name.startswith("window_") else plain(cell) for name, cell in cells.items()
            )
            found[tuple(values)] += row["_diff"]
    return Counter({row: many for row, many in found.items() if many})
