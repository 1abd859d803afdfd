"""Windows by Spark, through the real steps: what is there at each frontier is what the law says of the closed ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import APPEND, DAY, HOUR, START, Made
from tests.spark.test_derived import Deriving, rows_of
from tidemark.arrow.read import as_of
from tidemark.jobs.questions.definition import verify_definition
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.close import is_closed
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kind import Calendar, Hopping, Tumbling, Unit
from tidemark.model.window.windows import Windows

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
}


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, APPEND.replace("value: [kind, amount]", "value: [kind, amount, at]"))
    made.land(1, 200, keys=12)
    made.moved(1)
    made.step("trace", 1)
    return made


def law(windows: Windows, rows: list[dict[str, Any]], close: int) -> Counter[tuple[Any, ...]]:
    happened = [
        Happened(tuple(row[by] for by in windows.by), tuple(row.items()), from_datetime(row["at"]), 0)
        for row in rows
        if row["id"] > 2 and all(row[by] is not None for by in windows.by)
    ]
    told = window_rows(
        windows, happened, lambda one, row: dict(row)[one.of], lambda one, row: not one.where or dict(row)["id"] > 4
    )
    there = [
        (key, window, values)
        for key, window, values in told
        if windows.early or is_closed(windows.kind, window.end, windows.grace, close)
    ]
    return Counter((*key, *window, *map(plain, values)) for key, window, values in there)


def unplaced(rows: list[dict[str, Any]]) -> int:
    """Rows that would count, of no kind."""
    return sum(row["kind"] is None for row in rows if row["id"] > 2)


def plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else value


def held(one: Deriving, close: int) -> Counter[tuple[Any, ...]]:
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
    modes, rows = [], []
    for day in (1, 2):
        if day == 2:
            events.land(2, 60, keys=12)
            events.moved(2)
            events.step("trace", 2)
        before, rows = unplaced(rows), rows_of(events)
        close = START + day * DAY
        for name, one in made.items():
            told = one.corrected()
            modes.append(told["mode"])
            assert told["unplaced"] == (unplaced(rows) - before if DECLARED[name].by else 0)
            assert held(one, close) == law(DECLARED[name], rows, close), (name, day)
            if name == "overnight":
                # Its windows end at half past each hour: one is open at midnight, and is there once when it has closed.
                assert all(row[2] <= close for row in held(one, close))
    assert modes == ["whole"] * 3 + ["by_key"] * 3
    assert verify_definition(made["hopping"].job()).sound
