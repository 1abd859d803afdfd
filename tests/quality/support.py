"""Collections for gate tests: batches written by the real writer, read by the real `inspect` kernel in process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pyarrow as pa

from tidemark.arrow.kernels.registry import kernel, run_encoded
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.schema import facts_schema, updates_schema
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Fence
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.change import Attempted, Created, Drained, Ingested
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Late, Source
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.storage.documents.codec import decode, encode
from tidemark.storage.log.log import StateLog
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

DAY = 86_400_000_000


def collection(envelope: Envelope = Envelope.APPEND, **changes: Any) -> Collection:
    """`orders`: key id, value (status, amount, at); `quality` entries are given as dicts."""
    quality = tuple(json.dumps(entry) for entry in changes.pop("quality", ()))
    return Collection(
        "orders",
        (Column("id", ColumnType.INT),),
        (
            Column("status", ColumnType.STRING),
            Column("amount", ColumnType.INT),
            Column("at", ColumnType.TIMESTAMP),
            Column("day", ColumnType.DATE),
        ),
        Landed(Source("{{ ds }}/*.parquet", Format.PARQUET, envelope), late=Late("reemit")),
        quality=quality,
        **changes,
    )


class InProcess:
    """Runs kernels here and now, through the same JSON as executors get; counts its tasks."""

    parallelism = 1

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.tasks = 0

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        self.tasks += len(tasks)
        called = kernel(name)
        encoded = [run_encoded(self.store, name, encode(task, called.task)) for task in tasks]
        return [decode(answer, called.answer, name="answer") for answer in encoded]


@dataclass
class World:
    """One collection in memory, and the job that works on it."""

    collection: Collection
    store: ObjectStore = field(default_factory=MemoryStore)
    notes: list[str] = field(default_factory=list)
    ids: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.log = StateLog(self.store, self.new_id)
        self.log.commit(self.log.load(), Created(self.collection))
        self.runner = InProcess(self.store)

    def new_id(self) -> str:
        return f"id{next(self.ids):04}"

    def job(self) -> Job:
        return Job(self.store, self.log, lambda: self.runner, "attempt", self.new_id, self.notes.append)

    @property
    def state(self) -> Any:
        return self.log.load().state

    def commit(self, change: Any) -> None:
        self.log.commit(self.log.load(), change)

    def fence(self, step: str, interval: Interval) -> Fence:
        fence = Fence(step, interval, "attempt")
        self.commit(Attempted(fence))
        return fence

    def ingest(self, day: int, updates: Sequence[dict[str, Any]], *, late: int = 0, **changes: Any) -> UnsealedBatch:
        """Commit one batch of these updates for a day. `changes` falsify what is recorded of it, as `rows`."""
        interval = Interval(day * DAY, (day + 1) * DAY)
        fence = self.fence("ingest", interval)
        identity = self.new_id()
        parts = self.write(identity, updates, facts=self.collection.kind.facts)
        batch = UnsealedBatch(
            identity,
            interval,
            parts_table.save(self.store, f"data/{identity}/parts.json", parts),
            len(parts),
            sum(part.rows for part in parts),
            sum(part.file.bytes for part in parts),
            sum(part.digest for part in parts) % DIGEST_MODULUS,
            min(part.first_time for part in parts),
            max(part.last_time for part in parts),
            min(part.first_event_time for part in parts),
            max(part.last_event_time for part in parts),
        )
        batch = replace(batch, **changes)
        path = f"{day}/{identity}.parquet"
        entry = LedgerEntry(path, 1, "0" * 64, "t", interval, Status.INGESTED, identity, batch.rows, late)
        self.commit(Ingested(fence, batch, ledger.save_run(self.store, f"ledger/{identity}.json", [entry])))
        return batch

    def ingest_nothing(self, day: int) -> None:
        """A day that was read and had no rows."""
        interval = Interval(day * DAY, (day + 1) * DAY)
        self.commit(Ingested(self.fence("ingest", interval), None, None))

    def drain(self, description: Description, updates: Sequence[dict[str, Any]], **changes: Any) -> TraceBatch:
        """Commit one trace batch of these updates; `changes` falsify what is recorded of it."""
        interval = Interval(0, DAY)
        fence = self.fence("drain", interval)
        identity = self.new_id()
        parts = self.write(identity, updates, facts=False)
        batch = TraceBatch(
            identity,
            description,
            0,
            sum(part.rows for part in parts),
            sum(part.file.bytes for part in parts),
            sum(part.digest for part in parts) % DIGEST_MODULUS,
            parts_table.save(self.store, f"data/{identity}/parts.json", parts) if parts else None,
            len(parts),
        )
        batch = replace(batch, **changes)
        self.commit(Drained(fence, batch))
        return batch

    def write(self, batch: str, rows: Sequence[dict[str, Any]], *, facts: bool) -> tuple[Part, ...]:
        schema = (facts_schema if facts else updates_schema)(self.collection)
        with PartWriter(self.store, f"data/{batch}", schema, key_width=1, facts=facts) as writer:
            writer.write(pa.Table.from_pylist(list(rows), schema=schema))
            return writer.close()


def update(key: int, *, time: int, diff: int = 1, status: str | None = "new", **values: Any) -> dict[str, Any]:
    """A row of updates."""
    value = {"status": status, "amount": 1, "at": None, "day": None} | values
    return {"id": key, **value, "_time": time, "_event_time": values.get("_event_time", time), "_diff": diff}


def fact(key: int, *, time: int, deleted: bool = False, status: str | None = "new", **values: Any) -> dict[str, Any]:
    """A row of facts, from line `key` of `f.jsonl`."""
    value = {"status": None if deleted else status, "amount": None if deleted else 1, "at": None, "day": None}
    own = {"_deleted": deleted, "_time": time, "_event_time": time, "_order": None, "_file": "f.jsonl", "_row": key}
    return {"id": key, **value, **values, **own}
