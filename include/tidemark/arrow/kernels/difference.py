"""Full snapshots as updates, key range by key range: one merge of the trace and the full snapshots, in bounded memory.

The law is the docstring of model/full_snapshot.py. It is linear, so every row read becomes the updates it stands for,
and consolidation of equal (key, value, time, event time) leaves the differences: what did not change cancels where it
is read. Rows are compared in all columns at rest: what the trace holds in a dropped column is retracted as stored.
When rows of the trace happened is read only where that decides what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import (
    BUFFERED_ROWS,
    Piece,
    Run,
    Tally,
    chained,
    pieces_of,
    rounds,
    summed,
    write_updates,
)
from tidemark.arrow.rows.arrays import of_bools, of_numbers
from tidemark.arrow.rows.columns import Ints, integers, replaced
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, key_at_rest, some_of, sort_columns, updates_schema
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.chunk.law import meets_keys
from tidemark.model.full_snapshot import StandsFor
from tidemark.plan.tasks import DifferenceTask, WriteAnswer
from tidemark.storage.stores.store import ObjectStore


@dataclass
class _Sum(Tally):
    """Also the digest of what was stored and of what was written, as known and as of `checked`."""

    checked: tuple[int, int] | None = None
    checksum: int = 0

    def add_checked(self, rows: pa.RecordBatch) -> None:
        """Count the rows of then, as if all had been learned and had happened at these two times."""
        if self.checked is None:
            return
        time, event_time = self.checked
        there = (integers(rows, TIME) <= time) & (integers(rows, EVENT_TIME) <= event_time)
        rows = rows if there.all() else rows.filter(of_bools(there))
        count = rows.num_rows
        at_one_time = _at(rows, np.full(count, time), np.full(count, event_time))
        self.checksum = (self.checksum + digest(at_one_time)) % DIGEST_MODULUS


def difference_range(store: ObjectStore, task: DifferenceTask) -> WriteAnswer:
    """Write the updates by which the task's full snapshots change what the trace holds.

    Raises Corruption if a part is not what was recorded.
    """
    tally = _Sum(checked=task.checked)

    def updates() -> Iterator[pa.RecordBatch]:
        for batch in differences(store, task, tally):
            tally.add_checked(batch)
            yield batch

    return replace(write_updates(store, task, updates(), tally), digest_checked=tally.checksum)


def differences(
    store: ObjectStore, task: DifferenceTask, tally: _Sum | None = None, *, buffered_rows: int = BUFFERED_ROWS
) -> Iterator[pa.RecordBatch]:
    """The updates of a task, in order, without writing them (the task's prefix is not used)."""
    tally = tally or _Sum()
    order = sort_columns(task.collection, facts=False)
    together = order[:-2]
    sources = _sources(task)
    chains = chained(part for part, _ in sources.values())
    capacity = buffered_rows // max(1, len(chains))
    runs = [Run(_pieces(store, chain, task, sources, tally, capacity), together, capacity) for chain in chains]

    for batches in rounds(runs, lambda kept: list(summed(kept, order, resort=True))):
        yield from (rows for rows in summed(batches, order, resort=True) if rows.num_rows)


@dataclass
class _Meanings:
    """What rows stand for, by the class of each: those that happened after the first n of `bounds` and not after the
    next have class n. Without bounds all have class 0."""

    bounds: Ints
    classes: Sequence[tuple[StandsFor, ...]]
    of_trace: bool = False
    _first: Ints = field(init=False)
    _count: Ints = field(init=False)
    _each: Ints = field(init=False)

    def __post_init__(self) -> None:
        self._count = np.array([len(each) for each in self.classes], np.int64)
        self._first = np.cumsum(self._count) - self._count
        flat = [(each.time, each.event_time, each.count) for some in self.classes for each in some]
        self._each = np.array(flat, np.int64).reshape(-1, 3)

    def meant(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The updates that rows stand for, each row's together, in the order of the rows."""
        of = np.zeros(rows.num_rows, np.int64)
        if len(self.bounds):
            of = np.searchsorted(self.bounds, integers(rows, EVENT_TIME), side="left")
        counts = self._count[of]
        source = np.repeat(np.arange(rows.num_rows), counts)
        within = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        each = self._each[np.repeat(self._first[of], counts) + within]
        meant = _at(rows.take(of_numbers(source)), each[:, 0], each[:, 1])
        return replaced(meant, DIFF, integers(meant, DIFF) * each[:, 2])


def _sources(task: DifferenceTask) -> dict[str, tuple[Part, _Meanings]]:
    """The parts to read by their object, each with what its rows stand for."""
    whole = np.zeros(0, np.int64)
    stored = _Meanings(np.array(task.bounds, np.int64), task.of_trace, of_trace=True)
    meanings = [(task.trace, stored), *((each.parts, _Meanings(whole, [each.stands_for])) for each in task.snapshots)]
    return {
        part.file.key: (part, meaning) for parts, meaning in meanings for part in parts if meets_keys(part, task.keys)
    }


def _pieces(
    store: ObjectStore,
    chain: Sequence[Part],
    task: DifferenceTask,
    sources: dict[str, tuple[Part, _Meanings]],
    tally: _Sum,
    capacity: int,
) -> Iterator[Piece]:
    """The updates that the rows of a chain of parts stand for, tallied."""
    schema = updates_schema(task.collection)
    columns = sort_columns(task.collection, facts=False)[:-2]

    def wanted(part: Part) -> pa.Schema:
        times = [EVENT_TIME] if len(sources[part.file.key][1].bounds) else []
        return some_of(schema, [*columns, *times, DIFF])

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        meaning = sources[part.file.key][1]
        tally.rows += rows.num_rows
        dated = len(meaning.bounds) > 0
        rows = _with_times(rows if dated else consolidated(rows, columns), schema)
        if meaning.of_trace:
            tally.add_checked(rows)
        meant = meaning.meant(rows)
        tally.digest = (tally.digest + digest(meant)) % DIGEST_MODULUS
        return meant

    return pieces_of(
        store,
        chain,
        task.keys,
        capacity,
        schema=wanted,
        prepare=prepare,
        key_columns=key_at_rest(task.collection),
        fetched=tally.fetched,
    )


def _with_times(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows as updates; times that were not read are 0, as they are before any that is asked for."""
    none = of_numbers(np.zeros(rows.num_rows, np.int64))
    cells = [rows.column(name) if name in rows.schema.names else none for name in schema.names]
    return pa.RecordBatch.from_arrays(cells, schema=schema)


def _at(rows: pa.RecordBatch, times: Ints, event_times: Ints) -> pa.RecordBatch:
    """The rows as if learned and happened then."""
    return replaced(replaced(rows, TIME, times), EVENT_TIME, event_times)
