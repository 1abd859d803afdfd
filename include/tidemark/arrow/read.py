"""The answer to a request, as Arrow batches, without a JVM; and what as-of and changes make of a task, here or in an
executor.

A request names batches of one state, so it is stable while writers run; only chunks are opened that can matter to it,
and they are merged in order of key and value in bounded memory. How a read goes, step by step: plan/read.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Run, Shrink, rounds, summed
from tidemark.arrow.rows.arrays import of_numbers, of_values
from tidemark.arrow.rows.columns import Bools, integers
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.layout import placed_names
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME, live_prefix, some_of, updates_schema
from tidemark.arrow.runs import Keep, runs_of
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.instant import MAX_TIME
from tidemark.model.nearest import nearest
from tidemark.plan.read import ReadRequest, read_tasks
from tidemark.plan.tasks import ReadTask
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.store import ObjectStore

MULTIPLICITY = "_multiplicity"
CHANGE_TYPE = "_change_type"
CHANGE_TYPES = ("delete", "insert", "update_preimage", "update_postimage")


Answered = Callable[[ObjectStore, ReadTask], Iterator[pa.RecordBatch]]
"""What is made of a task of a read, in order of its keys."""


def answer(store: ObjectStore, request: ReadRequest, answered: Answered) -> Iterator[pa.RecordBatch]:
    """The answer to a request, batch by batch, in order of keys and in memory that does not grow with it."""
    for task in read_tasks(*parts_table.opened_read(store, request)):
        yield from answered(store, task)


def rows_as_of(
    store: ObjectStore, task: ReadTask, columns: Sequence[str] | None = None, *, event_times: bool = False
) -> Iterator[pa.RecordBatch]:
    """What the keys of a task hold: columns of key and value, and `_multiplicity` (int64, never 0), in order of key and
    value; with `columns` in these alone, rows that are equal in them added up. With `event_times` rows that happened at
    different times stay separate."""
    collection = task.collection
    schema = as_of_schema(collection, columns, event_times=event_times)
    shown = schema.names[:-1]
    names = placed_names(collection, shown)
    # Rows at rest are in order of unseen columns too: without those, rows may be equal that are not neighbours. Nor
    # are those of one event time, which are in order of when they were learned.
    together = ordered_by(collection, names)
    resort = together != names
    runs = runs_of(store, task, [*names, DIFF], together)

    for batches in rounds_by(together, runs, lambda waiting: list(summed(waiting, names, resort=resort))):
        for rows in summed(batches, names, resort=resort):
            if rows.num_rows:
                yield _as(rows, [*shown, DIFF], schema)


def changes_of(
    store: ObjectStore, task: ReadTask, *, net: bool, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """What was learned of the keys of a task, in the columns of Spark's CHANGES, by key; with `columns` what was
    learned of these alone: an update that leaves all of them as they were is none.

    One row per consolidated update: key and value columns, `_change_type` (insert or delete by the sign;
    update_preimage and update_postimage where one value of a unique key replaces one other), `_commit_version` (its
    time, µs), `_commit_timestamp`, `_event_time` (µs), `diff` (its multiplicity). Event times below `since` are given
    as `since`, whether or not a compaction has run yet. `net` sums over the whole interval and leaves the times out.
    """
    collection = task.collection
    schema = changes_schema(collection, net=net, columns=columns)
    shown = schema.names[: schema.get_field_index(CHANGE_TYPE)]
    times = [] if net else [TIME, EVENT_TIME]
    names = [*placed_names(collection, shown), *times]
    key_columns = [column.name for column in collection.key]
    images = names_one_value(collection, shown)
    # An update is shown as two rows of different values: then a round must hold all rows of its keys. And where times
    # were forwarded to one, the event times of rows with that time are in no order.
    together = key_columns if images else ordered_by(collection, names)
    if not (net or images or collection.unseen) and len(together) == len(live_prefix(collection)):
        together = [*together, TIME]
    runs = runs_of(store, task, [*names, DIFF], together)

    for batches in rounds_by(together, runs, lambda waiting: list(summed(waiting, names, resort=True))):
        updates = (rows for rows in summed(batches, names, resort=True) if rows.num_rows)
        # Only where a key holds one value are rows compared with others: a round then has all rows of its keys.
        for some in [list(updates)] if images else ([rows] for rows in updates):
            yield from _as_changes(some, shown, [*key_columns, *times] if images else None, schema)


def updates_of(
    store: ObjectStore, task: ReadTask, columns: Sequence[str], keep: Keep | None = None
) -> Iterator[pa.RecordBatch]:
    """The updates of a task that need no resolving, consolidated, with their times: in `columns`, hidden ones too,
    `_time`, `_event_time` and `_diff`; of them those that `keep` leaves, all of a row or none: what it looks at is
    among `columns`."""
    collection = task.collection
    schema = updates_in(collection, columns)
    names = placed_names(collection, schema.names[:-1])
    together = ordered_by(collection, names)
    runs = runs_of(store, task, [*names, DIFF], together, keep)
    for batches in rounds_by(together, runs, lambda waiting: list(summed(waiting, names, resort=True))):
        for rows in summed(batches, names, resort=True):
            if rows.num_rows:
                yield _as(rows, schema.names, schema)


def _as(rows: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Some columns of rows as those of a schema."""
    return pa.RecordBatch.from_arrays([rows.column(name) for name in names], schema=schema)


def names_one_value(collection: Collection, columns: Sequence[str]) -> bool:
    """Whether some columns name one value at most: the whole key is among them, and a key holds one value. Then equal
    rows have one key, and changes report a value that replaced another."""
    return collection.kind.one_value and {column.name for column in collection.key} <= set(columns)


def ordered_by(collection: Collection, names: Sequence[str]) -> list[str]:
    """The columns among `names` by which rows at rest are in order."""
    return list(takewhile(set(names).__contains__, live_prefix(collection)))


def rounds_by(together: Sequence[str], runs: Sequence[Run], shrink: Shrink) -> Iterator[list[pa.RecordBatch]]:
    """The rows of all runs, cut between rows that differ in the columns `together`, by which the runs are in order.

    Without such columns nothing may be cut: all rows are one round, in the memory of what `shrink` leaves of them.
    """
    if together:
        yield from rounds(runs, shrink)
        return
    batches: list[pa.RecordBatch] = []
    count, left = 0, 0
    for run in runs:
        while run.fill():
            batches.append(run.take_before(None))
            count += batches[-1].num_rows
            if count > 2 * left + BUFFERED_ROWS:
                batches = shrink(batches)
                count = left = sum(rows.num_rows for rows in batches)
    if batches:
        yield batches


def _as_changes(
    batches: Sequence[pa.RecordBatch], shown: Sequence[str], image_of: Sequence[str] | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Consolidated updates in the columns of changes. One value for one other is recognised by the columns `image_of`
    (None: it is not), over all batches."""
    if not batches:
        return
    kinds = np.concatenate([integers(rows, DIFF) > 0 for rows in batches]).astype(np.int64)
    if image_of is not None:
        kinds += 2 * _replaces(joined([rows.select([*image_of, DIFF]) for rows in batches]), image_of)
    start = 0
    for rows in batches:
        columns = [rows.column(name) for name in shown]
        columns.append(of_values(CHANGE_TYPES, pa.string()).take(of_numbers(kinds[start : start + rows.num_rows])))
        if TIME in rows.schema.names:
            time = rows.column(TIME)
            columns += [time, time.cast(pa.timestamp("us", "UTC")), rows.column(EVENT_TIME)]
        yield pa.RecordBatch.from_arrays([*columns, rows.column(DIFF)], schema=schema)
        start += rows.num_rows


def _replaces(rows: pa.RecordBatch, image_of: Sequence[str]) -> Bools:
    """Which rows are one of two equal in `image_of`, one taken away and one put in its place."""
    diffs, numbers = integers(rows, DIFF), ranks(rows, image_of)
    count = np.bincount(numbers)
    least, most = np.full(len(count), MAX_TIME), np.full(len(count), -MAX_TIME)
    np.minimum.at(least, numbers, diffs)
    np.maximum.at(most, numbers, diffs)
    return np.asarray(((count == 2) & (least == -1) & (most == 1))[numbers])


def updates_in(collection: Collection, columns: Sequence[str]) -> pa.Schema:
    """The columns of `updates_of`."""
    times = some_of(updates_schema(collection), (TIME, EVENT_TIME, DIFF))
    return pa.schema([*_fields(collection, columns), *times])


def as_of_schema(
    collection: Collection, columns: Sequence[str] | None = None, *, event_times: bool = False
) -> pa.Schema:
    """The columns of `as_of`; of the collection's only `columns`, if given, in their order; with `event_times` when
    rows happened, too."""
    happened = some_of(updates_schema(collection), (EVENT_TIME,)) if event_times else ()
    return pa.schema([*_fields(collection, columns), *happened, pa.field(MULTIPLICITY, pa.int64(), nullable=False)])


def changes_schema(collection: Collection, *, net: bool, columns: Sequence[str] | None = None) -> pa.Schema:
    """The columns of `changes`; of the collection's only `columns`, if given, in their order."""
    times = [
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field(EVENT_TIME, pa.int64(), nullable=False),
    ]
    change_type = pa.field(CHANGE_TYPE, pa.string(), nullable=False)
    diff = pa.field("diff", pa.int64(), nullable=False)
    return pa.schema([*_fields(collection, columns), change_type, *([] if net else times), diff])


def _fields(collection: Collection, columns: Sequence[str] | None) -> list[pa.Field]:
    """Raises InvalidUsage for columns that the collection does not have, or has twice. Hidden ones are there for who
    names them: a run that corrects a derived collection."""
    schema, names = updates_schema(collection), [column.name for column in collection.columns]
    hidden = [column.name for column in collection.hidden]
    asked = names if columns is None else list(columns)
    for name in asked:
        if name not in names and name not in hidden:
            raise InvalidUsage(f"collection {collection.name} has no column {name}{nearest(name, names)}")
    if len(set(asked)) < len(asked):
        raise InvalidUsage(f"columns {', '.join(asked)}: one is named twice; name each once")
    if not asked:
        raise InvalidUsage("columns is empty; name some, or leave it out for all")
    return [schema.field(name) for name in asked]
