"""Reading a whole Parquet file, not less of it, in batches of bounded bytes.

Encodings hide what a value takes in memory: one of 1 MB that a dictionary holds once may be in a million rows. So
long texts are read as dictionaries, and expanded only as many rows at a time as fit. Where the readers of all columns
would take too much, a few columns are read at a time (rowgroups.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile, Content, memory_is_no_verdict
from tidemark.arrow.decode.rowgroups import BATCH_BYTES, BATCH_ROWS, OPEN_BYTES, Columns, columns_of
from tidemark.arrow.rows.columns import Ints, leaves, one_batch, valid, values
from tidemark.arrow.rows.memory import memory
from tidemark.errors import TidemarkError

WINDOW_BYTES = 96 * 2**20
"""Most bytes of decoded rows that are gathered from columns read a few at a time."""
_BUFFER = 2**20
"""Bytes of a column read ahead of a file that is not in memory; else a row group would be, whole."""
_WRAPPED = frozenset({"arrow.json", "arrow.uuid"})
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
_Some = Callable[[], Iterator[pa.RecordBatch]]
"""Some columns of a row group, read from its start whenever called."""
_LONG = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})
_WRONG = (pa.ArrowException, OSError, EOFError, UnicodeError, OverflowError)
"""What the reader raises of a damaged file."""
_OUT_OF_MEMORY = ("not enough memory", "std::bad_alloc")
"""How ZSTD's and Thrift's errors end where memory ran out in them; Arrow hands these on as errors of the file."""


def whole(file: pq.ParquetFile, rows_at_once: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """All rows of a file, batch by batch.

    A flipped bit in a page's header can make the reader end early and say nothing: ArrowInvalid at the end unless there
    were as many rows as the footer says.
    """
    count = 0
    wanted = None if columns is None else list(columns)
    for batch in file.iter_batches(rows_at_once, columns=wanted, use_threads=False):
        count += batch.num_rows
        yield batch
    _check_rows(count, file.metadata)


def _check_rows(count: int, metadata: pq.FileMetaData) -> None:
    if count != metadata.num_rows:
        raise pa.ArrowInvalid(f"{count} rows where its footer says {metadata.num_rows}")


@dataclass(frozen=True)
class Opened:
    """A source file whose footer was read: its schema, and where its columns come from."""

    content: Content
    source: pa.NativeFile
    footer: pq.ParquetFile

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([field.with_type(stored_type(field.type)) for field in self.footer.schema_arrow])

    def blocks(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns at `paths` of all rows, in order, in batches of at most BATCH_ROWS rows and about BATCH_BYTES.

        Raises BadFile for a row of more than MAX_ROW_BYTES.
        """
        columns = columns_of(self.footer, paths, self._reopened)
        flat = set(paths) <= set(self.schema.names)
        if any(columns.open_bytes(group, paths) > OPEN_BYTES for group in columns.groups):
            cut = self._by_columns(columns, flat)
        else:
            cut = self._cut(self._read(columns, paths, flat))
        return cut if flat else _gathered(cut)

    def _cut(self, read: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in map(_stored, read):
            sizes = _row_sizes(batch)
            self._check_sizes(sizes, first)
            yield from _cut(batch, sizes)
            first += batch.num_rows

    def _check_sizes(self, sizes: Ints, first: int) -> None:
        if len(sizes) and sizes.max() > MAX_ROW_BYTES:
            at = int(np.argmax(sizes))
            problem = f"row {first + at + 1}: has {sizes[at]:,} bytes; a row may have {MAX_ROW_BYTES:,}"
            raise BadFile(self.content.path, problem)

    def _reopened(self, texts: Sequence[str]) -> pq.ParquetFile:
        """The file, such that some columns of texts come as dictionaries."""
        return _parquet(self.content, self.source, metadata=self.footer.metadata, read_dictionary=list(texts))

    def _read(self, columns: Columns, paths: Sequence[str], flat: bool) -> Iterator[pa.RecordBatch]:
        """The columns as Parquet gives them, all at once."""
        texts = columns.dictionaries(paths)
        file = self._reopened(texts)
        if flat:
            # Rows of several row groups come at once: a batch ends with each of them, but they are read together.
            size = sum(columns.size(group, paths) for group in columns.groups)
            asked = (columns.rows_at_once(group, paths, texts, size) for group in columns.groups)
            yield from whole(file, min(asked, default=BATCH_ROWS), paths)
            return
        count = 0
        for number in range(len(columns.groups)):
            for batch in self._row_group(file, number, columns, paths, texts):
                count += batch.num_rows
                yield leaves(batch, paths)
        _check_rows(count, self.footer.metadata)

    def _row_group(
        self, file: pq.ParquetFile, number: int, columns: Columns, paths: Sequence[str], texts: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Columns of one row group. Arrow makes no dictionary of a column within a struct that leaves its dictionary
        midway: the rest is read without, in small batches."""
        group = columns.groups[number]
        size = columns.size(group, paths)
        options = {"row_groups": [number], "columns": list(paths), "use_threads": False}
        done = 0
        try:
            for batch in file.iter_batches(columns.rows_at_once(group, paths, texts, size), **options):
                yield batch
                done += batch.num_rows
        except pa.ArrowNotImplementedError:
            for batch in self.footer.iter_batches(columns.rows_at_once(group, paths, [], size), **options):
                yield batch.slice(min(done, batch.num_rows))
                done -= min(done, batch.num_rows)

    def _by_columns(self, columns: Columns, flat: bool) -> Iterator[pa.RecordBatch]:
        """The same rows, of columns read a few at a time: once for what each row takes, then as many rows as fit, for
        which all before them in their row group are decoded again."""
        first = 0
        for number, group in enumerate(columns.groups):
            few = [self._some_columns(number, columns, paths, flat) for paths in columns.few_at_a_time(group)]
            sizes = _sizes_of(few)
            self._check_sizes(sizes, first)
            with memory().some("window", WINDOW_BYTES, least=BATCH_BYTES) as most:
                for start, stop in _windows(sizes, most):
                    yield from _cut(_window(few, start, stop).select(list(columns.leaves)), sizes[start:stop])
                    # Many small arrays have been made between large ones: what is free between them is given back.
                    pa.default_memory_pool().release_unused()
            first += len(sizes)
        _check_rows(first, self.footer.metadata)

    def _some_columns(self, number: int, columns: Columns, paths: Sequence[str], flat: bool) -> _Some:
        def read() -> Iterator[pa.RecordBatch]:
            texts = columns.dictionaries(paths)
            for batch in self._row_group(self._reopened(texts), number, columns, paths, texts):
                yield _stored(batch if flat else leaves(batch, paths))

        return read


@contextmanager
def opened(content: Content) -> Iterator[Opened]:
    """A source file as Parquet. What is wrong with it is a BadFile; memory and storage that fail are Unavailable."""
    try:
        with memory_is_no_verdict(content.path), content.open() as source:
            yield Opened(content, source, _parquet(content, source))
    except TidemarkError:
        raise
    except _WRONG as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        with memory_is_no_verdict(content.path):
            if said.endswith(_OUT_OF_MEMORY):
                raise MemoryError(said) from error
        raise BadFile(
            content.path, f"cannot be read as Parquet: {said.rstrip('.')}; is it Parquet, and whole?"
        ) from None


def _parquet(content: Content, source: pa.NativeFile, **options: Any) -> pq.ParquetFile:
    buffer = 0 if content.data is not None else _BUFFER
    return pq.ParquetFile(
        source, coerce_int96_timestamp_unit="us", page_checksum_verification=True, buffer_size=buffer, **options
    )


def _sizes_of(few: Sequence[_Some]) -> Ints:
    """Bytes of each row, its columns together. ArrowInvalid where they have not as many rows."""
    sizes = np.zeros(0, np.int64)
    for number, read in enumerate(few):
        found = np.concatenate([sizes[:0], *map(_row_sizes, read())])
        if number and len(found) != len(sizes):
            raise pa.ArrowInvalid(f"{len(found)} rows of a column where another has {len(sizes)}")
        sizes = sizes + found if number else found
    return sizes


def _windows(sizes: Ints, most: int) -> Iterator[tuple[int, int]]:
    """From which row to which, such that they take `most` bytes, or are one row."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        room = most + (ends[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        yield start, stop
        start = stop


def _window(few: Sequence[_Some], start: int, stop: int) -> pa.RecordBatch:
    """The columns of some rows, copied: a slice would keep in memory what it was cut from."""
    found: dict[str, pa.Array] = {}
    for read in few:
        batches, at = list[pa.RecordBatch](), 0
        for batch in read():
            if start < at + batch.num_rows:
                batches.append(_expanded(batch.slice(max(0, start - at), stop - max(start, at))))
            at += batch.num_rows
            if at >= stop:
                break
        else:
            raise pa.ArrowInvalid(f"{at} rows of a column where there were {stop}")
        found |= {name: pa.concat_arrays([b.column(name) for b in batches]) for name in batches[0].schema.names}
    return pa.RecordBatch.from_pydict(found)


def _cut(read: pa.RecordBatch, sizes: Ints) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(sizes)
    start = 0
    while start < read.num_rows:
        room = BATCH_BYTES + (ends[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        stop = min(stop, start + BATCH_ROWS)
        yield _expanded(read.slice(start, stop - start))
        start = stop


def _gathered(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches: what handles them costs by the batch, too."""
    batches: list[pa.RecordBatch] = []
    for block in blocks:
        batches.append(block)
        if sum(b.num_rows for b in batches) >= BATCH_ROWS or sum(b.nbytes for b in batches) >= BATCH_BYTES:
            yield one_batch(pa.Table.from_batches(batches))
            batches = []
    if batches:
        yield one_batch(pa.Table.from_batches(batches))


def _expanded(read: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in read.columns]
    return pa.RecordBatch.from_arrays(columns, list(read.schema.names))


def stored_type(of: pa.DataType) -> pa.DataType:
    """What a column is in Parquet, where Arrow wraps texts of JSON and the bytes of a UUID in types of its own."""
    wrapped = isinstance(of, pa.BaseExtensionType) and of.extension_name in _WRAPPED
    return of.storage_type if wrapped else of


def _stored(read: pa.RecordBatch) -> pa.RecordBatch:
    """The columns as Parquet has them, and views as texts and bytes, for which Arrow has more kernels."""
    columns = [
        column.storage if isinstance(column, pa.ExtensionArray) and stored_type(column.type) != column.type else column
        for column in read.columns
    ]
    columns = [column.cast(_VIEWS[column.type]) if column.type in _VIEWS else column for column in columns]
    return pa.RecordBatch.from_arrays(columns, list(read.schema.names))


def _row_sizes(read: pa.RecordBatch) -> Ints:
    """Bytes of each row once its dictionaries are expanded."""
    sizes = np.zeros(read.num_rows, np.int64)
    for column in read.columns:
        sizes += _sizes(column)
    return sizes


def _sizes(column: pa.Array) -> Ints | int:
    if pa.types.is_dictionary(column.type):
        lengths = _sizes(column.dictionary)
        if isinstance(lengths, int) or not len(column.dictionary):
            return 8
        indices = np.asarray(values(column.indices), np.int64)
        here = valid(column)
        named = indices if here is None else indices[here]
        if len(named) and not 0 <= named.min() <= named.max() < len(lengths):
            raise pa.ArrowInvalid(f"a value that its dictionary of {len(lengths)} does not have")
        return lengths[indices] if here is None else np.where(here, lengths[np.where(here, indices, 0)], 8)
    if column.type in _LONG:
        return 8 + np.asarray(values(pc.binary_length(column).fill_null(0)), np.int64)
    return _nested_sizes(column) if pa.types.is_nested(column.type) else 8


def _nested_sizes(column: pa.Array) -> Ints | int:
    """Bytes of what each value holds: the fields of a struct (their names too, as JSON repeats them), the items of a
    list or of a map."""
    if pa.types.is_struct(column.type):
        sizes = np.full(len(column), 8 + sum(4 + len(field.name.encode()) for field in column.type), np.int64)
        for field in column.flatten():
            sizes += _sizes(field)
        return sizes
    of = column.type
    if not (pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_map(of)):
        return 8 + (of.list_size * 8 if pa.types.is_fixed_size_list(of) else 0)
    contents = [column.keys, column.items] if pa.types.is_map(of) else [column.values]
    ends = np.zeros(len(contents[0]) + 1, np.int64)
    for items in contents:
        ends[1:] += _sizes(items)
    np.cumsum(ends, out=ends)
    offsets = np.asarray(column.offsets)
    return 8 + np.asarray(ends[offsets[1:]] - ends[offsets[:-1]])
