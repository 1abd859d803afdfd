"""Reading a whole Parquet file, not less of it, in batches of bounded bytes.

Encodings hide what a value takes in memory: one of 1 MB that a dictionary holds once may stand in a million rows. So
texts are read as dictionaries, and expanded only as many rows at a time as fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.decode.content import MAX_ROW_BYTES, BadFile, Content, memory_is_no_verdict
from tidemark.arrow.rows.columns import Ints, leaves, one_batch, valid, values
from tidemark.errors import TidemarkError

BATCH_ROWS = 65_536
"""Rows decoded at once, where they are narrow."""
BATCH_BYTES = 32 * 2**20
"""Bytes of decoded rows at once, where they are wide; a single row may have more."""
_LEAST_ROWS = 64
"""Rows asked of Parquet at once, however wide they may be: its encodings do not tell."""
_BUFFER = 2**20
"""Bytes of a column read ahead of a file that is not in memory; else a row group would be, whole."""
_DICTIONARY = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
_LENGTHS = frozenset({"DELTA_LENGTH_BYTE_ARRAY"})
_TEXT = "BYTE_ARRAY"
_WRAPPED = frozenset({"arrow.json", "arrow.uuid"})
_VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
_LONG = frozenset({pa.string(), pa.large_string(), pa.binary(), pa.large_binary()})
_WRONG = (pa.ArrowException, OSError, EOFError, UnicodeError, OverflowError)
"""What the reader raises of a damaged file."""


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
        cut = self._cut(paths)
        return cut if set(paths) <= set(self.schema.names) else _gathered(cut)

    def _cut(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in map(_stored, self._read(paths)):
            sizes = _row_sizes(batch)
            if len(sizes) and sizes.max() > MAX_ROW_BYTES:
                at = int(np.argmax(sizes))
                problem = f"row {first + at + 1}: has {sizes[at]:,} bytes; a row may have {MAX_ROW_BYTES:,}"
                raise BadFile(self.content.path, problem)
            yield from _cut(batch, sizes)
            first += batch.num_rows

    def _read(self, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns as Parquet gives them, texts as dictionaries as far as possible."""
        metadata = self.footer.metadata
        schema = [metadata.schema.column(at) for at in range(metadata.num_columns)]
        places = [at for at, column in enumerate(schema) if _is_below(column.path, paths)]
        chunks = [_chunks(self.footer, group, paths, places) for group in range(metadata.num_row_groups)]
        texts = [
            schema[at].path for at in places if schema[at].path in set(paths) and _has_dictionary(chunks, schema[at])
        ]
        file = _parquet(self.content, self.source, metadata=metadata, read_dictionary=texts)
        if set(paths) <= set(self.schema.names):
            # Rows of several row groups come at once: a batch ends with each of them, but they are read together.
            size = sum(group.size for group in chunks)
            rows = min((_rows_at_once(group, texts, size) for group in chunks), default=BATCH_ROWS)
            yield from whole(file, rows, paths)
            return
        count = 0
        for number, group in enumerate(chunks):
            for batch in self._nested(file, number, paths, group, texts):
                count += batch.num_rows
                yield leaves(batch, paths)
        _check_rows(count, metadata)

    def _nested(
        self, file: pq.ParquetFile, number: int, paths: Sequence[str], group: _Chunks, texts: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """A row group's structs. Arrow makes no dictionary of a column within one that leaves its dictionary midway:
        the rest is read without, in small batches."""
        options = {"row_groups": [number], "columns": list(paths), "use_threads": False}
        done = 0
        try:
            for batch in file.iter_batches(_rows_at_once(group, texts, group.size), **options):
                yield batch
                done += batch.num_rows
        except pa.ArrowNotImplementedError:
            for batch in self.footer.iter_batches(_rows_at_once(group, [], group.size), **options):
                yield batch.slice(min(done, batch.num_rows))
                done -= min(done, batch.num_rows)


def _is_below(leaf: str, paths: Sequence[str]) -> bool:
    """Whether a leaf of the file is at one of the paths, or within a nested column that is."""
    return any(leaf == path or leaf.startswith(f"{path}.") for path in paths)


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
            if "not enough memory" in said:  # as ZSTD says it
                raise MemoryError(said) from error
        raise BadFile(
            content.path, f"cannot be read as Parquet: {said.rstrip('.')}; is it Parquet, and whole?"
        ) from None


def _parquet(content: Content, source: pa.NativeFile, **options: Any) -> pq.ParquetFile:
    buffer = 0 if content.data is not None else _BUFFER
    return pq.ParquetFile(
        source, coerce_int96_timestamp_unit="us", page_checksum_verification=True, buffer_size=buffer, **options
    )


def _cut(read: pa.RecordBatch, sizes: Ints) -> Iterator[pa.RecordBatch]:
    ends = np.cumsum(sizes)
    start = 0
    while start < read.num_rows:
        room = BATCH_BYTES + (ends[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(ends, room, side="right")))
        yield _expanded(read.slice(start, stop - start))
        start = stop


def _gathered(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches: what handles them costs by the batch, too."""
    held: list[pa.RecordBatch] = []
    for block in blocks:
        held.append(block)
        if sum(b.num_rows for b in held) >= BATCH_ROWS or sum(b.nbytes for b in held) >= BATCH_BYTES:
            yield one_batch(pa.Table.from_batches(held))
            held = []
    if held:
        yield one_batch(pa.Table.from_batches(held))


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
    held = [column.keys, column.items] if pa.types.is_map(of) else [column.values]
    ends = np.zeros(len(held[0]) + 1, np.int64)
    for items in held:
        ends[1:] += _sizes(items)
    np.cumsum(ends, out=ends)
    offsets = np.asarray(column.offsets)
    return 8 + np.asarray(ends[offsets[1:]] - ends[offsets[:-1]])


@dataclass(frozen=True)
class _Chunks:
    """What the footer says of the wanted columns in a row group: its rows, and of each column by its path the bytes,
    uncompressed but encoded; of those of texts the encodings."""

    rows: int
    sizes: dict[str, int]
    encodings: dict[str, frozenset[str]]

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


def _chunks(file: pq.ParquetFile, number: int, paths: Sequence[str], places: Sequence[int]) -> _Chunks:
    # A reader refuses wrong metadata of a column; asked for it directly, pyarrow ends the process. So it is read first.
    next(file.iter_batches(1, row_groups=[number], columns=list(paths), use_threads=False), None)
    group = file.metadata.row_group(number)
    columns = [group.column(at) for at in places]
    return _Chunks(
        group.num_rows,
        {column.path_in_schema: column.total_uncompressed_size for column in columns},
        {column.path_in_schema: frozenset(column.encodings) for column in columns if column.physical_type == _TEXT},
    )


def _has_dictionary(chunks: Sequence[_Chunks], column: pq.ColumnSchema) -> bool:
    """Whether a column of texts can, and should, be read as a dictionary."""
    used = frozenset[str]().union(*(chunk.encodings.get(column.path, frozenset()) for chunk in chunks))
    return column.physical_type == _TEXT and bool(used & _DICTIONARY) and used <= _DICTIONARY | _PLAIN


def _rows_at_once(group: _Chunks, dictionaries: Sequence[str], read: int) -> int:
    """How many rows to ask for, of `read` bytes in all: few where these are many, or a row group is encoded such that
    little may become much."""
    rows = BATCH_BYTES // (16 * max(1, len(group.sizes)))
    if read > 2 * BATCH_BYTES:
        # Eight times as careful as the average: large values may stand together.
        rows = min(rows, BATCH_BYTES * group.rows // max(1, group.size) // 8)
    for path, used in group.encodings.items():
        if path not in dictionaries and not used <= _PLAIN | _LENGTHS:  # values may share texts
            rows = min(rows, 2 * BATCH_BYTES // max(1, group.sizes[path]))
    return min(BATCH_ROWS, max(_LEAST_ROWS, rows))
