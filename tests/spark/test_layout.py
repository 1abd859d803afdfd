"""Derived collections over one that is laid out by time, and such that are: each holds what the same definition gives
over the same rows in order of their key, through days with late rows, in each of the ways it may be computed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import tidemark
from tests.spark.support import APPEND, HOUR, Made
from tests.spark.test_derived import Deriving, next_day, select
from tests.spark.ways import by_queries, not_here
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.init import declare_collection
from tidemark.model.collection import Collection, Column, ColumnType, Layout
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows
from tidemark.spark.derive.parts import _bucket

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
BY_KEY = APPEND.replace("[kind, amount]", "[kind, amount, at]") + "timelines: [at]\n"
BY_TIME = BY_KEY + "layout: {by: at, every: 5h}\n"
COUNTS = (Aggregate("n", Function.COUNT), Aggregate("total", Function.SUM, "id"))


def windows(kind: Any, *by: str) -> Derived:
    return Derived(("events",), Definition(windows=Windows(by, "at", kind, COUNTS)))


DEFINITIONS: dict[str, tuple[Derived, tuple[str, ...], str]] = {
    "grown": (select("SELECT kind, count(*) AS n, sum(id) AS total FROM events GROUP BY kind"), ("kind",), "total"),
    "recomputed": (
        select("SELECT kind, id, max(at) AS most, count(*) AS n FROM events GROUP BY kind, id"),
        ("kind", "id"),
        "n",
    ),
    "rows": (select("SELECT id, kind, at FROM events WHERE id > 2"), ("id",), "at"),
    "all": (
        select("SELECT kind, count(*) AS n, rank() OVER (ORDER BY count(*)) AS place FROM events GROUP BY kind"),
        ("kind",),
        "n",
    ),
    "tumbling": (windows(Tumbling(6 * HOUR), "id"), (), ""),
    "sliding": (windows(Sliding(4 * HOUR), "id"), (), ""),
    "sessions": (windows(Session(HOUR), "id"), (), ""),
}
"""The definition, its key, and the column by which its own rows are laid out, too; none of windows."""


ROWS = DEFINITIONS["rows"][0]


@dataclass
class LaidOut(Deriving):
    """A derived collection that is laid out by time itself."""

    layout: Layout | None = None

    def declared(self) -> Collection:
        made = self.shaped()
        if self.layout:
            made = replace(made, timelines=(self.layout.by,), layout=self.layout)
        declare_collection(self.job(), made)
        return made


@pytest.fixture(scope="module")
def by_key(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Counter[Any]]:
    """What each definition gives on each day over rows in order of their key."""
    events, made = Made(tmp_path_factory.mktemp("key"), BY_KEY), dict[str, LaidOut]()
    found = {}
    for day in (1, 2):
        next_day(events, day)
        for name, (origin, key, _) in DEFINITIONS.items():
            if day == 1:
                made[name] = LaidOut(events, spark, name, origin, key)
                made[name].declared()
            made[name].ungated()
            found[name, day] = made[name].rows()
    return found


@pytest.mark.parametrize("way", ["here", "executors", "queries"])
def test_what_is_derived_is_the_same(
    spark: Any,
    tmp_path: Path,
    by_key: dict[tuple[str, int], Counter[Any]],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    if way == "queries":
        by_queries(monkeypatch)
    if way == "executors":
        not_here(monkeypatch)
    events, made = Made(tmp_path, BY_TIME), dict[str, LaidOut]()
    for day in (1, 2):
        next_day(events, day)
        for name, (origin, key, by) in DEFINITIONS.items():
            if day == 1:
                layout = Layout(by, HOUR if by == "at" else 3) if by else None
                made[name] = LaidOut(events, spark, name, origin, key, layout)
                made[name].declared()
                made[name].ungated()
            elif way == "queries":
                made[name].corrected()  # its gate, too, which asks the same of what any way has written
            else:
                made[name].ungated()
            assert made[name].rows() == by_key[name, day], (name, day)
            assert len(made[name].rows()) > 2
    for name, one in made.items():
        assert verify(one.job(), data=True).sound, name
        # The rows are the same in all ways, but for what may be hidden behind sums; so is what it is compared with.
        if way == "queries" or name == "grown":
            assert verify_definition(one.job(), every=True).sound, name
    check_range(spark, events)


def check_range(spark: Any, events: Made) -> None:
    """Some of the rows by their time."""
    opened = tidemark.open(str(events.root), "rows")
    times = sorted(opened.as_of().to_arrow()["at"].to_pylist())
    answer = opened.range("at", times[10], times[20])
    assert answer.count() >= 11
    assert answer.to_spark(spark).count() == answer.to_arrow().num_rows


def test_spark_has_the_buckets_of_the_law(spark: Any) -> None:
    """Below zero, at both ends, and of nulls: rows go into parts in the order of this."""
    times = [None, -(2**63), -(2**63) + 1, -13, -7, -6, -1, 0, 5, 6, 2**63 - 1]
    for every in (1, 6, 10**9, 2**62):
        layout = Layout("at", every)
        made = Collection("d", (Column("k", ColumnType.INT),), (Column("at", ColumnType.INT),), ROWS, ("at",))
        frame = spark.createDataFrame([(at,) for at in times], "at long")
        found = frame.select("at", _bucket(replace(made, layout=layout), layout).alias("bucket")).collect()
        assert {row["at"]: row["bucket"] for row in found} == {at: layout.bucket(at) for at in times}, every
