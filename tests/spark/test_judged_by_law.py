"""Windows are judged by their law and by nothing that computed them: with all of that replaced by functions that raise,
what Spark and the kernels wrote is found as defined, and a row that they did not write is found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.support import Made
from tests.spark.test_data_driven_windows import LASTING, READINGS, deriving, land
from tests.spark.test_derived import Deriving
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
from tidemark.model.derived import Mode
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
    made = {name: deriving(events, spark, name, windows) for name, windows in OF_KINDS.items()}
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
