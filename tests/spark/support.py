"""Collections with a history: three days of rows, late ones too, moved by the jobs with whatever runner is given."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet

from tests.support.inprocess import InProcessRunner
from tidemark.arrow.read import changes_of
from tidemark.jobs.app import NeedsSpark, gated
from tidemark.jobs.job import Job, Runner, collection_store, fresh_id
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Gate
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.plan.read import plan_updates, read_tasks
from tidemark.storage import ObjectStore
from tidemark.storage.log.log import StateLog
from tidemark.storage.sidecars import parts_table

START = parse_instant("2024-01-01")
HOUR = 3_600_000_000
DAY = 24 * HOUR
INSTANT = pa.timestamp("us", "UTC")

APPEND = """\
name: events
key: [id]
value: [kind, amount]
columns: {id: int, kind: string, amount: float, at: timestamp}
start: 2024-01-01
live_batches: 2
end: 2024-02-01
time: {column: at}
late: {reemit: {max_lateness: 2d}}
source: {path: "{{ landing }}/events/{{ ds }}/*.parquet", format: parquet, envelope: append}
"""
UPDATES = """\
name: stock
key: [id, code, size]
value: [kind, seen, price, doc]
columns: {id: int, code: bytes, size: "decimal(3, 1)", kind: string, seen: date, price: "decimal(38, 4)", doc: json,
          at: timestamp}
start: 2024-01-01
live_batches: 2
time: {column: at}
source: {path: "{{ landing }}/stock/{{ ds }}/*.parquet", format: parquet, envelope: updates, diff: change}
"""
UPDATES_BY_TIME = (
    UPDATES.replace("seen: date", "seen: timestamp")
    + """\
timelines: [seen]
layout: {by: seen, every: 30d}
"""
)
UPSERT = """\
name: people
key: [id]
value: [kind, amount, since]
columns: {id: int, kind: string, amount: float, since: timestamp, gone: bool, happened: timestamp, at: timestamp}
start: 2024-01-01
live_batches: 2
time: {column: at}
event_time: {column: happened}
late: {reemit: {max_lateness: 2d}}
source:
  path: "{{ landing }}/people/{{ ds }}/*.parquet"
  format: parquet
  envelope: upsert
  delete_when: "gone = TRUE"
"""
ALL = {"append": APPEND, "updates": UPDATES, "upsert": UPSERT}


@dataclass(frozen=True)
class Made:
    """A collection below a folder of the test's own: `root`, `landing`, and the collection file."""

    folder: Path
    text: str
    runner: Callable[[ObjectStore], Runner] = InProcessRunner

    @property
    def name(self) -> str:
        return self.text.split()[1]

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def store(self) -> ObjectStore:
        return collection_store(str(self.root), self.name)

    @property
    def log(self) -> StateLog:
        return StateLog(self.store, fresh_id)

    @property
    def file(self) -> Path:
        path = self.folder / f"{self.name}.yaml"
        if not path.exists():
            path.write_text(self.text)
        return path

    def job(self) -> Job:
        return Job(self.store, self.log, lambda: self.runner(self.store), fresh_id())

    def step(self, step: str, day: int) -> dict[str, Any]:
        """One step, or the gate of that name, of the interval of a day (1 is the collection's first)."""
        job, interval = self.job(), day_of(day)
        if step == "ingest":
            declare(job, str(self.file))
            return ingest(job, interval, landing_root=str(self.landing))
        if step in ("seal", "drain", "compact"):
            call = {"seal": seal, "drain": drain, "compact": compact}[step]
            return gated(job, lambda: call(job, interval))
        return gate(job, Gate(step))

    def moved(self, day: int, *steps: str) -> None:
        """Some steps of a day, all four if none is named."""
        for step in steps or ("ingest", "seal", "drain", "compact"):
            self.step(step, day)

    def land(self, day: int, rows: int, *, keys: int, files: int = 2) -> None:
        """The delta files of a day, always the same for the same arguments."""
        folder = self.landing / self.name / f"2024-01-{day:02d}"
        folder.mkdir(parents=True)
        table = rows_of(self.name, random.Random(f"{self.name} {day}"), day, rows, keys)
        for number in range(files):
            some = table.slice(rows * number // files, rows * (number + 1) // files - rows * number // files)
            pyarrow.parquet.write_table(some, folder / f"{number}.parquet")


def day_of(day: int) -> Interval:
    return Interval(START + (day - 1) * DAY, START + day * DAY)


def rows_of(name: str, chance: random.Random, day: int, rows: int, keys: int) -> pa.Table:
    """Rows of one day: keys and values repeat, some values are null, one row in eight happened a day before."""
    lower = day_of(day).lower
    at = [lower + chance.randrange(DAY // HOUR) * HOUR for _ in range(rows)]
    late = [day > 1 and chance.random() < 1 / 8 for _ in range(rows)]
    happened = [time - (DAY if is_late else chance.randrange(2) * HOUR) for time, is_late in zip(at, late, strict=True)]
    columns: dict[str, pa.Array] = {
        "id": pa.array([chance.randrange(keys) for _ in range(rows)], pa.int64()),
        "kind": pa.array([chance.choice(["a", "b", "", "ü", None]) for _ in range(rows)], pa.string()),
    }
    if name == "stock":
        columns["seen"] = pa.array([chance.choice([19000, -1, None]) for _ in range(rows)], pa.int32()).cast(
            pa.date32()
        )
        ids = columns["id"].to_pylist()
        columns["code"] = pa.array([[b"", b"\x7f", b"\xff", b"\xff\0"][key % 4] for key in ids])
        columns["size"] = pa.array([[Decimal("10.5"), Decimal("-9.5")][key % 2] for key in ids])
        prices = [chance.choice([Decimal(10) ** 33 + 1, Decimal("-0.0001"), Decimal(2), None]) for _ in range(rows)]
        columns["price"] = pa.array(prices, pa.decimal128(38, 4))
        columns["doc"] = pa.array(
            [chance.choice([{"b": 1, "a": [0.1]}, {"b": None, "a": None}, None]) for _ in range(rows)]
        )
        columns["change"] = pa.array([chance.choice([1, 1, 2, -1]) for _ in range(rows)], pa.int64())
    else:
        amounts = [chance.choice([0.5, -1.0, 0.0, -0.0, float("nan"), float("inf"), None]) for _ in range(rows)]
        columns["amount"] = pa.array(amounts, pa.float64())
    if name == "people":
        columns["since"] = pa.array([chance.choice([0, 1, None]) for _ in range(rows)], pa.int64()).cast(INSTANT)
        columns["gone"] = pa.array([chance.random() < 0.15 for _ in range(rows)])
        columns["happened"] = pa.array([max(0, time) for time in happened], pa.int64()).cast(INSTANT)
    when = at if name == "people" else [h if is_late else t for t, h, is_late in zip(at, happened, late, strict=True)]
    columns["at"] = pa.array(when, pa.int64()).cast(INSTANT)
    return pa.table(columns)


def no_spark() -> NoReturn:
    """Where a runner, or a session, is asked for."""
    raise NeedsSpark


def into_the_trace(job: Callable[[], Job]) -> None:
    """What a run of a derived collection's DAG does after it was corrected, as if each gate had passed."""
    from tests.support.world import certify  # workers of Spark import this module, and cannot import that

    certify(job(), Gate.UNSEALED)
    for step, gate_behind in ((seal, Gate.FRONTIER), (drain, Gate.TRACE), (compact, Gate.COMPACTION)):
        step(job(), day_of(1))
        certify(job(), gate_behind)


def updates_of(job: Job) -> list[dict[str, Any]]:
    """The updates of a collection, sealed or not."""
    tasks = read_tasks(*parts_table.opened_read(job.store, plan_updates(job.log.load().state)))
    return [row for task in tasks for rows in changes_of(job.store, task, net=False) for row in rows.to_pylist()]
