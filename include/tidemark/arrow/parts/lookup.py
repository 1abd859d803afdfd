"""Fetching the rows of given keys from sorted parts, reading only the row groups that can hold one of them.

A thousand keys among a million touch every row group, and Parquet decodes a row group's column whole: what is left to
spare is work on the rows that are not asked for. So the first key column alone says which rows can be meant; texts stay
numbers in a dictionary until these rows are taken; and only they are compared by the whole key. Where not all rows of a
key are wanted, the columns that decide are read before the rest, which mostly is then not read at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.parts.reader import Fetched, OpenedPart
from tidemark.arrow.rows.arrays import no_rows, of_bools, of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, values
from tidemark.arrow.rows.cuts import NARROW, joined
from tidemark.arrow.rows.order import ranks, rows_around
from tidemark.arrow.rows.schema import keys_of, some_of
from tidemark.model.batch import Part
from tidemark.model.key import Key
from tidemark.storage.stores.store import ObjectStore

GATHERED_BYTES = 2**18
"""Rows of about so many bytes are compared with the keys at a time: of most row groups a few rows are near, and each
comparison costs as much as a thousand."""
AT_ONCE_BYTES = 8 * 2**20
"""Row groups of about so many bytes are read at once, or a single one: half the cost of small ones is in the calls."""


class TooWide(Exception):
    """The rows of some keys take more memory than they may: ask for fewer keys."""


@dataclass(frozen=True)
class Wanted:
    """Which of the keys' rows are wanted: those for which `test` says so, by these columns, which may be others than
    those asked for. Of a part of which it would say so of every row (`all_of`) nothing need be asked."""

    columns: pa.Schema
    test: Callable[[pa.RecordBatch], Bools]
    all_of: Callable[[Part], bool]


class Narrowing(Protocol):
    """Which of the keys asked for are looked up in which part, by what was found in those before it."""

    def asked(self, part: Part) -> pa.RecordBatch:
        """Some of the keys, in order."""
        ...

    def found(self, rows: pa.RecordBatch) -> None:
        """Wanted rows of a part."""
        ...


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
        self._others = some_of(self._rest, set(self._rest.names) - set(wanted.columns.names))
        self._nothing = no_rows(self._schema)
        self._parts = list(parts)
        self._open: dict[str, _Open] = {}

    def __enter__(self) -> Lookup:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.part.close()

    def rows_of(self, touched: pa.RecordBatch, most: int, narrowing: Narrowing | None = None) -> list[pa.RecordBatch]:
        """The wanted rows whose key is among `touched`, distinct keys in order; in order within each batch. With
        `narrowing` some rows may be missing, of keys that it no longer asks for.

        Raises TooWide if they are wide, more than `most` bytes, and not of one key only.
        """
        self._leave_behind(keys_of(touched, [0], touched.num_columns)[0])
        answers, size, count = [], 0, 0
        for part in self._parts:
            sought = touched if narrowing is None else narrowing.asked(part)
            for rows in self._among(self._near_in(part, sought), sought) if sought.num_rows else ():
                size, count = size + rows.nbytes, count + rows.num_rows
                if size > max(most, NARROW * count) and touched.num_rows > 1:
                    raise TooWide
                if rows.num_rows:
                    answers.append(rows)
                if rows.num_rows and narrowing is not None:
                    narrowing.found(rows)
        return answers

    def _leave_behind(self, key: Key) -> None:
        """Forget the parts that end before a key: the sets of keys to come are not below it."""
        for part in self._parts:
            if part.last_key < key and part.file.key in self._open:
                self._open.pop(part.file.key).part.close()
        self._parts = [part for part in self._parts if not part.last_key < key]

    def _near_in(self, part: Part, touched: pa.RecordBatch) -> Iterator[_Near]:
        first, last = keys_of(touched, [0, touched.num_rows - 1], touched.num_columns)
        firsts = [key for key, _ in part.groups]
        low, high = max(0, bisect_left(firsts, first) - 1), bisect_right(firsts, last)
        # A group may end with the key the next one begins with.
        bounds = [*firsts[low : high + 1], *([part.last_key] if high == len(firsts) else [])]
        before, up_to = rows_around(touched, bounds, self._keys.names)
        groups = [
            (low + at, start, end)
            for at, (start, end) in enumerate(zip(before[:-1].tolist(), up_to[1:].tolist(), strict=True))
            if start < end
        ]
        if not groups:
            return
        file = self._opened(part)
        for bundle in file.bundled(groups):
            start, end = bundle[0][1], bundle[-1][2]
            rows = self._near_of(file, [group for group, _, _ in bundle], touched.slice(start, end - start))
            if rows.num_rows:
                yield _Near(rows, start, end)

    def _opened(self, part: Part) -> _Open:
        if part.file.key not in self._open:
            self._open[part.file.key] = _Open(OpenedPart(self._store, part, self._fetched, dictionaries=True))
        return self._open[part.file.key]

    def _among(self, near: Iterator[_Near], touched: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Of rows near the keys those that are wanted and of one of them, several row groups at a time."""
        gathered: list[_Near] = []
        size = 0
        for piece in near:
            gathered.append(piece)
            size += piece.rows.nbytes
            if size >= GATHERED_BYTES:
                yield self._wanted_of(gathered, touched)
                gathered, size = [], 0
        if gathered:
            yield self._wanted_of(gathered, touched)

    def _wanted_of(self, near: Sequence[_Near], touched: pa.RecordBatch) -> pa.RecordBatch:
        rows = joined([piece.rows for piece in near])
        if not self._keys.names[1:]:
            return rows
        start, end = near[0].start, near[-1].end
        among = _among(rows.select(self._keys.names), touched.slice(start, end - start))
        return rows if among.all() else rows.filter(of_bools(among))

    def _near_of(self, file: _Open, groups: Sequence[int], touched: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of some row groups that are wanted and whose first key column is that of one of the keys."""
        firsts = file.columns(groups, self._first)
        near = _near(firsts.column(0), contiguous(touched.column(0)))
        if not len(near):
            return self._nothing
        rows = file.taken(firsts, self._first, near)
        groups, near = file.holding(groups, near)
        others = self._rest
        if not self._wanted.all_of(file.part.part):
            tested = file.rows(groups, self._wanted.columns, near)
            wanted = self._wanted.test(tested)
            if not wanted.any():
                return self._nothing
            rows = _side_by_side([rows, tested])
            if not wanted.all():
                rows = rows.filter(of_bools(wanted))
                groups, near = file.holding(groups, near[wanted])
            others = self._others
        if others.names:
            rows = _side_by_side([rows, file.rows(groups, others, near)])
        return pa.RecordBatch.from_arrays([rows.column(name) for name in self._schema.names], schema=self._schema)


@dataclass(frozen=True)
class _Near:
    """Rows that may be of keys, and between which of the keys asked for these are."""

    rows: pa.RecordBatch
    start: int
    end: int


@dataclass
class _Open:
    """An open part, and the columns read so far of the row groups last read, as they are in the file."""

    part: OpenedPart
    groups: Sequence[int] = ()
    read: list[tuple[pa.Schema, pa.Table]] = field(default_factory=list)

    def bundled(self, groups: Sequence[tuple[int, int, int]]) -> Iterator[Sequence[tuple[int, int, int]]]:
        """Row groups, each with what belongs to it, so many at a time as are read at once."""
        metadata = self.part.metadata
        fixed = 8 * metadata.num_columns
        bundle: list[tuple[int, int, int]] = []
        size = 0
        for entry in groups:
            group = metadata.row_group(entry[0])
            more = max(group.total_byte_size, group.num_rows * fixed)
            # What is at hand of a row group is not read again.
            if bundle and (size + more > AT_ONCE_BYTES or self.groups == [bundle[0][0]]):
                yield bundle
                bundle, size = [], 0
            bundle.append(entry)
            size += more
        if bundle:
            yield bundle

    def columns(self, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
        """Columns of row groups, as they are in the file. Those of a single one stay at hand."""
        if len(groups) > 1:
            return self.part.encoded(groups, schema)
        if self.groups != groups:
            self.groups, self.read = groups, []
        for read_schema, table in self.read:
            if read_schema is schema:
                return table
        self.read.append((schema, self.part.encoded(groups, schema)))
        return self.read[-1][1]

    def rows(self, groups: Sequence[int], schema: pa.Schema, places: Ints) -> pa.RecordBatch:
        """Some rows of row groups, by their places in these."""
        return self.taken(self.columns(groups, schema), schema, places)

    def taken(self, table: pa.Table, schema: pa.Schema, places: Ints) -> pa.RecordBatch:
        """The same of what `columns` gave."""
        taken = [_taken(column, places) for column in table.columns]
        return self.part.decoded(pa.RecordBatch.from_arrays(taken, table.schema.names), schema)

    def holding(self, groups: Sequence[int], places: Ints) -> tuple[Sequence[int], Ints]:
        """Those of the row groups that hold some of the places, and the places in these."""
        if len(groups) == 1:
            return groups, places
        sizes = np.array([self.part.part.groups[group][1] for group in groups])
        counts = np.diff(np.searchsorted(places, np.cumsum(sizes)), prepend=0)
        needed = counts > 0
        if needed.all():
            return groups, places
        before = np.cumsum(np.where(needed, 0, sizes))
        holders = [group for group, holds in zip(groups, needed.tolist(), strict=True) if holds]
        return holders, places - np.repeat(before, counts)


def _side_by_side(rows: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The same rows in the columns of all."""
    columns = [column for batch in rows for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, [name for batch in rows for name in batch.schema.names])


def _taken(column: pa.ChunkedArray, places: Ints) -> pa.Array:
    """The values at ascending places. Texts of several dictionaries come without: to unite these costs more."""
    if column.num_chunks == 1:
        return column.chunk(0).take(of_numbers(places))
    arrays, before = [], 0
    for chunk in column.chunks:
        start, end = np.searchsorted(places, (before, before + len(chunk))).tolist()
        taken = chunk.take(of_numbers(places[start:end] - before))
        arrays.append(taken.dictionary_decode() if pa.types.is_dictionary(column.type) else taken)
        before += len(chunk)
    return pa.concat_arrays(arrays)


def _near(column: pa.ChunkedArray, wanted: pa.Array) -> Ints:
    """The places in `column`, which ascends, of what is among `wanted`, which ascends."""
    kind = column.type
    if kind == wanted.type and (pa.types.is_int64(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        numbers, sought = values(contiguous(column)), values(wanted)
        sought = sought[np.append(True, sought[1:] != sought[:-1])]
        starts, ends = (np.searchsorted(numbers, sought, side) for side in ("left", "right"))
        return _spans(starts, ends)
    if pa.types.is_dictionary(kind):
        sought = wanted.cast(kind.value_type)
        masks = [pc.is_in(chunk.dictionary, value_set=sought).take(chunk.indices) for chunk in column.chunks]
    else:
        masks = [pc.is_in(chunk.cast(wanted.type), value_set=wanted) for chunk in column.chunks]
    return np.flatnonzero(np.concatenate([values(mask) for mask in masks]))


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
