"""The windows of a collection with what its history says of them: since when each is there, how often its row changed,
whether it is closed. Nothing of it is stored: it follows from the updates of a window's row and from a frontier.

An example. A window [10:00, 11:00) had 3 flights when it closed at 11:00, and 4 since a row came late at 15:00. Its
updates are +(3) at 10:59:59.999999, -(3) and +(4) at 15:00. As known at noon it is the row (3) of revision 0; as known
now it is (4) of revision 1, there since 11:00 and changed last at 15:00.

Rows come in order of the key, which names the window, so that what is in memory is a round of the merge
(arrow/kernels/merge.py), however many windows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import rounds, summed
from tidemark.arrow.read import as_of_schema
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DIFF, TIME
from tidemark.arrow.runs import runs_of
from tidemark.model.collection import Collection
from tidemark.model.instant import MAX_TIME
from tidemark.model.window.close import is_closed, is_frozen
from tidemark.model.window.windows import WINDOW_END, Windows
from tidemark.plan.tasks import ReadTask
from tidemark.storage.stores.store import ObjectStore

END_INCLUSIVE = "_end_inclusive"
CLOSED, FINAL, REVISION = "_closed", "_final", "_revision"
FIRST_KNOWN, LAST_CHANGED = "_first_told", "_last_told"


@dataclass(frozen=True)
class WindowQuery:
    """What is asked of windows: as known at `upto`, where all below `close` is complete; with `open` those too that
    have rows and are not there yet. Microseconds."""

    windows: Windows
    upto: int
    close: int
    open: bool


def windows_schema(collection: Collection) -> pa.Schema:
    """The columns of the collection, and what is known of each window: whether its end belongs to it, whether it is
    closed, whether no row that comes can change it, how often its row changed since it was there first, and the times
    at which it was there first and changed last (null while it is not there)."""
    instant = pa.timestamp("us", "UTC")
    return pa.schema(
        [
            *list(as_of_schema(collection))[:-1],
            *(pa.field(name, pa.bool_(), nullable=False) for name in (END_INCLUSIVE, CLOSED, FINAL)),
            pa.field(REVISION, pa.int64(), nullable=False),
            pa.field(FIRST_KNOWN, instant),
            pa.field(LAST_CHANGED, instant),
        ]
    )


def known_windows(store: ObjectStore, task: ReadTask, query: WindowQuery) -> Iterator[pa.RecordBatch]:
    """The windows among the keys of a task, in order of their keys, in the columns of `windows_schema`. The task reads
    all updates, those that are still to come too (plan_updates)."""
    shown = [column.name for column in task.collection.columns]
    key = [column.name for column in task.collection.key]
    schema, names = windows_schema(task.collection), [*shown, TIME]
    runs = runs_of(store, task, [*names, DIFF], key)
    for batches in rounds(runs, lambda waiting: list(summed(waiting, names, resort=True))):
        rows = joined(list(summed(batches, names, resort=True)))
        if rows.num_rows:
            yield _of_round(rows, shown, key, query, schema)


def _of_round(
    rows: pa.RecordBatch, shown: list[str], key: list[str], query: WindowQuery, schema: pa.Schema
) -> pa.RecordBatch:
    """The windows of some rows, which are all rows of their keys."""
    times, diffs = integers(rows, TIME), integers(rows, DIFF)
    window, value = ranks(rows, key), ranks(rows, shown)
    known = times <= query.upto
    there = _added(value, np.where(known, diffs, 0)) > 0
    if query.open:
        ahead = (_added(value, diffs) > 0) & ~there
        there |= ahead & ~_any(window, there[value] & known)[_window_of(value, window)]
    chosen = _first_of(value)[there]
    of = window[chosen]
    changed = _changes(window[known], times[known], int(window.max()) + 1)
    first, last, count = (column[of] for column in changed)
    end = rows.column(WINDOW_END).cast(pa.int64()).to_numpy(zero_copy_only=False)[chosen]
    instants = [pa.array(np.where(count > 0, column, 0), pa.int64(), mask=count == 0) for column in (first, last)]
    taken = rows.select(shown).take(pa.array(chosen))
    return pa.RecordBatch.from_arrays(
        [
            *taken.columns,
            pa.array(np.full(len(chosen), query.windows.kind.inclusive)),
            pa.array(is_closed(query.windows.kind, end, query.windows.grace, query.close)),
            pa.array(_is_final(end, query)),
            pa.array(np.maximum(count - 1, 0)),
            *(column.cast(pa.timestamp("us", "UTC")) for column in instants),
        ],
        schema=schema,
    )


def _is_final(ends: Any, query: WindowQuery) -> Bools:
    """Whether no late row counts in a window any more. Where late rows count for ever, that is never so."""
    lateness = query.windows.counts_late_for
    if lateness is None:
        return np.zeros(len(ends), dtype=bool)
    return np.asarray(is_frozen(query.windows.kind, ends, query.windows.grace, lateness, query.close))


def _added(numbers: Ints, diffs: Ints) -> Ints:
    """For each number the sum of the diffs it has."""
    sums = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    np.add.at(sums, numbers, diffs)
    return sums


def _any(numbers: Ints, holds: Bools) -> Bools:
    """For each number whether it holds for one of its rows."""
    return np.asarray(_added(numbers, holds.astype(np.int64)) > 0)


def _first_of(numbers: Ints) -> Ints:
    """For each number the first row that has it."""
    return np.asarray(np.unique(numbers, return_index=True)[1])


def _window_of(value: Ints, window: Ints) -> Ints:
    """For each value the number of its window."""
    return np.asarray(window[_first_of(value)])


def _changes(window: Ints, times: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """For each window the first and the last time at which its row changed, and at how many times it did."""
    first, last = np.full(count, MAX_TIME, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.minimum.at(first, window, times)
    np.maximum.at(last, window, times)
    pairs = np.unique(np.stack([window, times]), axis=1)
    return first, last, np.bincount(pairs[0], minlength=count)
