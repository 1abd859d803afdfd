"""`latest_at` at one time: which row of each key it is, in which columns, and what is refused at the call."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tidemark
from tests.pure.api.made import Made
from tidemark.model.collection import Column, ColumnType

pytestmark = pytest.mark.pure
COLUMNS = (
    Column("v", ColumnType.STRING),
    Column("at", ColumnType.INT),
    Column("day", ColumnType.DATE),
    Column("seen", ColumnType.TIMESTAMP),
    Column("doc", ColumnType.JSON),
)
HOUR = 3_600_000_000


def reading(k: int, v: str | None, at: int | None, day: str | None = None, seen: str | None = None) -> dict[str, Any]:
    return {"k": k, "v": v, "at": at, "day": day, "seen": seen, "doc": None, "t": 1, "e": 1}


DAY = [
    reading(1, "a", 3, "2024-01-01", "1970-01-01T03:00:00Z"),
    reading(1, "b", 5, "2024-01-01", "1970-01-01T05:00:00Z"),
    reading(1, "a", 5, "2024-01-03"),
    reading(1, None, 6, "2024-01-04"),
    reading(2, "z", 5),
    reading(2, "y", 5),
    reading(3, "x", None, "2024-01-02"),
    reading(4, None, 1),
]


@pytest.fixture(scope="module")
def tides(tmp_path_factory: pytest.TempPathFactory) -> tidemark.OpenCollection:
    made = Made(tmp_path_factory.mktemp("landing"), value=COLUMNS, timelines=("at",))
    made.sealed(0, DAY)
    return tidemark.open(made.root, "tides")


def values(answer: tidemark.Answer, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names or answer.schema.names) for row in answer.to_arrow().to_pylist()]


def test_explain_says_where_nan_is_where_floats_are_compared(tmp_path: Path) -> None:
    made = Made(tmp_path, value=(Column("at", ColumnType.INT), Column("v", ColumnType.FLOAT)))
    made.sealed(0, [{"k": 1, "at": 1, "v": None, "t": 1, "e": 1}])
    tides = tidemark.open(made.root, "tides")
    said = "  at one time   the greatest row is the latest: in v NaN is above null, and below every number"
    assert f"{said}\n" in f"{tides.latest_at('at', 1).explain()}\n"
    assert f"{said}; NaN is a value\n" in f"{tides.latest_at('at', 1, each=True).explain()}\n"
    table = pa.table({"k": [1], "at": [1]})
    assert f"{said}\n" in f"{tides.latest_at('at', at=table).explain()}\n"
    assert "NaN" not in str(tides.latest_at("at", 1, columns=["at"]).explain())


def test_columns_ties_and_conditions_decide(tides: tidemark.OpenCollection) -> None:
    assert values(tides.latest_at("at", 5, ties=["day"]), "k", "v") == [(1, "a"), (2, "z"), (4, None)]
    assert values(tides.latest_at("at", 9, columns=["v", "k"])) == [(None, 1), ("z", 2), (None, 4)]
    assert values(tides.latest_at("at", 9, columns="k")) == [(1,), (2,), (4,)]
    assert values(tides.latest_at("at", 9, where="v IS NOT NULL"), "k", "v") == [(1, "b"), (2, "z")]
    assert values(tides.latest_at("at", 9, where={"k": 2}), "k", "v") == [(2, "z")]


def test_each_column_has_its_own_time(tides: tidemark.OpenCollection) -> None:
    answer = tides.latest_at("at", 9, each=True, columns=["k", "v", "day", "at"])
    assert answer.schema.names == ["k", "v", "v_at", "day", "day_at", "at"]
    assert values(answer) == [
        (1, "b", 5, date(2024, 1, 4), 6, 6),
        (2, "z", 5, None, None, 5),
        (4, None, None, None, None, 1),
    ]


@pytest.mark.parametrize(
    ("timeline", "time", "within", "rows"),
    [
        ("day", "2024-01-02", None, [(1, "b"), (3, "x")]),
        ("day", date(2024, 1, 3), 0, [(1, "a")]),
        ("day", date(2024, 1, 3), "1d", [(1, "a"), (3, "x")]),
        ("day", date(2024, 1, 3), timedelta(days=1), [(1, "a"), (3, "x")]),
        ("seen", "1970-01-01T04:00:00Z", None, [(1, "a")]),
        ("seen", datetime(1970, 1, 1, 6, tzinfo=UTC), "1h", [(1, "b")]),
        ("seen", 6 * HOUR, HOUR - 1, []),
        ("seen", -1, None, []),
        ("at", "5", 2**70, [(1, "b"), (2, "z"), (4, None)]),
    ],
)
def test_every_type_of_timeline(
    tides: tidemark.OpenCollection, timeline: str, time: Any, within: Any, rows: list[Any]
) -> None:
    assert values(tides.latest_at(timeline, time, within=within), "k", "v") == rows


def test_it_is_an_answer_as_any_other(tides: tidemark.OpenCollection) -> None:
    answer = tides.latest_at("at", 9, "k < 3", 5, each=True, ties="v", time=8)
    table = answer.to_arrow()
    assert table.num_rows == answer.count() == 2
    assert table.schema == answer.schema == answer.reader().schema
    assert pickle.loads(pickle.dumps(answer)).to_arrow() == table == answer.to_arrow()
    assert str(answer.to_pandas()["at"].dtype) == "Int64"
    assert (answer.time, answer.event_time, answer.at) == (8, None, 9)  # type: ignore[attr-defined]
    assert [span.intervals for span in answer._request.spans] == [((4, 9),)]  # type: ignore[attr-defined]
    assert answer.explain().parts > 0
    assert repr(tides.latest_at("day", "2024-01-03", within="1d", columns="k", event_time=3)) == (
        "<latest rows of tides by day at 2024-01-03 and 2024-01-02 or later; as known at 1970-01-01T00:00:00.000009Z; "
        f"what had happened by 1970-01-01T00:00:00.000003Z; version {tides.version}, "
        f"complete below 1970-01-01T00:00:00.000010Z; columns k; not read yet>"
    )


Ask = Callable[[tidemark.OpenCollection], Any]
BAD: list[tuple[Ask, str]] = [
    (lambda c: c.latest_at("att", 5), r"timeline: collection tides has no column 'att'; did you mean 'at'\?"),
    (lambda c: c.latest_at(7, 5), r"timeline: collection tides has no column 7; there are k, v, at"),
    (lambda c: c.latest_at("v", 5), r"timeline v .* is of type string; .*; timelines are at, day, seen"),
    (lambda c: c.latest_at("k", 5), r"timeline k .* is a column of the key, .*; timelines are at, day, seen"),
    (lambda c: c.latest_at("at"), r"no time is given; say at which time on at, or give a table"),
    (lambda c: c.latest_at("at", "noon"), r"column at is of type int; 'noon' is no value of it"),
    (lambda c: c.latest_at("at", 1.5), r"column at is of type int; 1.5 is no value of it"),
    (lambda c: c.latest_at("at", True), r"column at is of type int; True is no value of it"),
    (lambda c: c.latest_at("seen", "noon"), r"column seen is of type timestamp; 'noon' is no value of it"),
    (lambda c: c.latest_at("at", 5, within=-1), r"within is -1; it must not be negative"),
    (lambda c: c.latest_at("at", 5, within="1h"), r"within is '1h', and timeline at is int: it counts whole numbers"),
    (lambda c: c.latest_at("day", "2024-01-01", within="36h"), r"within is '36h', .* is date: it counts whole days"),
    (lambda c: c.latest_at("seen", 0, within="soon"), r"not a duration: 'soon'"),
    (lambda c: c.latest_at("seen", 0, within=True), r"within is True \(bool\); write '12h'"),
    (lambda c: c.latest_at("at", 5, each="yes"), r"each is 'yes' \(str\); it is True or False"),
    (lambda c: c.latest_at("at", 5, ties=["w"]), r"ties: collection tides has no column 'w'"),
    (lambda c: c.latest_at("at", 5, ties=["doc"]), r"ties: column doc is json, whose values are in no order"),
    (lambda c: c.latest_at("at", 5, ties=7), r"ties is 7 \(int\); write a list of names"),
    (lambda c: c.latest_at("at", 5, columns=["kk"]), r"columns: collection tides has no column 'kk'"),
    (lambda c: c.latest_at("at", 5, time=20), r"outside the readable \[since .*, seal "),
    (lambda c: c.latest_at("at", 5, "v ="), r"where: expected"),
]


@pytest.mark.parametrize(("ask", "said"), BAD)
def test_what_cannot_be_asked_is_refused_at_the_call(tides: tidemark.OpenCollection, ask: Ask, said: str) -> None:
    with pytest.raises(tidemark.InvalidUsage, match=said) as refused:
        ask(tides)
    assert "\n" not in str(refused.value)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    value = (Column("v", ColumnType.STRING), Column("v_at", ColumnType.INT))
    made = Made(tmp_path, value=value)
    made.sealed(0, [{"k": 1, "v": "a", "v_at": 1, "t": 1, "e": 1}])
    opened = tidemark.open(made.root, "tides")
    with pytest.raises(tidemark.InvalidUsage, match="each: column v_at of collection tides has the name of the time"):
        opened.latest_at("v_at", 5, each=True)
    assert opened.latest_at("v_at", 5, each=True, columns=["k", "v"]).to_arrow().to_pylist() == [
        {"k": 1, "v": "a", "v_at": 1}
    ]
