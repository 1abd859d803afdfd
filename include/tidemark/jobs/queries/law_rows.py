"""The rows by which the law of windows is asked, and those that it judges: read as any reader reads them, within
bounds, and in order of groups and of when each is. No window is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.read import MULTIPLICITY, changes_of, changes_schema, rows_as_of, updates_in, updates_of
from tidemark.arrow.rows.columns import Ints, contiguous, integers
from tidemark.arrow.rows.order import ranks
from tidemark.arrow.rows.schema import DIFF, EVENT_TIME, TIME
from tidemark.definition.computation import Input
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.key import Key
from tidemark.plan.ranges import ranges_of
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, plan_updates, read_tasks_within
from tidemark.plan.size import size_of
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.store import ObjectStore

READ_ROWS, READ_BYTES = 2_000_000, 2**28
"""What is read at rest of an input, or of the collection, at most: seconds of one process."""
SCANNED = 5
"""So many times as much may be looked at where few of the rows are kept."""
MOST_RANGES = 64
_DAY = 86_400_000_000
NAN = float("nan")
_COMMITTED, _CHANGED = "_commit_version", "diff"

Group = tuple[Any, ...]
"""The values of the columns `by` of windows, as `cells` has them."""


class TooLarge(Exception):
    """More would have to be read than may be."""


@dataclass(frozen=True)
class Opened:
    """What is read of a collection by some request, whose parts are known."""

    store: ObjectStore
    request: ReadRequest
    parts: PartsOf

    @classmethod
    def of(cls, store: ObjectStore, request: ReadRequest) -> Opened:
        """The request, opened."""
        return cls(store, *parts_table.opened_read(store, request))

    @property
    def at_rest(self) -> list[Part]:
        """Its parts."""
        return [part for some in at_rest(self.request, self.parts) for part in some.parts]

    def ranges(self, prefixes: Sequence[Key]) -> list[KeyRange]:
        """Ranges of keys that hold all those which begin with one of some prefixes."""
        return ranges_of(prefixes, sorted(key for part in self.at_rest for key, _ in part.groups), MOST_RANGES)

    def size(self, ranges: Sequence[KeyRange]) -> tuple[int, int]:
        """Rows and bytes in the row groups that can hold keys of some ranges (none: all), and not yet resolved."""
        return size_of(self.request, self.parts, ranges)

    def is_little(self, ranges: Sequence[KeyRange], times: int = 1) -> bool:
        """Whether so much may be read, or so many times as much."""
        rows, size = self.size(ranges)
        return rows <= times * READ_ROWS and size <= times * READ_BYTES

    def check(self, ranges: Sequence[KeyRange], times: int = 1) -> None:
        """Raise TooLarge if not."""
        if not self.is_little(ranges, times):
            rows, size = self.size(ranges)
            name = self.request.collection.name
            raise TooLarge(f"{rows:,} rows of {name}, {size >> 20:,} MiB at rest, are too many")

    def tasks(self, ranges: Sequence[KeyRange]) -> list[Any]:
        """Tasks that read these keys."""
        return read_tasks_within(self.request, self.parts, ranges or (ALL_KEYS,), target_rows=READ_ROWS)


def input_opened(store: ObjectStore, given: Input, *, updates: bool) -> Opened:
    """What an input holds at the time it was consumed to, or all its updates up to then."""
    plan = plan_updates if updates else plan_as_of
    return Opened.of(store, plan(given.state, given.upper - 1))


def input_rows(
    opened: Opened, columns: Sequence[str] | None, ranges: Sequence[KeyRange], *, updates: bool, happened: bool
) -> Iterator[pa.Table]:
    """Rows of an input, in some columns of it (None: all) and DIFF, how often each is there; of updates with TIME, too.
    With `happened` they have EVENT_TIME, and a row is there once for each of these."""
    collection = opened.request.collection
    if updates or happened:
        names = [column.name for column in collection.columns]
        schema = changes_schema(collection, net=False)
        called = {_COMMITTED: TIME, EVENT_TIME: EVENT_TIME, _CHANGED: DIFF}
        assert set(called) <= set(schema.names)
        for task in opened.tasks(ranges):
            for rows in changes_of(opened.store, task, net=False):
                shown = rows.select([*names, *called])
                yield pa.table(shown.columns, [*names, *called.values()])
        return
    seen = None if columns is None else _with_key(collection, columns)
    for task in opened.tasks(ranges):
        for rows in rows_as_of(opened.store, task, seen):
            yield pa.table(rows.columns, [DIFF if name == MULTIPLICITY else name for name in rows.schema.names])


def _with_key(collection: Collection, columns: Sequence[str]) -> list[str]:
    """Columns of a collection with its key, by which rows at rest are in order."""
    wanted = {*columns, *(column.name for column in collection.key)}
    return [column.name for column in collection.columns if column.name in wanted]


def own_rows(store: ObjectStore, state: Arrangement, upper: int, ranges: Sequence[KeyRange]) -> Iterator[pa.Table]:
    """The updates of a derived collection before a frontier: its columns, hidden ones too, and DIFF. Raises
    TooLarge."""
    opened = Opened.of(store, plan_updates(state))
    opened.check(ranges)
    names = [column.name for column in (*state.collection.columns, *state.collection.hidden)]
    for task in opened.tasks(ranges):
        for rows in updates_of(store, task, names):
            known = rows.filter(pa.array(integers(rows, TIME) < upper))
            yield pa.table(known.select([*names, DIFF]).columns, [*names, DIFF])


def no_own_rows(collection: Collection) -> pa.Table:
    """None of them."""
    names = [column.name for column in (*collection.columns, *collection.hidden)]
    return updates_in(collection, names).empty_table().select([*names, DIFF])


def among(rows: pa.Table, by: Sequence[str], wanted: Mapping[str, pa.Array] | None) -> pa.Table:
    """The rows that can be of some groups, by the values of each column of `by`; all without."""
    if wanted is None:
        return rows
    for name in by:
        rows = rows.filter(pc.is_in(rows.column(name), wanted[name].cast(rows.column(name).type)))
    return rows


@dataclass(frozen=True)
class Grouped:
    """Rows in order of their group, and within it of their `places`: `groups` says where the rows of each are."""

    rows: pa.Table
    places: Ints
    groups: Mapping[Group, tuple[int, int]]

    @classmethod
    def of(cls, rows: pa.Table, by: Sequence[str], places: Ints) -> Grouped:
        """Rows whose places are given in their order."""
        rows = rows.combine_chunks()
        numbers = ranks(rows, by) if by and rows.num_rows else np.zeros(rows.num_rows, np.int64)
        order = np.lexsort((places, numbers))
        rows, places, numbers = rows.take(pa.array(order)), places[order], numbers[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        firsts = [cells(rows.column(name).take(pa.array(starts))) for name in by]
        keys: list[Group] = list(zip(*firsts, strict=True)) if by else [()] * len(starts)
        bounds = [*starts.tolist(), len(numbers)]
        return cls(rows, places, dict(zip(keys, pairwise(bounds), strict=True)))

    def instants(self, group: Group) -> list[int]:
        """The places of a group's rows, ascending."""
        low, high = self.groups.get(group, (0, 0))
        found: list[int] = self.places[low:high].tolist()
        return found


def within(rows: pa.Table, places: Ints, reaches: Sequence[tuple[int, int]] | None) -> pa.Table:
    """The rows whose places are in some ranges, both ends included; all without."""
    if reaches is None:
        return rows
    found = np.zeros(len(places), bool)
    for first, last in reaches:
        found |= (places >= first) & (places <= last)
    return rows.filter(pa.array(found))


def micros(column: pa.ChunkedArray | pa.Array) -> Ints:
    """Instants of a column, which has no nulls."""
    days = pa.types.is_date32(column.type)
    numbers = contiguous(column.cast(pa.int32()) if days else column.cast(pa.int64())).cast(pa.int64())
    found: Ints = np.asarray(numbers) * (_DAY if days else 1)
    return found


def cells(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column as plain Python has them: times in microseconds, dates in days, every NaN the same."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    found: list[Any] = column.to_pylist()
    return [NAN if x != x else x for x in found] if pa.types.is_floating(column.type) else found
