"""Sliding windows that the driver builds and refreshes by itself, or executors do: what the law says, and
update for update and bit by bit what Spark's queries give. A session of Spark's is refused where the driver is to do
it, so nothing else can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import DAY, HOUR, Made
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import ROWS, UPDATES, UPSERT, Row, land, next_rows, only, refreshed, row
from tests.spark.test_sessions import (
    compared_by_executors,
    computed_both_ways,
    deriving,
    sessions,
    written_after_a_shuffle,
)
from tests.support.budget import budget
from tidemark.arrow.parts.writer import ROW_GROUP_ROWS
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.spark

COUNT = Aggregate("n", Function.COUNT)
ALL = (
    COUNT,
    *(Aggregate(f"sum_{of}", Function.SUM, of) for of in ("whole", "price")),
    Aggregate("mean", Function.AVG, "whole"),
    Aggregate("notes", Function.COUNT, "note"),
    *(
        Aggregate(f"{function}_{of}", function, of)
        for function in (Function.MIN, Function.MAX, Function.FIRST, Function.LAST)
        for of in ("whole", "price", "seen", "since", "good")
    ),
)
KINDS = {
    "by_key": (UPSERT, Windows(("shop",), "sold", Sliding(3 * HOUR), only(ALL), ROWS, grace=5)),
    "several": (UPDATES, Windows(("kind", "shop"), "sold", Sliding(9 * HOUR), only(ALL), ROWS, early=True)),
    "of_all": (UPSERT, Windows((), "sold", Sliding(HOUR // 2), ALL[:4])),
    "dates": (UPDATES, Windows(("good",), "seen", Sliding(HOUR, clamp_start_at_zero=True), ALL[:6], early=True)),
    "numbers": (UPSERT, Windows(("note", "shop"), "id", Sliding(9, clamp_start_at_zero=True), ALL[:8], grace=DAY)),
}
NEAR = "kinds.sliding_near"


@pytest.mark.parametrize("name", budget(ci=["several"], deep=list(KINDS)))
def test_what_the_driver_computes_is_what_spark_does(spark: Any, tmp_path: Path, name: str) -> None:
    text, windows = KINDS[name]
    read = computed_both_ways(spark, Made(tmp_path, text), windows, asked=3 if name == "several" else 2)
    assert all(here <= by_query for here, by_query in read)


@pytest.mark.parametrize("at_once", [7, *budget(ci=[], deep=[2**17])])
def test_what_executors_compare_with_stored_rows_is_what_the_driver_does(
    spark: Any, tmp_path: Path, at_once: int
) -> None:
    text, windows = KINDS["by_key"]
    compared_by_executors(spark, Made(tmp_path, text), windows, at_once)


def test_what_executors_write_after_a_shuffle_is_what_the_driver_does(spark: Any, tmp_path: Path) -> None:
    text, windows = KINDS["several"]
    written_after_a_shuffle(spark, Made(tmp_path, text), windows)


def sold(made: Made, spark: Any, rows: list[Row], *aggregates: Aggregate, on: str = "sold", size: int = 10) -> Deriving:
    land(made, 1, rows)
    windows = Windows(("shop",), on, Sliding(size), (COUNT, *aggregates), early=True)
    return deriving(made, spark, "few", windows)


def test_what_is_no_more_than_a_limit_is_not_left_to_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(tmp_path, UPDATES)
    one = sold(made, spark, [row(1, sold=3, change=40)])
    refreshed(one, here=True)
    next_rows(made, row(2, sold=4))
    for limit, most in (("touched.LEAST_TASK_ROWS", 1), (f"{NEAR}.MOST_ROWS", 41), (f"{NEAR}.LOOKED_AT_ROWS", 8)):
        monkeypatch.setattr(f"tidemark.spark.derive.{limit}", most)
    refreshed(one, here=True)
    assert sessions(one) == {("a", -7): 40, ("a", -6): 41, ("a", 4): 1}


def test_windows_that_go_are_retracted_and_rows_in_none_change_nothing(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPSERT)
    one = sold(made, spark, [row(1, sold=3), row(2, shop="b", sold=4), row(3, sold=None)])
    assert refreshed(one, here=True)["unplaced"] == 1
    next_rows(made, row(2, shop="b", gone=True), row(3, sold=None, note="x"), row(4, sold=None))
    report = refreshed(one, here=True)
    assert (report["added"], report["retracted"], report["unplaced"]) == (0, 1, 1)
    assert sessions(one) == {("a", -7): 1}


def test_the_first_and_the_last_instant_are_counted_from(spark: Any, tmp_path: Path) -> None:
    made, far = Made(tmp_path, UPDATES), 2**61
    one = sold(made, spark, [row(-far + 5), row(far - 5), row(0)], on="id")
    refreshed(one, here=True)
    next_rows(made, row(-far), row(far))
    assert refreshed(one, here=True)["mode"] == "by_key"
    found = {names["window_start"]: names["n"] for names in rows_by_name(one)}
    assert found == {
        -far - 10: 1, -far + 1: 1, -far - 5: 2, -10: 1, far - 15: 1, far - 4: 1, far - 10: 2,
    }  # fmt: skip


def rows_by_name(one: Deriving) -> list[dict[str, Any]]:
    names = [column.name for column in one.job().log.load().state.collection.columns]
    return [dict(zip(names, values, strict=True)) for values in one.rows()]


def test_only_row_groups_that_can_hold_what_changes_reach_are_read(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPDATES.replace("key: [shop]", "key: [shop, id]").replace("value: [id, ", "value: ["))
    land(made, 1, [row(number) for number in range(4 * ROW_GROUP_ROWS)])
    one = deriving(made, spark, "few", Windows((), "id", Sliding(10), (COUNT,), early=True))
    refreshed(one, here=True)
    next_rows(made, row(-5))
    report = refreshed(one, here=True)
    assert (report["added"], report["retracted"]) == (7, 6)  # [-15, -5], and what begins from -10 to -5
    # What changed; of stored windows one row group; of the input one and the next, which may begin with the same key.
    assert report["rows_read"] == 1 + 3 * ROW_GROUP_ROWS
