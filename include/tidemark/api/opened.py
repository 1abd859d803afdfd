"""A collection that was opened to be read, at one version."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex

from tidemark.api.pinned import Pinned
from tidemark.api.times import Duration, Time, lasting, micros
from tidemark.errors import InvalidUsage
from tidemark.imports import uncollected
from tidemark.jobs.job import Job, fresh_id
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from tidemark.api.conditions import Where
    from tidemark.api.dataset import CollectionDataset
    from tidemark.api.export import Exported
    from tidemark.api.hold import Hold
    from tidemark.api.latest import LatestAt
    from tidemark.api.point_in_time import PointInTime
    from tidemark.api.ranged import InRange
    from tidemark.api.reads import AsOf, Changes
    from tidemark.api.windowed import WindowRows
    from tidemark.jobs.queries.history import Entry
    from tidemark.jobs.queries.late import LateRows
    from tidemark.jobs.queries.status import Status
    from tidemark.model.arrangement import Arrangement
    from tidemark.storage.log.log import Head, StateLog
    from tidemark.storage.stores.store import ObjectStore


class OpenCollection:
    """A collection as it was at one version: reads answer the same however much is written meanwhile, until `refresh`.

    Made by `tidemark.open`. Nothing is locked and nothing must be closed. It may be used by several threads, and be
    pickled: the other side opens the same version. What is said to be Tidemark's own may change with any release.
    """

    def __init__(self, pinned: Pinned) -> None:
        self._pinned = pinned

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._pinned.name

    @property
    def version(self) -> int:
        """The version it was opened at."""
        return self._pinned.version

    @property
    def root(self) -> str:
        """The root of the collection."""
        return self._pinned.root

    @property
    def store(self) -> ObjectStore:
        """The store of the collection's objects (Tidemark's own)."""
        return self._pinned.store

    @property
    def log(self) -> StateLog:
        """The collection's versions (Tidemark's own)."""
        return self._pinned.log

    @property
    def state(self) -> Arrangement:
        """The whole state at the version (Tidemark's own)."""
        return self._pinned.state

    @property
    def pinned_head(self) -> Head:
        """The version with its state (Tidemark's own)."""
        return self._pinned.head

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(column.name for column in self.state.collection.key)

    @property
    def schema(self) -> pa.Schema:
        """The columns, key first."""
        from tidemark.arrow.read import as_of_schema

        return as_of_schema(self.state.collection).remove(len(self.state.collection.columns)).remove_metadata()

    def readable_at(self, time: int) -> OpenCollection:
        """The collection at a version that can be read as of `time`, microseconds, if one is kept (Tidemark's own)."""
        from tidemark.api.within import rows_at

        return OpenCollection(rows_at(self._pinned, time))

    def as_of(
        self,
        time: Time | None = None,
        event_time: Time | None = None,
        columns: Sequence[str] | None = None,
        where: Where | Sequence[Where] | None = None,
        *,
        committed: Time | None = None,
    ) -> AsOf:
        """The rows of the collection: as known at `time` (the newest there is), of what had happened by `event_time`
        (all).

        The rows have the columns of key and value and `_multiplicity`, how often the row is in it (never 0). With
        `columns` only these are read, in this order, and rows that are equal in them are one, multiplicities added up.
        `where` is a condition, such as `"delay_min > 30 AND carrier IN ('UA', 'AA')"`, or `"carrier=UA"`, or a dict of
        values by column (None is null, a list is any of them); several are all to hold. Conditions on the first key
        columns are looked up; those on columns of whole numbers, dates and times leave out the row groups that can hold
        no such row; others are filtered as the rows are read.

        `time` is by the schedule: what the day of files that ends at it brought was known at it. With `committed`, a
        time of the wall clock, in its place the answer is the one that was given then, by the last commit at or before
        it. A time in the future is the newest there is.

        Raises InvalidUsage for a time that cannot be read yet or any longer, with the nearest readable ones, and for
        columns, conditions and times that are none.
        """
        with uncollected():
            from tidemark.api.reads import AsOf

        return AsOf(self._pinned, self._known(time, committed), _given(event_time, "event_time"), columns, where)

    def dataset(
        self,
        time: Time | None = None,
        event_time: Time | None = None,
        columns: Sequence[str] | None = None,
        where: Where | Sequence[Where] | None = None,
        multiplicity: bool = False,
        *,
        committed: Time | None = None,
    ) -> CollectionDataset:
        """The rows of the collection as a dataset of Arrow: for DuckDB (`duckdb.sql("SELECT … FROM dataset")`), polars
        (`dataset.to_polars()`) and Arrow (`dataset.to_table(columns=…, filter=…)`), whose columns and
        filters it takes: only those columns are read, and only row groups that can hold a row which fits.

        The arguments are those of `as_of`. A row with multiplicity m is m rows; with `multiplicity` it may
        be one, and `_multiplicity` says how often it occurs: rows that are equal in the columns read may come several
        times then, so add it up. The order of rows is not defined.

        Raises InvalidUsage as `as_of`; and, when it is read without `multiplicity`, for a row of
        negative multiplicity that fits, whichever columns are read.
        """
        from tidemark.api.dataset import CollectionDataset
        from tidemark.api.rows import AsOfRows

        _check_truth(multiplicity, "multiplicity")
        known, happened = self._known(time, committed), _given(event_time, "event_time")
        return CollectionDataset(AsOfRows(self._pinned, known, happened, columns, where, multiplicity))

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        time: Time | None = None,
        event_time: Time | None = None,
        columns: Sequence[str] | None = None,
        where: Where | Sequence[Where] | None = None,
        format: str | None = None,
        partition_by: str | None = None,
        replace: bool = False,
        committed: Time | None = None,
    ) -> Exported:
        """Write the rows of the collection to a file (.parquet, .csv, .jsonl), or with `partition_by` into a
        folder with a file for each value of that column; each row repeated by its multiplicity, in no order.

        It appears whole: a reader finds what was there before, or all of it. With `replace` a file that is there is
        replaced, and a folder that contains only what an export wrote (its file `_tidemark_export` lists that).
        `time`, `event_time`, `columns`, `where` and `committed` are as in `as_of`. The `declaration` of the result is
        the text of a collection file that reads the rows back, if one can.

        Raises InvalidUsage as `dataset`, and for a format, a column and a place that cannot be; Contention while
        another export to that place is running; Unwritable where it cannot be written.
        """
        from tidemark.api.conditions import ALL
        from tidemark.api.export import export
        from tidemark.api.read_back import ReadBack

        known = self._known(time, committed)
        rows = self.dataset(known, event_time, columns, where).rows
        return export(
            lambda: rows.in_columns(rows.schema, ALL),
            rows.schema,
            path,
            versions={self.name: self.version},
            format=format,
            partition_by=partition_by,
            replace=replace,
            read_back=ReadBack(self.state.collection, self.state.complete_below if known is None else known + 1),
        )

    def range(
        self,
        timeline: str,
        lower: Any,
        upper: Any,
        where: Where | Sequence[Where] | None = None,
        columns: Sequence[str] | None = None,
        in_order: bool = False,
        time: Time | None = None,
        event_time: Time | None = None,
        *,
        committed: Time | None = None,
    ) -> InRange:
        """The rows of `as_of` whose value of the column `timeline` is in [lower, upper], both ends included (None: no
        end); none where lower is above upper. A row that has no value there is in no range.

        A timeline is a column of type int, date or timestamp. Row groups that can hold no such row are not read: few
        are where rows of one time are near each other in the order of the key, all may be where they are not;
        `explain()` says how many. With `in_order` rows come by timeline, key and value, and the whole answer is in
        memory to sort it; else they come in order of the key.

        Raises InvalidUsage as `as_of`, for a timeline that there is not, with the nearest, and for bounds that are no
        values of it.
        """
        from tidemark.api.ranged import InRange

        _check_truth(in_order, "in_order")
        known, happened = self._known(time, committed), _given(event_time, "event_time")
        return InRange(self._pinned, timeline, lower, upper, where, columns, in_order, known, happened)

    def head(self, rows: int = 10) -> pa.Table:
        """The first different rows of what is known now, in order of the key; no more is read than they need. With
        `_multiplicity` where one of them is not 1."""
        found = self.as_of().head(rows)
        once = found["_multiplicity"].to_pylist() == [1] * found.num_rows
        return found.drop_columns(["_multiplicity"]) if once else found

    def changes(
        self,
        after: Time | None = None,
        upto: Time | None = None,
        net: bool = False,
        columns: Sequence[str] | None = None,
        where: Where | Sequence[Where] | None = None,
        *,
        committed_after: Time | None = None,
        committed_upto: Time | None = None,
    ) -> Changes:
        """What the collection learned after one time (the beginning) up to another (the newest there is, included).

        The rows have the columns of key and value, `_change_type` (insert, delete, update_preimage, update_postimage),
        `_commit_version` and `_commit_timestamp` (when it was learned, in microseconds and as a timestamp),
        `_event_time` (when it happened, in microseconds) and `diff` (how many more of the row there are). `net` adds up
        over the whole span and leaves the times out.

        `columns` and `where` are as in `as_of`. Unless `net`, conditions may look at `_event_time`, which they compare
        with a time (`"_event_time >= '2024-01-01'"`), `_commit_timestamp` and `_commit_version`, too. The answer
        has the changes of the columns that they name: an update of other columns is not in it. An update has its two
        images where the whole key is among these columns.

        `committed_after` and `committed_upto` are times of the wall clock in place of these two: what was learned
        between the answers of then, as `committed` of `as_of`.

        Raises InvalidUsage as `as_of`.
        """
        with uncollected():
            from tidemark.api.reads import Changes

        _check_truth(net, "net")
        first, last = self._known(after, committed_after, "after"), self._known(upto, committed_upto, "upto")
        return Changes(self._pinned, first, last, net, columns, where)

    def changes_within(
        self,
        lower: Time,
        upper: Time,
        columns: Sequence[str] | None = None,
        where: Where | Sequence[Where] | None = None,
    ) -> Changes:
        """What the collection learned from `lower` on and before `upper`, each change once: spans that follow each
        other without gap or overlap, such as the windows of asset events, give every change to exactly one of them.

        Unlike `changes` it answers after retention has moved on: what was merged meanwhile is read in the version that
        sealed the span, as long as it is kept. Where history begins within the span and nothing was learned before it
        (the first build of a derived collection), the rows as of that time come as insertions, and then the changes.

        Raises InvalidUsage as `changes`; and where what was learned before the span is merged with it.
        """
        from tidemark.api.within import changes_within

        return changes_within(self._pinned, Interval(micros(lower, "lower"), micros(upper, "upper")), columns, where)

    def latest_at(
        self,
        timeline: str,
        t: object = None,
        where: Where | Sequence[Where] | None = None,
        within: object = None,
        columns: Sequence[str] | None = None,
        each: bool = False,
        ties: Sequence[str] = (),
        *,
        time: Time | None = None,
        event_time: Time | None = None,
        at: object = None,
        at_column: str | None = None,
        known_at: str | None = None,
        committed: Time | None = None,
    ) -> LatestAt | PointInTime:
        """Of each key the latest row at the time `t` on a timeline: of the rows that `as_of(time, event_time, where)`
        has, the one with the greatest time that is not above `t`, and not further below than `within`.

        A timeline is a column of the value, of type timestamp, date or int; those that the collection file names under
        `timelines` are looked up best. A row without a time is never the latest. Of rows at one time the one wins that
        is greatest in the columns `ties`, then by all columns of the value in their order at rest, the one declared
        first before the others: null is least, then NaN, then every number. When they came never matters. `within` is a
        duration, of a date whole days, of an int a whole number.

        With `each` every column of the value has its own latest value that is not null, and behind it when that was:
        `speed` and `speed_at`. The timeline's own column has the time of the latest row.

        In order of the key, one row for each that has any. `columns`, `where`, `time`, `event_time` and `committed`
        are as in `as_of`; a row has no multiplicity here. Where each key has one value, the usual question is
        `as_of(event_time=…)`: this one reads the current rows, by a column of theirs.

        With a table `at` in place of `t` (of pyarrow, pandas or polars, or a data frame of Spark) each of its rows is
        asked for: the point-in-time join. It has the columns of the key, and the time as the column `at_column`, which
        is named as the timeline by default. The answer is the table, in its order, with the columns of the value (or
        `columns` of them) behind its own: null where there is no row, or where the key or the time is null. The time of
        the row is called `_at`. With `known_at`, a column of timestamps of the table, each row is answered by what was
        known then: a correction that was learned later does not count. A data frame of Spark is answered by `to_spark`.

        Raises InvalidUsage as `as_of`; for a timeline or a time that is none, and for a column that the table lacks, or
        has in another type; and, when it is read, for a key with a row of negative multiplicity in that span,
        unless its latest row is later.
        """
        from tidemark.api.latest import LatestAt, Question

        known = (self._known(time, committed), _given(event_time, "event_time"))
        question = Question(timeline, where, within, columns, each, ties, *known)
        if at is None:
            if at_column is not None or known_at is not None:
                raise InvalidUsage("at_column and known_at are columns of a table; give it as at=")
            return LatestAt(self._pinned, question, t)
        from tidemark.api.point_in_time import PointInTime

        if t is not None:
            raise InvalidUsage("t is one time, and at a table of times; give one of them")
        return PointInTime(self._pinned, question, at, at_column, known_at)

    def windows(
        self,
        time: Time | None = None,
        open: bool = False,
        where: Where | Sequence[Where] | None = None,
        *,
        committed: Time | None = None,
    ) -> WindowRows:
        """Of a collection that is defined by windows: its rows as known at `time` (the newest there is), and what its
        history says of each window.

        `_end_inclusive` says whether `window_end` belongs to the window, `_closed` whether it is closed: then no row
        that is on time can change it; `_final` whether no late row can either. `_revision` is how often its row changed
        since it was first there, as far as history is kept; `_first_told` and `_last_told` when it was first there and
        changed last. With `open` those windows too that have rows but are not there before they close. `where` and
        `committed` are as in `as_of`.

        Raises InvalidUsage as `as_of`, and for a collection that is not defined by windows.
        """
        from tidemark.api.windowed import WindowRows

        _check_truth(open, "open")
        return WindowRows(self._pinned, self._known(time, committed), open, where)

    def status(self) -> Status:
        """Frontiers, what is unsealed, the trace by level, debt, late rows, what corrections cost, and the next step:
        all at this version. Of a derived collection also how it follows its inputs, as these are now."""
        from tidemark.jobs.queries.whole_status import whole_status

        return whole_status(self.store, self.log, self.pinned_head, lambda name: _head(self.root, name))

    def history(self, limit: int | None = None, *, attempts: bool = True) -> list[Entry]:
        """The versions down from this one, newest first: what each changed, when, and who wrote it.

        Args:
            limit: How many, at most.
            attempts: Whether attempts that started and holds of derived collections are among them.
        """
        from tidemark.jobs.queries.history import history, is_outcome

        most = None if limit is None else _count(limit)
        chosen: dict[str, Any] = {} if attempts else {"is_shown": is_outcome}
        entries = list(islice(history(self.log, upto=self.version, zone=self.state.collection.zone, **chosen), most))
        if not entries:
            self._pinned.check_kept()
        return entries

    def late(self, limit: int = 0, path: str | None = None) -> LateRows:
        """What came late: counts by source file, of those whose path holds `path`, and at most `limit` of the rows."""
        from tidemark.jobs.queries.late import late_rows

        if not (path is None or isinstance(path, str)):
            raise InvalidUsage(f"path is {path!r} ({type(path).__name__}); write text that is in the files' paths")
        return late_rows(self.store, self.state, limit=_count(limit), path=path)

    def hold(self, name: str, at: Time | None = None, lasts: Duration | None = None) -> Hold:
        """Keep history readable from `at` (all that can be read now), whatever the retention says, for as long as it
        `lasts` (until released).

        It is placed at once; as a context manager it is released at the end. A hold of that name is moved.
        Raises InvalidUsage for history that is merged already, with the nearest readable times, and for a name that
        could be none.
        """
        from tidemark.api.hold import Hold

        if not isinstance(name, str):
            raise InvalidUsage(f"the name of a hold is text, not {name!r} ({type(name).__name__})")
        return Hold(self._job(), name, _given(at, "at"), None if lasts is None else lasting(lasts))

    def refresh(self) -> OpenCollection:
        """Go to the newest version, and return this same object. Answers that were asked before stay at theirs."""
        self._pinned = replace(self._pinned, head=self.log.load())
        return self

    def _known(self, time: Time | None, committed: Time | None, name: str = "time") -> int | None:
        """The time as known at which is read, by either clock; None: neither says one."""
        if committed is None:
            return _given(time, name)
        from tidemark.api.committed import chosen_time

        return chosen_time(self._pinned, _given(time, name), micros(committed, "committed"), name)

    def _job(self) -> Job:
        def no_data() -> Any:
            raise AssertionError("nothing that is read from Python runs tasks")

        return Job(self.store, self.log, no_data, fresh_id())

    def _repr_html_(self) -> str:
        """What it is, for a notebook."""
        from tidemark.api.notebook import of_collection

        return of_collection(self.state, self.version, next(iter(self.history(1)), None))

    def __repr__(self) -> str:
        state = self.state
        progress = f"complete below {format_instant(state.complete_below)}" if state.seal else "nothing complete yet"
        if state.seal > state.complete_below:
            progress += f", known up to {format_instant(state.seal)}"
        return f"<tidemark collection {self.name}, version {self.version}: {progress}, in {self.store.url}>"


def _head(root: str, name: str) -> Head | None:
    """The newest head of another collection below the root."""
    from tidemark.api.pinned import find

    found = find(root, name)
    return None if found is None else found.head


def _check_truth(value: bool, name: str) -> None:
    """Raise InvalidUsage for what only Python takes for one: the text `false` is true to it."""
    if not isinstance(value, bool):
        raise InvalidUsage(f"{name} is {value!r} ({type(value).__name__}); it is True or False")


def _count(limit: int) -> int:
    """How many at most. Raises InvalidUsage for what is no number of rows or versions."""
    if isinstance(limit, bool) or not isinstance(limit, SupportsIndex):
        raise InvalidUsage(f"limit is {limit!r} ({type(limit).__name__}); it is a whole number")
    if (count := operator.index(limit)) < 0:
        raise InvalidUsage(f"limit is {limit}; it must not be negative")
    return count


def _given(time: Time | None, name: str) -> int | None:
    return None if time is None else micros(time, name)
