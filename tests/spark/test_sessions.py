"""Sessions that the driver computes by itself, compared update for update and bit by bit with those of Spark's
queries: a session of Spark's is refused where the driver is to do it, so nothing else can have."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import DAY, HOUR, Made, day_of, into_the_trace, updates_of
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import (
    OF,
    ROWS,
    UPDATES,
    UPSERT,
    Row,
    bits,
    built_by_spark,
    drawn,
    land,
    next_rows,
    only,
    refreshed,
    retracted,
    row,
)
from tests.spark.ways import by_executors, not_here, queried
from tests.support.budget import budget
from tidemark.arrow.parts.writer import ROW_GROUP_ROWS
from tidemark.definition.windows.rows import AT, END
from tidemark.definition.windows.rows import START as START_OF
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Window
from tidemark.model.window.sessions import session_of
from tidemark.model.window.sessions import would_take as taken_by_law
from tidemark.model.window.windows import Windows
from tidemark.spark import read
from tidemark.spark.derive.executors import key_ranges
from tidemark.spark.derive.queries import late_sessions

pytestmark = pytest.mark.spark

COUNT = Aggregate("n", Function.COUNT)
ALL = (
    COUNT,
    Aggregate("sum_price", Function.SUM, "price"),
    *(
        Aggregate(f"{function}_{of}", function, of)
        for function in (Function.SUM, Function.AVG)
        for of in ("whole", "ratio")
    ),
    *(
        Aggregate(f"{function}_{of}", function, of)
        for function in (Function.MIN, Function.MAX, Function.FIRST, Function.LAST, Function.COUNT)
        for of in OF
    ),
    *(Aggregate(f"different_{of}", Function.COUNT_DISTINCT, of) for of in ("ratio", "price", "note")),
)
SOME = (*ALL[:6], *(one for one in ALL[6:] if one.name in ("first_note", "last_ratio", "max_note", "different_note")))
KINDS = {
    "by_key": (UPSERT, Windows(("shop",), "sold", Session(3 * HOUR), ALL, grace=5)),
    "several": (UPDATES, Windows(("shop",), "sold", Session(3 * HOUR, exact_gap_merges=False), only(SOME), ROWS)),
    "cut": (UPDATES, Windows(("kind", "shop"), "sold", Session(9 * HOUR, max_length=15 * HOUR), SOME, early=True)),
    "of_all": (UPSERT, Windows((), "sold", Session(HOUR // 2), ALL[:4])),
    "dates": (UPDATES, Windows(("good",), "seen", Session(HOUR), ALL[:6], early=True)),
    "numbers": (UPSERT, Windows(("note", "shop"), "id", Session(2), SOME, grace=DAY)),
}
SAME = ("added", "retracted", "unplaced", "late", "outcome")


def deriving(made: Made, spark: Any, name: str, windows: Windows) -> Deriving:
    one = Deriving(made, spark, name, Derived((made.name,), Definition(windows=windows)))
    one.declared()
    return one


def sale(chance: random.Random, day: int, number: int) -> Row:
    """At full hours, so that many are at one instant, and some at a distance of exactly the gap; some at none."""
    at = chance.choice([*[None] * 6, *range(-24, 48)])
    return drawn(chance, day, number) | {"sold": None if at is None else day_of(day).lower + at * HOUR}


def sold_on(made: Made, chance: random.Random, day: int, before: list[Row]) -> list[Row]:
    """Land the sales of a day: many of the first, few of others, and what these retract of the day `before`."""
    new = [sale(chance, day, number) for number in chance.sample(range(200), 120 if day == 1 else 9)]
    land(made, day, [*new, *(retracted(chance, before, day)[:9] if made.name == "moves" else [])])
    return new


@pytest.mark.parametrize("name", budget(ci=["several"], deep=list(KINDS)))
def test_what_the_driver_computes_is_what_spark_does(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = KINDS[name]
    read = computed_both_ways(spark, Made(tmp_path, text), windows, asked=3 if name == "several" else 2)
    assert all(here <= by_query for here, by_query in read)


def computed_both_ways(spark: Any, made: Made, windows: Windows, asked: int = 2) -> list[tuple[int, int]]:
    """What the driver computes of three days is what their law says; and of the first `asked` days what Spark's queries
    do where nothing else may, is the same. How many rows at rest each of them read."""
    read = []
    chance, there = random.Random(f"{made.name} {windows}"), list[Row]()
    each: dict[str, Deriving] = {}
    unplaced = 0
    for day in range(1, 4):
        there = sold_on(made, chance, day, there)
        if day == 1:
            each = {one: deriving(made, spark, one, windows) for one in ("here", "queries")}
        report = refreshed(each["here"], here=True)
        assert report["mode"] == ("by_key" if day > 1 else "whole")
        unplaced += abs(report["unplaced"])
        if day > asked:
            continue
        again = built_by_spark(each["queries"])
        assert [report[one] for one in SAME] == [again[one] for one in SAME]
        read.append((report["rows_read"], again["rows_read"]))
        assert bits(each["here"]) == bits(each["queries"])
        assert repr(updates_of(each["here"].job())) == repr(updates_of(each["queries"].job()))
    assert bits(each["here"]) != {}
    assert unplaced > 0 or windows.on == "id"
    assert verify_definition(each["here"].job(), every=True).sound
    return read


@pytest.mark.parametrize("name", budget(ci=["cut"], deep=["cut", "dates", "numbers"]))
def test_what_executors_write_after_a_shuffle_is_what_the_driver_does(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = KINDS[name]
    written_after_a_shuffle(spark, Made(tmp_path, text), windows)


def written_after_a_shuffle(spark: Any, made: Made, windows: Windows) -> None:
    chance = random.Random(str(windows))
    land(made, 1, [sale(chance, 1, number) for number in range(150)])
    here, there = (deriving(made, spark, name, windows) for name in ("here", "there"))
    report = refreshed(here, here=True)
    with by_executors(9, ranges=False):
        again = refreshed(there, here=False)
    assert [again[one] for one in SAME] == [report[one] for one in SAME]
    assert repr(updates_of(there.job())) == repr(updates_of(here.job())) != "[]"


@pytest.mark.parametrize(("name", "at_once"), [("several", 7), *budget(ci=[], deep=[("by_key", 2**17)])])
def test_what_executors_compare_with_stored_rows_is_what_the_driver_does(
    spark: Any, tmp_path: Path, name: str, at_once: int
) -> None:
    text, windows = KINDS[name]
    compared_by_executors(spark, Made(tmp_path, text), windows, at_once)


def compared_by_executors(spark: Any, made: Made, windows: Windows, at_once: int) -> None:
    """What executors compute of four days without a query is what the driver does: a first build, all again, and twice
    what changes reach, once of one shop alone."""
    chance, there, each = random.Random(f"{made.name} {windows} {at_once}"), list[Row](), dict[str, Deriving]()
    for day in range(1, 5):
        new = [sale(chance, day, number) for number in chance.sample(range(200), 120 if day == 1 else 9)]
        new = [one | {"shop": "a"} for one in new] if day == 3 else new
        land(made, day, [*new, *(retracted(chance, there, day)[:9] if made.name == "moves" else [])])
        there = new
        if day == 1:
            each = {one: deriving(made, spark, one, windows) for one in ("here", "there")}
        report = refreshed(each["here"], here=True)
        with by_executors(at_once):
            again = correct(each["there"].job(), whole=day == 2)
        into_the_trace(each["there"].job)
        assert again["mode"] == ("by_key" if day > 2 else "whole")
        assert [again[one] for one in ("added", "retracted")] == [report[one] for one in ("added", "retracted")]
        assert repr(updates_of(each["there"].job())) == repr(updates_of(each["here"].job())) != "[]", day


def test_executors_read_what_begins_with_changed_keys_only_and_retract_what_has_no_rows_left(
    spark: Any, tmp_path: Path
) -> None:
    """Of the input and of the stored sessions; also where of the input nothing is left that could be read."""
    made = Made(tmp_path, UPSERT)
    shops = [chr(ord("a") + at) for at in range(6)]
    land(made, 1, [row(number, shop=shop, sold=number) for shop in shops for number in range(ROW_GROUP_ROWS)])
    windows = Windows(("shop",), "sold", Session(1), (COUNT,), early=True)
    one = deriving(made, spark, "some", windows)
    with by_executors():
        assert refreshed(one, here=False)["added"] == 6
    expected = {(shop, 0): ROW_GROUP_ROWS for shop in shops}
    assert sessions(one) == expected
    next_rows(made, row(ROW_GROUP_ROWS, shop="b", sold=ROW_GROUP_ROWS))
    with by_executors():
        report = refreshed(one, here=False)
    assert (report["mode"], report["added"], report["retracted"]) == ("by_key", 1, 1)
    assert sessions(one) == expected | {("b", 0): ROW_GROUP_ROWS + 1}
    # What changed; of the input b and the group before, which may end with it; of stored sessions all, in one group.
    assert report["rows_read"] <= 2 + 3 * ROW_GROUP_ROWS + 6
    gone = {"shop": "f", "gone": True, "at": day_of(3).lower}
    land(made, 3, [row(number, **gone) for number in range(ROW_GROUP_ROWS)])
    with by_executors():
        report = refreshed(one, here=False)
    assert (report["mode"], report["added"], report["retracted"]) == ("by_key", 0, 1)
    del expected["f", 0]
    assert sessions(one) == expected | {("b", 0): ROW_GROUP_ROWS + 1}


def test_executors_go_by_a_shuffle_where_a_key_has_many_rows_and_leave_all_as_one_key_to_the_queries(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path, UPSERT)
    land(made, 1, [row(number, sold=3 * number) for number in range(9)])
    windows = Windows(("shop",), "sold", Session(4), (COUNT,), early=True)
    limits = {
        "alike": {(read, "LEAST_TASK_ROWS"): 1},
        "large": {(key_ranges, "MOST_BYTES"): 0},
        "of_all": {},
    }
    not_here(monkeypatch)
    asked = queried(monkeypatch)
    monkeypatch.setattr(key_ranges, "AT_ONCE", 1)
    for name, limit in limits.items():
        one = deriving(made, spark, name, replace(windows, by=()) if name == "of_all" else windows)
        with monkeypatch.context() as patch:
            for (module, called), most in limit.items():
                patch.setattr(module, called, most)
            assert refreshed(one, here=False)["added"] == 1
    assert asked == ["of_all"]


def sold(made: Made, spark: Any, rows: list[Row], *aggregates: Aggregate) -> Deriving:
    land(made, 1, rows)
    windows = Windows(("shop",), "sold", Session(10), (COUNT, *aggregates), early=True)
    return deriving(made, spark, "few", windows)


def sessions(one: Deriving) -> dict[tuple[Any, int], int]:
    """By shop and start the rows of each."""
    names = [column.name for column in one.job().log.load().state.collection.columns]
    found = (dict(zip(names, values, strict=True)) for values in one.rows())
    return {(cells["shop"], int(cells["window_start"].timestamp() * 1e6)): cells["n"] for cells in found}


def test_sessions_that_go_are_retracted_and_rows_in_none_change_nothing(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPSERT)
    one = sold(made, spark, [row(1, sold=3), row(2, shop="b", sold=4), row(3, sold=None)])
    assert refreshed(one, here=True)["unplaced"] == 1
    next_rows(made, row(2, shop="b", gone=True), row(3, sold=None, note="x"), row(4, sold=None))
    report = refreshed(one, here=True)
    assert (report["added"], report["retracted"], report["unplaced"]) == (0, 1, 1)
    assert sessions(one) == {("a", 3): 1}


@pytest.mark.parametrize(
    "kind", [Session(4), Session(4, False), Session(4, True, 4), Session(4, True, 3), Session(4, True, 6)]
)
def test_a_session_would_take_in_sql_what_the_law_says(spark: Any, kind: Session) -> None:
    cases = [(at, *session_of(kind, (0, last))) for at in range(-6, 14) for last in range(min(7, kind.max_length or 7))]
    frame = spark.createDataFrame(cases, f"{AT} long, {START_OF} long, {END} long")
    taken = {tuple(row) for row in frame.where(late_sessions.would_take(kind)).collect()}
    assert taken == {case for case in cases if taken_by_law(kind, Window(*case[1:]), case[0])}
    assert 0 < len(taken) < len(cases)
