"""Every type of column where Spark computes: derived by row, by key and whole, windows by it and of it, and what Spark
reads, each against a calculation of the test's own."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidemark
from support.typed import GOOD, TYPES, as_answered
from tests.spark.support import DAY, HOUR, INSTANT, START, Made
from tests.spark.test_derived import Deriving, select
from tests.spark.ways import interpreted
from tidemark.arrow.rows.schema import arrow_type
from tidemark.jobs.queries.definition import verify_definition
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.derived import Definition, Derived
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
NAMES: dict[ValueType, str] = {of: f"a_{str(of).partition('(')[0]}" for of in TYPES}
EVENTS = """\
name: events
key: [id]
value: [k, at, NAMES]
columns:
  id: int
  k: int
  at: timestamp
TYPES
start: 2024-01-01
live_batches: 2
end: 2024-02-01
time: {column: at}
late: {reemit: {max_lateness: 2d}}
source: {path: "{{ landing }}/events/{{ ds }}/*.parquet", format: parquet, envelope: append}
"""
EVENTS = EVENTS.replace("NAMES", ", ".join(NAMES.values()))
EVENTS = EVENTS.replace("TYPES", "\n".join(f"  {name}: {of}" for of, name in NAMES.items()))
Row = dict[str, Any]


def day_rows(day: int) -> list[Row]:
    """Nine rows of a day: of each type each value, and none; on the second day three of them are late."""
    found = []
    for number in range(9):
        at = START + (day - 1) * DAY + number * HOUR - (DAY if day > 1 and number < 3 else 0)
        row: Row = {"id": (day - 1) * 9 + number, "k": number % 2, "at": at}
        found.append(row | {name: (*GOOD[of], None)[(number + day) % 3] for of, name in NAMES.items()})
    return found


def land(made: Made, day: int) -> None:
    folder = made.landing / "events" / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    rows = day_rows(day)
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("id", "k", "at")}
    columns["at"] = columns["at"].cast(INSTANT)
    for of, name in NAMES.items():
        cells = [row[name] for row in rows]
        texts = [None if cell is None else json.dumps(cell) for cell in cells] if of is ColumnType.JSON else cells
        columns[name] = pa.array(texts, pa.string() if of is ColumnType.JSON else arrow_type(of))
    pq.write_table(pa.table(columns), folder / "a.parquet")
    made.moved(day)
    made.step("trace", day)


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, EVENTS)
    land(made, 1)
    return made


def rows_of(days: Iterable[int]) -> list[Row]:
    """The rows of some days as answers have them."""
    types = {name: of for of, name in NAMES.items()}
    rows = (row for day in days for row in day_rows(day))
    return [
        {name: as_answered(cell, types[name]) if name in types else cell for name, cell in row.items()} for row in rows
    ]


def by(rows: list[Row], name: str) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found


def extremes(rows: list[Row], name: str) -> tuple[Any, Any, int]:
    values = [row[name] for row in rows if row[name] is not None]
    return max(values, default=None), min(values, default=None), len(set(values))


def cells(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in NAMES.values())


ALL = ", ".join(NAMES.values())
EXTREMES = ", ".join(
    f"max({name}) AS most_{name}, min({name}) AS least_{name}, count(DISTINCT {name}) AS n_{name}"
    for name in NAMES.values()
)
Expected = Callable[[list[Row]], Counter[Any]]
QUERIES: dict[str, tuple[str, str, Expected]] = {
    "row": (
        f"SELECT id, {ALL} FROM events WHERE id >= 0",
        "id",
        lambda rows: Counter((row["id"], *cells(row)) for row in rows),
    ),
    "of_key": (
        f"SELECT k, {EXTREMES} FROM events GROUP BY k",
        "k",
        lambda rows: Counter(
            (k, *(one for name in NAMES.values() for one in extremes(some, name))) for k, some in by(rows, "k").items()
        ),
    ),
    "whole": (
        f"SELECT id, {ALL}, rank() OVER (ORDER BY id) AS place FROM events",
        "id",
        lambda rows: Counter((row["id"], *cells(row), row["id"] + 1) for row in rows),
    ),
}
KEYS = [name for of, name in NAMES.items() if of is not ColumnType.FLOAT]
for of_key in KEYS:
    QUERIES[of_key] = (
        f"SELECT {of_key}, count(*) AS n, min(id) AS least FROM events GROUP BY {of_key}",
        of_key,
        lambda rows, x=of_key: Counter(  # type: ignore[misc]
            (value, len(some), min(row["id"] for row in some)) for value, some in by(rows, x).items()
        ),
    )


def of_all_keys(rows: list[Row]) -> Counter[Any]:
    """Of the rows of each value of all keys how many they are."""
    return Counter((*key, many) for key, many in Counter(tuple(row[name] for name in KEYS) for row in rows).items())


QUERIES["all_keys"] = (
    f"SELECT {', '.join(KEYS)}, count(*) AS n FROM events GROUP BY ALL",
    ", ".join(KEYS),
    of_all_keys,
)


def test_derived_collections_of_every_type(spark: Any, events: Made) -> None:
    """By row and whole with all of them, of a key, and by a key of each, and by all keys at once, which may be null."""
    made = {
        kind: Deriving(events, spark, kind, select(query), tuple(key.split(", ")))
        for kind, (query, key, _) in QUERIES.items()
    }
    for kind, one in made.items():
        one.declared()
        assert one.ungated()["outcome"] == "applied"
        assert one.rows() == QUERIES[kind][2](rows_of([1])), kind
    land(events, 2)
    for kind, one in made.items():
        # That of all keys goes through its gate, too, which asks by keys of every type.
        assert (one.corrected() if kind in ("row", "all_keys") else one.ungated())["outcome"] == "applied"
        assert one.rows() == QUERIES[kind][2](rows_of([1, 2])), kind
    for kind in ("row", "of_key", "whole"):  # whatever the key is, all columns are compared as these are
        assert verify_definition(made[kind].job(), every=True).sound, kind


KINDS = {"tumbling": Tumbling(4 * HOUR), "sliding": Sliding(4 * HOUR), "session": Session(2 * HOUR)}
OF_TYPE = (
    *((Function.MAX, "most"), (Function.MIN, "least"), (Function.FIRST, "first"), (Function.LAST, "last")),
    *((Function.COUNT_DISTINCT, "n"), (Function.COLLECT, "all"), (Function.APPROX_DISTINCT, "about")),
)


@pytest.mark.parametrize("kind", list(KINDS))
def test_windows_by_every_type_and_of_it(spark: Any, events: Made, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is what its definition says, recomputed; and what windows are of is what was landed."""
    interpreted(monkeypatch)
    keys = tuple(KEYS)
    aggregates = tuple(
        Aggregate(f"{column}_{name}", function, name) for name in NAMES.values() for function, column in OF_TYPE
    )
    windows = {
        "by_them": Windows(keys, "at", KINDS[kind], (Aggregate("n", Function.COUNT),)),
        "of_them": Windows(("k",), "at", KINDS[kind], aggregates),
    }
    made = {
        name: Deriving(events, spark, name, Derived(("events",), Definition(windows=one)))
        for name, one in windows.items()
    }
    for one in made.values():
        one.declared()
        one.ungated()
    land(events, 2)
    found = {}
    for name, one in made.items():
        # Lists of values that are no JSON are beyond the law: Spark computes these again, once by keys.
        by_law = name == "by_them"
        one.corrected() if by_law or kind == "tumbling" else one.ungated()
        assert verify_definition(one.job(), every=by_law).sound, name
        found[name] = tidemark.open(str(events.root), name).windows().to_arrow().to_pylist()
    landed = rows_of([1, 2])
    assert {tuple(row[name] for name in keys) for row in found["by_them"]} == {
        tuple(row[name] for name in keys) for row in landed
    }
    assert any(None in {row[name] for name in keys} for row in landed)
    for name in NAMES.values():
        values = {row[name] for row in landed}
        for column in ("most", "least", "first", "last"):
            shown = {row[f"{column}_{name}"] for row in found["of_them"]}
            assert shown <= values
            assert shown - {None}


def test_spark_reads_every_type_as_arrow_does(spark: Any, events: Made) -> None:
    land(events, 2)
    opened = tidemark.open(str(events.root), "events")
    for answer in (
        opened.as_of(),
        opened.changes(),
        opened.changes(net=True),
        opened.as_of(columns=["k", *NAMES.values()]),
    ):
        columns = [name for name in answer.schema.names if name != "_commit_timestamp"]
        ours = answer.to_arrow().select(columns)
        theirs = answer.to_spark(spark).select(*columns).toArrow()
        assert plain(theirs) == plain(ours)
    for of, name in NAMES.items():
        for value in GOOD[of]:
            found = opened.as_of(where={name: as_answered(value, of)})
            assert found.to_spark(spark).count() == found.count() > 0, f"{of} {value!r}"


def plain(table: pa.Table) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in table.to_pylist())
