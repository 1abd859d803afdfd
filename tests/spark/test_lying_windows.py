"""Sliding windows and sessions by Spark, through the real steps: whole and from changes they are what the law says, and
what Spark's own frames and session windows are where these mean the same."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import Made
from tests.spark.test_derived import Deriving
from tidemark.arrow.read import as_of, told_of
from tidemark.jobs.questions.definition import verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kind import Session, Sliding
from tidemark.model.window.windows import Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.spark
READINGS = """\
name: readings
key: [who, id]
value: [t, moment, n, x, price, code]
columns: {who: string, id: int, t: int, moment: timestamp, n: int, x: float, price: "decimal(12, 2)", code: string,
          learned: timestamp}
start: 2024-01-01
live_batches: 2
time: {column: learned}
source: {path: "{{ landing }}/readings/{{ ds }}/*.parquet", format: parquet, envelope: updates, diff: change}
"""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN, INF = float("nan"), float("inf")
ALL = (
    Aggregate("rows", Function.COUNT),
    Aggregate("known", Function.COUNT, "n", "x > 0"),
    Aggregate("total", Function.SUM, "n"),
    Aggregate("exact", Function.SUM, "x"),
    Aggregate("prices", Function.SUM, "price"),
    Aggregate("mean", Function.AVG, "price"),
    Aggregate("means", Function.AVG, "n"),
    Aggregate("least", Function.MIN, "x"),
    Aggregate("most", Function.MAX, "code"),
    Aggregate("earliest", Function.FIRST, "code"),
    Aggregate("latest", Function.LAST, "x", "n > 2"),
    Aggregate("codes", Function.COLLECT, "code"),
    Aggregate("different", Function.COUNT_DISTINCT, "code"),
    Aggregate("about", Function.APPROX_DISTINCT, "code"),
    Aggregate("p90", Function.APPROX_QUANTILE, "n", at=0.9),
)
FEW = (ALL[0], ALL[2])
WINDOWS = {
    "slid": Windows(("who",), "t", Sliding(10), ALL, early=True),
    "clamped": Windows(
        (), "moment", Sliding(7, clamp_start_at_zero=True), FEW, where="who <> 'late' AND t >= 0", early=True
    ),
    "met": Windows(("who",), "t", Session(10), ALL, early=True),
    "cut": Windows((), "moment", Session(6, exact_gap_merges=False, max_length=9), FEW, early=True),
}
Reading = tuple[str, int, int | None, int | None, float | None, str | None]
"""Whose, which, at what instant, and its values."""


def reading(who: str, at: int | None, number: int = 0, **values: Any) -> Reading:
    n = values.get("n", (at or 0) % 7)
    x = values.get("x", [0.1, -0.0, 1e300, None, 0.3, NAN, -INF, 1e-30][((at or 0) + number) % 8])
    return who, number * 1000 + (at or 0), at, n, x, values.get("code", "abé"[(at or 0) % 3])


DAYS: list[list[tuple[Reading, int]]] = [
    [
        *((reading("ann", at), 1) for at in (-25, -20, -11, 0, 10, 25, 40, 41, 60)),
        *((reading("bob", at, 1), 1) for at in (0, 10, 10, 33)),
        (reading("bob", 10, 2), 2),  # twice there
        (reading("cid", None), 1),
        (reading("late", 3), 1),
        *((reading("hot", at, 3), 1) for at in range(0, 120, 3)),
    ],
    [
        (reading("ann", 18), 1),  # a bridge
        (reading("bob", 11), 1),  # late, and makes windows of its own
        (reading("bob", 10, 2), -1),
        (reading("ann", 60), -1),  # the last of its instant, and of all near
        (reading("dan", -7), 1),
        (reading("hot", 57, 3), -1),
        (reading("hot", 60, 3), -1),
        (reading("hot", 63, 3), -1),
    ],
    [
        (reading("ann", 18), -1),  # which splits what it had brought together
        (reading("bob", 0, 1), -1),
        (reading("dan", -7), -1),
        (reading("hot", 61, 3), 1),
    ],
]


def land(events: Made, day: int) -> None:
    """The readings of a day as signed updates."""
    learned = datetime(2024, 1, day, 12, tzinfo=UTC)
    rows = [
        {
            "who": who,
            "id": id_,
            "t": at,
            "moment": None if at is None else EPOCH + timedelta(microseconds=at),
            "n": n,
            "x": x,
            "price": None if n is None else Decimal(n) / 4,
            "code": code,
            "learned": learned,
            "change": count,
        }
        for (who, id_, at, n, x, code), count in DAYS[day - 1]
    ]
    instant = pa.timestamp("us", "UTC")
    types = [pa.string(), pa.int64(), pa.int64(), instant, pa.int64(), pa.float64(), pa.decimal128(12, 2), pa.string()]
    schema = pa.schema(list(zip(rows[0], [*types, instant, pa.int64()], strict=True)))
    folder = events.landing / "readings" / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), folder / "0.parquet")
    events.moved(day)
    events.step("trace", day)


def law(windows: Windows, events: Made) -> Counter[tuple[Any, ...]]:
    """The windows of what is held, by the law."""
    rows = as_of(events.store, events.log.load().state).to_pylist()
    happened = [
        Happened(
            tuple(row[name] for name in windows.by),
            tuple(row.items()),
            _micros(row[windows.on]),
            0,
            row["_multiplicity"],
        )
        for row in rows
        if row[windows.on] is not None and (not windows.where or (row["who"] != "late" and row["t"] >= 0))
    ]
    conditions = {
        "x > 0": lambda row: _above(row["x"], 0),
        "n > 2": lambda row: _above(row["n"], 2),
        "": lambda _: True,
    }
    told = window_rows(
        windows, happened, lambda one, row: dict(row)[one.of], lambda one, row: conditions[one.where](dict(row))
    )
    return Counter({(*key, *window, *map(_plain, values)): 1 for key, window, values in told})


def _above(value: Any, bound: int) -> bool:
    """As SQL has it: a NaN is above all."""
    return value is not None and (value != value or value > bound)


def _micros(at: Any) -> Any:
    return from_datetime(at) if isinstance(at, datetime) else at


def _plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else _micros(value)


def held(one: Deriving) -> Counter[tuple[Any, ...]]:
    """What a collection of early windows holds, sealed or not."""
    job = one.job()
    request = plan_updates(job.log.load().state)
    names = [column.name for column in request.collection.columns]
    found: Counter[tuple[Any, ...]] = Counter()
    for task in read_tasks(*parts_table.opened_read(job.store, request)):
        for row in (row for rows in told_of(job.store, task, net=False) for row in rows.to_pylist()):
            found[tuple(_plain(row[name]) for name in names)] += row["diff"]
    return Counter({row: count for row, count in found.items() if count})


def by_spark(spark: Any, events: Made, query: str) -> Counter[tuple[Any, ...]]:
    """What Spark says of the readings there are, as the view `readings`."""
    rows = as_of(events.store, events.log.load().state).to_pylist()
    each = [(row["who"], row["t"], row["n"]) for row in rows for _ in range(row["_multiplicity"])]
    spark.createDataFrame(each, "who string, t long, n long").createOrReplaceTempView("readings")
    return Counter(tuple(row) for row in spark.sql(query).collect())


FRAMES = """WITH each AS (
    SELECT who, t, count(*) OVER before AS held, sum(n) OVER before AS total,
           count(*) OVER after AS held_after, sum(n) OVER after AS total_after
    FROM readings WHERE t IS NOT NULL
    WINDOW before AS (PARTITION BY who ORDER BY t RANGE BETWEEN 10 PRECEDING AND CURRENT ROW),
           after AS (PARTITION BY who ORDER BY t RANGE BETWEEN 1 FOLLOWING AND 11 FOLLOWING))
    SELECT who, t - 10, t, held, total FROM each
    UNION SELECT who, t + 1, t + 11, held_after, total_after FROM each WHERE held_after > 0"""
SESSIONS = """SELECT who, unix_micros(window.start), unix_micros(window.end), count(*), sum(n) FROM (
    SELECT who, n, session_window(timestamp_micros(t), '10 microseconds') AS window FROM readings WHERE t IS NOT NULL
    ) GROUP BY who, window"""


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, READINGS)
    land(made, 1)
    return made


def deriving(events: Made, spark: Any, name: str, windows: Windows) -> Deriving:
    return Deriving(events, spark, name, Derived(("readings",), Definition(windows=windows)))


def test_windows_are_what_the_law_says_whole_and_from_changes(spark: Any, events: Made) -> None:
    made = {name: deriving(events, spark, name, windows) for name, windows in WINDOWS.items()}
    for name, one in made.items():
        one.declared()
        assert correct(one.job())["mode"] == "whole"
        assert held(one) == law(WINDOWS[name], events), name
    for name, query in (("slid", FRAMES), ("met", SESSIONS)):  # key, bounds, rows and total
        assert by_spark(spark, events, query) == Counter((*row[:4], row[5]) for row in held(made[name])), name
    for day in (2, 3):
        land(events, day)
        for name in ("slid", "met") if day == 2 else WINDOWS:  # the others at once from both days
            told = correct(made[name].job())
            assert (told["mode"], told["outcome"]) == ("by_key", "applied")
            assert held(made[name]) == law(WINDOWS[name], events), (name, day)
    assert verify_definition(made["met"].job(), every=True).sound
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept of what was computed"
