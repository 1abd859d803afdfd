"""As-of and changes as Arrow tables, without a JVM: for notebooks, the command line and small answers.

A read takes a state, so it is stable while writers run; it opens only parts that can hold what was asked, and merges
them in order of key and value in bounded memory. The `_batches` variants hand answers on as they come, so their size
does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tidemark.arrow.columns import Bools, Ints, integers
from tidemark.arrow.consolidate import consolidated
from tidemark.arrow.merge import BUFFERED_ROWS, Run, Tally, chained, rounds, within
from tidemark.arrow.order import ranks, sort
from tidemark.arrow.parts import read_groups
from tidemark.arrow.resolve import updates_from
from tidemark.arrow.schema import DIFF, EVENT_TIME, TIME, updates_schema
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.instant import MAX_TIME
from tidemark.plan.ranges import groups_within, overlaps
from tidemark.plan.read import ReadRequest, plan_as_of, plan_changes
from tidemark.plan.tasks import KeyRange, ResolveTask
from tidemark.storage import parts_table
from tidemark.storage.store import ObjectStore

MULTIPLICITY = "_multiplicity"
ALL_KEYS = KeyRange()
CHANGE_TYPES = ("delete", "insert", "update_preimage", "update_postimage")


def as_of(
    store: ObjectStore,
    state: Arrangement,
    *,
    time: int | None = None,
    event_time: int | None = None,
    keys: KeyRange = ALL_KEYS,
) -> pa.Table:
    """The collection as known at `time` (None: the latest complete one), as of `event_time` (None: all that happened).

    Columns of key and value, and `_multiplicity` (int64, never 0), in order of key and value. Raises InvalidUsage
    outside `[since, seal)`.
    """
    batches = as_of_batches(store, state, time=time, event_time=event_time, keys=keys)
    return pa.Table.from_batches(batches, schema=_as_of_schema(state.collection))


def as_of_batches(
    store: ObjectStore,
    state: Arrangement,
    *,
    time: int | None = None,
    event_time: int | None = None,
    keys: KeyRange = ALL_KEYS,
) -> Iterator[pa.RecordBatch]:
    """The rows of `as_of`, batch by batch, in memory that does not grow with the answer."""
    request = plan_as_of(state, time, event_time)
    schema = _as_of_schema(state.collection)
    columns = [column.name for column in state.collection.columns]
    runs = _runs(store, state.collection, request, keys, together=columns, names=[*columns, DIFF])

    def summed(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        return consolidated(_in_order(batches, columns), columns)

    for batches in rounds(runs, lambda held: [summed(held)]):
        rows = summed(batches)
        if rows.num_rows:
            yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def changes(
    store: ObjectStore, state: Arrangement, *, after: int, upto: int | None = None, net: bool = False
) -> pa.Table:
    """What was learned with `after < time <= upto` (None: seal - 1), in the columns of Spark's CHANGES, by key.

    One row per consolidated update: key and value columns, `_change_type` (insert or delete by the sign;
    update_preimage and update_postimage where one value of a unique key replaces one other), `_commit_version` (its
    time, µs), `_commit_timestamp`, `_event_time` (µs), `diff` (its multiplicity). `net` sums over the whole interval
    and leaves the times out. Raises InvalidUsage outside `[since, seal)`.
    """
    batches = changes_batches(store, state, after=after, upto=upto, net=net)
    return pa.Table.from_batches(batches, schema=_changes_schema(state.collection, net))


def changes_batches(
    store: ObjectStore, state: Arrangement, *, after: int, upto: int | None = None, net: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of `changes`, batch by batch; all rows of a key of a keyed collection come in one batch."""
    request = plan_changes(state, after, upto)
    collection = state.collection
    times = [] if net else [TIME, EVENT_TIME]
    columns = [*(column.name for column in collection.columns), *times]
    key_columns = [column.name for column in collection.key]
    # An update's two images stand at different values: a keyed collection's keys must not be cut.
    together = key_columns if collection.keyed else columns
    runs = _runs(store, collection, request, ALL_KEYS, together=together, names=[*columns, DIFF])

    def shrunk(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return [consolidated(_in_order(batches, columns), columns)]

    for batches in rounds(runs, shrunk):
        rows = consolidated(sort(pa.concat_batches(batches), columns), columns)
        if rows.num_rows:
            yield _as_changes(rows, collection, [*key_columns, *times], _changes_schema(collection, net))


def _runs(
    store: ObjectStore,
    collection: Collection,
    request: ReadRequest,
    keys: KeyRange,
    *,
    together: Sequence[str],
    names: Sequence[str],
) -> list[Run]:
    """The updates of a request as runs in order of `together`, each with the columns `names`."""
    trace = _needed(parts_table.parts_of(store, request.trace), request, keys)
    sources = [(chain, request.after) for chain in chained(trace)]
    if not collection.keyed:
        unsealed = _needed(parts_table.parts_of(store, request.unsealed), request, keys)
        sources += [(chain, max(request.after, request.trace_upper - 1)) for chain in chained(unsealed)]
    count = len(sources) + (1 if collection.keyed and request.unsealed else 0)
    capacity = BUFFERED_ROWS // max(1, count)
    runs = [
        Run(_rows(store, chain, collection, request, after, keys, names, capacity), together, capacity)
        for chain, after in sources
    ]
    if len(runs) < count:
        runs.append(Run(_resolved_rows(store, collection, request, keys, names), together, capacity))
    return runs


def _needed(parts: Sequence[Part], request: ReadRequest, keys: KeyRange) -> list[Part]:
    return [part for part in parts if request.needs(part) and overlaps(part, keys)]


def _rows(
    store: ObjectStore,
    chain: Sequence[Part],
    collection: Collection,
    request: ReadRequest,
    after: int,
    keys: KeyRange,
    names: Sequence[str],
    capacity: int,
) -> Iterator[pa.RecordBatch]:
    """The updates of a chain of parts in the request's bounds; a time column is read only where it can matter."""
    key_columns = [column.name for column in collection.key]
    for part in chain:
        by_time = part.first_time <= after or part.last_time > request.upto
        by_event_time = part.last_event_time > request.event_upto
        extra = [
            name for name, needed in ((TIME, by_time), (EVENT_TIME, by_event_time)) if needed and name not in names
        ]
        at_once = max(1, capacity // part.groups[0][1])
        for batch in read_groups(store, part, groups_within(part, keys), [*names, *extra], groups_at_once=at_once):
            rows = within(batch, keys, key_columns)
            inside = np.ones(rows.num_rows, bool)
            if by_time:
                inside &= _between(integers(rows, TIME), after, request.upto)
            if by_event_time:
                inside &= integers(rows, EVENT_TIME) <= request.event_upto
            rows = rows.select(names)
            yield rows if inside.all() else rows.filter(pa.array(inside))


def _resolved_rows(
    store: ObjectStore, collection: Collection, request: ReadRequest, keys: KeyRange, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """What the facts beyond the trace resolve to, by the law the drain will apply."""
    task = ResolveTask(
        collection,
        parts_table.parts_of(store, request.remembered),
        parts_table.parts_of(store, request.trace_before),
        keys,
        request.trace_upper,
        request.upto + 1,
        request.horizon,
        "",
    )
    for rows in updates_from(store, task, Tally()):
        inside = _between(integers(rows, TIME), request.after, request.upto)
        inside &= integers(rows, EVENT_TIME) <= request.event_upto
        yield rows.select(names).filter(pa.array(inside))


def _between(times: Ints, after: int, upto: int) -> Bools:
    return np.asarray((times > after) & (times <= upto))


def _in_order(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else sort(pa.concat_batches(batches), columns)


def _as_changes(
    rows: pa.RecordBatch, collection: Collection, image_of: Sequence[str], schema: pa.Schema
) -> pa.RecordBatch:
    diffs = integers(rows, DIFF)
    kinds = (diffs > 0).astype(np.int64)
    if collection.keyed:
        numbers = ranks(rows, image_of)
        count = np.bincount(numbers)
        least, most = np.full(len(count), MAX_TIME), np.full(len(count), -MAX_TIME)
        np.minimum.at(least, numbers, diffs)
        np.maximum.at(most, numbers, diffs)
        kinds += 2 * ((count == 2) & (least == -1) & (most == 1))[numbers]
    columns = [rows.column(column.name) for column in collection.columns]
    columns.append(pa.array(CHANGE_TYPES).take(pa.array(kinds)))
    if TIME in rows.schema.names:
        time = rows.column(TIME)
        columns += [time, time.cast(pa.timestamp("us", "UTC")), rows.column(EVENT_TIME)]
    return pa.RecordBatch.from_arrays([*columns, rows.column(DIFF)], schema=schema)


def _as_of_schema(collection: Collection) -> pa.Schema:
    return pa.schema([*_fields(collection), pa.field(MULTIPLICITY, pa.int64(), nullable=False)])


def _changes_schema(collection: Collection, net: bool) -> pa.Schema:
    times = [
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field(EVENT_TIME, pa.int64(), nullable=False),
    ]
    change_type = pa.field("_change_type", pa.string(), nullable=False)
    diff = pa.field("diff", pa.int64(), nullable=False)
    return pa.schema([*_fields(collection), change_type, *([] if net else times), diff])


def _fields(collection: Collection) -> list[pa.Field]:
    schema = updates_schema(collection)
    return [schema.field(column.name) for column in collection.columns]
