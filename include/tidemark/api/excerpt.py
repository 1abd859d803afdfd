"""A few windows of a collection that may hold millions: the last of a key, or of a stretch of time; and which keys
there are. What is read for it is bounded (plan/excerpt.py), and nothing is written: it is for looking at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.api.conditions import Conditions, is_any
from tidemark.api.opened import OpenCollection
from tidemark.api.windowed import windows_of
from tidemark.arrow.rows.columns import Ints, contiguous, values
from tidemark.arrow.rows.schema import arrow_type, key_column_of, key_scalars
from tidemark.arrow.view import View, rows_in
from tidemark.arrow.windows import CLOSED, FINAL, FIRST_KNOWN, LAST_CHANGED, REVISION, known_windows
from tidemark.errors import InvalidUsage, shortened
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column
from tidemark.model.condition.tree import And
from tidemark.model.instant import MAX_TIME
from tidemark.model.key import Key, KeyScalar
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows
from tidemark.model.wording import counted
from tidemark.plan.excerpt import Weight, landmarks, newest_within, thinned, weight_of
from tidemark.plan.read import ReadRequest, at_rest, plan_as_of, read_tasks
from tidemark.plan.tasks import ALL_KEYS, KeyRange
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.sidecars import parts_table

ROUND = 4_096
"""Windows that are kept in memory beside those that are wanted, before they are compared."""
LONGEST = 200
"""Characters, or bytes, that are kept of a text that is shown of a window."""


@dataclass(frozen=True)
class Wanted:
    """The `last` windows that begin in [lower, upper), as numbers (microseconds of times), None unbounded; of the `key`
    alone, which is a value of each column that they are `by`, as metadata holds keys (None: of all keys)."""

    last: int
    key: Key | None = None
    lower: int | None = None
    upper: int | None = None


@dataclass(frozen=True)
class Excerpt:
    """Some windows as known at `time`, in order of where they begin: their keys, what is known of them, an aggregate.

    They have the `key`, if there is one: also where none was wanted, and windows of all are too many to look at. If
    there are `earlier` ones, which were wanted and are left out, they begin before that.
    """

    collection: str
    windows: Windows
    time: int
    key: Key | None
    rows: pa.Table
    earlier: int | None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.rows.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.rows.to_batches())


def excerpt(opened: OpenCollection, wanted: Wanted, value: str, bound: Weight) -> Excerpt:
    """The windows that are wanted, with their aggregate `value`, as far as they can be had for opening no more than
    `bound`: the last of them, else. A text is cut.

    Raises InvalidUsage for a collection that is not defined by windows or has nothing sealed, and for a key that is
    none of its types.
    """
    answer, of = opened.windows(), opened.state.collection
    windows = answer.windows
    _of_key(of, windows, wanted.key)
    request, parts = parts_table.opened_read(opened.store, answer._request)
    rest = _at_rest(request, parts)
    key = wanted.key if windows.by else ()
    if key is None and not weight_of(rest, ALL_KEYS).within(bound):
        key = landmarks(rest, ALL_KEYS, len(windows.by))[0]
    asked = keys = _span(key, wanted)
    if key is not None:
        keys = newest_within(rest, asked, bound, len(windows.by) + 1)
    fitting = _of_key(of, windows, key)
    newest = _Newest(wanted, _shown(answer.schema.empty_table(), windows, value))
    for task in read_tasks(replace(request, keys=keys), parts):
        for rows in known_windows(opened.store, task, answer._query):
            newest.add(_shown(fitting.fitting(rows), windows, value))
    table, earlier = newest.chosen()
    if keys != asked and earlier is None:
        earlier = _start_of(keys, windows)
    return Excerpt(opened.name, windows, answer.time, key, table, earlier)


def _at_rest(request: ReadRequest, parts: PartsOf) -> list[Part]:
    return [part for some in at_rest(request, parts) for part in some.parts]


def _span(key: Key | None, wanted: Wanted) -> KeyRange:
    """The range of keys that holds what is wanted: all keys, where it does not belong to one key."""
    if key is None:
        return ALL_KEYS
    lower = key if wanted.lower is None else (*key, wanted.lower)
    return KeyRange(lower or None, _end_of(key) if wanted.upper is None else (*key, wanted.upper))


def _end_of(key: Key) -> Key:
    """What is behind all windows of a key, and before those of the next one: none begins so late."""
    return (*key, MAX_TIME)


def _start_of(keys: KeyRange, windows: Windows) -> int:
    """Where the windows of a range begin that begins with one of them."""
    assert keys.lower is not None
    start = keys.lower[len(windows.by)]
    assert isinstance(start, int)
    return start


def _of_key(of: Collection, windows: Windows, key: Key | None) -> Conditions:
    """That rows have a key. InvalidUsage for one that is none of the collection's."""
    if key is None:
        return Conditions()
    columns = of.key[: len(windows.by)]
    if len(key) != len(columns):
        raise InvalidUsage(f"a key of {of.name} has {counted(len(columns), 'value')}, not {len(key)}")
    return Conditions(And(tuple(is_any(one.name, list(_value(one, at))) for one, at in zip(columns, key, strict=True))))


def _value(column: Column, scalar: KeyScalar) -> pa.Array:
    try:
        value = key_column_of([scalar], arrow_type(column.type))
        if key_scalars(value) == [scalar]:
            return value
    except (ValueError, TypeError, ArithmeticError):
        pass
    raise InvalidUsage(
        f"column {column.name} is of type {column.type}; {shortened(repr(scalar), 80)} is no value of it"
    )


def _shown(rows: pa.RecordBatch | pa.Table, windows: Windows, value: str) -> pa.Table:
    """The columns of an excerpt."""
    names = [*windows.by, WINDOW_START, WINDOW_END, value, CLOSED, FINAL, REVISION, FIRST_KNOWN, LAST_CHANGED]
    columns = {name: rows.column(name) for name in names}
    if pa.types.is_string(columns[value].type):
        columns[value] = pc.utf8_slice_codeunits(columns[value], 0, LONGEST)
    elif pa.types.is_binary(columns[value].type):
        columns[value] = pc.binary_slice(columns[value], 0, LONGEST)
    return pa.table(columns)


class _Newest:
    """The windows that begin last, of those that come in order of key. In memory are few more."""

    def __init__(self, wanted: Wanted, none: pa.Table) -> None:
        self._wanted, self._kept = wanted, none
        self._left: int | None = None

    def add(self, rows: pa.Table) -> None:
        starts = _starts(rows)
        lower, upper = self._wanted.lower, self._wanted.upper
        inside = np.ones(len(starts), dtype=bool) if lower is None else starts >= lower
        inside &= True if upper is None else starts < upper
        self._kept = pa.concat_tables([self._kept, rows.filter(pa.array(inside))])
        if self._kept.num_rows > 4 * self._wanted.last + ROUND:
            self._drop()

    def chosen(self) -> tuple[pa.Table, int | None]:
        """These in order of where they begin; and before which start others were left out, if any were. Of those that
        begin at one instant all are shown or none, unless these alone are too many."""
        self._drop()
        starts = _starts(self._kept)
        if self._left is None:
            return self._kept, None
        if starts[0] == self._left < starts[-1]:
            self._kept = self._kept.filter(pa.array(starts > self._left))
        return self._kept, int(_starts(self._kept)[0])

    def _drop(self) -> None:
        order = np.argsort(_starts(self._kept), kind="stable")
        rows = self._kept.take(pa.array(order))
        left = rows.num_rows - self._wanted.last
        if left > 0:
            self._left = max(int(_starts(rows)[left - 1]), self._left if self._left is not None else -(2**63))
        self._kept = rows.slice(max(0, left))


def _starts(rows: pa.Table) -> Ints:
    return np.asarray(values(contiguous(rows.column(WINDOW_START))))


@dataclass(frozen=True)
class Gap:
    """The keys between two others: what comes after `above` (None: from the first on), and before `below` (None: to the
    last)."""

    above: Key | None = None
    below: Key | None = None


def keys_between(opened: OpenCollection, gap: Gap, most: int, bound: Weight) -> list[Key | Gap]:
    """What the windows of a collection are by, of which there may be millions: at most so many keys, evenly spread and
    ascending, and between them the gaps in which there are others.

    Where to read all in the gap would be more than `bound`, keys that row groups begin with; then gaps may be empty. An
    example: of (A), (B), (C), (D) two are (A), the gap after it, (C) and the gap after that one.

    Raises InvalidUsage for a collection that is not defined by windows or has nothing sealed, and for keys that are
    none of its types.
    """
    of, windows = opened.state.collection, windows_of(opened.state.collection)
    for key in (gap.above, gap.below):
        _of_key(of, windows, key)
    keys = KeyRange(None if gap.above is None else _end_of(gap.above), gap.below)
    request, parts = parts_table.opened_read(opened.store, plan_as_of(opened.state, keys=keys))
    rest = _at_rest(request, parts)
    if weight_of(rest, keys).within(bound):
        found, complete = _read_keys(opened, request, parts, windows), True
    else:
        found, complete = landmarks(rest, keys, len(windows.by)), False
    return _with_gaps(found, gap, most, complete=complete)


def _read_keys(opened: OpenCollection, request: ReadRequest, parts: PartsOf, windows: Windows) -> list[Key]:
    found: list[Key] = []
    for task in read_tasks(request, parts):
        for rows in rows_in(opened.store, task, View(windows.by)):
            found += zip(*(key_scalars(rows.column(name)) for name in windows.by), strict=True)
    return found


def _with_gaps(found: Sequence[Key], gap: Gap, most: int, *, complete: bool) -> list[Key | Gap]:
    chosen = [*thinned(range(len(found)), most), len(found)]
    first = found[0] if found else gap.below
    keys: list[Key | Gap] = [] if complete else [Gap(gap.above, first)]
    for at, following in pairwise(chosen):
        keys.append(found[at])
        if not complete or following > at + 1:
            keys.append(Gap(found[at], found[following] if following < len(found) else gap.below))
    return keys
