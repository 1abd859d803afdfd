"""Sessions that changes reach among more rows than the driver looks at: executors tell them, and update for update and
bit by bit they are those that the driver tells of few rows. Queries are refused, so nothing else can have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.support import DAY, HOUR, Made, day_of, into_the_trace, updates_of
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import UPDATES, UPSERT, Row, bits, land, next_rows, refreshed, row
from tests.spark.test_sessions import ALL, COUNT, SAME, SOME, deriving, sale, sold_on
from tests.spark.ways import refused
from tests.support.budget import budget
from tidemark.definition.ways import Place
from tidemark.jobs.steps.correct import correct
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session
from tidemark.model.window.windows import Windows
from tidemark.spark.derive.here.diff import match_keys
from tidemark.spark.derive.kinds import sessions_near
from tidemark.spark.derive.queries import windows as windows_of

pytestmark = pytest.mark.spark

TOTAL, FIRST = Aggregate("total", Function.SUM, "whole"), Aggregate("first", Function.FIRST, "whole")
EXACT = (
    COUNT,
    TOTAL,
    *(
        Aggregate(f"{function}_{of}", function, of)
        for function in (Function.MIN, Function.MAX)
        for of in ("price", "note", "sold")
    ),
    *(Aggregate(f"count_{of}", Function.COUNT, of) for of in ("ratio", "note")),
)
"""By which sessions of parts can be put together."""
PARTS = {
    "of_goods": (UPDATES, Windows(("good",), "sold", Session(3 * HOUR), EXACT)),
    "half_open": (UPSERT, Windows(("note", "kind"), "sold", Session(HOUR, exact_gap_merges=False), EXACT, grace=5)),
    "of_all": (UPSERT, Windows((), "sold", Session(HOUR), EXACT, early=True)),
    "of_dates": (UPDATES, Windows(("good",), "seen", Session(HOUR), EXACT, early=True)),
}
SHUFFLED = {
    "whole_rows": (UPDATES, Windows(("good",), "sold", Session(3 * HOUR), SOME)),
    "many": (UPSERT, Windows(("note", "kind"), "sold", Session(2 * HOUR), ALL, early=True)),
    "cut": (UPDATES, Windows(("good",), "sold", Session(9 * HOUR, max_length=15 * HOUR), EXACT)),
    "all_rows": (UPSERT, Windows((), "sold", Session(HOUR // 2), SOME)),
    "numbers": (UPSERT, Windows(("note",), "id", Session(2), SOME, grace=DAY)),
}


def counted(one: Deriving) -> dict[Any, int]:
    """The rows of each session, by its key."""
    return {key: row["n"] for key, row in bits(one).items()}


@contextmanager
def many(**limits: int) -> Iterator[pytest.MonkeyPatch]:
    """All rows are more than the driver looks at."""
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in ({"LOOKED_AT_ROWS": 0, **limits}).items():
            patch.setattr(sessions_near, name, limit)
        yield patch


@pytest.mark.parametrize("seed", budget(ci=[7], deep=[7, 2**17]))
@pytest.mark.parametrize("name", budget(ci=["of_goods", "cut"], deep=[*PARTS, *SHUFFLED]))
def test_what_executors_tell_is_what_the_driver_does(spark: Any, tmp_path: Path, name: str, seed: int) -> None:
    """Of four days, each by what it changes: rows that come, go, and move to other sessions."""
    text, windows = (PARTS | SHUFFLED)[name]
    made, chance, there = Made(tmp_path, text), random.Random(f"{name} {seed}"), list[Row]()
    each: dict[str, Deriving] = {}
    for day in range(1, 5):
        there = sold_on(made, chance, day, there)
        if day == 1:
            each = {one: deriving(made, spark, one, windows) for one in ("here", "there")}
        report = refreshed(each["here"], here=True)
        with many() as patch:
            if day > 1:
                patch.setattr(windows_of, "learned", refused)
                patch.setattr(sessions_near, "_through_a_shuffle" if name in PARTS else "_of_parts", refused)
            again = correct(each["there"].job())
        into_the_trace(each["there"].job)
        assert [again[one] for one in SAME] == [report[one] for one in SAME], day
        assert again["mode"] == ("by_key" if day > 1 else "whole")
        assert repr(updates_of(each["there"].job())) == repr(updates_of(each["here"].job())) != "[]", day


@pytest.mark.parametrize("more", [(), (FIRST,)], ids=["by parts", "by a shuffle"])
def test_sessions_without_rows_are_retracted(spark: Any, tmp_path: Path, more: tuple[Aggregate, ...]) -> None:
    """Also where nothing is left near what changed, or of the input at all."""
    made = Made(tmp_path, UPSERT)
    land(made, 1, [row(1, good=True, sold=5), row(2, good=False, sold=50), row(3, good=False, sold=53)])
    windows = Windows(("good",), "sold", Session(4), (*more, COUNT), early=True)
    one = deriving(made, spark, "few", windows)
    refreshed(one, here=True)
    for day, gone, left in ((2, [1], [2]), (3, [2, 3], [])):
        land(made, day, [row(number, gone=True, at=day_of(day).lower) for number in gone])
        with many() as patch:
            patch.setattr(windows_of, "learned", refused)
            report = correct(one.job())
        into_the_trace(one.job)
        assert (report["mode"], report["added"], report["retracted"]) == ("by_key", 0, 1)
        assert list(counted(one).values()) == left


def test_without_changes_and_sessions_none_are_the_same() -> None:
    """Tables as they are where nothing was read, without a chunk: all that changed is in no session, and none is
    stored where it could be."""
    nothing = pa.chunked_array([], pa.string())
    few, own = match_keys(pa.table({"k0": nothing}), pa.table({"note": nothing}), ("note",)) or (None, None)
    assert few is not None
    assert own is not None
    assert (few.tolist(), own.tolist()) == ([], [])


@pytest.mark.parametrize("name", ["of_goods", "many"])
def test_what_needs_more_room_than_there_is_is_left_to_the_queries(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = (PARTS | SHUFFLED)[name]
    made, chance = Made(tmp_path, text), random.Random(name)
    land(made, 1, [sale(chance, 1, number) for number in range(40)])
    each = {one: deriving(made, spark, one, windows) for one in ("here", "there")}
    for one in each.values():
        refreshed(one, here=True)
    next_rows(made, *(sale(chance, 2, number) for number in range(40, 50)))
    refreshed(each["here"], here=True)
    asked, learned = list[str](), windows_of.learned
    with many(MOST_BYTES=8) as patch:
        patch.setattr(windows_of, "learned", lambda views, rule: asked.append(name) or learned(views, rule))
        report = correct(each["there"].job())
    assert (report["mode"], report["way"]["place"]) == ("by_key", Place.QUERIES), "wherever it was begun"
    assert asked == [name]
    assert repr(updates_of(each["there"].job())) == repr(updates_of(each["here"].job())) != "[]"


def test_where_by_leads_the_key_no_rows_are_brought_together(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPSERT)
    land(made, 1, [row(1, sold=5)])
    windows = replace(PARTS["of_all"][1], by=("shop",), aggregates=(COUNT,))
    one = deriving(made, spark, "few", windows)
    refreshed(one, here=True)
    next_rows(made, row(2, sold=6))
    with many() as patch:
        for name in ("_of_parts", "_through_a_shuffle"):
            patch.setattr(sessions_near, name, refused)
        assert correct(one.job())["mode"] == "by_key"
    into_the_trace(one.job)
    assert list(counted(one).values()) == [2]
