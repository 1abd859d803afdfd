"""The chunks of the vectors in a collection, and their questions as readers ask them.

A component is a column of the value, so is a timeline, and the row id, by which ties are broken; the key is the
entity. Every chunk is a file of an interval of its own, which is sealed before the next one comes; every other one is
drained, so that answers are made of both the trace and unsealed rows.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import tidemark
from tests.support.inprocess import InProcessRunner
from tidemark.api.opened import OpenCollection
from tidemark.jobs.job import Job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Certified, Created
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.model.interval import Interval
from tidemark.plan.gate import plan_gate
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.memory import MemoryStore

Case = dict[str, Any]
ROW, KEY = "row", "entity"
_roots = count(1)


class ChunkStore:
    """Chunks that were inserted, to be asked."""

    def __init__(self, opened: OpenCollection, timelines: dict[str, str], components: dict[str, str]) -> None:
        self._opened, self._timelines, self._components = opened, timelines, components
        self._json = {column.name for column in opened.state.collection.value if column.type is ColumnType.JSON}

    def latest(self, query: Case, component: str | None) -> Case | None:
        """The latest row of what a query asks for, over all its keys."""
        on = self._timelines[query["timeline"]]
        answer = self._opened.latest_at(on, query["at"], self._where(query, component), query.get("within"), ties=ROW)
        found = answer.to_arrow().to_pylist()
        best = max(found, key=lambda row: (row[on], row[ROW]), default=None)
        if best is None:
            return None
        return {"time": best[on], "row": best[ROW], **self._value(best, component)}

    def range(self, query: Case, component: str | None) -> list[list[int]]:
        """The rows between two times, by time and row id."""
        on = self._timelines[query["timeline"]]
        found = self._opened.range(on, query["min"], query["max"], self._where(query, component), in_order=True)
        rows = [[row[on], row[ROW]] for row in found.to_arrow().to_pylist() for _ in range(row["_multiplicity"])]
        return sorted(rows)

    def _where(self, query: Case, component: str | None) -> list[Any]:
        asked: list[Any] = [{KEY: query["key"]}] if "key" in query else []
        return asked if component is None else [*asked, f"{self._components[component]} IS NOT NULL"]

    def _value(self, row: Case, component: str | None) -> Case:
        if component is None:
            return {}
        name = self._components[component]
        return {"value": json.loads(row[name]) if name in self._json else row[name]}


@contextmanager
def holding(chunks: list[Case], timelines: Iterable[str], components: Iterable[str]) -> Iterator[ChunkStore]:
    """A store of some chunks, with these timelines and components at least."""
    on = _named("t", timelines, (name for chunk in chunks for row in chunk["rows"] for name in row["t"]))
    of = _named("c", components, (name for chunk in chunks for row in chunk["rows"] for name in row["c"]))
    columns = [Column(ROW, ColumnType.INT), *(Column(name, ColumnType.INT) for name in on.values())]
    columns += [Column(name, _type_of(each, chunks)) for each, name in of.items()]
    source = Source("{{ landing }}/{{ lower }}/*.jsonl", Format.JSONL, Envelope.APPEND, ready="always")
    declared = Collection(
        "chunks",
        (Column(KEY, ColumnType.STRING),),
        tuple(columns),
        Landed(source, time=None, event_time=None),
        timelines=tuple(on.values()),
    )
    root = f"memory://chunks{next(_roots)}"
    with tempfile.TemporaryDirectory() as folder:
        _made(MemoryStore.named(f"{root}/chunks"), declared, chunks, Path(folder), on, of)
        yield ChunkStore(tidemark.open(root, "chunks"), on, of)


def _made(
    store: MemoryStore, declared: Collection, chunks: list[Case], landing: Path, on: dict[str, str], of: dict[str, str]
) -> None:
    """Make the collection by its jobs."""
    ids = count(1)

    def new_id() -> str:
        return f"id{next(ids):04}"

    log = StateLog(store, new_id)
    log.commit(log.load(), Created(declared))

    def run(step: Callable[[Job], Any], gate: Gate) -> None:
        step(Job(store, log, lambda: InProcessRunner(store), new_id(), new_id))
        head = log.load()
        if request := plan_gate(head.state, gate):
            batches = request.names
            log.commit(head, Certified(gate, request.suite, batches, request.upper))

    for day, chunk in enumerate(chunks):
        interval = Interval(10 * day, 10 * day + 10)
        folder = landing / str(interval.lower)
        folder.mkdir()
        rows = (_row(chunk["key"], row, on, of) for row in chunk["rows"])
        (folder / "chunk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run(partial(ingest, interval=interval, landing_root=str(landing)), Gate.UNSEALED)
        run(partial(seal, interval=interval), Gate.FRONTIER)
        if day % 2 == 0:
            run(partial(drain, interval=interval), Gate.TRACE)


def _named(letter: str, *some: Iterable[str]) -> dict[str, str]:
    names = dict.fromkeys(name for each in some for name in each)
    return {name: f"{letter}{at}" for at, name in enumerate(names)}


def _type_of(component: str, chunks: list[Case]) -> ColumnType:
    """The type that holds all values of a component."""
    values = [row["c"].get(component) for chunk in chunks for row in chunk["rows"]]
    kinds = {type(value) for value in values if value is not None}
    for of, allowed in ((ColumnType.BOOL, {bool}), (ColumnType.INT, {int}), (ColumnType.STRING, {str})):
        if kinds and kinds <= allowed:
            return of
    return ColumnType.FLOAT if kinds <= {int, float} else ColumnType.JSON


def _row(key: str, row: Case, on: dict[str, str], of: dict[str, str]) -> Case:
    return {
        KEY: key,
        ROW: row["row"],
        **{name: row["t"].get(timeline) for timeline, name in on.items()},
        **{name: row["c"].get(component) for component, name in of.items()},
    }
