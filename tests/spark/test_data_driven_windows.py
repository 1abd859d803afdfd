"""Sliding windows and sessions by Spark, through the real steps: whole and from changes they are what the law says, and
what Spark's own frames and session windows are where these mean the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import DAY, START, Made
from tests.spark.test_derived import Deriving
from tests.spark.window_statistics import check_statistics
from tests.support.reading import as_of
from tidemark.arrow.read import changes_of
from tidemark.definition.windows.rows import AT, END
from tidemark.definition.windows.rows import START as START_OF
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.definition import differing_keys, verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.model.derived import Definition, Derived
from tidemark.model.instant import from_datetime
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule
from tidemark.model.window.evaluate import window_rows
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session, Sliding, Window
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.sessions import session_of
from tidemark.model.window.sessions import would_take as taken_by_law
from tidemark.model.window.windows import Late, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.spark.derive.here import diff as little
from tidemark.spark.derive.queries import late_sessions, sessions
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
    Aggregate("newest", Function.MAX, "moment"),
)
FEW = (ALL[0], ALL[2])
SOME = (*FEW, *ALL[9:12])
SUMMED = (*ALL[:3], *ALL[4:9])
"""What cells of sessions tell, so that no row is looked at twice."""
WINDOWS = {
    "slid": Windows(("who",), "t", Sliding(10), ALL, early=True),
    "clamped": Windows((), "moment", Sliding(7, clamp_start_at_zero=True), FEW, where="who <> 'late'", early=True),
    "met": Windows(("who",), "t", Session(10), ALL, early=True),
    "summed": Windows(("who",), "t", Session(10), SUMMED, early=True),
    "cut": Windows((), "moment", Session(6, exact_gap_merges=False, max_length=9), (*FEW, ALL[1]), early=True),
}
"""None so plain that this process computes it without Spark (test_sessions.py)."""
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


LASTING = START + DAY - 50
"""So long after it closed a window takes rows, that on the second day those are frozen that end at 50 or before, and on
the third all are."""
FOR_A_WHILE = {
    "lasting": Windows(("who",), "t", Session(10), SOME, max_lateness=LASTING - 1, early=True),
    "lasting_cut": Windows(
        (), "moment", Session(6, False, 9), FEW, "who <> 'late'", grace=LASTING, late=Late.DISCARD, early=True
    ),
}


def land(events: Made, day: int, *more: Reading) -> None:
    """The readings of a day as signed updates, and more that come on it."""
    learned = datetime(2024, 1, day, 12, tzinfo=UTC)
    rows = [
        {
            "who": who,
            "id": id_,
            "t": at,
            "moment": None if at is None or at > 2**60 else EPOCH + timedelta(microseconds=at),
            "n": n,
            "x": x,
            "price": None if n is None else Decimal(n) / 4,
            "code": code,
            "learned": learned,
            "change": count,
        }
        for (who, id_, at, n, x, code), count in [*DAYS[day - 1], *((one, 1) for one in more)]
    ]
    instant = pa.timestamp("us", "UTC")
    types = [pa.string(), pa.int64(), pa.int64(), instant, pa.int64(), pa.float64(), pa.decimal128(12, 2), pa.string()]
    schema = pa.schema(list(zip(rows[0], [*types, instant, pa.int64()], strict=True)))
    folder = events.landing / "readings" / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema), folder / "0.parquet")
    events.moved(day)
    events.step("trace", day)


def happened(windows: Windows, rows: list[dict[str, Any]]) -> list[Happened]:
    """Rows as windows see them; updates with the day they came on."""
    return [
        Happened(
            tuple(row[name] for name in windows.by),
            tuple((name, _one_nan(cell)) for name, cell in row.items() if name[0] != "_" and name != "diff"),
            _micros(row[windows.on]),
            row.get("_commit_version", 0) // DAY * DAY,
            row["_multiplicity"] if "_multiplicity" in row else row["diff"],
        )
        for row in rows
        if row[windows.on] is not None and (not windows.where or row["who"] != "late")
    ]


def _one_nan(cell: Any) -> Any:
    return NAN if cell != cell else cell


def law(windows: Windows, rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The windows of current rows, or of updates, by the law."""
    conditions = {
        "x > 0": lambda row: _above(row["x"], 0),
        "n > 2": lambda row: _above(row["n"], 2),
        "": lambda _: True,
    }
    found = window_rows(
        windows,
        happened(windows, rows),
        lambda one, row: dict(row)[one.of],
        lambda one, row: conditions[one.where](dict(row)),
    )
    return Counter({(*key, *window, *map(_plain, values)): 1 for key, window, values in found})


def _above(value: Any, bound: int) -> bool:
    """As SQL has it: a NaN is above all."""
    return value is not None and (value != value or value > bound)


def _micros(at: Any) -> Any:
    return from_datetime(at) if isinstance(at, datetime) else at


def _plain(value: Any) -> Any:
    return repr(value + 0.0) if isinstance(value, float) else _micros(value)


def rows_of(events: Made) -> list[dict[str, Any]]:
    """The readings there are."""
    return as_of(events.store, events.log.load().state).to_pylist()


def updates_of(job: Any) -> list[dict[str, Any]]:
    """The updates of a collection, sealed or not."""
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(job.log.load().state)))
    return [row for task in tasks for rows in changes_of(job.store, task, net=False) for row in rows.to_pylist()]


def net_rows(one: Deriving) -> Counter[tuple[Any, ...]]:
    """What a collection of early windows holds, sealed or not."""
    names = [column.name for column in one.job().log.load().state.collection.columns]
    found: Counter[tuple[Any, ...]] = Counter()
    for row in updates_of(one.job()):
        found[tuple(_plain(row[name]) for name in names)] += row["diff"]
    return Counter({row: count for row, count in found.items() if count})


def by_spark(spark: Any, events: Made, query: str) -> Counter[tuple[Any, ...]]:
    """What Spark says of the readings there are, as the view `readings`."""
    each = [(row["who"], row["t"], row["n"]) for row in rows_of(events) for _ in range(row["_multiplicity"])]
    spark.createDataFrame(each, "who string, t long, n long").createOrReplaceTempView("readings")
    return Counter(tuple(row) for row in spark.sql(query).collect())


FRAMES = """WITH each AS (
    SELECT who, t, count(*) OVER before AS rows_before, sum(n) OVER before AS total,
           count(*) OVER after AS rows_after, sum(n) OVER after AS total_after
    FROM readings WHERE t IS NOT NULL
    WINDOW before AS (PARTITION BY who ORDER BY t RANGE BETWEEN 10 PRECEDING AND CURRENT ROW),
           after AS (PARTITION BY who ORDER BY t RANGE BETWEEN 1 FOLLOWING AND 11 FOLLOWING))
    SELECT who, t - 10, t, rows_before, total FROM each
    UNION SELECT who, t + 1, t + 11, rows_after, total_after FROM each WHERE rows_after > 0"""
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


def test_windows_are_what_the_law_says_whole_and_from_changes(
    spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {name: deriving(events, spark, name, windows) for name, windows in WINDOWS.items()}
    for name, one in made.items():
        one.declared()
        assert correct(one.job())["mode"] == "whole"
        assert net_rows(one) == law(WINDOWS[name], rows_of(events)), name
    for name, query in (("slid", FRAMES), ("met", SESSIONS)):  # key, bounds, rows and total
        assert by_spark(spark, events, query) == Counter((*row[:4], row[5]) for row in net_rows(made[name])), name
    for day in (2, 3):
        land(events, day)
        if day == 2:  # by executors, then by the driver, as they are few
            monkeypatch.setattr(little, "LOOKED_AT_ROWS", -1)
            monkeypatch.setattr(sessions, "LEAST_TASK_ROWS", -1)
        for name in ("slid", "met") if day == 2 else WINDOWS:  # the others at once from both days
            report = correct(made[name].job())
            assert (report["mode"], report["outcome"]) == ("by_key", "applied")
            assert net_rows(made[name]) == law(WINDOWS[name], rows_of(events)), (name, day)
        monkeypatch.undo()
    monkeypatch.setattr(sessions, "LEAST_TASK_ROWS", -1)  # what is computed of many rows is the same
    assert correct(made["summed"].job(), whole=True)["outcome"] == "nothing to do"
    monkeypatch.undo()
    assert verify_definition(made["met"].job(), every=True).sound
    for name in ("slid", "met"):
        job = made[name].job()
        state = job.log.load().state
        keys = [row[:3] for row in net_rows(made[name]) if row[0] == "ann" and row[1] > 0][:2]
        assert keys
        assert differing_keys(job, state, keys, 9) == (), name
        absent = [(who, start + 1, end) for who, start, end in keys]
        assert differing_keys(job, state, absent, 9) == (), name
        made[name].corrected()
        assert check_statistics(made[name], WINDOWS[name], lambda row: True).reported > 0
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty(), "nothing is kept of what was computed"


def test_a_row_where_no_session_can_be_is_refused(spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    land(events, 2, reading("far", 2**61 + 1))
    made = {name: deriving(events, spark, name, WINDOWS[name]) for name in ("met", "summed")}
    for one in made.values():
        one.declared()
        for most in (sessions.LEAST_TASK_ROWS, -1):
            monkeypatch.setattr(sessions, "LEAST_TASK_ROWS", most)
            with pytest.raises(InvalidUsage, match=r"a row is at 2305843009213693953, beyond 2\^61"):
                correct(one.job())
        monkeypatch.undo()


def test_sessions_hold_what_came_before_they_were_frozen(spark: Any, events: Made) -> None:
    """On the second day a row joins what is open still, and others do not what is frozen; what that holds is
    not retracted. On the third all are frozen."""
    made = {name: deriving(events, spark, name, windows) for name, windows in FOR_A_WHILE.items()}
    known: dict[str, list[dict[str, Any]]] = {name: [] for name in made}
    numbers = []
    for day in (1, 2, 3):
        if day > 1:
            land(events, day)
        for name, windows in FOR_A_WHILE.items():
            if day == 1:
                made[name].declared()
            elif (day, name) == (2, "lasting_cut"):
                continue
            rows = updates_of(events.job())
            report = correct(made[name].job())
            assert report["mode"] == ("whole" if day == 1 else "by_key")
            assert net_rows(made[name]) == law(windows, rows), (name, day)
            now, before = (lateness(judge(Rule.of(windows), happened(windows, some))) for some in (rows, known[name]))
            assert report["late"] == asdict(now - before)
            numbers.append(report["late"]["rows_late_for_all"])
            known[name] = rows
    assert numbers[0] == numbers[1] == 0
    assert min(numbers[2:]) > 0
    assert net_rows(made["lasting"]) != law(Windows(("who",), "t", Session(10), SOME), known["lasting"])
    job = made["lasting"].job()
    keys = [row[:3] for row in net_rows(made["lasting"]) if row[0] == "ann"]
    assert keys
    assert differing_keys(job, job.log.load().state, keys, 9) == ()
    assert correct(made["lasting_cut"].job(), whole=True)["outcome"] == "nothing to do"
    for name, windows in FOR_A_WHILE.items():
        made[name].corrected()
        checked = check_statistics(made[name], windows, lambda row, of=windows: not of.where or row["who"] != "late")
        assert (checked.reported > 0, checked.missing, checked.late > 0) == (True, 0, True), name


@pytest.mark.parametrize(
    "kind", [Session(4), Session(4, False), Session(4, True, 4), Session(4, True, 3), Session(4, True, 6)]
)
def test_a_session_would_take_in_sql_what_the_law_says(spark: Any, kind: Session) -> None:
    cases = [(at, *session_of(kind, (0, last))) for at in range(-6, 14) for last in range(min(7, kind.max_length or 7))]
    frame = spark.createDataFrame(cases, f"{AT} long, {START_OF} long, {END} long")
    taken = {tuple(row) for row in frame.where(late_sessions.would_take(kind)).collect()}
    assert taken == {case for case in cases if taken_by_law(kind, Window(*case[1:]), case[0])}
    assert 0 < len(taken) < len(cases)
