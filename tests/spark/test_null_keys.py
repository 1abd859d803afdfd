"""Null is a group: keys of derived collections may be null, from the first build on or months later."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.spark.support import APPEND, Made
from tests.spark.test_derived import Deriving, next_day, rows_of, select
from tests.spark.ways import by_queries
from tidemark.jobs.questions.definition import verify_definition
from tidemark.jobs.questions.verify import verify

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


@pytest.mark.parametrize("queried", [False, True])
def test_null_is_a_group(spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch, queried: bool) -> None:
    """Of sums that grow, of groups computed anew, of several columns, by row and whole; computed here or by queries."""
    if queried:
        by_queries(monkeypatch)
    texts = {
        "grown": (BY_KIND, ("kind",), "by_key", by_kind),
        "anew": (
            "SELECT kind, id % 3 AS third, max(amount) AS most, count(*) AS n FROM events GROUP BY kind, id % 3",
            ("kind", "third"),
            "by_key",
            None,
        ),
        "rows": ("SELECT kind, id FROM events", ("kind",), "by_row", None),
        "all": (
            "SELECT kind, count(*) AS n, rank() OVER (ORDER BY count(*)) AS place FROM events GROUP BY kind",
            ("kind",),
            "whole",
            None,
        ),
    }
    made = {name: Deriving(events, spark, name, select(text), key) for name, (text, key, _, _) in texts.items()}
    for one in made.values():
        one.declared()
        one.corrected()
    for day in (2, 3):
        next_day(events, day)
        for name, one in made.items():
            told = one.corrected()
            assert (told["mode"], told["outcome"]) == (texts[name][2], "applied"), name
            expected = texts[name][3]
            assert expected is None or one.held() == expected(rows_of(events))
            assert any(row[0] is None for row in one.held()), name
            assert verify_definition(one.job(), every=True).sound, name
            assert verify(one.job(), data=True).sound, name
