"""One collection in a store, its landing on disk, and the real jobs upon them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from support.faulty import Clock, Died
from support.inprocess import InProcessRunner
from tidemark.errors import RETRY_SAFE, TidemarkError, Uncertified
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Certified, Created
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Late, Source
from tidemark.model.interval import Interval
from tidemark.plan.gate import plan_gate
from tidemark.storage.log.log import Committed, Head, StateLog
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, ObjectStore, Unavailable

DAY = 10
"""Times in one interval: few, so that ties are many."""
T = TypeVar("T")


def collection(
    envelope: Envelope = Envelope.APPEND,
    *,
    format: Format = Format.JSONL,
    event_time: bool = True,
    order_by: bool = True,
    **changes: Any,
) -> Collection:
    """Key `k`, value `v`, read with a time `t`, an event time `e`, an order `o` and, by envelope, `gone` or `d`; of
    full snapshots key and value only."""
    keyed, dumped = envelope in (Envelope.UPSERT, Envelope.DEBEZIUM), envelope is Envelope.SNAPSHOT
    inputs = {} if dumped else {"t": ColumnType.INT}
    inputs |= {"e": ColumnType.INT} if event_time and not dumped else {}
    inputs |= {"o": ColumnType.INT} if keyed and order_by else {}
    inputs |= {"gone": ColumnType.BOOL} if envelope is Envelope.UPSERT else {}
    source = Source(
        f"{{{{ landing }}}}/{{{{ lower }}}}/*.{format}",
        format,
        envelope,
        order_by="o" if "o" in inputs else None,
        diff="d",
        delete_when="gone = TRUE" if "gone" in inputs else None,
        ready="always",
    )
    declared: dict[str, Any] = {
        "name": "tides",
        "key": (Column("k", ColumnType.INT),),
        "value": (Column("v", ColumnType.STRING),),
    }
    landed: dict[str, Any] = {
        "source": source,
        "time": "t" if "t" in inputs else None,
        "event_time": "e" if "e" in inputs else None,
        "late": Late() if dumped else Late("reemit"),
        "inputs": tuple(Column(name, of) for name, of in inputs.items()),
    }
    for name in {of.name for of in fields(Landed)} & set(changes):
        landed[name] = changes.pop(name)
    return Collection(**(declared | {"origin": Landed(**landed)} | changes))


def as_message(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a change message; some have before-images."""
    times = {name: row.get(name) for name in ("t", "e", "o")}
    key = {"k": row["k"]}
    if row.get("gone"):
        return {"op": "d", "before": {**key, "v": "gone"}, "after": None, **times}
    before = {**key, "v": "was"} if row["v"] == "a" else None
    value = {name: row[name] for name in ("v", "at") if name in row}
    return {"op": "u" if before else "c", "before": before, "after": {**key, **value}, **times}


def interval(day: int) -> Interval:
    return Interval(day * DAY, (day + 1) * DAY)


KILLED = f"data/{'0' * 32}/{'f' * 32}.parquet"
"""The key of what an attempt wrote that was killed."""


@dataclass
class World:
    """`store` is what jobs see, and may be faulty; `truth` is what it holds. `stepped` is by how many seconds the wall
    clock, the store's too, was put ahead of the time that really passes."""

    landing: Path
    collection: Collection
    truth: ObjectStore = field(default_factory=MemoryStore)
    store: ObjectStore | None = None
    clock: Clock = field(default_factory=Clock)
    stepped: float = 0.0
    ids: Any = field(default_factory=lambda: count(1))
    _head: Head | None = None

    def __post_init__(self) -> None:
        self.store = self.store or self.truth
        if isinstance(self.truth, MemoryStore):
            self.truth.clock = self.wall
        log = self.log(self.truth)
        log.commit(log.load(), Created(self.collection))

    def wall(self) -> float:
        return self.clock() + self.stepped

    def new_id(self) -> str:
        return f"{next(self.ids):05}{'0' * 27}"

    def log(self, store: ObjectStore | None = None) -> StateLog:
        return StateLog(store or self.truth, self.new_id, wall=self.wall, monotonic=self.clock, pause=self.clock.pause)

    def job(self, attempt: str | None = None, log: StateLog | None = None, *, first: bool = False) -> Job:
        assert self.store is not None
        runner, log, name = InProcessRunner(self.store), log or self.log(self.store), attempt or self.new_id()
        return Job(self.store, log, lambda: runner, name, self.new_id, first=first)

    def forget(self) -> None:
        """The store was changed behind the log's back."""
        self._head = None

    @property
    def head(self) -> Head:
        log = self.log()
        if self._head is None or self._head.version != log.newest_version():
            self._head = log.load()
        return self._head

    @property
    def state(self) -> Arrangement:
        return self.head.state

    def land(self, day: int, name: str, rows: Sequence[dict[str, Any]]) -> str:
        """Put a file of JSON lines into a day's folder; returns its identity. Where the source holds change messages,
        each row becomes one."""
        if self.collection.landed.source.envelope is Envelope.DEBEZIUM:
            rows = [as_message(row) for row in rows]
        folder = self.landing / str(day * DAY)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return f"{day * DAY}/{name}.jsonl"

    def run(self, step: Callable[[Job], T], *, attempts: int = 8, log: StateLog | None = None, first: bool = True) -> T:
        """A step as a DAG runs it: gated before, and tried again by a new attempt after all that a retry may help."""
        for left in reversed(range(attempts)):
            job = self.job(log=log, first=first and left == attempts - 1)
            try:
                return gated(job, step)
            except (Died, Unavailable, Indeterminate, AlreadyExists):
                if not left:
                    raise
            except TidemarkError as error:
                if error.exit_code != RETRY_SAFE or not left:
                    raise
        raise AssertionError("unreachable")


def gated(job: Job, step: Callable[[Job], T]) -> T:
    """What a step finds uncertified is certified, and it goes on; as jobs.app.gated, without Great Expectations."""
    for _ in range(5):
        try:
            return step(job)
        except Uncertified as missing:
            certify(job, Gate(missing.gate), missing.intervals)
    return step(job)


def certify(job: Job, gate: Gate, intervals: Sequence[Interval] = ()) -> bool:
    """Commit the certificate the gate would leave if all was well; False if it had nothing to look at."""
    head = job.log.load()
    request = plan_gate(head.state, gate, intervals)
    if request is None:
        return False
    batches = request.names
    return isinstance(job.log.commit(head, Certified(gate, request.suite, batches, request.upper)), Committed)
