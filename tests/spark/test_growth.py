"""Counts and sums that the driver adds up by itself: a session is refused here, so nothing else can have computed
them, and none was started."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.spark.support import DAY, INSTANT, Made, day_of
from tests.support.reading import as_of
from tidemark.definition.analysed import analysed
from tidemark.definition.computation import Computation, Computed, shape_of
from tidemark.jobs.app import NeedsSpark, without_spark
from tidemark.jobs.job import Job, collection_store, fresh_id
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare, declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Certified
from tidemark.model.collection import Collection, Column, ColumnType, Gate
from tidemark.model.derived import Definition, Derived, Mode
from tidemark.plan.gate import plan_gate
from tidemark.spark.derive.computer import SparkComputer
from tidemark.storage.log.log import StateLog

SALES = """\
name: sales
key: [id]
value: [shop, amount, note]
columns: {id: int, shop: string, amount: int, note: string, at: timestamp, gone: bool}
start: 2024-01-01
live_batches: 2
time: {column: at}
source: {path: "{{ landing }}/sales/{{ ds }}/*.parquet", format: parquet, envelope: upsert, delete_when: "gone = TRUE"}
"""
TOTALS = "SELECT shop, count(*) AS n, count(note) AS noted, sum(amount) AS total FROM sales GROUP BY shop"
SHAPE = {"shop": ColumnType.STRING, "n": ColumnType.INT, "noted": ColumnType.INT, "total": ColumnType.INT}
Sale = dict[str, Any]


def no_spark() -> NoReturn:
    """Where a runner, or a session, is asked for."""
    raise NeedsSpark


class Plainly(SparkComputer):
    """What is computed whole at first is by key here: all rows are new then."""

    def compute(self, computation: Computation) -> Computed:
        return super().compute(replace(computation, mode=Mode.BY_KEY))


class Totals:
    """Totals of sales, by shop."""

    def __init__(self, sales: Made) -> None:
        self.root, collection = sales.root, sales.log.load().state.collection
        recipe = analysed(TOTALS, [shape_of("sales", collection)])
        key, *value = (Column(name, of) for name, of in SHAPE.items())
        origin = Derived(("sales",), Definition(TOTALS))
        declare_collection(self.job(), Collection("totals", (key,), tuple(value), origin, hidden=recipe.hidden))

    def job(self) -> Job:
        store = collection_store(str(self.root), "totals")
        log = StateLog(store, fresh_id)
        return Job(store, log, no_spark, fresh_id())

    def corrected(self, *, first: bool = False) -> dict[str, Any]:
        """By the computer that a job has; at `first`, when all rows are new, by one that takes these for changes."""
        job = self.job()
        report = correct(replace(job, computer_on=Plainly) if first else job)
        into_the_trace(self.job)
        return report

    def rows(self) -> dict[str, tuple[int, int, int | None]]:
        job = self.job()
        rows = as_of(job.store, job.log.load().state).to_pylist()
        assert {row["_multiplicity"] for row in rows} <= {1}
        return {row["shop"]: (row["n"], row["noted"], row["total"]) for row in rows}


def into_the_trace(job: Callable[[], Job]) -> None:
    """What a run of a derived collection's DAG does after it was corrected."""
    certify(job().log, Gate.UNSEALED)
    for step, gate in ((seal, Gate.FRONTIER), (drain, Gate.TRACE), (compact, Gate.COMPACTION)):
        step(job(), day_of(1))
        certify(job().log, gate)


def certify(log: StateLog, gate: Gate) -> None:
    """The certificate of a gate that looked at nothing: what it looks at is tested elsewhere."""
    head = log.load()
    if request := plan_gate(head.state, gate):
        batches = tuple(batch.id for some in (request.unsealed, request.trace) for batch in some)
        log.commit(head, Certified(gate, request.suite, batches, request.upper))


def day_sales(chance: random.Random, day: int) -> list[Sale]:
    """Sales of a day: of few ids, so that most change and some go; of one shop no amount is known."""
    sales = []
    for number in chance.sample(range(60), 40):
        shop = chance.choice(["a", "b", "", "ü", "none"])
        amount = None if shop == "none" else chance.choice([None, 0, 7, -3, 2**40])
        note = chance.choice([None, "x"])
        sales.append({"id": number, "shop": shop, "amount": amount, "note": note, "gone": chance.random() < 0.2})
    return [{**one, "at": day_of(day).lower + DAY // 2} for one in sales]


def land(sales: Made, day: int, rows: list[Sale]) -> None:
    folder = sales.landing / "sales" / f"2024-01-{day:02d}"
    folder.mkdir(parents=True)
    types = {"id": pa.int64(), "shop": pa.string(), "amount": pa.int64(), "note": pa.string(), "gone": pa.bool_()}
    columns = {name: pa.array([row[name] for row in rows], of) for name, of in types.items()}
    columns["at"] = pa.array([row["at"] for row in rows], pa.int64()).cast(INSTANT)
    pyarrow.parquet.write_table(pa.table(columns), folder / "0.parquet")
    declare(sales.job(), str(sales.file))
    ingest(sales.job(), day_of(day), landing_root=str(sales.landing))
    for step, gate in ((seal, Gate.UNSEALED), (drain, Gate.FRONTIER)):
        certify(sales.log, gate)
        step(sales.job(), day_of(day))
    certify(sales.log, Gate.TRACE)


def totals_of(rows: list[Sale]) -> dict[str, tuple[int, int, int | None]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["shop"]].append(row)
    found: dict[str, tuple[int, int, int | None]] = {}
    for shop, some in groups.items():
        amounts = [row["amount"] for row in some if row["amount"] is not None]
        noted = sum(row["note"] is not None for row in some)
        found[shop] = (len(some), noted, sum(amounts) if amounts else None)
    return found


def test_totals_follow_what_changes_day_by_day(tmp_path: Path) -> None:
    chance, there = random.Random(5), dict[int, Sale]()
    sales = Made(tmp_path, SALES)
    totals: Totals | None = None
    for day in range(1, 6):
        rows = day_sales(chance, day)
        land(sales, day, rows)
        there |= {row["id"]: row for row in rows}
        there = {number: row for number, row in there.items() if not row["gone"]}
        totals = totals or Totals(sales)
        assert totals.corrected(first=day == 1)["mode"] == ("whole" if day == 1 else "by_key")
        assert totals.rows() == totals_of(list(there.values()))
    assert totals is not None
    land(sales, 6, [{**row, "gone": True, "at": day_of(6).lower + DAY // 2} for row in there.values()])
    totals.corrected()
    assert totals.rows() == {}


def test_what_might_not_fit_is_left_to_the_queries(tmp_path: Path) -> None:
    sales = Made(tmp_path, SALES)
    at = day_of(1).lower
    most = [{"id": one, "shop": "a", "amount": 2**62, "note": None, "gone": False, "at": at} for one in range(2)]
    land(sales, 1, most)
    totals = Totals(sales)
    with pytest.raises(NeedsSpark):
        totals.corrected(first=True)


def test_an_app_and_a_task_that_find_little_of_it_start_no_spark(tmp_path: Path) -> None:
    """What is tried before an app is started is all of it; and an app asks for a session only where it needs one."""
    sales = Made(tmp_path, SALES)
    rows = [{"id": one, "shop": "a", "amount": one, "note": None, "gone": False} for one in range(3)]
    totals: Totals | None = None
    for day in (1, 2):
        land(sales, day, [{**row, "id": row["id"] + day, "at": day_of(day).lower} for row in rows])
        totals = totals or Totals(sales)
        if day == 1:
            totals.corrected(first=True)
    assert totals is not None
    asked = ["--root", str(totals.root), "--collection", "totals", "--lower", "0", "--upper", "1"]
    assert without_spark("correct", [*asked, "--whole"]) is None, "all of it takes Spark"
    report = without_spark("correct", asked)
    assert report is not None
    assert (report["outcome"], report["mode"], report["added"]) == ("applied", "by_key", 1)
