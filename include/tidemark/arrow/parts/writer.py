"""Writing a batch's parts: its Parquet files, each with its record.

The record (`Part`) is made while the file is written, from the same rows and bytes: counts, digest, bounds of the times
and timelines, the first key of every row group, size, SHA-256 and the CRC-32 of its tail (checksums.py). Readers check
against it (reader.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.parts import footer
from tidemark.arrow.parts.checksums import PartSink
from tidemark.arrow.parts.cuts import first_cut
from tidemark.arrow.parts.timelines import TimelinesSeen
from tidemark.arrow.rows.columns import integers, one_batch, rows_within
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.order import neighbours, starts
from tidemark.arrow.rows.schema import (
    BUCKET,
    DIFF,
    EVENT_TIME,
    SCHEMA,
    TIME,
    keys_of,
    timelines_of,
    unsorted_rows_of,
    without_source,
)
from tidemark.errors import InvalidUsage
from tidemark.model.batch import DIGEST_MODULUS, ObjectRef, Part
from tidemark.model.chunk.cuts import ROW_GROUP_BYTES, ROW_GROUP_ROWS, CutReason, CutRules
from tidemark.model.key import Key
from tidemark.storage.stores.store import ObjectStore

BUCKETS_A_GROUP = 16
"""A row group goes on with the next bucket of a layout until it has this share of its rows: buckets may have few rows,
and then each would have a group, and its statistics, to itself."""
PART_ROWS = 1_000_000
"""Most rows of one part (rounded down to whole row groups): tens of megabytes, a fair unit of work."""
PART_BYTES = 256 * 2**20
"""Most bytes of one part's rows in memory, encoded they are fewer: wide rows make parts of fewer rows."""
DICTIONARY_BYTES = 32 * 2**10
"""Most bytes of what a row group's column holds in a dictionary: four thousand distinct numbers."""


def fresh_name() -> str:
    """A name no other attempt uses."""
    return uuid4().hex


class PartWriter:
    """Writes tables that come in order as parts under `prefix`; `close` reports what was written.

        with PartWriter(store, prefix, schema, key_width=1, facts=False) as writer:
            writer.write(table)
            parts = writer.close()

    Rows must be sorted, within a table and from table to table (InvalidUsage if their keys are not). They are cut into
    row groups by the cut law (parts/cuts.py), and into parts by rows and by what they take in memory. A part is
    reported only after its file is whole and durable; leaving the block without `close` abandons the open file.
    With `records_consolidated` the record of a part of updates, which are then in order throughout, says whether they
    are consolidated. With `retracted` the records of parts of facts say that these are retracted; with `cancels`
    those of parts of updates that these add up to 0.
    """

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        schema: pa.Schema,
        *,
        key_width: int,
        facts: bool,
        part_rows: int = PART_ROWS,
        part_bytes: int = PART_BYTES,
        group_rows: int = ROW_GROUP_ROWS,
        group_bytes: int = ROW_GROUP_BYTES,
        records_consolidated: bool = False,
        retracted: bool = False,
        cancels: bool = False,
        name: Callable[[], str] = fresh_name,
    ) -> None:
        if facts == (DIFF in schema.names):
            raise InvalidUsage(f"columns {schema.names} are not those of {'facts' if facts else 'updates'}")
        self._store, self._prefix, self._name = store, prefix.rstrip("/"), name
        self._schema, self._key_width = schema, key_width
        self._records_consolidated, self._retracted, self._cancels = records_consolidated, retracted, cancels
        self._group_rows, self._group_bytes = group_rows, group_bytes
        self._rules = CutRules(
            rows=group_rows,
            unsorted_rows=unsorted_rows_of(schema),
            most_bytes=group_bytes,
            bucket_rows=group_rows // BUCKETS_A_GROUP,
        )
        self._bucket = BUCKET if BUCKET in schema.names else None
        self._timelines = [schema.names[at] for _, at in timelines_of(schema)]
        self._part_rows, self._part_bytes = max(1, part_rows // group_rows) * group_rows, part_bytes
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._last_key: Key | None = None
        self._open: _OpenPart | None = None
        self._done: list[Part] = []

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.abandon(error)
            self._open = None

    def write(self, table: pa.Table | pa.RecordBatch) -> None:
        """Append rows. Raises InvalidUsage for other columns than the schema's, and for a null in a key column
        that is not nullable."""
        if table.schema.names != self._schema.names or table.schema.types != self._schema.types:
            raise InvalidUsage(
                f"cannot write columns {_described(table.schema)} to a part of {_described(self._schema)}"
            )
        for field in list(self._schema)[: self._key_width]:
            if not field.nullable and (nulls := table.column(field.name).null_count):
                raise InvalidUsage(f"key column {field.name} holds {nulls} null; only keys of derived collections may")
        if table.num_rows:
            self._waiting.append(pa.Table.from_arrays(list(table.columns), schema=self._schema))
            self._waiting_rows += table.num_rows
            self._waiting_bytes += table.nbytes
        if self._waiting_rows >= self._group_rows or self._waiting_bytes >= self._group_bytes:
            self._flush()

    def close(self) -> tuple[Part, ...]:
        """Finish the last part and return all, in order; none if no row was written."""
        self._flush(last=True)
        if self._open is not None:
            self._finish(self._open)
        return tuple(self._done)

    def _flush(self, *, last: bool = False) -> None:
        """Write the waiting rows by whole row groups, rotating parts as they fill; at the `last` time all rows."""
        table = pa.concat_tables(self._waiting) if self._waiting else pa.Table.from_batches([], self._schema)
        start = 0
        while start < table.num_rows:
            part = self._open = self._open or self._start()
            rest = table.slice(start)
            rules, is_last = self._rules_for(part)
            if part.rows and is_last and not rows_within(rest.slice(0, 1), self._part_bytes - part.size, least=0):
                self._finish(part)  # no row fits
                continue
            cut = first_cut(rest, rules, self._timelines, self._bucket)
            if cut is None and not last:
                break  # more rows may come into this group
            length, reason = cut or (rest.num_rows, CutReason.END)
            self._append(part, one_batch(rest.slice(0, length)))
            start += length
            if part.rows == self._part_rows or (is_last and reason is CutReason.ROOM):
                self._finish(part)
        self._waiting = [table.slice(start)] if start < table.num_rows else []
        self._waiting_rows, self._waiting_bytes = table.num_rows - start, sum(rest.nbytes for rest in self._waiting)

    def _rules_for(self, part: _OpenPart) -> tuple[CutRules, bool]:
        """The rules for the next row group of a part, and whether what has no room in that has none in the part."""
        room, most_rows = self._part_bytes - part.size, min(self._group_rows, self._part_rows - part.rows)
        rules = replace(self._rules, rows=most_rows, most_bytes=min(room, self._group_bytes))
        return rules, room < self._group_bytes

    def _finish(self, part: _OpenPart) -> None:
        self._done.append(part.finish())
        self._open = None

    def _append(self, part: _OpenPart, group: pa.RecordBatch) -> None:
        first_key, last_key = keys_of(group, [0, group.num_rows - 1], self._key_width)
        if self._last_key is not None and first_key < self._last_key:
            raise InvalidUsage(f"rows must be written in order: key {first_key} comes after {self._last_key}")
        pairs = list(neighbours(group, self._schema.names[: self._key_width]))
        if count := sum(wrong for wrong, _ in pairs):
            raise InvalidUsage(
                f"rows must be written in order: {count} of {group.num_rows} keys are below the one before"
            )
        self._last_key = last_key
        part.append(group, first_key, last_key, each_of_its_own=all(differs.all() for _, differs in pairs[-1:]))

    def _start(self) -> _OpenPart:
        key = f"{self._prefix}/{self._name()}.parquet"
        flags = (self._records_consolidated, self._retracted, self._cancels)
        return _OpenPart(self._store, key, self._schema, self._key_width, *flags)


class _OpenPart:
    """A part being written, and its record so far."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        schema: pa.Schema,
        key_width: int,
        records_consolidated: bool,
        retracted: bool,
        cancels: bool,
    ) -> None:
        self._key = key
        self._consolidated, self._retracted, self._cancels = records_consolidated, retracted, cancels
        self._last_row: pa.RecordBatch = None
        self._groups: list[tuple[Key, int]] = []
        self._last_key: Key = ()
        self._digest = self._retractions = 0
        self._times: list[int] = []
        self._event_times: list[int] = []
        self._timelines = TimelinesSeen(schema, key_width)
        self.rows = self.size = 0
        self._stack = ExitStack()
        self._sink = PartSink(self._stack.enter_context(store.open_output(key)))
        self._metadata: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._sink, schema, metadata_collector=self._metadata, **_parquet_options(schema, key_width)
        )
        self._schema_number = int((schema.metadata or {}).get(SCHEMA, 0))

    def append(self, batch: pa.RecordBatch, first_key: Key, last_key: Key, *, each_of_its_own: bool) -> None:
        """Write rows as one row group. `each_of_its_own`: no two of them have one key."""
        self._writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
        self._digest = (self._digest + digest(batch)) % DIGEST_MODULUS
        if self._consolidated:
            if each_of_its_own and first_key != self._last_key:
                self._consolidated = bool(np.all(integers(batch, DIFF) != 0))
            else:
                both = batch if self._last_row is None else pa.concat_batches([self._last_row, batch])
                self._consolidated = is_consolidated(both)
            self._last_row = batch.slice(batch.num_rows - 1)
        self._groups.append((first_key, batch.num_rows))
        self._last_key = last_key
        if DIFF in batch.schema.names:
            self._retractions += int(np.count_nonzero(integers(batch, DIFF) < 0))
        elif self._retracted:
            self._retractions += batch.num_rows
        for name, bounds in ((TIME, self._times), (EVENT_TIME, self._event_times)):
            bounds += pc.min_max(batch.column(name)).as_py().values()
        self._timelines.add(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes

    def finish(self) -> Part:
        """The part, once its file is whole and durable."""
        try:
            if entry := footer.encoded(self._timelines.chunks()):
                self._writer.add_key_value_metadata(entry)
            self._sink.begin_tail()
            self._writer.close()
            tail = self._sink.finish(self._metadata[0])
        except BaseException as error:
            self.abandon(error)
            raise
        self._stack.close()
        return Part(
            file=ObjectRef(self._key, self._sink.bytes, self._sink.sha256.hexdigest()),
            rows=self.rows,
            digest=self._digest,
            groups=tuple(self._groups),
            last_key=self._last_key,
            first_time=min(self._times),
            last_time=max(self._times),
            first_event_time=min(self._event_times),
            last_event_time=max(self._event_times),
            retractions=self._retractions,
            schema=self._schema_number,
            consolidated=self._consolidated,
            cancels=self._cancels,
            timelines=self._timelines.bounds(),
            tail=tail,
        )

    def abandon(self, error: BaseException | None) -> None:
        """Leave the output on an error, so that no object appears."""
        cause = error or InvalidUsage(f"{self._key} was abandoned: the writer was left without close")
        self._stack.__exit__(type(cause), cause, cause.__traceback__)


def is_consolidated(updates: pa.RecordBatch) -> bool:
    """Whether no two updates, in order, are equal but for their diffs, and no diff is 0."""
    names = [name for name in without_source(updates.schema.names) if name != DIFF]
    return bool(np.all(integers(updates, DIFF) != 0)) and bool(starts(updates, names).all())


def _parquet_options(schema: pa.Schema, key_width: int) -> dict[str, Any]:
    """Delta encoding suits sorted keys and times, and is quick; a dictionary suits what repeats, and is given up where
    it gets long: it would cost more than it spares. Arrow's copy of the schema would be a third of a small part, and
    says nothing that Parquet's own does not."""
    of_facts = DIFF not in schema.names
    sorted_by = [*schema.names[:key_width], EVENT_TIME] if of_facts else without_source(schema.names[:-1])
    deltas = [field.name for field in schema if _is_integer(field.type) and field.name != DIFF]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [name for name in schema.names if name not in deltas],
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "column_encoding": dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        "sorting_columns": [pq.SortingColumn(schema.get_field_index(n), nulls_first=True) for n in sorted_by],
        "write_statistics": True,
        "write_page_index": True,
        "write_page_checksum": True,
        "store_schema": False,
    }


def _is_integer(type_: pa.DataType) -> bool:
    return bool(pa.types.is_int64(type_) or pa.types.is_timestamp(type_) or pa.types.is_date32(type_))


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
