"""What source rows mean: each judged on time or late, once, and turned into rows of an unsealed batch.

The coordinate that decides is the event time, or the time in a collection without event times. Where the collection is
not complete yet a row is on time. Below that it is late: applied with the seal as its time, or as both its times
(`next_window`), or kept as a dead letter; REASONS say which and why. Nothing is learned below the seal: where ticks
have taken it farther than the collection is complete, a row on time that says an earlier time is learned at it, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import no_rows, of_bools, of_numbers, of_values, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints, values
from tidemark.arrow.rows.condition import holds
from tidemark.arrow.rows.layout import buckets
from tidemark.arrow.rows.schema import (
    BUCKET,
    DELETED,
    DIFF,
    EVENT_TIME,
    FILE,
    ORDER,
    ROW,
    SOURCE,
    TIME,
    transaction_fields,
    unsealed_schema,
)
from tidemark.model.collection import Collection, Envelope, Late
from tidemark.model.condition.text import parse
from tidemark.model.condition.tree import bound

APPLIED = "_applied"
ORIGINAL = "_original_event_time"
"""In a late object: whether a row was applied, and the coordinate it was judged by."""
REASONS = ("below the seal", "beyond max_lateness", "below since", "moved to the seal", "before its interval")
"""Why a row is in the late table. The first and the last are also given to late rows that were applied with their
event time: the last where the row is late in any run of its interval, the first where it came when more was complete
than then. Only rows that lost their event time have the fourth."""
_BELOW_SEAL, _BEYOND, _BELOW_SINCE, _MOVED, _BEFORE_INTERVAL = range(5)


@dataclass(frozen=True)
class LatenessBounds:
    """What a file's rows are judged against: up to where the collection is complete, its seal and since, all of the
    plan, the time of rows that bring none, and the late policy (None: the collection's).

    `arrival` is the last instant of the interval, not the clock's, so that a retry judges alike. `turn` is up to where
    the collection is complete when the interval's turn comes: rows that are late by no more than that were late before
    their interval began.
    """

    complete_below: int
    seal: int
    since: int
    arrival: int
    late: Late | None = None
    turn: int = 0

    @property
    def reason(self) -> int:
        """Why a row that is late is late, its place in REASONS."""
        return _BEFORE_INTERVAL if self.complete_below <= self.turn else _BELOW_SEAL


@dataclass(frozen=True)
class Judged:
    """Rows judged: `applied` in the unsealed schema, `late` as they came with their fate (`late_schema`).

    `first_on_time` is the smallest coordinate among rows on time, None if there are none.
    """

    applied: pa.RecordBatch
    late: pa.RecordBatch
    late_applied: int
    first_on_time: int | None
    late_moved: int = 0

    @property
    def late_discarded(self) -> int:
        return int(self.late.num_rows) - self.late_applied


@dataclass(frozen=True)
class _Verdict:
    """Per row: its coordinates as applied, the one it is judged by, whether it is late, whether it is discarded, its
    place in REASONS."""

    time: Ints
    event_time: Ints
    coordinate: Ints
    late: Bools
    dead: Bools
    reason: Ints


def judge(
    rows: pa.RecordBatch, collection: Collection, bounds: LatenessBounds, *, path: str, number: int = 0
) -> Judged:
    """Judge decoded rows (decode/source.py) of the file listed as `path`, the batch's file of that number."""
    verdict = _verdict(rows, collection, bounds)
    on_time = verdict.coordinate[~verdict.late]
    late = verdict.late.nonzero()[0]
    return Judged(
        _applied(rows, collection, verdict, path, number),
        _late(rows, verdict, late, bounds, path),
        int(np.count_nonzero(verdict.late & ~verdict.dead)),
        int(on_time.min()) if len(on_time) else None,
        int(np.count_nonzero(verdict.reason[late] == _MOVED)),
    )


def revive(
    rows: pa.RecordBatch,
    letters: pa.RecordBatch,
    collection: Collection,
    bounds: LatenessBounds,
    as_now: bool,
    number: int = 0,
) -> Judged:
    """Judge dead letters again, all of one source file, to be applied now: `rows` are `letters` as decoded, `number` is
    that of their object among the batch's.

    What happened below `bounds.since` is left, unless it may apply `as_now`. `late` of the result are the letters left.
    """
    happened = _micros(letters, ORIGINAL)
    # A letter of an interval whose turn is still to come is learned when that comes, not before.
    seal = np.maximum(_micros(letters, TIME), bounds.seal)
    allowed = may_apply(letters, collection, bounds)
    dead = np.zeros_like(allowed) if as_now else ~allowed
    kept = np.where(allowed, happened, seal) if collection.landed.event_time else seal
    verdict = _Verdict(seal, kept, happened, ~dead, dead, np.where(allowed, _BELOW_SEAL, _MOVED))
    path = letters.column(FILE)[0].as_py() if letters.num_rows else ""
    applied = _applied(rows, collection, verdict, path, number)
    moved = int(np.count_nonzero(~allowed & ~dead))
    return Judged(applied, letters.filter(of_bools(dead)), 0, None, moved)


def may_apply(letters: pa.RecordBatch, collection: Collection, bounds: LatenessBounds) -> Bools:
    """Which dead letters may be applied with the event time they have; without event times all may."""
    if not collection.landed.event_time:
        return np.ones(letters.num_rows, np.bool_)
    return np.asarray(_micros(letters, ORIGINAL) >= bounds.since)


def _verdict(rows: pa.RecordBatch, collection: Collection, bounds: LatenessBounds) -> _Verdict:
    landed, arrival = collection.landed, np.full(rows.num_rows, bounds.arrival, np.int64)
    policy = bounds.late or landed.late
    time = _micros(rows, landed.time) if landed.time else arrival
    coordinate = _micros(rows, landed.event_time) if landed.event_time else time
    late = coordinate < bounds.complete_below
    learned = np.where(late, bounds.seal, np.maximum(time, bounds.seal))
    dead, reason = late, np.full(rows.num_rows, bounds.reason)
    if policy.policy == "reemit":
        beyond = late & (bounds.complete_below - coordinate > policy.reach)
        forgotten = late & ~beyond & (coordinate < bounds.since)
        dead = beyond | forgotten
        reason = np.where(beyond, _BEYOND, np.where(forgotten, _BELOW_SINCE, bounds.reason))
    # A full snapshot that is announced afterwards was true at the end of its interval all the same.
    happened = coordinate if landed.event_time or not collection.kind.has_times else learned
    if policy.policy == "next_window":
        dead, reason = np.zeros(rows.num_rows, np.bool_), np.full(rows.num_rows, _MOVED)
        happened = np.where(late, bounds.seal, happened)
    return _Verdict(learned, happened, coordinate, late, dead, reason)


def _applied(rows: pa.RecordBatch, collection: Collection, verdict: _Verdict, path: str, number: int) -> pa.RecordBatch:
    keep = None if not verdict.dead.any() else of_bools(~verdict.dead)
    schema = unsealed_schema(collection)
    columns = {column.name: rows.column(column.name) for column in collection.columns}
    columns |= {TIME: of_numbers(verdict.time), EVENT_TIME: of_numbers(verdict.event_time)}
    if collection.kind.facts:
        columns |= _fact_columns(rows, collection, path)
    elif collection.landed.source.envelope is Envelope.UPDATES:
        columns[DIFF] = rows.column(collection.landed.source.diff)
    else:
        columns[DIFF] = _constant(1, rows.num_rows, pa.int64())
    if collection.layout:
        columns[BUCKET] = of_numbers(buckets(columns[collection.layout.by], collection.layout))
    if SOURCE in schema.names:
        columns[SOURCE] = _constant(number, rows.num_rows, pa.int64())
    # A dropped column is in no source row, and null from then on.
    columns |= {name: pa.nulls(rows.num_rows, schema.field(name).type) for name in schema.names if name not in columns}
    arrays = [columns[field.name].cast(field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return batch if keep is None else batch.filter(keep)


def _fact_columns(rows: pa.RecordBatch, collection: Collection, path: str) -> dict[str, pa.Array]:
    """The columns of facts, tombstones with their values nulled."""
    source = collection.landed.source
    length = rows.num_rows
    deleted = _constant(False, length, pa.bool_())
    columns: dict[str, pa.Array] = {}
    if source.envelope is Envelope.DEBEZIUM:
        deleted = rows.column(DELETED)
    elif source.delete_when:
        condition = bound(parse(source.delete_when), collection.type_of)
        deleted = holds(condition, rows)
        if pc.any(deleted).as_py():
            for column in collection.value:
                array = rows.column(column.name)
                columns[column.name] = pc.if_else(deleted, pa.nulls(1, array.type)[0], array)
    order_by = ORDER if source.has_places else collection.order_by
    order = rows.column(order_by) if order_by else pa.nulls(length, pa.int64())
    columns |= {field.name: rows.column(field.name) for field in transaction_fields(collection)}
    return columns | {DELETED: deleted, ORDER: order, FILE: _constant(path, length, pa.string()), ROW: rows.column(ROW)}


def late_schema(source_rows: pa.Schema) -> pa.Schema:
    """The columns of a late object: those decoded, then the fate of the row.

    `_time` and `_event_time` are what it was applied with, or would have been; `_original_event_time` is the coordinate
    it was judged by, and `_lateness` how far that is below `_complete_below`, in microseconds.
    """
    decoded = [field for field in source_rows if field.name != ROW]
    fate = [
        ("_reason", pa.string()),
        (APPLIED, pa.bool_()),
        ("_lateness", pa.int64()),
        (ORIGINAL, pa.int64()),
        ("_complete_below", pa.int64()),
        (TIME, pa.int64()),
        (EVENT_TIME, pa.int64()),
        (FILE, pa.string()),
        (ROW, pa.int64()),
    ]
    return pa.schema([*decoded, *(pa.field(name, of) for name, of in fate)])


def _late(rows: pa.RecordBatch, verdict: _Verdict, at: Ints, bounds: LatenessBounds, path: str) -> pa.RecordBatch:
    schema = late_schema(rows.schema)
    if not len(at):
        return no_rows(schema)
    taken = rows.take(of_numbers(at))
    fate = {
        "_reason": of_values(REASONS, pa.string()).take(of_numbers(verdict.reason[at])),
        APPLIED: of_bools(~verdict.dead[at]),
        "_lateness": of_numbers(bounds.complete_below - verdict.coordinate[at]),
        ORIGINAL: of_numbers(verdict.coordinate[at]),
        "_complete_below": _constant(bounds.complete_below, len(at), pa.int64()),
        TIME: of_numbers(verdict.time[at]),
        EVENT_TIME: of_numbers(verdict.event_time[at]),
        FILE: _constant(path, len(at), pa.string()),
    }
    arrays = [fate[name] if name in fate else taken.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _micros(rows: pa.RecordBatch, name: str) -> Ints:
    return np.asarray(values(rows.column(name)), np.int64)


def _constant(value: bool | int | str, length: int, of: pa.DataType) -> pa.Array:
    return pa.repeat(scalar_of(value, of), length)
