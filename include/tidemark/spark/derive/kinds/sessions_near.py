"""Sessions near few changes. This process finds the stretches of time that changes reach, in the sessions that the
collection holds (reach/stretches.py). It reads the rows there itself, where they are few enough. Of more rows executors
compute the sessions: each those of what it reads, where sessions of parts can be merged, and this process merges them;
else a shuffle brings rows together by key first. Either way sessions come back, and no rows.

An example: 2,000,000 flights of 200 carriers, in 2,191 sessions. A day's 100,000 flights, some of them days late, reach
900 sessions with 1,000,000 flights, which may be in any file. Read 300,000 at a time these are 20,000 sessions of
parts, which are merged to 900."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from tidemark.arrow.kernels.aggregates.instants import micros_of
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.windows.keys import GROUP
from tidemark.arrow.kernels.windows.regions import Regions, in_regions
from tidemark.arrow.kernels.windows.sessions import can_be_merged, merged_sessions, sessions_in_order, sessions_of
from tidemark.arrow.read import MULTIPLICITY, rows_as_of
from tidemark.arrow.rows.columns import Ints, integers, one_batch
from tidemark.arrow.rows.known_keys import numbers_among
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import AggregateColumn, SessionPlan
from tidemark.definition.ways import Place
from tidemark.definition.windows.rows import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.window.kinds import Session
from tidemark.plan.tasks import KeyRange, ReadTask
from tidemark.spark import read
from tidemark.spark.derive.executors.key_ranges import leading
from tidemark.spark.derive.footers import ranges_when
from tidemark.spark.derive.here.diff import diff_against_own
from tidemark.spark.derive.here.rows import RowBudget, placed_rows, repeated
from tidemark.spark.derive.kind import Refreshed
from tidemark.spark.derive.kinds.session_rows import SessionBuilder, fits
from tidemark.spark.derive.parts import Batches
from tidemark.spark.derive.reach.changed import changed_here
from tidemark.spark.derive.reach.stretches import NearHere, near_here
from tidemark.spark.derive.touched import MOST_BYTES, named, ranges_holding
from tidemark.spark.derive.views import LOOKED_AT_BYTES, LOOKED_AT_ROWS, RangeReads, Views
from tidemark.spark.workers import in_workers
from tidemark.storage import ObjectStore

MISFIT = -1
"""The number of no key: of a row that says that something does not fit."""


def sessions_touched(views: Views, rule: SessionPlan) -> Refreshed | None:
    """By what the sessions that few changes reach differ from those stored; None where they have no kernel, or
    changes or sessions are more than this process reads. Raises as the kernel does."""
    changed = changed_here(views, rule) if fits(views, rule) else None
    if changed is None:
        return None
    few, unplaced = changed
    near = near_here(views, rule, few)
    if near is None:
        return None
    ranges = _ranges(views, rule, few, near)
    found, place = _computed_here(views, rule, near, ranges), Place.HERE
    if found is None:
        found, place = _computed_by_executors(views, rule, near, ranges)
    if found is None:
        views.declines("sessions near what changed do not fit")
        return None
    views.unplaced = unplaced
    return Refreshed(diff_against_own(views, found, near.own), place)


def _ranges(views: Views, rule: SessionPlan, few: pa.Table, near: NearHere) -> Sequence[KeyRange]:
    """The ranges of keys outside which there are no rows where changes reach; none: all."""
    given = views.computation.input(rule.input)
    ranges = ranges_holding(few, views, rule.input, given.state.collection, named(rule.by))
    return ranges or ranges_when(given, rule.on, *near.spans)


def _computed_here(views: Views, rule: SessionPlan, near: NearHere, ranges: Sequence[KeyRange]) -> pa.Table | None:
    """The sessions that are reached, as updates in order, computed by this process; None where that is too much."""
    rows = _rows_near(views, rule, near, ranges)
    return None if rows is None else SessionBuilder.by(views, rule).of(*rows, near.keys)


def _rows_near(
    views: Views, rule: SessionPlan, near: NearHere, ranges: Sequence[KeyRange]
) -> tuple[pa.Table, Ints, Ints] | None:
    """The rows of the input within the reach of changes, in the columns that are needed, each as often as it is there,
    their instants and the numbers of their keys; None where they are more than this process keeps, or one is there
    fewer times than none."""
    most_rows = LOOKED_AT_ROWS if ranges else LOOKED_AT_ROWS // 4
    batches = views.input_rows_here(rule.input, ranges, most_rows=most_rows, most_bytes=LOOKED_AT_BYTES)
    if batches is None:
        return None
    schema = _schema(views, rule)
    found, kept = [schema.empty_table()], RowBudget(views.rows_stored(rule.input, ranges))
    for seen, rows in _near(batches, rule, one_batch(near.keys), near.regions):
        some = repeated(rows, most_bytes=kept.room)
        if some is None or kept.is_full(seen, some):
            views.declines("too many rows are near what changed")
            return None
        found.append(pa.Table.from_batches([some.cast(schema)]))
    rows = pa.concat_tables(found)
    return rows.drop_columns([GROUP, AT]), integers(rows, AT), integers(rows, GROUP)


def _computed_by_executors(
    views: Views, rule: SessionPlan, near: NearHere, ranges: Sequence[KeyRange]
) -> tuple[pa.Table | None, Place]:
    """The same by executors, and how they read rows. None, too, where the columns `by` lead the input's key: then
    executors/key_ranges.py needs neither a shuffle nor sessions of parts."""
    key = views.computation.input(rule.input).state.collection.key
    led = leading(views.computation, rule.input, {name: name for name in rule.by})
    there = None if led else views.range_reads(rule.input, len(key), ranges)
    if there is None or not there.tasks:
        return None, Place.KEY_RANGES
    found, place = None, Place.KEY_RANGES
    if can_be_merged(rule.kind, rule.of_columns or ()):
        found = _of_parts(views, rule, near, there)
    if found is None:
        found, place = _through_a_shuffle(views, rule, near, there), Place.SHUFFLE
    return (None if found is None else SessionBuilder.by(views, rule).updates(found, near.keys)), place


def _of_parts(views: Views, rule: SessionPlan, near: NearHere, there: RangeReads) -> pa.RecordBatch | None:
    """The sessions of what is read at a time, put together by this process; None where something does not fit."""
    read_near, compute = _reading(_schema(views, rule), rule, near, there), _computing(rule, len(there.tasks))
    sessions_schema = _session_schema(rule)
    parts = read.mapped(
        views.spark, there.url, sessions_schema, there.tasks, lambda store, task: compute(read_near(store, task))
    )
    try:
        found = _fitting(parts, sessions_schema)
        return None if found is None else merged_sessions(found, rule.kind, rule.of_columns or ())
    except ArithmeticError:
        return None


def _through_a_shuffle(views: Views, rule: SessionPlan, near: NearHere, there: RangeReads) -> pa.Table | None:
    """The sessions of rows that are brought together by key; None where something does not fit."""
    schema, sessions_schema, tasks = _schema(views, rule), _session_schema(rule), len(there.tasks)
    read_near, kind, of_columns = _reading(schema, rule, near, there), rule.kind, rule.of_columns or ()

    def rows_near(store: ObjectStore, task: ReadTask) -> Batches:
        return _bounded(read_near(store, task), lambda rows: rows, schema, sys.maxsize)

    def sessions(batches: Batches) -> Batches:
        found = sessions_in_order(batches, [GROUP], AT, kind, of_columns)
        return _bounded(found, lambda some: some, sessions_schema, MOST_BYTES // tasks)

    rows = read.mapped(views.spark, there.url, schema, there.tasks, rows_near)
    ordered = rows.repartition(tasks, GROUP).sortWithinPartitions(GROUP, AT)
    return _fitting(
        ordered.mapInArrow(in_workers(sessions), from_arrow_schema(sessions_schema, prefer_timestamp_ntz=False)),
        sessions_schema,
    )


def _reading(
    schema: pa.Schema, rule: SessionPlan, near: NearHere, there: RangeReads
) -> Callable[[ObjectStore, ReadTask], Batches]:
    """What reads the rows of a task within the reach of changes, each as often as it is there. It takes to executors
    what that needs, and nothing of what is stored."""
    columns, projection, keys, reached = there.columns, there.projection, one_batch(near.keys), near.regions

    def reading(store: ObjectStore, task: ReadTask) -> Batches:
        rows = (projected(some, projection) for some in rows_as_of(store, task, columns))
        return _each_as_often(_near(rows, rule, keys, reached), schema)

    return reading


def _computing(rule: SessionPlan, tasks: int) -> Callable[[Batches], Batches]:
    """What computes the sessions of batches of rows, in a share of MOST_BYTES for each of so many tasks."""
    sessions_schema, kind, of_columns = _session_schema(rule), rule.kind, rule.of_columns or ()
    return lambda batches: _bounded(
        batches, lambda rows: _sessions(rows, kind, of_columns), sessions_schema, MOST_BYTES // tasks
    )


def _sessions(rows: pa.RecordBatch, kind: Session, of_columns: Sequence[AggregateColumn]) -> pa.RecordBatch:
    return sessions_of(pa.Table.from_batches([rows]), integers(rows, GROUP), integers(rows, AT), kind, of_columns)


def _each_as_often(near: Iterable[tuple[int, pa.RecordBatch]], schema: pa.Schema) -> Batches:
    """Rows as often as they are there. InvalidUsage where one is fewer times than none, or they are too many."""
    for _, rows in near:
        some = repeated(rows, most_bytes=MOST_BYTES)
        if some is None:
            raise InvalidUsage("rows are too many, or one is there fewer times than none")
        if some.num_rows:
            yield some.cast(schema)


def _bounded(
    batches: Batches, made: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema, room: int
) -> Batches:
    """What is made of batches, in the columns of a schema; a misfit where that is more than `room` bytes, or raises."""
    size = 0
    try:
        for rows in batches:
            found = made(rows)
            size += found.nbytes
            if size > room:
                raise InvalidUsage(f"{size} bytes are more than {room}")
            yield found.cast(schema)
    except (InvalidUsage, ArithmeticError):
        yield _misfit(schema)


def _fitting(frame: DataFrame, schema: pa.Schema) -> pa.Table | None:
    """What executors computed; None where one of them said that something does not fit."""
    found = frame.toArrow().cast(schema)
    return None if MISFIT in integers(found, GROUP) else found


def _schema(views: Views, rule: SessionPlan) -> pa.Schema:
    """Rows near changes: the numbers of their keys, their instants, and what aggregates need of them."""
    types = views.types_here(rule.input)
    names = dict.fromkeys(one.of for one in rule.of_columns or () if one.of is not None)
    return pa.schema([(GROUP, pa.int64()), (AT, pa.int64()), *((name, arrow_type(types[name])) for name in names)])


def _session_schema(rule: SessionPlan) -> pa.Schema:
    """Sessions, as `sessions_of` has them."""
    aggregates = [(one.name, arrow_type(one.type)) for one in rule.of_columns or ()]
    return pa.schema([*((name, pa.int64()) for name in (GROUP, START, END)), *aggregates])


def _misfit(schema: pa.Schema) -> pa.RecordBatch:
    """A row that says that something does not fit."""
    return pa.RecordBatch.from_arrays(
        [pa.array([MISFIT if of.name == GROUP else 0 if of.name == AT else None], of.type) for of in schema],
        schema=schema,
    )


def _near(
    batches: Iterable[pa.RecordBatch], rule: SessionPlan, keys: pa.RecordBatch, reached: Regions
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """For each batch, how many rows it has, and those in some regions of keys, with MULTIPLICITY."""
    names = dict.fromkeys(one.of for one in rule.of_columns or () if one.of is not None)
    for looked_at in batches:
        rows = looked_at.filter(pa.array(placed_rows(looked_at, rule.on)))
        numbers, at = numbers_among(keys, rows.select(list(rule.by))), micros_of(rows.column(rule.on))
        columns = [pa.array(numbers), pa.array(at), *(rows.column(name) for name in (*names, MULTIPLICITY))]
        some = pa.RecordBatch.from_arrays(columns, [GROUP, AT, *names, MULTIPLICITY])
        yield looked_at.num_rows, some.filter(pa.array(in_regions(numbers, at, reached)))
