"""Fetching the rows of given keys from sorted parts, reading only the row groups that can hold one of them.

A thousand keys among a million touch every row group, and Parquet decodes a row group's column whole: what is left to
spare is work on the rows that are not asked for. So the first key column alone says which rows can be meant; texts stay
numbers in a dictionary until these rows are taken; and only they are compared by the whole key. Where not all rows of a
key are wanted, the columns that tell are read before the rest, which mostly is then not read at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.parts.reader import Fetched, OpenedPart
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, values
from tidemark.arrow.rows.cuts import NARROW, joined
from tidemark.arrow.rows.order import ranks, rows_before, rows_up_to, sort_key_of
from tidemark.arrow.rows.schema import keys_of, some_of
from tidemark.model.batch import Part
from tidemark.model.update import Row
from tidemark.storage.stores.store import ObjectStore

GATHERED_BYTES = 2**18
"""Rows of about so many bytes are compared with the keys at a time: of most row groups a few rows are near, and each
comparison costs as much as a thousand."""


class TooWide(Exception):
    """The rows of some keys take more memory than they may: ask for fewer keys."""


@dataclass(frozen=True)
class Wanted:
    """Which of the keys' rows are wanted: those for which `test` says so, by these columns. Of a part of which it would
    say so of every row (`all_of`) nothing need be asked."""

    columns: tuple[str, ...]
    test: Callable[[pa.RecordBatch], Bools]
    all_of: Callable[[Part], bool]


class Lookup:
    """Parts to look keys up in, asked with ascending sets of keys.

    Of a row group the first of the columns `keys` is read first, then those of `wanted`, and the rest of both with
    `others` only if it holds a row that is wanted of one of the keys' first columns. The file and the row group last
    read of each part stay at hand for the next set, until it has passed them. A context manager: the files are closed
    on leaving.
    """

    def __init__(
        self,
        store: ObjectStore,
        parts: Sequence[Part],
        *,
        keys: pa.Schema,
        others: pa.Schema,
        wanted: Wanted,
        fetched: Fetched,
    ) -> None:
        self._store, self._fetched, self._wanted = store, fetched, wanted
        self._keys, self._schema = keys, pa.schema([*keys, *others])
        self._first = pa.schema([keys.field(0)])
        self._rest = pa.schema(list(self._schema)[1:])
        self._telling = some_of(self._rest, wanted.columns)
        self._others = some_of(self._rest, set(self._rest.names) - set(wanted.columns))
        self._nothing = pa.RecordBatch.from_pylist([], self._schema)
        self._parts = list(parts)
        self._open: dict[str, _Open] = {}

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.part.close()

    def rows_of(self, touched: pa.RecordBatch, most: int) -> list[pa.RecordBatch]:
        """The wanted rows whose key is among `touched`, distinct keys in order; in order within each batch.

        Raises TooWide if they are wide, more than `most` bytes, and not of one key only.
        """
        first, last = keys_of(touched, [0, touched.num_rows - 1], touched.num_columns)
        self._leave_behind(first)
        found, size, count = [], 0, 0
        for part in self._parts:
            for rows in self._among(self._near_in(part, first, last, touched), touched):
                size, count = size + rows.nbytes, count + rows.num_rows
                if size > max(most, NARROW * count) and touched.num_rows > 1:
                    raise TooWide
                if rows.num_rows:
                    found.append(rows)
        return found

    def _leave_behind(self, key: Row) -> None:
        """Forget the parts that end before a key: the sets of keys to come are not below it."""
        for part in self._parts:
            if part.last_key < key and part.file.key in self._open:
                self._open.pop(part.file.key).part.close()
        self._parts = [part for part in self._parts if not part.last_key < key]

    def _near_in(self, part: Part, first: Row, last: Row, touched: pa.RecordBatch) -> Iterator[_Near]:
        firsts = [key for key, _ in part.groups]
        for group in range(max(0, bisect_left(firsts, first) - 1), bisect_right(firsts, last)):
            # A group may end with the key the next one begins with.
            end_key = firsts[group + 1] if group + 1 < len(firsts) else part.last_key
            start = rows_before(touched, sort_key_of(firsts[group]), self._keys.names)
            end = rows_up_to(touched, sort_key_of(end_key), self._keys.names)
            if start < end:
                rows = self._near_of_group(part, group, touched.slice(start, end - start))
                if rows.num_rows:
                    yield _Near(rows, start, end)

    def _among(self, near: Iterator[_Near], touched: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Of rows near the keys those that are wanted and of one of them, several row groups at a time."""
        held: list[_Near] = []
        size = 0
        for some in near:
            held.append(some)
            size += some.rows.nbytes
            if size >= GATHERED_BYTES:
                yield self._wanted_of(held, touched)
                held, size = [], 0
        if held:
            yield self._wanted_of(held, touched)

    def _wanted_of(self, near: Sequence[_Near], touched: pa.RecordBatch) -> pa.RecordBatch:
        rows = joined([some.rows for some in near])
        if not self._keys.names[1:]:
            return rows
        start, end = near[0].start, near[-1].end
        held = _among(rows.select(self._keys.names), touched.slice(start, end - start))
        return rows if held.all() else rows.filter(pa.array(held))

    def _near_of_group(self, part: Part, group: int, touched: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a row group that are wanted and whose first key column is that of one of the keys."""
        if part.file.key not in self._open:
            self._open[part.file.key] = _Open(OpenedPart(self._store, part, self._fetched, dictionaries=True))
        file = self._open[part.file.key]
        near = _near(contiguous(file.columns(group, self._first).column(0)), contiguous(touched.column(0)))
        steps = [self._first, self._rest]
        if len(near) and not self._wanted.all_of(part):
            steps = [self._first, self._telling, self._others]
            near = near[self._wanted.test(file.rows(group, self._telling, near))]
        if not len(near):
            return self._nothing
        found = {
            name: column
            for step in steps
            for name, column in zip(step.names, file.rows(group, step, near).columns, strict=True)
        }
        return pa.RecordBatch.from_arrays([found[name] for name in self._schema.names], schema=self._schema)


@dataclass(frozen=True)
class _Near:
    """Rows that may be of keys, and between which of the keys asked for these are."""

    rows: pa.RecordBatch
    start: int
    end: int


@dataclass
class _Open:
    """An open part, and of the row group last read the columns read so far, as they are in the file."""

    part: OpenedPart
    group: int = -1
    read: list[tuple[pa.Schema, pa.RecordBatch]] = field(default_factory=list)

    def columns(self, group: int, schema: pa.Schema) -> pa.RecordBatch:
        """Columns of a row group, as they are in the file."""
        if self.group != group:
            self.group, self.read = group, []
        for asked, held in self.read:
            if asked is schema:
                return held
        self.read.append((schema, self.part.encoded([group], schema)))
        return self.read[-1][1]

    def rows(self, group: int, schema: pa.Schema, some: Ints) -> pa.RecordBatch:
        """Some rows of a row group."""
        return self.part.decoded(self.columns(group, schema).take(pa.array(some)), schema)


def _near(held: pa.Array, wanted: pa.Array) -> Ints:
    """The places in `held`, which ascends, of what is among `wanted`."""
    kind = held.type
    if kind == wanted.type and (pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        numbers, sought = values(held), np.unique(values(wanted))
        starts, ends = (np.searchsorted(numbers, sought, side) for side in ("left", "right"))
        return _spans(starts, ends)
    if pa.types.is_dictionary(kind):
        among = pc.is_in(held.dictionary, value_set=wanted.cast(kind.value_type)).take(held.indices)
    else:
        among = pc.is_in(held.cast(wanted.type), value_set=wanted)
    return np.flatnonzero(among.to_numpy(zero_copy_only=False))


def _spans(starts: Ints, ends: Ints) -> Ints:
    """The numbers of all spans from a start to before its end, one after the other."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def _among(keys: pa.RecordBatch, touched: pa.RecordBatch) -> Bools:
    """Which rows of `keys` are among the rows of `touched`."""
    numbers = ranks(pa.concat_batches([touched, keys.cast(touched.schema)]), touched.schema.names)
    among = np.zeros(len(numbers), bool)
    among[numbers[: touched.num_rows]] = True
    return np.asarray(among[numbers[touched.num_rows :]])
