"""What this process leaves to Spark: what is not plain, what is not little, and what is wrong, which queries say. Where
a session is refused, nothing else can have computed what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import DAY, Made, no_spark
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import COUNTS, UPDATES, UPSERT, Row, bits, land, next_rows, refreshed, row, unbuilt
from tests.support.budget import budget
from tidemark.errors import TidemarkError
from tidemark.jobs.app import NeedsSpark
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Hopping, Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows

pytestmark = pytest.mark.spark

COUNT, TOTAL = COUNTS
SELECT = Definition("SELECT shop, max(id) AS most, sum(whole) AS total FROM moves GROUP BY shop")


def of(kind: Any, *aggregates: Aggregate, on: str = "sold", **more: Any) -> Definition:
    return Definition(windows=Windows(("shop",), on, kind, aggregates or COUNTS, early=True, **more))


KINDS = {"sessions": of(Session(10)), "sliding": of(Sliding(10)), "groups": SELECT}
UPPER = {"where": "upper(note) > 'A'"}
NOT_PLAIN = {
    "other rows in sessions": of(Session(9), COUNT, **UPPER),
    "other values in sessions": of(Session(9), Aggregate("total", Function.SUM, "length(upper(note))")),
    "conditions in sessions": of(Session(9), Aggregate("some", Function.COUNT, "whole", "upper(note) > 'A'")),
    "lists in sessions": of(Session(9), Aggregate("all", Function.COLLECT, "sold")),
    "other rows in sliding windows": of(Sliding(9), COUNT, **UPPER),
    "other values in sliding windows": of(Sliding(9), Aggregate("total", Function.SUM, "ascii(note)")),
    "conditions in sliding windows": of(Sliding(9), Aggregate("some", Function.COUNT, "id", "ln(id) > 2")),
    "bounded lateness in sliding windows": of(Sliding(9), COUNT, max_lateness=5),
    "other rows in aligned windows": of(Tumbling(DAY), **UPPER),
    "other rows in groups": Definition("SELECT shop, max(whole) AS m FROM moves WHERE upper(note) > 'A' GROUP BY shop"),
    "floats of groups": Definition("SELECT CAST(ratio AS string) AS r, max(whole) AS m FROM moves GROUP BY ALL"),
}
NEAR = "kinds.sliding_near"
FIRST: dict[str, tuple[Definition, dict[str, int]]] = {
    "sessions": (
        KINDS["sessions"],
        {"here.rows.MOST_BUILT": 40, "here.rows.READ_BYTES": 0, "here.rows.BUILT_BYTES": 0},
    ),
    "sliding": (KINDS["sliding"], {"here.rows.MOST_BUILT": 40, "here.rows.BUILT_BYTES": 0, "here.rows.ONE_KEY": 39}),
    "aligned": (
        of(Hopping(DAY, DAY // 2)),
        {"kinds.groups.MOST_BUILT": 80, "here.rows.READ_BYTES": 0, "here.rows.BUILT_BYTES": 0},
    ),
}
"""Limits of first builds, which 41 rows cross, each as often as it is there and once for each of its windows."""
LATER: dict[str, list[tuple[str, int]]] = {
    "sessions": [
        *(("touched.LEAST_TASK_ROWS", 0), ("here.rows.MOST_BYTES", 0), ("here.diff.LOOKED_AT_ROWS", -1)),
        *(("kinds.sessions_near.LOOKED_AT_ROWS", 0), ("kinds.sessions_near.LOOKED_AT_BYTES", 0)),
        ("views.LITTLE_BYTES", 0),
    ],
    "sliding": [
        *(("touched.LEAST_TASK_ROWS", 0), ("views.LITTLE_BYTES", 0)),
        *((f"{NEAR}.{name}", most) for name in ("MOST_ROWS", "LOOKED_AT_ROWS") for most in (0, 40)),
        *((f"{NEAR}.MOST_BYTES", 0), (f"{NEAR}.MOST_BYTES", 400), (f"{NEAR}.LOOKED_AT_BYTES", 0)),
    ],
    "groups": [
        *(("kinds.groups.LOOKED_AT_ROWS", 0), ("kinds.groups.LOOKED_AT_BYTES", 0), ("here.rows.MOST_BYTES", 0)),
    ],
}
"""Limits of refreshes. Those that are not 0 are crossed by 41 rows, and not by the one window that is stored."""
WRONG: list[tuple[list[Row], str]] = [
    ([row(1, sold=3, change=-1)], "holds a row of key|-1 times"),
    ([row(number, sold=3, whole=2**62) for number in (1, 2)], "beyond 64 bits|overflow"),
    ([row(number, sold=number, whole=2**62) for number in (1, 2)], "beyond 64 bits|overflow"),
    ([row(2**61 + 1)], "beyond 2\\^61"),
]


def refused(one: Deriving, **asked: Any) -> None:
    with pytest.raises(NeedsSpark):
        correct(replace(one.job(), runner=no_spark), **asked)


def limited(patch: pytest.MonkeyPatch, limits: Mapping[str, int]) -> None:
    for name, most in limits.items():
        patch.setattr(f"tidemark.spark.derive.{name}", most)


def test_what_is_not_plain(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPDATES)
    land(made, 1, [row(1, sold=5, whole=3)])
    for number, definition in enumerate(NOT_PLAIN.values()):
        refused(unbuilt(made, spark, definition, f"d{number}"))
    later = unbuilt(made, spark, of(Sliding(10), Aggregate("last", Function.MAX, "upper(note)")), "later")
    refreshed(later, here=False)
    next_rows(made, row(2, sold=6))
    refused(later)


def test_what_is_to_be_compared_with_all_that_is_stored(spark: Any, tmp_path: Path) -> None:
    made = Made(tmp_path, UPDATES)
    land(made, 1, [row(1, sold=5, whole=3)])
    for name, definition in KINDS.items():
        one = unbuilt(made, spark, definition, name)
        refreshed(one, here=True)
        refused(one, whole=True)


@pytest.mark.parametrize("name", FIRST)
def test_a_first_build_that_is_not_little(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Which Spark does under these limits, too."""
    definition, limits = FIRST[name]
    made = Made(tmp_path, UPDATES)
    land(made, 1, [row(1, sold=3, whole=3, change=40), row(2, sold=14, whole=4)])
    one, here = (unbuilt(made, spark, definition, each) for each in ("one", "here"))
    for limit in limits.items():
        with monkeypatch.context() as patch:
            limited(patch, dict([limit]))
            refused(one)
    with monkeypatch.context() as patch:
        limited(patch, limits)
        assert refreshed(one, here=False)["mode"] == "whole"
    monkeypatch.setattr("tidemark.spark.derive.here.rows.AT_A_TIME", 41)
    refreshed(here, here=True)
    assert bits(one) == bits(here) != {}


@pytest.mark.parametrize("name", LATER)
def test_a_refresh_that_is_not_little(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Which Spark does under these limits, too."""
    made, definition = Made(tmp_path, UPSERT), KINDS[name]
    if definition.select:
        definition = Definition(definition.select.replace("moves", "sales"))
    land(made, 1, [row(number, sold=3, whole=number) for number in range(41)])
    one = unbuilt(made, spark, definition, "one")
    refreshed(one, here=True)
    next_rows(made, row(50, sold=4, whole=7), row(3, sold=None))
    for limit in LATER[name]:
        with monkeypatch.context() as patch:
            limited(patch, dict([limit]))
            refused(one)
    with monkeypatch.context() as patch:
        limited(patch, {limit: most for limit, most in LATER[name] if most <= 0})
        assert refreshed(one, here=False)["mode"] == "by_key"
    here = unbuilt(made, spark, definition, "here")
    refreshed(here, here=True)
    assert bits(one) == bits(here) != {}


@pytest.mark.parametrize("first", budget(ci=[False], deep=[True, False]))
@pytest.mark.parametrize("name", budget(ci=["sliding"], deep=list(KINDS)))
def test_what_is_wrong_is_said_by_the_queries(spark: Any, tmp_path: Path, name: str, first: bool) -> None:
    for number, (rows, said) in enumerate(WRONG):
        far = "2\\^61" in said
        if (far and name == "groups") or ("sold" in rows[0] and rows[0]["sold"] != 3 and name == "sessions"):
            continue
        definition = of(KINDS[name].windows.kind, on="id") if far and KINDS[name].windows else KINDS[name]
        made = Made(tmp_path / str(number), UPDATES)
        land(made, 1, rows if first else [row(7, sold=3)])
        one = unbuilt(made, spark, definition, "one")
        if not first:
            refreshed(one, here=True)
            next_rows(made, *rows)
        refused(one)
        with pytest.raises(TidemarkError, match=said):
            refreshed(one, here=False)
