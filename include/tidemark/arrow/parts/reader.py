"""Reading a part back, row group by row group: every byte that is read is checked against the part's record (`Part`)
and the checksums that this makes trustworthy (checksums.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.parts.checksums import Checksums
from tidemark.arrow.parts.remembered import Footer, RememberedColumns
from tidemark.arrow.parts.timelines import bounds_among, plain_ints, recorded_unit
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.fields import FieldPairs, as_wanted, field_id, found
from tidemark.errors import Corruption, out_of_memory
from tidemark.model.batch import Part
from tidemark.model.chunk.bounds import Bounds
from tidemark.model.chunk.footer import TimelineChunks
from tidemark.storage.cache import remembered
from tidemark.storage.stores.store import Missing, ObjectStore, Unavailable
from tidemark.storage.stores.watched_input import WatchedInput


@dataclass
class Fetched:
    """How many bytes were really fetched from storage."""

    bytes: int = 0

    def add(self, more: int) -> None:
        """Count bytes of one read."""
        self.bytes += more


def read_groups(
    store: ObjectStore,
    part: Part,
    groups: Sequence[int] | None = None,
    schema: pa.Schema | None = None,
    *,
    fetched: Fetched | None = None,
    groups_at_once: int = 1,
) -> Iterator[pa.RecordBatch]:
    """The rows of some row groups (None: all) of a part, in order, `groups_at_once` to a batch, in the columns of
    `schema` (None: as they are in the file).

    Raises Corruption if the file is missing, unreadable, or not of the size, rows and row groups recorded.
    """
    wanted = range(len(part.groups)) if groups is None else groups
    if not wanted:
        return
    with OpenedPart(store, part, fetched) as file:
        for start in range(0, len(wanted), groups_at_once):
            yield file.read(wanted[start : start + groups_at_once], schema)


class OpenedPart:
    """A part's file, open for reading, its footer checked against the record (Corruption if they differ).

    `schema` are the columns it has, as they were when it was written; `metadata` is Parquet's, with statistics. With
    `dictionaries`, texts that the file has in dictionaries come so out of `encoded`.

    Of a store with a cache (storage/cache.py) footers and columns of row groups are remembered, and the file is opened
    once something is asked that is not.
    """

    def __init__(
        self, store: ObjectStore, part: Part, fetched: Fetched | None = None, *, dictionaries: bool = False
    ) -> None:
        self.part = part
        self._store, self._fetched, self._dictionaries = store, fetched or Fetched(), dictionaries
        self._stack = ExitStack()
        self._native: pa.NativeFile | None = None
        self._file: pq.ParquetFile | None = None
        self._remembered = RememberedColumns.of(store, part, encoded=dictionaries)
        self._asked: list[tuple[pa.Schema, FieldPairs]] = []
        try:
            with readable(part):
                name = ("footer", part.file.sha256)
                self._footer: Footer = remembered(store, name, self._read_footer, Footer.size)
                self._check_footer()
        except BaseException:
            self.close()
            raise
        self.schema: pa.Schema = self._footer.schema
        self.metadata: pq.FileMetaData = self._footer.metadata

    def __enter__(self) -> OpenedPart:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def timelines(self) -> Mapping[int, TimelineChunks]:
        """What the footer says of the row groups beyond statistics, by the id of each timeline; of a part that was
        written before format 3, or had no timelines, nothing."""
        return self._footer.timelines

    def close(self) -> None:
        """Close the file; it may not be read any more."""
        self._stack.close()

    def read(self, groups: Sequence[int], schema: pa.Schema | None = None) -> pa.RecordBatch:
        """The rows of some row groups as one batch, in the columns of `schema` (rows/fields.py), or as they are."""
        with readable(self.part):
            if schema is None:
                return self._whole(groups, None)
            pairs = self._pairs(schema)
            names = [source.name for _, source in pairs if source is not None]
            rows = self._whole(groups, names)
            self._check_bounds(rows, groups)
            return as_wanted(rows, pairs, sum(self.part.groups[group][1] for group in groups))

    def encoded(self, groups: Sequence[int], schema: pa.Schema) -> pa.Table:
        """The rows of some row groups in those columns of the file that `schema` asks for, at least one of which it
        has, as the file has them: some rows of it are what `decoded` takes. Texts in dictionaries have a chunk for each
        row group, as each has a dictionary of its own."""
        with readable(self.part):
            return self._table(groups, [source.name for _, source in self._pairs(schema) if source is not None])

    def decoded(self, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Rows that `encoded` gave for `schema`, in its columns."""
        with readable(self.part):
            self._check_bounds(rows)
            return as_wanted(rows, self._pairs(schema), rows.num_rows)

    def _pairs(self, schema: pa.Schema) -> FieldPairs:
        """Where the columns of `schema` are in the file; known of the last three schemas asked for, as many row groups
        are mostly read in the same ones. Schemas that are equal may still have other ids."""
        for asked, pairs in self._asked:
            if asked is schema:
                return pairs
        pairs = found(self.schema, schema)
        self._asked = [(schema, pairs), *self._asked[:2]]
        return pairs

    def _whole(self, groups: Sequence[int], names: list[str] | None) -> pa.RecordBatch:
        return one_batch(self._table(groups, names))

    def _table(self, groups: Sequence[int], names: list[str] | None) -> pa.Table:
        if self._remembered is None or not names:
            return self._decoded(groups, names)
        return self._remembered.columns(groups, names, self._decoded)

    def _read_footer(self) -> Footer:
        watched = WatchedInput(self._opened(), _store_failed, self._count)
        if self.part.tail is None:
            return Footer(self.part, pq.read_metadata(pa.PythonFile(watched, mode="r")), None)
        watched.seek(self.part.file.bytes - self.part.tail.bytes)
        checksums = Checksums(self.part, watched.read_buffer(self.part.tail.bytes))
        return Footer(self.part, checksums.metadata, checksums)

    def _parquet(self) -> pq.ParquetFile:
        if self._file is None:
            native = self._opened()
            source = pa.PythonFile(WatchedInput(native, _store_failed, self._count_verified), mode="r")
            texts = _in_dictionaries(self.metadata) if self._dictionaries else []
            # One request for neighbouring columns pays where each has to be asked for; a mapped file is there.
            by_request = isinstance(native, pa.PythonFile)
            self._file = pq.ParquetFile(source, metadata=self.metadata, read_dictionary=texts, pre_buffer=by_request)
        return self._file

    def _opened(self) -> pa.NativeFile:
        """The open file, of the size that was recorded."""
        if self._native is None:
            key, recorded = self.part.file.key, self.part.file.bytes
            native = self._stack.enter_context(self._store.open_input(key))
            if native.size() != recorded:
                raise Corruption(f"{key} has {native.size()} bytes, recorded were {recorded}")
            self._native = native
        return self._native

    def _count(self, _offset: int, data: pa.Buffer) -> None:
        self._fetched.add(data.size)

    def _count_verified(self, offset: int, data: pa.Buffer) -> None:
        self._fetched.add(data.size)
        if self._footer.checksums is not None:
            self._footer.checksums.verify(offset, data)

    def _decoded(self, groups: Sequence[int], names: list[str] | None) -> pa.Table:
        """All rows of the groups: damage in a page's header can make the reader end early and say nothing."""
        rows = self._parquet().read_row_groups(list(groups), columns=names, use_threads=False)
        recorded = sum(self.part.groups[group][1] for group in groups)
        if names != [] and rows.num_rows != recorded:
            raise Corruption(f"{self.part.file.key} gives {rows.num_rows} rows, recorded were {recorded}")
        return rows

    def _check_bounds(self, rows: pa.RecordBatch, groups: Sequence[int] = ()) -> None:
        """Bounds that a row is outside of would have hidden it from a read that trusts them. `groups` are the row
        groups that the rows are, where that is known."""
        for column, recorded in self._bounded:
            if column in rows.schema.names:
                times = rows.column(column)
                found = bounds_among(plain_ints(times)).times(recorded_unit(times.type))
                if not recorded.encloses(found):
                    where = f"row groups {groups[0]} to {groups[-1]}" if groups else "some rows"
                    raise Corruption(
                        f"{self.part.file.key} holds timeline {column} at {found} in {where}, recorded were {recorded}"
                    )

    @cached_property
    def _bounded(self) -> Sequence[tuple[str, Bounds]]:
        """The columns of the file that the record has bounds of."""
        known = {each.id: each.bounds for each in self.part.timelines}
        numbered = [(field.name, field_id(field)) for field in self.schema] if known else []
        return [(name, known[number]) for name, number in numbered if number is not None and number in known]

    def _check_footer(self) -> None:
        counts = self._footer.rows
        if counts != [rows for _, rows in self.part.groups]:
            raise Corruption(
                f"{self.part.file.key} has {sum(counts)} rows in {len(counts)} row groups, "
                f"recorded were {self.part.rows} in {len(self.part.groups)}"
            )


def _in_dictionaries(metadata: pq.FileMetaData) -> list[str]:
    """The columns of texts that the first row group has in dictionaries: most likely all of them do."""
    if not metadata.num_row_groups:
        return []
    columns = (metadata.row_group(0).column(at) for at in range(metadata.num_columns))
    return [column.path_in_schema for column in columns if _is_text_in_dictionary(column)]


def _is_text_in_dictionary(column: pq.ColumnChunkMetaData) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.has_dictionary_page)


@contextmanager
def readable(part: Part) -> Iterator[None]:
    """What cannot be read as it was recorded is Corruption; a store that fails has said so itself."""
    try:
        yield
    except Missing:
        raise Corruption(f"{part.file.key} is missing; a part of {part.rows} rows was recorded there") from None
    except MemoryError as error:  # Arrow's is an ArrowException, too
        raise out_of_memory(part.file.key, error) from error
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise Corruption(f"{part.file.key} cannot be read: {reason}") from error


def _store_failed(error: OSError) -> Unavailable:
    """What a failing read means: nothing about the part."""
    return Unavailable(f"reading failed: {error}")
