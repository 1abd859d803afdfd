"""Parts: what is recorded is what is there, and what is there is checked against the record."""

from __future__ import annotations

import hashlib
import io
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, KEYED, SMALL, of_updates, read, rows, updates, write
from tests.support.budget import laws
from tidemark.arrow.parts.checksums import Checksums
from tidemark.arrow.parts.reader import Fetched, OpenedPart, read_groups
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.schema import FIELD_ID, facts_schema, some_of, updates_schema
from tidemark.errors import Corruption, InvalidUsage
from tidemark.model.batch import Part
from tidemark.model.collection import Column, ColumnType, DecimalType
from tidemark.model.update import Update
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import Unavailable

pytestmark = pytest.mark.pure


def numbered(count: int, *, word: str = "w") -> pa.RecordBatch:
    return of_updates(SMALL, [Update((n,), (word,), n, 100 - n, 1) for n in range(count)])


def one_part(store: MemoryStore, count: int = 8) -> Part:
    (part,) = write(store, SMALL, numbered(count))
    return part


@laws
@given(updates(APPEND), st.integers(1, 5), st.integers(1, 9))
def test_a_part_is_recorded_as_it_is(some: list[Update], group_rows: int, part_rows: int) -> None:
    store = MemoryStore()
    table = of_updates(APPEND, some)
    parts = write(store, APPEND, table, group_rows=group_rows, part_rows=part_rows)
    assert [row for part in parts for batch in read(store, [part]) for row in rows(batch)] == rows(table)
    assert sum(part.digest for part in parts) % 2**64 == digest(table)
    for part in parts:
        content = store.read(part.file.key)
        assert (part.file.bytes, part.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        stored = pa.Table.from_batches(read(store, [part]))
        groups = [rows(group) for group in read_groups(store, part)]
        assert [len(group) for group in groups[:-1]] == [group_rows] * (len(groups) - 1)
        assert part.groups == tuple((group[0][:2], len(group)) for group in groups)
        assert part.last_key == groups[-1][-1][:2]
        assert part.rows == stored.num_rows
        for name, bounds in (
            ("_time", (part.first_time, part.last_time)),
            ("_event_time", (part.first_event_time, part.last_event_time)),
        ):
            times = stored[name].to_pylist()
            assert bounds == (min(times), max(times))


def test_small_tables_fill_row_groups_and_parts() -> None:
    store = MemoryStore()
    table = numbered(50)
    with PartWriter(
        store, "p/", table.schema, key_width=1, facts=False, part_rows=13, group_rows=4, name=iter("abcdef").__next__
    ) as writer:
        for at in range(50):
            writer.write(table.slice(at, 1))
        parts = writer.close()
    assert [part.file.key for part in parts] == [f"p/{name}.parquet" for name in "abcde"]
    assert [[size for _, size in part.groups] for part in parts] == [[4, 4, 4]] * 4 + [[2]]


def test_wide_rows_make_parts_of_fewer_rows() -> None:
    """Cut by bytes in memory (here 40 a row), each part of whole row groups but its last; one row fits always."""
    store = MemoryStore()
    table = numbered(50, word="w" * 4)
    for most, first in ((40 * 10, [4, 4, 2]), (40 * 10 + 39, [4, 4, 2]), (40 * 9, [4, 4, 1]), (1, [1])):
        with PartWriter(
            store, f"p{most}", table.schema, key_width=1, facts=False, part_bytes=most, group_rows=4
        ) as writer:
            for at in range(50):
                writer.write(table.slice(at, 1))
            parts = writer.close()
        sizes = [[size for _, size in part.groups] for part in parts]
        assert sizes[0] == first
        assert all(size == 4 for part in sizes for size in part[:-1])
        assert [row for part in parts for batch in read(store, [part]) for row in rows(batch)] == rows(table)


@pytest.mark.parametrize("at_once", [1, 50])
def test_wide_rows_make_row_groups_of_fewer_rows(at_once: int) -> None:
    """Cut by bytes in memory (40 a row, one of 1,036), however rows come; what is wider than a group is one alone."""
    store = MemoryStore()
    some = [Update((n,), ("w" * (1000 if n == 20 else 4),), n, n, 1) for n in range(50)]
    table = of_updates(SMALL, some)
    with PartWriter(
        store, "p", table.schema, key_width=1, facts=False, group_rows=16, group_bytes=7 * 40 + 39
    ) as writer:
        for at in range(0, 50, at_once):
            writer.write(table.slice(at, at_once))
        (part,) = writer.close()
    assert [size for _, size in part.groups] == [7, 7, 6, 1, 7, 7, 7, 7, 1]
    assert [key for key, _ in part.groups] == [(n,) for n in (0, 7, 14, 20, 21, 28, 35, 42, 49)]
    assert [row for batch in read(store, [part]) for row in rows(batch)] == rows(table)


def test_the_file_says_how_it_is_sorted_and_compressed() -> None:
    store = MemoryStore()
    part = one_part(store)
    metadata = pq.ParquetFile(io.BytesIO(store.read(part.file.key))).metadata
    group = metadata.row_group(0)
    assert [column.column_index for column in group.sorting_columns] == [0, 1, 2, 3]
    assert all(column.nulls_first and not column.descending for column in group.sorting_columns)
    assert {group.column(at).compression for at in range(metadata.num_columns)} == {"ZSTD"}
    assert group.column(0).statistics.min == 0
    assert group.column(0).has_column_index


@pytest.mark.parametrize("facts", [False, True])
def test_columns_are_what_they_were_by_parquet_s_own_schema_alone(facts: bool) -> None:
    """Arrow writes a copy of its own beside it, a third of a small part."""
    types = (*ColumnType, DecimalType(38, 3), DecimalType(5, 0))
    of = replace(
        KEYED if facts else APPEND, value=tuple(Column(f"v{number}", kind) for number, kind in enumerate(types))
    )
    schema = facts_schema(of) if facts else updates_schema(of)
    required = {pa.int64(): 1, pa.string(): "a", pa.bool_(): True}
    row = {field.name: None if field.nullable else required[field.type] for field in schema}
    written = pa.Table.from_pylist([row], schema)
    store = MemoryStore()
    with PartWriter(store, "data/b", schema, key_width=len(of.key), facts=facts) as writer:
        writer.write(written)
        (part,) = writer.close()
    file = pq.ParquetFile(io.BytesIO(store.read(part.file.key)))
    assert b"ARROW:schema" not in (file.metadata.metadata or {})
    fields = [(field.name, field.type, field.nullable, field.metadata) for field in file.schema_arrow]
    assert fields == [(field.name, field.type, field.nullable, field.metadata) for field in schema]


def test_no_rows_make_no_part() -> None:
    store = MemoryStore()
    assert write(store, SMALL, numbered(0)) == ()
    assert store.objects == {}


def test_keys_out_of_order_are_refused_within_a_table_and_between_tables() -> None:
    table = numbered(4)
    reversed_ = table.take(pa.array([3, 2, 1, 0]))
    with pytest.raises(InvalidUsage, match="2 of 3 keys are below the one before"):
        write(MemoryStore(), SMALL, reversed_)
    writer = PartWriter(MemoryStore(), "p", table.schema, key_width=1, facts=False, group_rows=1, part_rows=4)
    writer.write(pa.concat_batches([table.slice(0, 1)] * 7 + [table.slice(3)]))
    with pytest.raises(InvalidUsage, match=r"key \(0,\) comes after \(3,\)"), writer:
        writer.write(table)


def test_other_columns_are_refused_naming_both() -> None:
    writer = PartWriter(MemoryStore(), "p", updates_schema(SMALL), key_width=1, facts=False)
    with pytest.raises(InvalidUsage, match=r"columns number int64 to a part of number int64, word string"):
        writer.write(numbered(1).select(["number"]))
    with pytest.raises(InvalidUsage, match="not those of facts"):
        PartWriter(MemoryStore(), "p", updates_schema(SMALL), key_width=1, facts=True)


def test_a_null_key_never_reaches_a_file() -> None:
    table = numbered(2)
    holed = table.set_column(0, pa.field("number", pa.int64(), nullable=False), pa.array([None, 1]))
    store = MemoryStore()
    with pytest.raises(InvalidUsage, match="key column number holds 1 null"):
        write(store, SMALL, holed)
    assert store.objects == {}


def test_an_abandoned_part_does_not_appear() -> None:
    store = MemoryStore()

    def left(error: BaseException | None) -> None:
        with PartWriter(store, "p", updates_schema(SMALL), key_width=1, facts=False, group_rows=1) as writer:
            writer.write(numbered(20))
            if error:
                raise error

    with pytest.raises(ZeroDivisionError):
        left(ZeroDivisionError())
    left(None)
    assert store.objects == {}


def test_some_groups_and_columns_cost_less_than_all() -> None:
    store = MemoryStore()
    words = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(40_000)]
    table = of_updates(SMALL, [Update((n,), (word,), n, n, 1) for n, word in enumerate(words)])
    (part,) = write(store, SMALL, table, group_rows=1000, part_rows=10**6)
    whole, few = Fetched(), Fetched()
    assert sum(group.num_rows for group in read_groups(store, part, fetched=whole)) == 40_000
    (group,) = read_groups(store, part, [3], some_of(updates_schema(SMALL), ["number"]), fetched=few)
    assert group.column(0).to_pylist() == list(range(3000, 4000))
    assert group.schema.names == ["number"]
    assert few.bytes < part.file.bytes / 4
    assert whole.bytes >= part.file.bytes - 100_000


class TestWhatIsNotAsRecorded:
    """A file that is not what was recorded is Corruption, naming the file and both sides."""

    def check(self, store: MemoryStore, part: Part, match: str) -> None:
        with pytest.raises(Corruption, match=match) as caught:
            read(store, [part])
        assert part.file.key in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_missing(self) -> None:
        store = MemoryStore()
        part = one_part(store)
        store.delete(part.file.key)
        self.check(store, part, "is missing; a part of 8 rows")

    def test_truncated(self) -> None:
        store = MemoryStore()
        part = one_part(store)
        store.objects[part.file.key] = store.objects[part.file.key][:-9]
        self.check(store, part, f"has {part.file.bytes - 9} bytes, recorded were {part.file.bytes}")

    def test_overwritten(self) -> None:
        store = MemoryStore()
        part = one_part(store)
        store.objects[part.file.key] = b"x" * part.file.bytes
        self.check(store, part, "has a footer .* recorded were ")
        self.check(store, replace(part, tail=None), "cannot be read: ")

    def test_flipped_bytes_in_the_data(self) -> None:
        store = MemoryStore()
        part = one_part(store)
        data = bytearray(store.objects[part.file.key])
        data[4:200] = b"\xff" * 196
        store.objects[part.file.key] = bytes(data)
        self.check(store, part, r"is damaged in row group 0, column number \(bytes 4 to ")
        self.check(store, replace(part, tail=None), "cannot be read: ")

    def test_any_bit_of_a_page_s_header(self) -> None:
        """Parquet's page checksums leave headers out. Here, where a dictionary was given up, some bits change rows."""
        store = MemoryStore()
        dice = random.Random(1)
        texts = [(f"c{dice.randrange(9000)}" if n % 7 else None,) for n in range(16_384)]
        table = of_updates(SMALL, [Update((n,), text, n, n, 1) for n, text in enumerate(texts)])
        (part,) = write(store, SMALL, table, group_rows=len(texts), part_rows=len(texts))
        whole = store.objects[part.file.key]
        column = pq.ParquetFile(io.BytesIO(whole)).metadata.row_group(0).column(1)
        data = column.data_page_offset
        for place in (
            *range(column.dictionary_page_offset, column.dictionary_page_offset + 20),
            *range(data, data + 30),
        ):
            for bit in range(8):
                damaged = bytearray(whole)
                damaged[place] ^= 1 << bit
                store.objects[part.file.key] = bytes(damaged)
                self.check(store, part, "is damaged in row group 0, column word")

    def test_a_read_of_less_than_a_column_chunk_is_refused_as_it_cannot_be_verified(self) -> None:
        store = MemoryStore()
        part = one_part(store)
        assert part.tail is not None
        data = pa.py_buffer(store.read(part.file.key))
        checksums = Checksums(part, data[data.size - part.tail.bytes :])
        checksums.verify(4, data[4:46])
        for start, end in ((4, 45), (5, 46), (0, 46), (4, data.size)):
            with pytest.raises(Corruption, match="no column chunk begins or ends"):
                checksums.verify(start, data[start:end])


class _Failing(MemoryStore):
    """Opens, and then fails to deliver."""

    def open_input(self, key: str) -> pa.NativeFile:
        size = len(self.read(key))

        class Source(io.RawIOBase):
            def seekable(self) -> bool:
                return True

            def readable(self) -> bool:
                return True

            def seek(self, offset: int, whence: int = 0) -> int:
                return size

            def tell(self) -> int:
                return size

            def read(self, _: int = -1) -> bytes:
                raise OSError("connection reset")

        return pa.PythonFile(Source(), mode="r")


def test_a_store_that_fails_is_unavailable_not_corrupt() -> None:
    store = _Failing()
    part = one_part(store)
    with pytest.raises(Unavailable, match="connection reset"):
        read(store, [part])


def test_columns_are_asked_for_by_their_ids_also_where_schemas_are_equal_but_for_these() -> None:
    """Equality of schemas does not look at ids: what was found for the one must not be taken for the other."""

    def named(name: str, number: int) -> pa.Field:
        return pa.field(name, pa.int64(), metadata={FIELD_ID: str(number)})

    store = MemoryStore()
    times = [pa.field(column, pa.int64(), nullable=False) for column in ("_time", "_event_time", "_diff")]
    stored_schema = pa.schema([named("k", 1), named("a", 2), named("b", 3), *times])
    stored_rows = pa.RecordBatch.from_arrays([pa.array([at]) for at in (1, 20, 30, 5, 5, 1)], schema=stored_schema)
    with PartWriter(store, "data/b", stored_schema, key_width=1, facts=False) as writer:
        writer.write(stored_rows)
        (part,) = writer.close()
    asked = [pa.schema([named("a", number)]) for number in (2, 3)]
    assert asked[0] == asked[1]
    with OpenedPart(store, part) as opened:
        assert [opened.read([0], schema).column(0).to_pylist() for schema in (*asked, *asked)] == [[20], [30]] * 2
