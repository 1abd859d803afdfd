"""The inputs of a definition: what each holds at the time it is consumed to, or what changed of it since before that;
and what the collection itself holds. As Spark sees them, or, where they are little, read by this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.arrow.kernels.merge import chained
from tidemark.arrow.kernels.projected import projected
from tidemark.arrow.kernels.windows.judged import counting, net_in_windows
from tidemark.arrow.kernels.windows.placed import placed
from tidemark.arrow.read import MULTIPLICITY, rows_as_of, updates_in, updates_of
from tidemark.arrow.runs import Keep
from tidemark.definition.recipe import DIFF, EVENT_TIME, HAPPENED, TIME, WindowAssignment
from tidemark.definition.ways import Place, Way, kernel_of
from tidemark.definition.windows.rows import END, START
from tidemark.model.collection import Collection, ValueType
from tidemark.model.expression import Projection
from tidemark.model.window.judged import Judging
from tidemark.plan.ranges import most_alike
from tidemark.plan.read import at_rest, plan_as_of, plan_updates, read_tasks, read_tasks_within
from tidemark.plan.size import size_of
from tidemark.plan.tasks import ALL_KEYS, KeyRange, ReadTask
from tidemark.spark import read
from tidemark.spark.derive.reading import Reading
from tidemark.spark.derive.settings import isolated_session
from tidemark.spark.derive.under_names import repeated
from tidemark.storage import ObjectStore, open_store
from tidemark.storage.sidecars import parts_table

LITTLE_BYTES = 2**24
"""What is read by the driver itself, at rest: a job of Spark's takes longer than so much."""
NET_BYTES = 2**27
"""Of updates in their windows that one process adds up."""
LOOKED_AT_ROWS, LOOKED_AT_BYTES = 2**22, 2**25
"""What is looked at by the driver itself for few rows among them: planning a query for them takes longer. Where any key
may hold them, and most may be among them, a quarter of the rows."""


@dataclass
class Views(Reading):
    """Reads the inputs of one computation, and the collection itself.

    It works in a session of its own, in which the inputs' names are free, opened beside that of `session` where
    something is asked of Spark. At the end of its block what it had Spark keep is let go: a run that catches up
    computes many times."""

    session: Callable[[], SparkSession]
    _kept: list[DataFrame] = field(default_factory=list)
    judged: DataFrame | None = None
    """What was found of each update of sessions that take late rows for a while only, where that was asked for."""
    place: Place = Place.QUERIES
    """Where it was computed."""
    declined: list[str] = field(default_factory=list)
    """Why no cheaper place took it, a line each."""
    unplaced: int | None = None
    """How many of the rows that were looked at are in no window, where this process looked at all of them itself."""

    def __enter__(self) -> Views:
        return self

    def declines(self, why: str) -> None:
        """A place does not take the computation."""
        if why not in self.declined:
            self.declined.append(why)

    def declines_types(self) -> None:
        """A kernel's columns are none that the collection could hold as they are."""
        self.declines("the collection has columns of other types than the kernel computes")

    @property
    def way(self) -> Way:
        """How it was computed."""
        recipe = self.computation.recipe
        if recipe is None:
            return Way(Place.PYTHON, "")
        left = [recipe.left_to_spark] if recipe.left_to_spark else []
        return Way(self.place, kernel_of(recipe), (*left, *self.declined) if self.place is not Place.HERE else ())

    @cached_property
    def spark(self) -> SparkSession:
        """Its session."""
        return isolated_session(self.session())

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            frame.unpersist()

    def kept(self, frame: DataFrame) -> DataFrame:
        """A frame that is computed once."""
        self._kept.append(frame.persist())
        return self._kept[-1]

    def rows_of(self, name: str, ranges: Sequence[KeyRange] = (), between: tuple[int, int] | None = None) -> DataFrame:
        """What an input holds, a row as often as its multiplicity says; with `ranges` of these keys only, and, where it
        is seen when rows happened, only those `between` two instants, both included."""
        asked, happened = self.computation.input(name), self.sees_event_times
        request, collection = plan_as_of(asked.state, asked.upper - 1), asked.state.collection
        if happened:
            request = replace(request, sums=False)
        if happened and between is not None:
            first, last = between
            request = replace(request, event_from=max(0, first), event_upto=min(last, request.event_upto))
        # Where a key may hold several values, how often a row is there is for all of it to say.
        columns = _in_order(collection, self.used(name)) if collection.kind.one_value and not happened else None
        store = self._opened(asked.url, request, ranges)
        frame = read.as_of_rows(self.spark, store, request, ranges, columns, event_times=happened)
        if happened and between is not None:
            # A part is read for what it has between them; rows outside that it retracts may be in one that is not read.
            frame = frame.where(F.col(EVENT_TIME).between(*between))
        return repeated(_happening(frame).drop(EVENT_TIME) if happened else frame, name, _key(collection), MULTIPLICITY)

    def input_rows_here(
        self, name: str, ranges: Sequence[KeyRange] = (), *, most_rows: int, most_bytes: int
    ) -> Iterator[pa.RecordBatch] | None:
        """What an input holds of keys in `ranges` (none: all), in the columns that the definition looks at, maybe more,
        and MULTIPLICITY, read by this process without Spark: None where there are more rows or bytes at rest to look
        at, or where a definition sees more of a row than its columns. A key of one value has it once. Of windows as
        `changes_here`."""
        batches = self.rows_here(name, ranges, most_rows=most_rows, most_bytes=most_bytes)
        return None if batches is None else map(self.placed, batches)

    def rows_here(
        self, name: str, ranges: Sequence[KeyRange] = (), *, most_rows: int, most_bytes: int
    ) -> Iterator[pa.RecordBatch] | None:
        """The same without windows: each row that counts for them is there once, or as often as its multiplicity
        says."""
        asked, plan = self.computation.input(name), plan_updates if self.lateness else plan_as_of
        request, parts = parts_table.opened_read(open_store(asked.url), plan(asked.state, asked.upper - 1))
        rows, size = size_of(request, parts, ranges)
        if not self._as_they_are and self.lateness is None:
            return None
        if rows > most_rows or size > most_bytes:
            self.declines(_too_many(name, rows, size, most_rows, most_bytes))
            return None
        store = self._opened(asked.url, request, ranges)
        if self.lateness:
            tasks = read_tasks_within(request, parts, ranges or (ALL_KEYS,), target_rows=most_rows)
            updates = (rows for task in tasks for rows in updates_of(store, task, self.used(name)))
            return net_rows(updates, self._projection, self.lateness, asked.judging)
        tasks = read_tasks_within(request, parts, ranges or (ALL_KEYS,), target_rows=most_rows)
        columns = self._columns(name, tasks)
        return (projected(rows, self._projection) for task in tasks for rows in rows_as_of(store, task, columns))

    def range_reads(self, name: str, leading: int, ranges: Sequence[KeyRange] = ()) -> RangeReads | None:
        """What an input holds of keys in `ranges` (none: all), as tasks that read it without Spark: rows whose keys are
        equal in so many of their `leading` columns are in one. None where a definition sees more of a row than its
        columns, where rows are laid out by time, or where so many rows may be equal in these that they are not worth
        one task."""
        asked, plan = self.computation.input(name), plan_updates if self.lateness else plan_as_of
        collection = asked.state.collection
        request, parts = parts_table.opened_read(open_store(asked.url), plan(asked.state, asked.upper - 1))
        opened = [part for some in at_rest(request, parts) for part in some.parts]
        if not self._as_they_are and self.lateness is None:
            return None
        if collection.layout:
            self.declines(f"{name} is laid out by {collection.layout.by}: rows of a key are in many places")
            return None
        if (alike := most_alike(opened, leading)) > read.LEAST_TASK_ROWS:
            most = read.LEAST_TASK_ROWS
            self.declines(f"{name}: up to {alike:,} rows of one key; a task takes up to {most:,}")
            return None
        self._opened(asked.url, request, ranges)
        tasks = read.tasks_of(read.cores(self.spark), request, parts, ranges, leading=leading)
        columns = self._columns(name, tasks)
        if self.lateness:
            used = tuple(self.used(name))
            return RangeReads(asked.url, tuple(tasks), used, self._projection, self.lateness, asked.judging)
        return RangeReads(asked.url, tuple(tasks), None if columns is None else tuple(columns), self._projection)

    def _columns(self, name: str, tasks: Sequence[ReadTask]) -> list[str] | None:
        """List the columns in which rows of an input are read; None where it takes all to say how often a row is there.

        Where nothing is merged these are the used ones and the key: what is in between need not be in order.
        """
        collection, used = self.computation.input(name).state.collection, self.used(name)
        if not collection.kind.one_value:
            return None
        if not all(map(_is_one_run, tasks)):
            return _in_order(collection, used)
        placed_by = [collection.layout.by] if collection.layout else []
        needed = {*(column.name for column in collection.key), *used, *placed_by}
        return [column.name for column in collection.columns if column.name in needed]

    def changes(self, name: str, *, all_columns: bool = False) -> DataFrame:
        """The updates of an input since it was consumed before; all of them, where it was not. Times as its history
        has them now."""
        request, collection = self._changes(name), self.computation.input(name).state.collection
        happened = self.sees_event_times
        columns = None if all_columns or happened else _in_order(collection, self.used(name))
        store = self._opened(self.computation.input(name).url, request, ())
        frame = read.updates(self.spark, store, request, columns=columns)
        return _happening(frame) if happened else frame

    def new(self, name: str) -> DataFrame:
        """The updates of an input that what the collection holds was not computed from, also where all is computed."""
        given, rows = self.computation.input(name), self.changes(name)
        if given.previous is not None or given.consumed is None:
            return rows
        return rows.where(F.col(TIME) >= given.consumed)

    def some_changes(self, name: str) -> DataFrame:
        """The same for who adds them up, or looks at them only: equal rows may be there several times, and cancel each
        other, and none has a time."""
        if self.sees_event_times:
            return self.changes(name)
        request = self._changes(name)
        store = self._opened(self.computation.input(name).url, request, ())
        frame = read.some_updates(self.spark, store, request, self.used(name))
        return frame.coalesce(1) if self.rows_changed(name) <= read.LEAST_TASK_ROWS else frame

    def changes_here(self, name: str) -> Iterator[pa.RecordBatch] | None:
        """The updates of `changes`, read by this process without Spark: None where that is more than a task's rows, or
        more than LITTLE_BYTES, or where a definition sees more of a row than its columns. Of windows that are computed
        by arithmetic rows are there once for each; Overflowed where they cannot be."""
        changed = self.rows_changed_here(name)
        return None if changed is None else map(self.placed, changed)

    def rows_changed_here(self, name: str) -> Iterator[pa.RecordBatch] | None:
        """The same without windows."""
        asked, request = self.computation.input(name), self._changes(name)
        if not self._as_they_are and self.lateness is None:
            return None
        rows, most = self.rows_changed(name), read.LEAST_TASK_ROWS
        request, parts = parts_table.opened_read(open_store(asked.url), request)
        size = sum(part.file.bytes for some in at_rest(request, parts) for part in some.parts)
        if rows > most or size > LITTLE_BYTES:
            self.declines(_too_many(f"changes of {name}", rows, size, most, LITTLE_BYTES))
            return None
        store = self._opened(asked.url, request, ())
        columns = self.used(name)
        tasks = read_tasks(request, parts)
        return (projected(rows, self._projection) for task in tasks for rows in updates_of(store, task, columns))

    def types_here(self, name: str) -> dict[str, ValueType]:
        """The columns of an input in `changes_here` and `input_rows_here`, and their types."""
        types = {column.name: column.type for column in self.computation.input(name).state.collection.columns}
        if self._projection is not None:
            types |= self._projection.shown
        rule = self.computation.recipe and self.computation.recipe.placed
        return types | ({START: rule.bound, END: rule.bound} if rule else {})

    @property
    def _projection(self) -> Projection | None:
        recipe = self.computation.recipe
        return None if recipe is None else recipe.projection

    def placed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows as a definition sees them: once for each aligned window that they are in, and that they count in."""
        rule = self.computation.recipe and self.computation.recipe.placed
        if not rule or START in rows.schema.names:
            return rows
        if rule.frozen_after is None:
            return placed(rows, rule)
        (given,) = self.computation.inputs
        return counting(rows, rule, given.judging)

    def updates(self, name: str, ranges: Sequence[KeyRange] = ()) -> DataFrame:
        """All updates of an input, as `changes`; with `ranges` of these keys only."""
        asked = self.computation.input(name)
        request = plan_updates(asked.state, asked.upper - 1)
        frame = read.updates(self.spark, self._opened(asked.url, request, ranges), request, ranges)
        return _happening(frame) if self.sees_event_times else frame

    def own(self, ranges: Sequence[KeyRange] = ()) -> DataFrame:
        """All updates that the collection itself holds, hidden columns too; with `ranges` of these keys only."""
        request = plan_updates(self.computation.state)
        store = self._opened(self.computation.url, request, ranges)
        return read.updates(self.spark, store, request, ranges, self._stored)

    def own_rows(
        self, ranges: Sequence[KeyRange], keep: Keep, *, most_rows: int, most_bytes: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Those of them that `keep` leaves, all of a row or none, read by this process without Spark: None where there
        are more rows or bytes at rest to look at."""
        url = self.computation.url
        request, parts = parts_table.opened_read(open_store(url), plan_updates(self.computation.state))
        rows, size = size_of(request, parts, ranges)
        if rows > most_rows or size > most_bytes:
            self.declines(_too_many(self.computation.name, rows, size, most_rows, most_bytes))
            return None
        store = self._opened(url, request, ranges)
        tasks = read_tasks_within(request, parts, ranges or (ALL_KEYS,), target_rows=most_rows)
        return (rows for task in tasks for rows in updates_of(store, task, self._stored, keep))

    def own_tasks(self, ranges: Sequence[Sequence[KeyRange]]) -> list[ReadTask]:
        """The same as tasks, one for each of some ranges of keys, which ascend and do not overlap."""
        url = self.computation.url
        request, parts = parts_table.opened_read(open_store(url), plan_updates(self.computation.state))
        self._opened(url, request, [keys for some in ranges for keys in some])
        return [task for some in ranges for task in read_tasks_within(request, parts, some, target_rows=sys.maxsize)]

    def own_table(self, batches: Iterable[pa.RecordBatch]) -> pa.Table:
        """Some of these as one table."""
        return pa.Table.from_batches(batches, schema=updates_in(self.computation.collection, self._stored))


@dataclass(frozen=True)
class RangeReads:
    """Tasks that read what a collection at `url` holds, in `columns` (None: all) and MULTIPLICITY: by no two of them
    rows of one group. Rows are projected then. With `lateness` they read updates, which count by `judging` in windows
    of it."""

    url: str
    tasks: tuple[ReadTask, ...]
    columns: tuple[str, ...] | None
    projection: Projection | None = None
    lateness: WindowAssignment | None = None
    judging: Judging | None = None

    def rows(self, store: ObjectStore, task: ReadTask) -> Iterator[pa.RecordBatch]:
        """The rows of a task, projected; with `lateness` those that count, once for each window, with START and END."""
        if self.lateness is None or self.judging is None:
            return (projected(rows, self.projection) for rows in rows_as_of(store, task, self.columns))
        return net_rows(updates_of(store, task, self.columns or ()), self.projection, self.lateness, self.judging)


def net_rows(
    updates: Iterable[pa.RecordBatch], projection: Projection | None, windows: WindowAssignment, judging: Judging
) -> Iterator[pa.RecordBatch]:
    """The rows that updates add up to in the windows that they count in, with START, END and MULTIPLICITY."""
    for rows in net_in_windows(updates, projection, windows, judging, NET_BYTES):
        yield rows.rename_columns([MULTIPLICITY if name == DIFF else name for name in rows.schema.names])


def _too_many(name: str, rows: int, size: int, most_rows: int, most_bytes: int) -> str:
    most = f"{most_rows:,} and {most_bytes >> 20:,} MiB"
    return f"{name}: {rows:,} rows of {size >> 20:,} MiB at rest; this process reads up to {most}"


def _happening(frame: DataFrame) -> DataFrame:
    return frame.withColumn(HAPPENED, F.timestamp_micros(EVENT_TIME))


def _is_one_run(task: ReadTask) -> bool:
    """Whether a task reads rows that follow one another by key, and of which none is retracted."""
    parts = [part for at_rest in task.at_rest for part in at_rest.parts]
    return task.unsealed is None and len(chained(parts)) < 2 and not any(part.retractions for part in parts)


def _in_order(collection: Collection, used: Sequence[str]) -> list[str]:
    """The columns of a collection that rows at rest are in order of, up to the last of those used: a read of these need
    not sort merged rows again."""
    order = [column.name for column in (*collection.key, *collection.stored_value)]
    placed_by = [collection.layout.by] if collection.layout else []
    last = max(map(order.index, [*used, *placed_by]))
    before = set(order[: last + 1])
    return [column.name for column in collection.columns if column.name in before]


def _key(collection: Collection) -> Sequence[str] | None:
    """What distinguishes rows; None where a key has one value, and that once."""
    return None if collection.kind.one_value else [column.name for column in collection.key]
