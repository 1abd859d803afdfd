"""Null is a group: keys of derived collections may be null, from the first build on or months later."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from typer.testing import CliRunner

import tidemark
from tests.spark.support import APPEND, DAY, START, Made
from tests.spark.test_derived import Deriving, next_day, rows_of, select
from tests.spark.ways import by_queries
from tidemark.cli import app
from tidemark.definition.analysed import analysed
from tidemark.definition.recipe import CURRENT, DELTA, InputShape
from tidemark.jobs.queries.definition import verify_definition
from tidemark.jobs.queries.verify import verify
from tidemark.model.collection import Column, ColumnType
from tidemark.spark.derive.under_names import called

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
Row = dict[str, Any]
BY_KIND = "SELECT kind, count(*) AS n, sum(id) AS total FROM events GROUP BY kind"


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, APPEND)
    made.land(1, 300, keys=30)
    made.moved(1)
    made.step("trace", 1)
    return made


def groups(rows: list[Row], *names: str) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def by_kind(rows: list[Row]) -> Counter[Any]:
    return Counter((*key, len(some), sum(row["id"] for row in some)) for key, some in groups(rows, "kind").items())


def as_texts(one: Deriving) -> Counter[str]:
    """The current rows: a NaN is then equal to itself."""
    return Counter({repr(row): many for row, many in one.rows().items()})


OF_MODES = {
    "grown": (BY_KIND, ("kind",), "by_key"),
    "recomputed": (
        "SELECT kind, id % 3 AS third, max(amount) AS most, count(*) AS n FROM events GROUP BY kind, id % 3",
        ("kind", "third"),
        "by_key",
    ),
    "rows": ("SELECT kind, id FROM events", ("kind",), "by_row"),
    "all": (
        "SELECT kind, count(*) AS n, rank() OVER (ORDER BY count(*)) AS place FROM events GROUP BY kind",
        ("kind",),
        "whole",
    ),
}


def test_null_is_a_group(spark: Any, events: Made) -> None:
    """Of sums that grow, of recomputed groups, of several columns, by row and whole; computed here or by queries."""
    made = {
        (name, way): Deriving(events, spark, f"{name}_{way}", select(text), key)
        for name, (text, key, _) in OF_MODES.items()
        for way in ("here", "queries")
    }
    for day in (1, 2):
        if day == 2:
            next_day(events)
        for (name, way), one in made.items():
            with pytest.MonkeyPatch.context() as patch:
                if way == "queries":
                    by_queries(patch)
                if day == 1:
                    one.declared()
                report = one.corrected() if (day, way) == (2, "here") else one.ungated()
            assert day == 1 or (report["mode"], report["outcome"]) == (OF_MODES[name][2], "applied"), name
            assert way == "here" or as_texts(one) == as_texts(made[name, "here"]), (name, day)
    for (name, way), one in made.items():
        assert verify(one.job(), data=True).sound, (name, way)
        assert any(row[0] is None for row in one.rows()), (name, way)
        if way == "here" or name == "grown":  # behind sums something may be hidden
            assert verify_definition(one.job()).sound, (name, way)
    assert made["grown", "here"].rows() == by_kind(rows_of(events))


def test_null_keys_are_found_through_every_door(spark: Any, events: Made) -> None:
    """And each read opens nothing else: the range of keys that fits is that of the nulls."""
    one = Deriving(events, spark, "kinds", select(BY_KIND), ("kind",))
    one.declared()
    one.corrected()
    next_day(events)
    one.corrected()
    found = by_kind(rows_of(events))
    opened = tidemark.open(str(events.root), "kinds")
    asked: dict[Any, Callable[[Any], bool]] = {
        "kind IS NULL": lambda kind: kind is None,
        "NOT (kind IS NULL)": lambda kind: kind is not None,
        "kind IS NULL OR kind = 'a'": lambda kind: kind in (None, "a"),
        "kind = 'a'": lambda kind: kind == "a",
        "kind < 'b'": lambda kind: kind is not None and kind < "b",
        "kind = ''": lambda kind: kind == "",
        ("kind", None): lambda kind: kind is None,
        ("kind", (None, "a")): lambda kind: kind in (None, "a"),
    }
    for where, fits in asked.items():
        answer = opened.as_of(where=where if isinstance(where, str) else {where[0]: where[1]})
        expected = Counter({row: count for row, count in found.items() if fits(row[0])})
        assert Counter(tuple(row.values())[:-1] for row in answer.to_arrow().to_pylist()) == expected, where
        assert Counter(tuple(row)[:-1] for row in answer.to_spark(spark).collect()) == expected, where
    rows = opened.as_of().to_arrow().column("kind").to_pylist()
    assert rows[0] is None, "null sorts first"
    assert rows[1:] == sorted(rows[1:])
    for net in (False, True):
        changes = opened.changes(START + DAY - 1, net=net, where="kind IS NULL")
        rows = changes.to_arrow().select(["kind", "_change_type"]).to_pylist()
        assert sorted(map(tuple, map(dict.values, rows))) == [(None, "delete"), (None, "insert")], "the second day's"
        assert changes.to_spark(spark).count() == 2
    words = ["as-of", "kinds", "--where", "kind IS NULL", "--json"]
    (shown,) = json.loads(CliRunner().invoke(app, words, env={"TIDEMARK_ROOT": str(events.root)}).stdout)["rows"]
    assert (shown["kind"], shown["n"]) == next((row[0], row[1]) for row in found if row[0] is None)


def test_a_null_group_of_fewer_rows_than_none_is_named(spark: Any) -> None:
    columns = (Column("id", ColumnType.INT), Column("kind", ColumnType.STRING))
    rule = analysed(BY_KIND, [InputShape("events", columns, ("id",))]).by_key
    assert rule is not None
    assert rule.sums == ("n", "total", "_part0")
    grew = spark.createDataFrame([(None, -1, 0, 0)], "k0 string, n long, total long, _part0 long")
    stood = spark.createDataFrame([], "kind string, n long, total long, _part0 long")
    with (
        called({DELTA: grew, CURRENT: stood}),
        pytest.raises(PySparkException, match="fewer rows than none in the group null"),
    ):
        spark.sql(rule.grown).collect()
