"""Groups that executors build through a shuffle, of parts that are grouped where they are read or of rows, compared
bit by bit with those that the driver builds, and queries."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import DAY, HOUR, Made
from tests.spark.test_grouped_here import (
    ADDED,
    COUNTS,
    EXTREMES,
    SAME,
    UPDATES,
    UPSERT,
    at_rest,
    built_by_spark,
    drawn,
    land,
    refreshed,
    row,
    unbuilt,
)
from tests.spark.ways import by_executors, not_here, queried
from tests.support.budget import budget
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.model.derived import Definition
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit, unit_of
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Tumbling
from tidemark.model.window.windows import Late, Windows
from tidemark.spark.derive.kinds import groups_shuffled

pytestmark = pytest.mark.spark

MERGED = (
    *COUNTS,
    Aggregate("mean", Function.AVG, "whole"),
    Aggregate("least", Function.MIN, "note"),
    Aggregate("most", Function.MAX, "ratio"),
    Aggregate("prices", Function.SUM, "price"),
    Aggregate("good", Function.COUNT, "id", "good"),
    Aggregate("twice", Function.SUM, "id * 2", "note <> 'x'"),
)
"""Aggregates of all rows that are computed from those of parts."""
IN_ORDER = (
    Aggregate("first", Function.FIRST, "lower(note)"),
    Aggregate("notes", Function.COLLECT, "upper(note)"),
    Aggregate("mean", Function.AVG, "whole + hash(note) % 3"),
)
WHERE = "sold > '2023-06-01' AND (whole IS NULL OR whole < 100)"
BUILT = {
    "windows": (UPDATES, Definition(windows=Windows(("kind",), "sold", Tumbling(DAY // 4, 7), MERGED, grace=5))),
    "some": (UPSERT, Definition(windows=Windows(("note",), "sold", Hopping(DAY, DAY // 2), MERGED, WHERE))),
    "of_all": (UPDATES, Definition(windows=Windows((), "id", Cumulate(40, 10), MERGED))),
    "in_time": (
        UPDATES,
        Definition(windows=Windows(("kind",), "sold", Hopping(DAY, DAY // 2), MERGED, WHERE, late=Late.DISCARD)),
    ),
    "rows": (UPSERT, Definition(windows=Windows(("kind", "good"), "sold", Tumbling(DAY), EXTREMES, early=True))),
    "select": (
        UPDATES,
        Definition(
            f"SELECT date(sold) AS day, kind, {ADDED} FROM moves WHERE note IS NULL OR note <> 'x' "
            "GROUP BY date(sold), kind"
        ),
    ),
    "select_of_rows": (
        UPSERT,
        Definition("SELECT kind, count(DISTINCT note) AS n, sum(ratio) AS s FROM sales GROUP BY 1"),
    ),
}


@pytest.mark.parametrize(
    ("name", "at_once"),
    budget(
        ci=[("windows", 6), ("select", 6)],
        deep=[*((name, 6) for name in BUILT), ("windows", 2**17), ("rows", 2**17)],
    ),
)
def test_they_are_those_that_the_driver_builds_and_queries(spark: Any, tmp_path: Path, name: str, at_once: int) -> None:
    text, definition = BUILT[name]
    made, chance = Made(tmp_path, text), random.Random(name)
    land(made, 1, [drawn(chance, 1, number) | ({"sold": None} if number % 9 == 0 else {}) for number in range(150)])
    land(made, 2, [drawn(chance, 2, number) for number in range(100, 200)])
    here, there, queries = (unbuilt(made, spark, definition, one) for one in ("here", "there", "queries"))
    report = refreshed(here, here=True)
    assert (name == "in_time") == any(report.get("late", {}).values())
    with by_executors(at_once):
        again = refreshed(there, here=False)
    same = [one for one in SAME if one != "rows_read"]
    assert [again.get(one) for one in same] == [report.get(one) for one in same]
    assert at_rest(there) == at_rest(here) != []
    if at_once == 6:
        built_by_spark(queries)
        assert at_rest(queries) == at_rest(here)


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        (UPDATES, Windows(("kind",), "sold", Hopping(DAY, DAY // 2), MERGED, "hash(note) <> 0")),
        (UPSERT, Windows((), "sold", Tumbling(DAY // 4), EXTREMES, "hash(kind) <> 0", early=True)),
        (UPDATES, Windows(("kind",), "sold", Calendar(Unit.DAY, "Asia/Tokyo"), IN_ORDER)),
    ],
    ids=["parts", "rows", "in order"],
)
def test_of_values_that_spark_gives_they_are_those_of_queries(
    spark: Any, tmp_path: Path, text: str, windows: Windows
) -> None:
    made, chance = Made(tmp_path, text), random.Random(str(windows))
    land(made, 1, [drawn(chance, 1, number) | ({"sold": None} if number % 9 == 0 else {}) for number in range(150)])
    land(made, 2, [drawn(chance, 2, number) for number in range(100, 200)])
    there, queries = (unbuilt(made, spark, Definition(windows=windows), one) for one in ("there", "queries"))
    with by_executors():
        report = refreshed(there, here=False)
    assert report["way"]["words"] == "by the group kernel, by executors, after a shuffle"
    built_by_spark(queries)
    assert at_rest(there) == at_rest(queries) != []


@pytest.mark.parametrize("where", ["", "hash(kind) <> 0"], ids=["here", "by spark"])
def test_windows_far_away_are_there_and_those_beyond_all_numbers_are_refused_in_a_line(
    spark: Any, tmp_path: Path, where: str
) -> None:
    """The year 14000, and the last instant there is."""
    later, count = 379_654_000_000_000_000, (Aggregate("n", Function.COUNT),)
    made = Made(tmp_path, UPDATES)
    land(made, 1, [row(0, whole=later), row(1, whole=-later), row(2, whole=7)])
    years = Windows((), "whole", Calendar(Unit.YEAR, "America/New_York"), count, where, early=True)
    found = unbuilt(made, spark, Definition(windows=years), "years")
    assert refreshed(found, here=not where)["added"] == 3
    rows = as_of(found.job().store, found.job().log.load().state).to_pylist()
    assert {(one["window_start"], one["window_end"]) for one in rows} == {
        unit_of(Unit.YEAR, "America/New_York", at) for at in (later, -later, 7)
    }
    made = Made(tmp_path / "beyond", UPDATES)
    land(made, 1, [row(0, whole=2**63 - 1)])
    hours = unbuilt(made, spark, Definition(windows=replace(years, kind=Tumbling(HOUR))), "hours")
    with pytest.raises(InvalidUsage, match=r"near 92233720368\d+ µs has a bound beyond 64 bits; leave") as caught:
        refreshed(hours, here=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("limit", ["bytes", "times", "sums"])
def test_what_does_not_fit_is_left_to_queries(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Which say what is wrong: a row that is there fewer times than none is an error of theirs."""
    not_here(monkeypatch)
    asked = queried(monkeypatch)
    made = Made(tmp_path, UPDATES)
    far = 2**62 if limit == "sums" else 3
    land(made, 1, [*(row(number, whole=far) for number in range(3)), row(4, change=-1 if limit == "times" else 1)])
    if limit == "bytes":
        monkeypatch.setattr(groups_shuffled, "MOST_BYTES", 8)
    one = unbuilt(
        made, spark, Definition("SELECT kind, sum(whole) AS s, max(note) AS n FROM moves GROUP BY kind"), "one"
    )
    if limit in ("times", "sums"):
        with pytest.raises(InvalidUsage, match="-1 times" if limit == "times" else "overflow"):
            refreshed(one, here=False)
    else:
        assert refreshed(one, here=False)["added"] == 1
    assert asked == ["one"]
