"""As-of and changes as Arrow tables, without a JVM: for notebooks, the command line and small answers.

A read takes a state, so it is stable while writers run; it opens only parts that can hold what was asked, and merges
them in order of key and value in bounded memory. The `_batches` variants hand answers on as they come, so their size
does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.columns import Bools, Ints, integers
from tidemark.arrow.consolidate import forwarded
from tidemark.arrow.cuts import joined
from tidemark.arrow.difference import differences
from tidemark.arrow.merge import BUFFERED_ROWS, Piece, Run, Tally, chained, pieces_of, rounds, summed
from tidemark.arrow.order import ranks
from tidemark.arrow.resolve import updates_from
from tidemark.arrow.schema import DIFF, EVENT_TIME, TIME, live_prefix, some_of, updates_schema
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Collection
from tidemark.model.instant import MAX_TIME
from tidemark.plan.ranges import overlaps
from tidemark.plan.read import ReadRequest, plan_as_of, plan_changes
from tidemark.plan.tasks import DifferenceTask, DumpRows, KeyRange, ResolveTask
from tidemark.storage import parts_table, reads
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
    reads.note(store, state, request, newest=time is None and event_time is None)
    schema = _as_of_schema(state.collection)
    columns = [column.name for column in state.collection.columns]
    # Rows at rest are in order of dropped columns too: without those, rows may be equal that are not neighbours.
    together = live_prefix(state.collection)
    runs = _runs(store, _Question(state, request, keys, [*columns, DIFF]), together)

    resort = together != columns
    for batches in rounds(runs, lambda held: list(summed(held, columns, resort=resort))):
        for rows in summed(batches, columns, resort=resort):
            if rows.num_rows:
                yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def changes(
    store: ObjectStore, state: Arrangement, *, after: int, upto: int | None = None, net: bool = False
) -> pa.Table:
    """What was learned with `after < time <= upto` (None: seal - 1), in the columns of Spark's CHANGES, by key.

    One row per consolidated update: key and value columns, `_change_type` (insert or delete by the sign;
    update_preimage and update_postimage where one value of a unique key replaces one other), `_commit_version` (its
    time, µs), `_commit_timestamp`, `_event_time` (µs), `diff` (its multiplicity). Event times below `since` are told as
    `since`, whether or not a compaction has come by yet. `net` sums over the whole interval and leaves the times out.
    Raises InvalidUsage outside `[since, seal)`.
    """
    batches = changes_batches(store, state, after=after, upto=upto, net=net)
    return pa.Table.from_batches(batches, schema=_changes_schema(state.collection, net))


def changes_batches(
    store: ObjectStore, state: Arrangement, *, after: int, upto: int | None = None, net: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of `changes`, batch by batch."""
    request = plan_changes(state, after, upto)
    reads.note(store, state, request, newest=False)
    collection = state.collection
    times = [] if net else [TIME, EVENT_TIME]
    columns = [*(column.name for column in collection.columns), *times]
    key_columns = [column.name for column in collection.key]
    # An update's two images stand at different values: a keyed collection's keys must not be cut. Times forwarded
    # together leave the event times of a group in no order.
    together = key_columns if collection.keyed else live_prefix(collection)
    if not (net or collection.keyed or collection.dropped):
        together.append(TIME)
    runs = _runs(store, _Question(state, request, ALL_KEYS, [*columns, DIFF]), together)

    schema = _changes_schema(collection, net)
    for batches in rounds(runs, lambda held: list(summed(held, columns, resort=True))):
        told = (rows for rows in summed(batches, columns, resort=True) if rows.num_rows)
        # Only of a keyed collection are rows compared with others: a round then has all rows of its keys.
        for some in [list(told)] if collection.keyed else ([rows] for rows in told):
            yield from _as_changes(some, collection, [*key_columns, *times], schema)


@dataclass(frozen=True)
class _Question:
    """What is asked of a state: the updates of a request within a key range, in the columns `names`."""

    state: Arrangement
    request: ReadRequest
    keys: KeyRange
    names: Sequence[str]

    def of_parts(self, store: ObjectStore, parts: Sequence[Part], after: int, capacity: int) -> Iterator[Piece]:
        """The updates of a chain of parts learned after `after`. A time column is read only where it can matter."""
        upto, event_upto = self.request.upto, self.request.event_upto
        schema = updates_schema(self.state.collection)

        def tested(part: Part) -> list[str]:
            by_time = part.first_time <= after or part.last_time > upto
            return [*([TIME] if by_time else []), *([EVENT_TIME] if part.last_event_time > event_upto else [])]

        def prepare(part: Part, rows: pa.RecordBatch) -> pa.RecordBatch:
            inside = np.ones(rows.num_rows, bool)
            for name in tested(part):
                low, high = (after, upto) if name == TIME else (-1, event_upto)
                inside &= _between(integers(rows, name), low, high)
            return self._answered(rows, inside)

        return pieces_of(
            store,
            parts,
            self.keys,
            capacity,
            schema=lambda part: some_of(schema, [*self.names, *tested(part)]),
            prepare=prepare,
            key_columns=[column.name for column in self.state.collection.key],
        )

    def of_facts(self, store: ObjectStore) -> Iterator[Piece]:
        """What the facts beyond the trace resolve to, by the law the drain will apply."""
        request = self.request
        task = ResolveTask(
            self.state.collection,
            parts_table.parts_of(store, request.remembered),
            parts_table.parts_of(store, request.trace_before),
            self.keys,
            request.trace_upper,
            request.upto + 1,
            request.horizon,
            "",
        )
        for rows in updates_from(store, task, Tally()):
            inside = _between(integers(rows, TIME), request.after, request.upto)
            inside &= integers(rows, EVENT_TIME) <= request.event_upto
            yield self._answered(rows, inside), True

    def of_dumps(self, store: ObjectStore) -> Iterator[Piece]:
        """By which updates the dumps beyond the trace change it, as the drain will find."""
        request = self.request
        of_batch = {batch.id: parts_table.parts_of(store, [batch]) for batch in request.unsealed}
        dumps = tuple(DumpRows(dump.time, of_batch.get(dump.batch, ())) for dump in request.dumps)
        trace = parts_table.parts_of(store, request.trace_before)
        for rows in differences(store, DifferenceTask(self.state.collection, trace, dumps, self.keys, "")):
            inside = _between(integers(rows, TIME), request.after, request.upto)
            inside &= integers(rows, EVENT_TIME) <= request.event_upto
            yield self._answered(rows, inside), True

    def _answered(self, rows: pa.RecordBatch, inside: Bools) -> pa.RecordBatch:
        """The rows inside, times told as a compaction would leave them: it may or may not have come by yet."""
        rows = rows.select(list(self.names))
        rows = rows if inside.all() else rows.filter(pa.array(inside))
        return forwarded(rows, self.state.function, [name for name in (TIME, EVENT_TIME) if name in self.names])


def _runs(store: ObjectStore, asked: _Question, together: Sequence[str]) -> list[Run]:
    """The updates asked for as runs in order of `together`."""
    request, collection = asked.request, asked.state.collection
    sources = [(chain, request.after) for chain in chained(_needed(store, request.trace, asked))]
    if not (collection.keyed or collection.dumped):
        beyond = max(request.after, request.trace_upper - 1)
        sources += [(chain, beyond) for chain in chained(_needed(store, request.unsealed, asked))]
    resolves = collection.keyed and bool(request.unsealed)
    capacity = BUFFERED_ROWS // max(1, len(sources) + (resolves or bool(request.dumps)))
    pieces = [asked.of_parts(store, chain, after, capacity) for chain, after in sources]
    if resolves:
        pieces.append(asked.of_facts(store))
    if request.dumps:
        pieces.append(asked.of_dumps(store))
    return [Run(each, together, capacity) for each in pieces]


def _needed(store: ObjectStore, batches: Sequence[TraceBatch | UnsealedBatch], asked: _Question) -> list[Part]:
    parts = parts_table.parts_of(store, batches)
    return [part for part in parts if asked.request.needs(part) and overlaps(part, asked.keys)]


def _between(times: Ints, after: int, upto: int) -> Bools:
    return np.asarray((times > after) & (times <= upto))


def _as_changes(
    batches: Sequence[pa.RecordBatch], collection: Collection, image_of: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Consolidated updates in the columns of changes. One value for one other is told by the columns `image_of`, over
    all batches."""
    if not batches:
        return
    kinds = np.concatenate([integers(rows, DIFF) > 0 for rows in batches]).astype(np.int64)
    if collection.keyed:
        kinds += 2 * _replaces(joined([rows.select([*image_of, DIFF]) for rows in batches]), image_of)
    start = 0
    for rows in batches:
        columns = [rows.column(column.name) for column in collection.columns]
        columns.append(pa.array(CHANGE_TYPES).take(pa.array(kinds[start : start + rows.num_rows])))
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
