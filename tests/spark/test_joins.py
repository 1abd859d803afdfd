"""Joins that this process or executors build, and that are refreshed from what changed of their inputs, hold what Spark
SQL says of all rows, bit by bit."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import Made, no_spark
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
from tests.spark.ways import by_executors
from tests.support.budget import budget
from tidemark.arrow.read import rows_as_of
from tidemark.definition.computation import Input
from tidemark.definition.ways import Place
from tidemark.jobs.derived import opened, recipe_of
from tidemark.jobs.steps.init import declare
from tidemark.model.derived import Definition, Derived, Refresh
from tidemark.spark.derive import views
from tidemark.spark.derive.computer import SparkComputer
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
TWO_INPUTS, KEY = ("sales", "moves"), ("shop", "id", "other")
BY_FLOATS = (
    "SELECT s.shop, s.id, m.id AS other, s.ratio, m.ratio AS there, m.note FROM sales s JOIN moves m "
    "ON s.ratio = m.ratio AND s.price = m.price"
)
LEFT = (
    "SELECT s.shop, s.id, m.id AS other, m.note, m.ratio, s.price FROM sales s LEFT JOIN moves m "
    "ON s.shop = m.shop AND m.kind = s.kind"
)
FILTERED = (
    "SELECT s.shop, s.id, m.id AS other, coalesce(m.note, 'none') AS said FROM sales s LEFT OUTER JOIN moves m "
    "ON s.shop = m.shop AND s.ratio = m.ratio WHERE m.id IS NULL OR s.id < m.id"
)
JOINS = {
    "two": TWO,
    "crossed": CROSSED,
    "computed": COMPUTED,
    "by_floats": BY_FLOATS,
    "left": LEFT,
    "filtered": FILTERED,
}


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
            many = ((60 if name == "sales" else 20) if day == 1 else 8) if name in changed else 0
            new = [drawn(self.chance, day, number) for number in self.chance.sample(range(60), many)]
            back = retracted(self.chance, self.there[name], day) if name == "moves" and new else []
            land(made, day, [*new, *back])
            self.there[name] = new or self.there[name]


@pytest.mark.parametrize("name", budget(ci=["two", "left"], deep=list(JOINS)))
def test_they_hold_what_is_computed_whole(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """After changes of one side, of the other, of both, and of neither: what the side that a left join may lack changed
    touches is recomputed, by executors or by Spark SQL."""
    for module in (joins, joined_here):
        monkeypatch.setattr(module, "SHARE", 1)
    asked, joined = list[bool](), joins.joined_by_changes
    monkeypatch.setattr(by_key, "joined_by_changes", lambda views, of: (asked.append(True), joined(views, of))[1])
    inputs, inner = Sides(tmp_path, TWO_INPUTS, name), "LEFT" not in JOINS[name]
    whole, here, queries = (
        Deriving(inputs.made["sales"], spark, one, Derived(TWO_INPUTS, Definition(JOINS[name]), refresh=refresh), KEY)
        for one, refresh in (("whole", Refresh.WHOLE), ("here", Refresh.AUTO), ("queries", Refresh.AUTO))
    )
    for day, changed in enumerate((TWO_INPUTS, ("sales",), ("moves",), TWO_INPUTS, ()), 1):
        inputs.next_day(day, changed)
        if day == 1:
            for one in (whole, here, queries):
                one.declared()
        before, linear = len(asked), inner or "moves" not in changed
        reports = {Place.HERE: refreshed(here, here=day == 1 or linear)}
        assert len(asked) == before
        reports[Place.QUERIES] = built_by_spark(queries)
        assert len(asked) == before + (inner and day > 1 and changed != ())
        assert {one["mode"] for one in reports.values()} == {"by_key" if day > 1 else "whole"}
        if changed and (day == 1 or linear):
            assert {way: one["way"]["place"] for way, one in reports.items()} == {way: way for way in reports}
        if changed:  # else it stays as it is
            built_by_spark(whole)
        assert at_rest(here) == at_rest(queries) == at_rest(whole) != [], (day, changed)


EQUAL = ("shop", "kind", "whole", "ratio", "price", "note", "seen", "since", "good")
SHOWN = ("m.note", "m.ratio", "m.price", "m.since", "m.whole * s.kind", "coalesce(m.note, s.note)", "m.price IS NULL")
WHERE = (
    "s.good",
    "s.ratio < m.ratio",
    "m.id IS NULL OR s.id <= m.id",
    "m.shop = 'a'",
    "NOT m.good",
    "s.kind <=> m.kind",
)


def drawn_join(chance: random.Random) -> str:
    """A join of two or three inputs, each on one to three columns."""
    joined = {"m": "moves", "t": "stock"} if chance.random() < 0.4 else {"m": "moves"}
    joins = list[str]()
    for name, of in joined.items():
        other = chance.choice(["s", "m"]) if name == "t" else "s"
        on = " AND ".join(f"{other}.{one} = {name}.{one}" for one in chance.sample(EQUAL, chance.randint(1, 3)))
        joins.append(f"{chance.choice(['JOIN', 'LEFT JOIN'])} {of} {name} ON {on}")
    shown = ["s.shop", "s.id", "m.id AS other", "t.id AS third"][: 2 + len(joined)]
    shown += [f"{text} AS c{at}" for at, text in enumerate(chance.sample(SHOWN, 3))]
    where = f" WHERE {chance.choice(WHERE)}" if chance.random() < 0.5 else ""
    return f"SELECT {', '.join(shown)} FROM sales s {' '.join(joins)}{where}"


@pytest.mark.parametrize("seed", range(budget(ci=1, deep=200)))
def test_random_joins_are_what_spark_sql_says(spark: Any, tmp_path: Path, seed: int) -> None:
    """Built by this process, and refreshed by the first place that takes it."""
    chance = random.Random(seed)
    definition = Definition(drawn_join(chance))
    names = ("sales", "moves", "stock") if "stock" in definition.select else TWO_INPUTS
    key = (*KEY, "third")[: 1 + len(names)]
    inputs = Sides(tmp_path, names, str(seed))
    ours, theirs = (Deriving(inputs.made["sales"], spark, name, Derived(names, definition), key) for name in ("o", "t"))
    for day, changed in enumerate((names, names[:1], names[1:]), 1):
        inputs.next_day(day, changed)
        if day == 1:
            for one in (ours, theirs):
                one.declared()
        refreshed(ours, here=day == 1)
        built_by_spark(theirs)
        assert at_rest(ours) == at_rest(theirs), (day, definition.select)


SEEDS = range(budget(ci=12, deep=200))


def test_columns_of_joins_are_known_without_spark(spark: Any, tmp_path: Path) -> None:
    texts = [*JOINS.values(), *(drawn_join(random.Random(seed)) for seed in SEEDS)]
    names = ("sales", "moves", "stock")
    for name, made in sides(tmp_path, names).items():
        declare(made.job(), str(made.file))
        assert name == made.name
    job = Made(tmp_path, UPSERT).job()
    computer = SparkComputer(no_spark)
    for text in texts:
        derived = Derived(names if "stock" in text else TWO_INPUTS, Definition(text))
        states = opened(job, derived)
        recipe = recipe_of(derived, states)
        assert recipe is not None
        assert recipe.join is not None, text
        inputs = [Input(opened.name, job.neighbour(opened.name).store.url, opened.state, 0) for opened in states]
        by_spark = SparkComputer(lambda: spark).shape("s", derived.definition, replace(recipe, join=None), inputs)
        assert computer.shape("s", derived.definition, recipe, inputs) == by_spark


LED = (
    "SELECT s.shop, s.id, m.id AS other, m.note, s.price FROM sales s {} moves m ON s.kind = m.kind AND s.note = m.note"
)


def test_only_columns_that_are_used_are_read_where_nothing_is_merged(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[list[str]]()
    monkeypatch.setattr(views, "rows_as_of", lambda *words: (read.append(words[2] or []), rows_as_of(*words))[1])
    inputs = Sides(tmp_path, TWO_INPUTS, "columns")
    definition = Derived(TWO_INPUTS, Definition(LED.format("JOIN")))
    for day in (1, 2):
        inputs.next_day(day, TWO_INPUTS)
        derived = Deriving(inputs.made["sales"], spark, f"since_{day}", definition, KEY)
        derived.declared()
        refreshed(derived, here=True)
        (columns,) = filter(None, read)
        used = ["shop", "id", "kind", "price", "note"]
        assert [name for name in columns if name in used] == used
        assert ("ratio" in columns) == (day == 2)
        read.clear()


@pytest.mark.parametrize("join", ["JOIN", *budget(ci=[], deep=["LEFT JOIN"])])
def test_executors_join_what_they_read(spark: Any, tmp_path: Path, join: str) -> None:
    """By ranges of the larger input's key, with all of the other: the first time, and where the other changed."""
    inputs = Sides(tmp_path, TWO_INPUTS, join)
    ours, theirs = (
        Deriving(inputs.made["sales"], spark, name, Derived(TWO_INPUTS, Definition(LED.format(join))), KEY)
        for name in ("ours", "theirs")
    )
    for day, changed in enumerate((TWO_INPUTS, ("sales",), ("moves",)), 1):
        inputs.next_day(day, changed)
        if day == 1:
            for one in (ours, theirs):
                one.declared()
        with by_executors(7):
            report = refreshed(ours, here=False)
        assert report["way"]["words"] == "by the join kernel, by executors, each a range of keys"
        built_by_spark(theirs)
        assert at_rest(ours) == at_rest(theirs) != [], (day, changed)


@pytest.mark.parametrize(
    ("limit", "most", "place", "why"),
    [
        ("LEAST_TASK_ROWS", 3, Place.QUERIES, "more rows are joined with what changed than this process computes"),
        ("MOST_BYTES", 100, Place.QUERIES, "too many rows are joined with others to be in memory"),
        ("LOOKED_AT_ROWS", 8, Place.KEY_RANGES, "this process reads up to"),
    ],
)
def test_what_is_not_little_is_left_to_another_place(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, place: Place, why: str
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
    assert way["place"] == place
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
