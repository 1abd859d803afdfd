"""Full snapshots as updates, key range by key range: one merge of the trace and the full snapshots, in bounded memory.

The law is the docstring of model/full_snapshot.py. It telescopes, so every row read becomes the one or two updates it
stands for, and consolidation of equal (key, value, time) leaves the differences: what did not change cancels where it
is read. Rows are compared in all columns at rest: what the trace holds in a dropped column is retracted as it is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from tidemark.arrow.rows.columns import Ints, integers, replaced
from tidemark.arrow.rows.consolidate import consolidated
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, some_of, sort_columns, updates_schema
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.plan.ranges import overlaps
from tidemark.plan.tasks import DifferenceTask, SnapshotRows, WriteAnswer
from tidemark.storage.stores.store import ObjectStore


@dataclass
class _Sum(Tally):
    """Also the digest of what was held and of what was written, every row as of the last full snapshot."""

    held: int = 0

    def add_held(self, rows: pa.RecordBatch, time: int) -> None:
        """Count rows as if all had been learned and had happened at one time."""
        self.held = (self.held + digest(_at(rows, np.full(rows.num_rows, time)))) % DIGEST_MODULUS


def difference_range(store: ObjectStore, task: DifferenceTask) -> WriteAnswer:
    """Write the updates by which the task's full snapshots change what the trace holds.

    Raises Corruption if a part is not what was recorded.
    """
    tally = _Sum()

    def updates() -> Iterator[pa.RecordBatch]:
        for batch in differences(store, task, tally):
            tally.add_held(batch, task.snapshots[-1].time)
            yield batch

    return replace(write_updates(store, task, updates(), tally), digest_held=tally.held)


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

    for batches in rounds(runs, lambda held: list(summed(held, order, resort=True))):
        yield from (rows for rows in summed(batches, order, resort=True) if rows.num_rows)


@dataclass(frozen=True)
class _Source:
    """What each row of a part stands for: `sign` at `first`, and the opposite at `then`, if any."""

    sign: int
    first: int
    then: int | None


def _sources(task: DifferenceTask) -> dict[str, tuple[Part, _Source]]:
    """The parts to read by their object, each with what its rows stand for."""
    times = [snapshot.time for snapshot in task.snapshots]
    following = [*times[1:], None]
    held: tuple[SnapshotRows, ...] = (SnapshotRows(0, task.trace), *task.snapshots)
    meanings = [_Source(-1, times[0], None), *(_Source(1, t, n) for t, n in zip(times, following, strict=True))]
    return {
        part.file.key: (part, meaning)
        for rows, meaning in zip(held, meanings, strict=True)
        for part in rows.parts
        if overlaps(part, task.keys)
    }


def _pieces(
    store: ObjectStore,
    chain: Sequence[Part],
    task: DifferenceTask,
    sources: dict[str, tuple[Part, _Source]],
    tally: _Sum,
    capacity: int,
) -> Iterator[Piece]:
    """The updates that the rows of a chain of parts stand for, tallied."""
    schema, last = updates_schema(task.collection), task.snapshots[-1].time
    columns = sort_columns(task.collection, facts=False)[:-2]
    wanted = some_of(schema, [*columns, DIFF])

    def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
        source = sources[part.file.key][1]
        tally.rows += rows.num_rows
        summed = _with_times(consolidated(rows, columns), schema)
        if source.sign < 0:
            tally.add_held(summed, last)
        meant = _meant(summed, source)
        tally.digest = (tally.digest + digest(meant)) % DIGEST_MODULUS
        return meant

    return pieces_of(
        store,
        chain,
        task.keys,
        capacity,
        schema=lambda _: wanted,
        prepare=prepare,
        key_columns=[column.name for column in task.collection.key],
        fetched=tally.fetched,
    )


def _with_times(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows without times as updates, whose times are still to be set."""
    times = pa.array(np.zeros(rows.num_rows, np.int64))
    cells = [rows.column(name) for name in schema.names[:-3]]
    return pa.RecordBatch.from_arrays([*cells, times, times, rows.column(DIFF)], schema=schema)


def _meant(rows: pa.RecordBatch, source: _Source) -> pa.RecordBatch:
    """The updates that rows stand for, in order of key, value and time."""
    count, diffs = rows.num_rows, source.sign * integers(rows, DIFF)
    if source.then is None:
        return replaced(_at(rows, np.full(count, source.first)), DIFF, diffs)
    twice = rows.take(pa.array(np.repeat(np.arange(count), 2)))
    both = np.stack([diffs, -diffs], axis=1).reshape(-1)
    return replaced(_at(twice, np.tile(np.array([source.first, source.then]), count)), DIFF, both)


def _at(rows: pa.RecordBatch, times: Ints) -> pa.RecordBatch:
    """The rows as if learned and happened at `times`."""
    return replaced(replaced(rows, TIME, times), EVENT_TIME, times)
