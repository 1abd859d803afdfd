"""Sessions that the driver computes by itself, compared update for update and bit by bit with those of Spark's
queries: a session of Spark's is refused where the driver is to do it, so nothing else can have."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import DAY, HOUR, Made, day_of
from tests.spark.test_data_driven_windows import updates_of
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import (
    OF,
    UPDATES,
    UPSERT,
    Row,
    bits,
    built_by_spark,
    drawn,
    land,
    next_rows,
    refreshed,
    retracted,
    row,
)
from tests.spark.test_growth import into_the_trace, no_spark
from tests.spark.ways import by_executors, not_here, queried
from tidemark.arrow.parts.writer import ROW_GROUP_ROWS
from tidemark.errors import TidemarkError
from tidemark.jobs.app import NeedsSpark
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import Windows
from tidemark.spark import read
from tidemark.spark.derive.executors import key_ranges

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
    "several": (UPDATES, Windows(("shop",), "sold", Session(3 * HOUR, exact_gap_merges=False), SOME)),
    "cut": (UPDATES, Windows(("kind", "shop"), "sold", Session(9 * HOUR, max_length=15 * HOUR), SOME, early=True)),
    "of_all": (UPSERT, Windows((), "sold", Session(HOUR // 2), ALL[:4])),
    "dates": (UPDATES, Windows(("good",), "seen", Session(HOUR), ALL[:6], early=True)),
    "numbers": (UPSERT, Windows(("note", "shop"), "id", Session(2), SOME, grace=DAY)),
}
LEFT = {
    "other_rows": Windows((), "sold", Session(9), (COUNT,), where="upper(note) > 'A'"),
    "other_values": Windows((), "sold", Session(9), (Aggregate("total", Function.SUM, "length(upper(note))"),)),
    "conditions": Windows((), "sold", Session(9), (Aggregate("some", Function.COUNT, "whole", "upper(note) > 'A'"),)),
    "lists": Windows((), "sold", Session(9), (Aggregate("all", Function.COLLECT, "sold"),)),
}
LIMITS = {
    "touched.LEAST_TASK_ROWS": 0,
    "kinds.sessions_near.LOOKED_AT_ROWS": 0,
    "kinds.sessions_near.LOOKED_AT_BYTES": 0,
    "here.rows.MOST_BYTES": 0,
    "here.diff.LOOKED_AT_ROWS": -1,
    "views.LITTLE_BYTES": 0,
}
FIRST_LIMITS = ("MOST_BUILT", "READ_BYTES", "BUILT_BYTES")
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


@pytest.mark.parametrize("name", KINDS)
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


@pytest.mark.parametrize(("at_once", "names"), [(7, set(KINDS)), (2**17, {"cut"})], ids=["7", "131072"])
def test_what_executors_write_of_many_rows_is_what_the_driver_does(
    spark: Any, tmp_path: Path, at_once: int, names: set[str]
) -> None:
    """By the input's key where it leads with that of the windows (`by_key`, `several`), else after a shuffle; however
    few rows are looked at together. All of them at once are, by the input's key, in the next test."""
    for text in (UPSERT, UPDATES):
        made, chance = Made(tmp_path / str(len(text)), text), random.Random(len(text))
        land(made, 1, [sale(chance, 1, number) for number in range(300)])
        for name, (of, windows) in KINDS.items():
            if of != text or not windows.by or name not in names:
                continue
            here, there = (deriving(made, spark, f"{name}_{one}", windows) for one in ("here", "there"))
            report = refreshed(here, here=True)
            with by_executors(at_once):
                again = refreshed(there, here=False)
            assert [again[one] for one in SAME] == [report[one] for one in SAME], name
            assert repr(updates_of(there.job())) == repr(updates_of(here.job())) != "[]", name


@pytest.mark.parametrize(("name", "at_once"), [("by_key", 2**17), ("several", 7)])
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


def test_what_is_not_plain_is_left_to_spark(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPSERT)
    land(made, 1, [row(1, sold=5)])
    for name, windows in LEFT.items():
        with pytest.raises(NeedsSpark):
            refreshed(deriving(made, spark, name, windows), here=True)


def sold(made: Made, spark: Any, rows: list[Row], *aggregates: Aggregate) -> Deriving:
    land(made, 1, rows)
    windows = Windows(("shop",), "sold", Session(10), (COUNT, *aggregates), early=True)
    return deriving(made, spark, "few", windows)


def sessions(one: Deriving) -> dict[tuple[Any, int], int]:
    """By shop and start the rows of each."""
    names = [column.name for column in one.job().log.load().state.collection.columns]
    found = (dict(zip(names, values, strict=True)) for values in one.rows())
    return {(cells["shop"], int(cells["window_start"].timestamp() * 1e6)): cells["n"] for cells in found}


def refused(one: Deriving) -> None:
    with pytest.raises(NeedsSpark):
        correct(replace(one.job(), runner=no_spark))


def test_what_is_not_little_is_left_to_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which does it under these limits, too."""
    made = Made(tmp_path, UPSERT)
    one = sold(made, spark, [row(1, sold=3), row(2, sold=14), row(3, sold=30)])
    refreshed(one, here=True)
    assert sessions(one) == {("a", 3): 1, ("a", 14): 1, ("a", 30): 1}
    next_rows(made, row(4, sold=12), row(3, sold=None))
    for limit, most in LIMITS.items():
        with monkeypatch.context() as patch:
            patch.setattr(f"tidemark.spark.derive.{limit}", most)
            refused(one)
    for limit, most in LIMITS.items():
        monkeypatch.setattr(f"tidemark.spark.derive.{limit}", most)
    assert refreshed(one, here=False)["mode"] == "by_key"
    assert sessions(one) == {("a", 3): 3}


def test_a_first_build_that_is_not_little_is_left_to_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sold(Made(tmp_path, UPDATES), spark, [row(1, sold=3, change=40), row(2, sold=14)])
    limits = {f"tidemark.spark.derive.here.rows.{limit}": 40 * (limit == "MOST_BUILT") for limit in FIRST_LIMITS}
    for limit, most in limits.items():
        with monkeypatch.context() as patch:
            patch.setattr(limit, most)
            refused(one)
    for limit, most in limits.items():
        monkeypatch.setattr(limit, most)
    assert refreshed(one, here=False)["mode"] == "whole"
    assert sessions(one) == {("a", 3): 40, ("a", 14): 1}


def test_queries_compare_with_stored_rows(spark: Any, tmp_path: Path) -> None:
    one = sold(Made(tmp_path, UPSERT), spark, [row(1, sold=3)])
    refreshed(one, here=True)
    with pytest.raises(NeedsSpark):
        correct(replace(one.job(), runner=no_spark), whole=True)


def test_sessions_that_go_are_retracted_and_rows_in_none_change_nothing(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPSERT)
    one = sold(made, spark, [row(1, sold=3), row(2, shop="b", sold=4), row(3, sold=None)])
    assert refreshed(one, here=True)["unplaced"] == 1
    next_rows(made, row(2, shop="b", gone=True), row(3, sold=None, note="x"), row(4, sold=None))
    report = refreshed(one, here=True)
    assert (report["added"], report["retracted"], report["unplaced"]) == (0, 1, 1)
    assert sessions(one) == {("a", 3): 1}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1, sold=3, change=-1)], "holds a row of key"),
        ([row(number, sold=3, whole=2**62) for number in (1, 2)], "beyond 64 bits"),
        ([row(1, id=2**61 + 1)], "beyond 2\\^61"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_what_is_wrong_is_said_by_the_queries(
    spark: Any, tmp_path: Path, rows: list[Row], said: str, first: bool
) -> None:
    made = Made(tmp_path, UPDATES)
    on = "id" if "2\\^61" in said else "sold"
    land(made, 1, rows if first else [row(7, sold=3)])
    windows = Windows(("shop",), on, Session(10), (COUNT, Aggregate("total", Function.SUM, "whole")), early=True)
    one = deriving(made, spark, "few", windows)
    if not first:
        refreshed(one, here=True)
        next_rows(made, *rows)
    refused(one)
    call: Callable[[], Any] = lambda: refreshed(one, here=False)  # noqa: E731
    with pytest.raises(TidemarkError, match=said):
        call()
