"""Joins that are computed from what changed of their inputs, by this process or by Spark, hold what they hold that are
computed whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Made
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import (
    UPDATES,
    UPSERT,
    Row,
    at_rest,
    built_by_spark,
    drawn,
    land,
    refreshed,
    retracted,
)
from tidemark.definition.ways import Place
from tidemark.model.derived import Definition, Derived, Refresh
from tidemark.spark.derive.kinds import joins as joined_here
from tidemark.spark.derive.queries import by_key, joins

pytestmark = pytest.mark.spark

TWO = (
    "SELECT s.shop, s.id, m.id AS other, m.note, s.whole, s.price FROM sales s JOIN moves m "
    "ON s.shop = m.shop AND s.kind = m.kind WHERE s.good OR m.ratio > 0.5"
)
CROSSED = (
    "SELECT s.id, s.shop, m.shop AS there, m.id AS other, s.note FROM moves m, sales s "
    "WHERE s.shop = m.shop AND s.id < m.id"
)
COMPUTED = (
    "SELECT s.shop, s.id, m.id AS other, s.ratio * m.ratio AS area, date(s.since) AS day, s.seen, "
    "CASE WHEN s.good THEN m.note ELSE s.note END AS said FROM sales s JOIN moves m "
    "ON m.shop = s.shop AND m.note = s.note AND s.id > 5"
)
THREE = (
    "SELECT m.shop, s.id, m.id AS other, t.id AS third, m.whole, t.price FROM sales s "
    "JOIN moves m ON s.shop = m.shop AND s.kind = m.kind JOIN stock t ON t.shop = m.shop AND t.note = s.note"
)
TWO_INPUTS, KEY = ("sales", "moves"), ("shop", "id", "other")
JOINS = {"two": TWO, "crossed": CROSSED, "computed": COMPUTED}


def sides(root: Path, names: tuple[str, ...]) -> dict[str, Made]:
    texts = {"sales": UPSERT, "moves": UPDATES, "stock": UPSERT.replace("sales", "stock")}
    return {name: Made(root, texts[name]) for name in names}


class Sides:
    """Inputs that change day by day."""

    def __init__(self, root: Path, names: tuple[str, ...], seed: str) -> None:
        self.made, self.chance = sides(root, names), random.Random(seed)
        self.there: dict[str, list[Row]] = {name: [] for name in names}

    def next_day(self, day: int, changed: tuple[str, ...]) -> None:
        for name, made in self.made.items():
            many = (40 if day == 1 else 8) if name in changed else 0
            new = [drawn(self.chance, day, number) for number in self.chance.sample(range(60), many)]
            back = retracted(self.chance, self.there[name], day) if name == "moves" and new else []
            land(made, day, [*new, *back])
            self.there[name] = new or self.there[name]


@pytest.mark.parametrize("name", JOINS)
def test_they_hold_what_is_computed_whole(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """After changes of one side, of the other, of both, and of neither."""
    for module in (joins, joined_here):
        monkeypatch.setattr(module, "SHARE", 1)
    asked, joined = list[bool](), joins.joined_by_changes
    monkeypatch.setattr(by_key, "joined_by_changes", lambda views, of: (asked.append(True), joined(views, of))[1])
    inputs = Sides(tmp_path, TWO_INPUTS, name)
    whole, here, queries = (
        Deriving(inputs.made["sales"], spark, one, Derived(TWO_INPUTS, Definition(JOINS[name]), refresh=refresh), KEY)
        for one, refresh in (("whole", Refresh.WHOLE), ("here", Refresh.AUTO), ("queries", Refresh.AUTO))
    )
    for day, changed in enumerate((TWO_INPUTS, ("sales",), ("moves",), TWO_INPUTS, ()), 1):
        inputs.next_day(day, changed)
        if day == 1:
            for one in (whole, here, queries):
                one.declared()
        before = len(asked)
        reports = {Place.HERE: refreshed(here, here=False)}
        assert len(asked) == before
        reports[Place.QUERIES] = built_by_spark(queries)
        assert len(asked) == before + (day > 1 and changed != ())
        assert {one["mode"] for one in reports.values()} == {"by_key" if day > 1 else "whole"}
        if day > 1 and changed:
            assert {way: one["way"]["place"] for way, one in reports.items()} == {way: way for way in reports}
        if changed:  # else it stays as it is
            refreshed(whole, here=False)
        assert at_rest(here) == at_rest(queries) == at_rest(whole) != [], (day, changed)


def test_three_inputs_are_joined_from_whichever_changed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joined_here, "SHARE", 1)
    names = ("sales", "moves", "stock")
    inputs = Sides(tmp_path, names, "three")
    each = {
        refresh: Deriving(
            inputs.made["sales"], spark, refresh, Derived(names, Definition(THREE), refresh=refresh), (*KEY, "third")
        )
        for refresh in (Refresh.AUTO, Refresh.WHOLE)
    }
    for day, changed in enumerate((names, ("stock",), ("sales", "moves"), names), 1):
        inputs.next_day(day, changed)
        if day == 1:
            for one in each.values():
                one.declared()
        refreshed(each[Refresh.WHOLE], here=False)
        report = refreshed(each[Refresh.AUTO], here=day > 1)
        assert day == 1 or report["way"]["words"] == "by the join kernel, in this process"
        assert at_rest(each[Refresh.AUTO]) == at_rest(each[Refresh.WHOLE]) != [], (day, changed)


@pytest.mark.parametrize(
    ("limit", "most", "why"),
    [
        ("LEAST_TASK_ROWS", 3, "more rows are joined with what changed than this process computes"),
        ("MOST_BYTES", 100, "too many rows are joined with what changed"),
        ("LOOKED_AT_ROWS", 8, "this process reads up to"),
    ],
)
def test_what_is_not_little_is_left_to_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, why: str
) -> None:
    inputs = Sides(tmp_path, TWO_INPUTS, "few")
    one, other = (
        Deriving(inputs.made["sales"], spark, name, Derived(TWO_INPUTS, Definition(TWO)), KEY)
        for name in ("one", "other")
    )
    for day in (1, 2):
        inputs.next_day(day, TWO_INPUTS if day == 1 else ("sales",))
        if day == 1:
            for each in (one, other):
                each.declared()
                refreshed(each, here=False)
    with monkeypatch.context() as patch:
        patch.setattr(joined_here, limit, most)
        way = refreshed(one, here=False)["way"]
    assert way["place"] == "queries"
    assert any(why in said for said in way["why"]), way
    refreshed(other, here=True)
    assert at_rest(one) == at_rest(other) != []


def test_what_changed_much_is_computed_by_what_it_touches(spark: Any, tmp_path: Path) -> None:
    inputs, chance = [Made(tmp_path, UPSERT), Made(tmp_path, UPDATES)], random.Random(4)
    one = Deriving(inputs[0], spark, "one", Derived(TWO_INPUTS, Definition(TWO)), KEY)
    for day in (1, 2):
        for made in inputs:
            land(made, day, [drawn(chance, day, number) for number in range(30)])
        if day == 1:
            one.declared()
        report = refreshed(one, here=False)
    assert report["way"]["why"] == ["too much changed to join the changes alone"]
