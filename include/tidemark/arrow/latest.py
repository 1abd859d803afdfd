"""The latest row of each key on a timeline, of those that a read holds.

Of all keys it is found in one pass over the rows, in bounded memory. Of one key the chunks that can hold it are opened,
latest first, until the answer is settled (arrow/one_key.py). Rows outside the span that is asked for, and those that do
not fit a condition, are left out before anything is added up: an update and what retracts it have the same values,
so both are kept or neither is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from tidemark.arrow.kernels.latest import gathered_keys, whole_keys
from tidemark.arrow.kernels.merge import summed
from tidemark.arrow.one_key import ChunkName, Found, search
from tidemark.arrow.read import ordered_by, rounds_by
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.layout import placed_names
from tidemark.arrow.rows.schema import DIFF
from tidemark.arrow.runs import runs_of
from tidemark.arrow.winners import Latest, winners_of
from tidemark.model.collection import Collection
from tidemark.plan.latest import asks_one_key
from tidemark.plan.tasks import ReadTask
from tidemark.storage.stores.store import ObjectStore


def latest_of(store: ObjectStore, task: ReadTask, ask: Latest) -> Iterator[pa.RecordBatch]:
    """The latest row of each key of a task, in order of the key, among the rows within its spans. One of the spans
    belongs to the timeline.

    Raises InvalidUsage, naming the key, where a row that is not before the latest one has a negative multiplicity.
    """
    found = _of_one_key(store, task, ask)
    if found is None:
        yield from _in_one_pass(store, task, ask)
    elif found.answer is not None:
        yield found.answer


def opened_by(store: ObjectStore, task: ReadTask, ask: Latest) -> frozenset[ChunkName] | None:
    """The chunks that `latest_of` opens; None: all that can matter. It is asked by doing it. Raises as that does."""
    found = _of_one_key(store, task, ask)
    return None if found is None else found.opened


def _of_one_key(store: ObjectStore, task: ReadTask, ask: Latest) -> Found | None:
    by_condition = ask.of_one_key and task.collection.layout is not None
    return search(store, task, ask) if by_condition or asks_one_key(task) else None


def _in_one_pass(store: ObjectStore, task: ReadTask, ask: Latest) -> Iterator[pa.RecordBatch]:
    collection, batches = task.collection, _summed_rows(store, task, ask)
    if collection.layout:
        yield from latest_among(batches, collection, ask)
        return
    targets = ask.targets(collection)
    for rows in whole_keys(batches, [column.name for column in collection.key], _reducing(collection, ask)):
        yield winners_of(rows, collection, ask, targets).answer(collection, ask)


def latest_among(batches: Iterable[pa.RecordBatch], collection: Collection, ask: Latest) -> Iterator[pa.RecordBatch]:
    """The latest row of each key of some rows, each of which is there once, in any order. Raises as `latest_of`."""
    for rows in gathered_keys(batches, ask.read(collection), _reducing(collection, ask)):
        yield winners_of(rows, collection, ask, ask.targets(collection)).answer(collection, ask)


def candidates_of(store: ObjectStore, task: ReadTask, ask: Latest) -> Iterator[pa.RecordBatch]:
    """The rows of a task that are the latest of their key, or refuse it, if none of another task is later: in the
    columns that are read and `_diff`, where rows of a key may be in several tasks."""
    names, reduce = ask.read(task.collection), _reducing(task.collection, ask)
    for rows in gathered_keys(_summed_rows(store, task, ask), names, reduce):
        yield reduce(rows).select([*names, DIFF])


def _reducing(collection: Collection, ask: Latest) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """What leaves the rows that can still win."""
    targets = ask.targets(collection)

    def reduce(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.take(of_numbers(winners_of(rows, collection, ask, targets).places))

    return reduce


def _summed_rows(store: ObjectStore, task: ReadTask, ask: Latest) -> Iterator[pa.RecordBatch]:
    """The rows of a task, each once, in order at rest."""
    names = placed_names(task.collection, ask.read(task.collection))
    together = ordered_by(task.collection, names)
    resort = together != names
    runs = runs_of(store, task, [*names, DIFF], together, ask.keep)
    for batches in rounds_by(together, runs, lambda waiting: list(summed(waiting, names, resort=resort))):
        yield from summed(batches, names, resort=resort)
