"""Joins that are computed from what changed of their inputs hold what they hold that are computed whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Made
from tests.spark.test_derived import Deriving
from tests.spark.test_grouped_here import UPDATES, UPSERT, Row, at_rest, drawn, land, refreshed, taken_back
from tidemark.model.derived import Definition, Derived, Refresh
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


@pytest.mark.parametrize(("select", "key"), [(TWO, ("shop", "id", "other")), (CROSSED, ("shop", "id", "other"))])
def test_they_hold_what_is_computed_whole(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, select: str, key: tuple[str, ...]
) -> None:
    """After changes of one side, of the other, of both, and of neither."""
    monkeypatch.setattr(joins, "SHARE", 1)
    asked, joined = list[bool](), joins.joined_by_changes
    monkeypatch.setattr(by_key, "joined_by_changes", lambda views, of: (asked.append(True), joined(views, of))[1])
    chance = random.Random(select)
    sides = {"sales": Made(tmp_path, UPSERT), "moves": Made(tmp_path, UPDATES)}
    inputs, there = tuple(sides), {name: list[Row]() for name in sides}
    each = {
        way: Deriving(sides["sales"], spark, way, Derived(inputs, Definition(select), refresh=way), key)
        for way in (Refresh.AUTO, Refresh.WHOLE)
    }
    for day, changed in enumerate((inputs, ("sales",), ("moves",), inputs, ()), 1):
        for name, made in sides.items():
            many = (40 if day == 1 else 8) if name in changed else 0
            new = [drawn(chance, day, number) for number in chance.sample(range(60), many)]
            back = taken_back(chance, there[name], day) if name == "moves" and new else []
            land(made, day, [*new, *back])
            there[name] = new or there[name]
        if day == 1:
            for one in each.values():
                one.declared()
        told = {way: refreshed(one, here=False) for way, one in each.items()}
        assert told[Refresh.AUTO]["mode"] == ("whole" if day == 1 else "by_key")
        assert at_rest(each[Refresh.AUTO]) == at_rest(each[Refresh.WHOLE]), (day, changed)
    assert at_rest(each[Refresh.AUTO])
    assert len(asked) == 3, "of the days on which something changed"


def test_what_changed_much_is_computed_by_what_it_touches(spark: Any, tmp_path: Path) -> None:
    sides, chance = [Made(tmp_path, UPSERT), Made(tmp_path, UPDATES)], random.Random(4)
    one = Deriving(sides[0], spark, "one", Derived(("sales", "moves"), Definition(TWO)), ("shop", "id", "other"))
    for day in (1, 2):
        for made in sides:
            land(made, day, [drawn(chance, day, number) for number in range(30)])
        if day == 1:
            one.declared()
        told = refreshed(one, here=False)
    assert told["way"]["why"] == ["it joins its inputs", "too much changed to join the changes alone"]
