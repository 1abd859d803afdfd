"""Windows are judged by their law and by nothing that computed them: with all of that replaced by functions that raise,
what Spark and the kernels wrote is found as defined, and a row that they did not write is found."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import DAY, START, Made
from tests.spark.test_derived import Deriving
from tests.support.budget import budget
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.read import updates_of
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, updates_schema
from tidemark.errors import GateFailed
from tidemark.jobs.job import fresh_id
from tidemark.jobs.queries.definition import Judge, verify_definition
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import unsealed_batch
from tidemark.model.arrangement import Fence
from tidemark.model.change import Corrected
from tidemark.model.collection import Gate
from tidemark.model.derived import Definition, Derived, Mode
from tidemark.model.interval import Interval
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling
from tidemark.model.window.windows import Late, Windows
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.spark.derive.computer import SparkComputer
from tidemark.storage.log.log import Committed
from tidemark.storage.sidecars import parts_table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
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
Reading = tuple[str, int, int | None, int | None, float | None, str | None]
"""Whose, which, at what instant, and its values."""


def reading(who: str, at: int | None, number: int = 0, **values: Any) -> Reading:
    n = values.get("n", (at or 0) % 7)
    x = values.get("x", [0.1, -0.0, 1e300, None, 0.3, math.nan, -math.inf, 1e-30][((at or 0) + number) % 8])
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
WHERE = "code <> 'b' OR n > 3"
AGGREGATES = (
    Aggregate("rows", Function.COUNT),
    Aggregate("known", Function.COUNT, "x", "x > 0 AND n <= 5"),
    Aggregate("total", Function.SUM, "n * 2 + CASE WHEN code = 'a' THEN 1 ELSE 0 END"),
    Aggregate("exact", Function.SUM, "x"),
    Aggregate("mean", Function.AVG, "price", "n <> 2"),
    Aggregate("most", Function.MAX, "coalesce(code, '')"),
    Aggregate("latest", Function.LAST, "x"),
    Aggregate("codes", Function.COLLECT, "code"),
    Aggregate("different", Function.COUNT_DISTINCT, "n % 3"),
    Aggregate("about", Function.APPROX_DISTINCT, "code"),
    Aggregate("p90", Function.APPROX_QUANTILE, "n", at=0.9),
    Aggregate("newest", Function.MIN, "moment"),
)
LATER = AGGREGATES[:6]
OF_KINDS = {
    "tumbling": Windows(("who",), "t", Tumbling(10, 3), AGGREGATES, WHERE, early=True),
    "hopping": Windows(
        ("who",), "t", Hopping(10, 4), AGGREGATES[:3], WHERE, late=Late.DISCARD, grace=LASTING, early=True
    ),
    "cumulate": Windows((), "moment", Cumulate(12, 4), LATER, WHERE, early=True),
    "calendar": Windows(("who",), "moment", Calendar(Unit.DAY, "Europe/Amsterdam"), AGGREGATES[:3], WHERE, early=True),
    "sliding": Windows(("who",), "t", Sliding(10), AGGREGATES, WHERE, early=True),
    "session": Windows(("who",), "t", Session(10), AGGREGATES, WHERE, early=True),
    "cut": Windows((), "t", Session(6, False, 9), LATER, WHERE, early=True),
    "slid_for_a_while": Windows(("who",), "t", Sliding(10), LATER, WHERE, max_lateness=LASTING - 11, early=True),
    "met_for_a_while": Windows(("who",), "t", Session(10), LATER, WHERE, max_lateness=LASTING - 1, early=True),
}
JUDGED = budget(ci=("hopping", "sliding", "cut", "met_for_a_while"), deep=tuple(OF_KINDS))
REFRESHED = {"tumbling", "hopping", "slid_for_a_while", "met_for_a_while"}
"""Those built on the first day and refreshed on the second; the others are built of both."""
ROOTS = (
    *AGGREGATES[:1],
    Aggregate("roots", Function.SUM, "sqrt(n)", "code LIKE '_'"),
    Aggregate("exact", Function.COLLECT, "x"),
    Aggregate("prices", Function.COLLECT, "price"),
)
BY_SPARK = {"roots": Windows(("who",), "t", Session(10), ROOTS, "upper(code) <> 'B'", early=True)}
"""Whose expressions Spark alone evaluates: of single rows, for the law."""
ASKING = ("muted", "raised", "settings", "under_names", "analysis", "computer")
READING = ("merge", "inspect", "registry")


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


def deriving(events: Made, spark: Any, name: str, windows: Windows) -> Deriving:
    return Deriving(events, spark, name, Derived(("readings",), Definition(windows=windows)))


@pytest.fixture
def events(tmp_path: Path) -> Made:
    made = Made(tmp_path, READINGS)
    land(made, 1)
    return made


@contextmanager
def nothing_computes(patched: pytest.MonkeyPatch, *asking: str) -> Iterator[None]:
    """All functions of kernels raise but those by which any collection is read, or looked at by a gate; and all by
    which Spark computes, but those of modules by which it is asked for anything."""

    def raises(*_: Any, **__: Any) -> Any:
        raise AssertionError("what computes windows was asked to judge them")

    def computes(value: Any) -> bool:
        above, _, name = (getattr(value, "__module__", None) or "").rpartition(".")
        kernels = above.startswith("tidemark.arrow.kernels") and name not in READING
        return isinstance(value, FunctionType) and (kernels or (".spark.derive" in above and name not in asking))

    with patched.context() as now:
        for name, module in list(sys.modules.items()):
            if name.startswith("tidemark."):
                for attribute, value in list(vars(module).items()):
                    if computes(value):
                        now.setattr(module, attribute, raises)
        for method in ("compute", "compare", *(() if asking else ("values",))):
            now.setattr(SparkComputer, method, raises)
        yield


def names_of(one: Deriving) -> list[str]:
    """The columns that a collection stores, hidden ones too."""
    collection = one.job().log.load().state.collection
    return [column.name for column in (*collection.columns, *collection.hidden)]


def a_row(one: Deriving) -> dict[str, Any]:
    """A row that a collection holds, with its hidden columns."""
    job, names = one.job(), names_of(one)
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(job.log.load().state)))
    found: Counter[tuple[Any, ...]] = Counter()
    for row in (row for task in tasks for rows in updates_of(job.store, task, names) for row in rows.to_pylist()):
        found[tuple(row[name] for name in names)] += row[DIFF]
    return dict(zip(names, max((row for row, count in found.items() if count), key=repr), strict=True))


def falsified(one: Deriving, row: dict[str, Any], **changed: Any) -> None:
    """Commit that a row is another one, as if that had been computed."""
    job = one.job()
    state = job.log.load().state
    upper, batch, schema = state.complete + 1, fresh_id(), updates_schema(state.collection)
    at = {TIME: upper - 1, EVENT_TIME: upper - 1}
    rows = [row | at | {DIFF: -1}, row | changed | at | {DIFF: 1}]
    table = sort(pa.Table.from_pylist(rows, schema=schema), [name for name in schema.names if name != DIFF])
    width = len(state.collection.key)
    with PartWriter(
        job.store, f"data/{batch}", schema, key_width=width, facts=False, records_consolidated=True, name=fresh_id
    ) as writer:
        writer.write(table)
        parts = writer.close()
    made = unsealed_batch(job, batch, Interval(state.complete, upper), parts, learned_at=None)
    consumed = state.consumed
    assert consumed is not None
    fence = Fence("correct", Interval(state.complete, upper), "by hand", unannounced=True)
    consumption = replace(consumed, upper=upper, batch=batch)
    change = Corrected(fence, consumption, made, consumed, Mode.WHOLE, state.event_times_from, rows_added=1)
    assert isinstance(job.log.commit(job.log.load(), replace(change, rows_retracted=1)), Committed)


def test_all_kinds_of_windows_are_judged_without_what_computes_them(
    spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {name: deriving(events, spark, name, OF_KINDS[name]) for name in JUDGED}
    for day in (1, 2):
        if day == 2:
            land(events, 2)
        for name, one in made.items():
            if day == 1:
                one.declared()
            if day == 2 or name in REFRESHED:
                correct(one.job())
    for name, one in made.items():
        with nothing_computes(monkeypatch):
            report = verify_definition(one.job(), every=True)
        frontiers = [(at.differing, at.judged_by, at.left) for at in report.frontiers]
        assert frontiers == [((), Judge.LAW, "")] * (2 if name in REFRESHED else 1), name
        assert (report.sound, report.whole) == (True, True)
        assert report.frontiers[0].windows, name
    for name, one in made.items():
        row = a_row(one)
        falsified(one, row, total=row["total"] + 1)
        with nothing_computes(monkeypatch):
            (frontier,) = verify_definition(one.job()).frontiers
            assert [(of.desired, of.stored) for of in frontier.differing] == [(1, 0), (0, 1)], name
            assert [dict(of.row)["total"] for of in frontier.differing] == [str(row["total"]), str(row["total"] + 1)]
            assert frontier.judged_by is Judge.LAW
            with pytest.raises(GateFailed, match=r"of 1 recomputed keys 2 rows are not what the definition says"):
                gate(one.job(), Gate.UNSEALED)


def test_what_is_kept_behind_sums_is_judged_too(spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    one = deriving(events, spark, "kept", replace(OF_KINDS["calendar"], by=()))
    one.declared()
    correct(one.job())
    row = a_row(one)
    (hidden,) = (name for name in names_of(one) if name.startswith("_"))
    falsified(one, row, **{hidden: row[hidden] + 1})
    with nothing_computes(monkeypatch):
        (frontier,) = verify_definition(one.job()).frontiers
    assert [(dict(of.row)[hidden], of.stored) for of in frontier.differing] == [
        (str(row[hidden] + at), at) for at in (0, 1)
    ]


def test_expressions_that_only_spark_evaluates_are_of_single_rows(
    spark: Any, events: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, windows in BY_SPARK.items():
        one = deriving(events, spark, name, windows)
        one.declared()
        correct(one.job())
        with nothing_computes(monkeypatch, *ASKING):
            (frontier,) = verify_definition(one.job()).frontiers
        assert (frontier.differing, frontier.judged_by) == ((), Judge.LAW)
        row = a_row(one)
        falsified(one, row, roots=0.5)
        with nothing_computes(monkeypatch, *ASKING):
            (frontier,) = verify_definition(one.job()).frontiers
        assert [(dict(of.row)["roots"], of.stored) for of in frontier.differing] == [(str(row["roots"]), 0), ("0.5", 1)]


def test_what_the_law_says_nothing_of_is_compared_by_spark(spark: Any, events: Made) -> None:
    moments = (*AGGREGATES[:3], Aggregate("moments", Function.COLLECT, "moment"))
    one = deriving(events, spark, "moments", Windows(("who",), "t", Tumbling(10), moments, WHERE, early=True))
    one.declared()
    correct(one.job())
    (frontier,) = verify_definition(one.job()).frontiers
    assert (frontier.differing, frontier.judged_by, frontier.windows) == ((), Judge.SPARK, None)
    row = a_row(one)
    falsified(one, row, total=row["total"] + 1)
    (frontier,) = verify_definition(one.job()).frontiers
    assert (len(frontier.differing), frontier.judged_by) == (2, Judge.SPARK)
