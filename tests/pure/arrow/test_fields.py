"""Columns of files written under earlier declarations, as they are wanted today."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.faulty import WrappedStore
from support.relanded import relanded
from tests.pure.arrow.samples import KEYED, SMALL, batch, collection, of_facts, of_updates, rows, write
from tidemark.arrow.kernels.inspect import inspect_part
from tidemark.arrow.kernels.merge import merge_range
from tidemark.arrow.parts import writer
from tidemark.arrow.parts.bounds import bounds_by_part, has_no_null, integer_bounds, none_has_null
from tidemark.arrow.parts.reader import read_groups
from tidemark.arrow.rows.fields import field_id, found, is_earlier
from tidemark.arrow.rows.schema import (
    facts_schema,
    live_prefix,
    live_schema,
    some_of,
    sort_columns,
    updates_schema,
    value_columns,
)
from tidemark.errors import Corruption
from tidemark.model.chunk.bounds import Bounds
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.evolution import evolved
from tidemark.model.fact import Fact
from tidemark.model.frontier import CompactionFunction
from tidemark.model.update import Update
from tidemark.plan.tasks import InspectTask, KeyRange, MergeTask
from tidemark.storage.read_many import READERS
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

WIDE = collection(
    Envelope.UPDATES,
    key=(Column("number", ColumnType.INT),),
    value=(Column("size", ColumnType.INT), Column("word", ColumnType.STRING), Column("day", ColumnType.DATE)),
)


def listing(of: Collection, *value: Column, renames: tuple[tuple[str, str], ...] = ()) -> Collection:
    return evolved(of, replace(of, value=value, renames=renames))


TODAY = listing(
    WIDE,
    Column("text", ColumnType.STRING),
    Column("day", ColumnType.TIMESTAMP),
    Column("more", ColumnType.BOOL),
    renames=(("word", "text"),),
)
"""`size` was dropped, `word` renamed, `day` widened, `more` added."""


def read_as(store: MemoryStore, parts: object, schema: pa.Schema) -> list[object]:
    return [row for part in parts for group in read_groups(store, part, schema=schema) for row in rows(group)]  # type: ignore[attr-defined]


def test_columns_at_rest_are_all_there_ever_were_by_number() -> None:
    schema = updates_schema(TODAY)
    assert schema.names == ["number", "_dropped_2", "text", "day", "more", "_time", "_event_time", "_diff"]
    assert [field_id(field) for field in schema] == [1, 2, 3, 4, 5, None, None, None]
    assert value_columns(TODAY) == ["_dropped_2", "text", "day", "more"]
    assert sort_columns(TODAY, facts=False) == tuple(schema.names[:-1])
    assert live_prefix(TODAY) == ["number"]
    assert live_prefix(WIDE) == ["number", "size", "word", "day"]
    assert live_schema(TODAY, facts=False).names == [name for name in schema.names if name != "_dropped_2"]


def test_ids_are_written_to_the_file_and_the_part_says_which_schema_it_has() -> None:
    store = MemoryStore()
    (part,) = write(store, TODAY, batch(updates_schema(TODAY), [(1, 2, "a", 3, True, 0, 0, 1)]))
    file = pq.ParquetFile(io.BytesIO(store.objects[part.file.key]))
    ids = [file.schema_arrow.field(at).metadata.get(b"PARQUET:field_id") for at in range(5)]
    assert ids == [b"1", b"2", b"3", b"4", b"5"]
    assert (TODAY.schema, part.schema) == (1, 1)


def test_an_earlier_part_is_read_in_todays_columns() -> None:
    store = MemoryStore()
    updates = [Update((1,), (7, "a", 2), 3, 3, 1), Update((2,), (None, None, None), 4, 4, 1)]
    parts = write(store, WIDE, of_updates(WIDE, updates))
    day = 86_400_000_000
    wanted = updates_schema(TODAY)
    assert read_as(store, parts, wanted) == [(1, 7, "a", 2 * day, None, 3, 3, 1), (2, None, None, None, None, 4, 4, 1)]
    assert read_as(store, parts, some_of(wanted, ["_diff", "text"])) == [("a", 1), (None, 1)]
    assert read_as(store, parts, some_of(wanted, ["more"])) == [(None,), (None,)], "nothing of it is in the file"


def test_an_old_name_that_came_back_is_not_the_column_it_was() -> None:
    """Of other files the name would be all there is to go by."""
    store = MemoryStore()
    renamed = listing(SMALL, Column("text", ColumnType.STRING), renames=(("word", "text"),))
    back = listing(renamed, Column("text", ColumnType.STRING), Column("word", ColumnType.STRING))
    parts = write(store, SMALL, of_updates(SMALL, [Update((1,), ("a",), 0, 0, 1)]))
    assert read_as(store, parts, live_schema(back, facts=False)) == [(1, "a", None, 0, 0, 1)]
    bare = pa.schema([pa.field(field.name, field.type) for field in updates_schema(SMALL)])
    foreign = write(store, SMALL, batch(bare, [(1, "a", 0, 0, 1)]))
    assert read_as(store, foreign, live_schema(back, facts=False)) == [(1, None, "a", 0, 0, 1)], "by name, without ids"


def test_a_column_that_was_read_before_it_was_kept_is_found_by_its_name() -> None:
    """In late objects, which hold all that was read."""
    stored = pa.schema([*updates_schema(SMALL), pa.field("at", pa.int64())])
    kept = listing(SMALL, *SMALL.value, Column("at", ColumnType.INT))
    field = updates_schema(kept).field("at")
    assert [source.name for _, source in found(stored, pa.schema([field]))] == ["at"]
    dropped = listing(kept, *SMALL.value)
    again = updates_schema(listing(dropped, *SMALL.value, Column("at", ColumnType.INT))).field("at")
    assert found(updates_schema(kept), pa.schema([again])) == [(again, None)], "a name that was kept is its number"


def test_what_breaks_ties_gets_wider_with_the_column_it_copies() -> None:
    keyed = relanded(KEYED, source=replace(KEYED.landed.source, order_by="x"))
    narrow = replace(keyed, value=(Column("word", ColumnType.STRING), Column("x", ColumnType.INT)))
    wide = listing(narrow, Column("word", ColumnType.STRING), Column("x", ColumnType.FLOAT))
    store = MemoryStore()
    parts = write(store, narrow, of_facts(narrow, [Fact((1,), ("a", 5), 0, 0, (5, "f", 0))]), facts=True)
    (group,) = read_groups(store, parts[0], schema=facts_schema(wide))
    assert group.column("_order").to_pylist() == group.column("x").to_pylist() == [5.0]
    assert group.schema.field("_order").type == pa.float64()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (pa.field("other", pa.int64(), nullable=False), "there is no column other"),
        (pa.field("_diff", pa.float64()), None),
        (pa.field("_diff", pa.string()), "column _diff is of type int64, which is not string nor narrower"),
    ],
)
def test_what_cannot_be_had_from_a_file_is_refused(wanted: pa.Field, says: str | None) -> None:
    if says is None:
        assert [source.name for _, source in found(updates_schema(SMALL), pa.schema([wanted]))] == ["_diff"]
        return
    store = MemoryStore()
    (part,) = write(store, SMALL, of_updates(SMALL, [Update((1,), ("a",), 0, 0, 1)]))
    with pytest.raises(Corruption, match=f"{part.file.key} cannot be read: .*{says}"):
        list(read_groups(store, part, schema=pa.schema([wanted])))


def test_a_value_no_wider_type_holds_is_never_rounded() -> None:
    of = replace(SMALL, value=(Column("word", ColumnType.INT),))
    wide = listing(of, Column("word", ColumnType.FLOAT))
    store = MemoryStore()
    (part,) = write(store, of, of_updates(of, [Update((1,), (2**53 + 1,), 0, 0, 1)]))
    with pytest.raises(Corruption, match=f"{part.file.key} cannot be read: Integer value {2**53 + 1} not in range"):
        list(read_groups(store, part, schema=updates_schema(wide)))


def test_bounds_are_those_of_all_row_groups() -> None:
    store = MemoryStore()
    updates = [
        Update((n,), (size, "w", None), 0, 0, 1) for n, size in enumerate([4, None, -(2**63), None, None, None, 9])
    ]
    (part,) = write(store, WIDE, of_updates(WIDE, updates), group_rows=3)
    schema = updates_schema(WIDE)
    assert integer_bounds(store, part, schema.field("size")) == (-(2**63), 9)
    assert integer_bounds(store, part, schema.field("day")) is None
    (known,) = bounds_by_part(store, [part], schema.field("size"))
    assert known == [Bounds(-(2**63), 4, 1), Bounds(None, None, 3), Bounds(9, 9)]
    (known,) = bounds_by_part(store, [part], updates_schema(TODAY).field("more"))
    assert known == [Bounds(None, None, rows) for rows in (3, 3, 1)], "nulls, as it is not in the file"
    assert integer_bounds(store, part, updates_schema(TODAY).field("more")) is None, "not in the file"


def test_the_footer_says_of_all_row_groups_whether_there_are_nulls() -> None:
    store = MemoryStore()
    updates = [Update((n,), (size, "w", None), 0, 0, 1) for n, size in enumerate([4, 5, 6, 7, None])]
    whole, holed = (write(store, WIDE, of_updates(WIDE, some), group_rows=2)[0] for some in (updates[:4], updates))
    size, word, day = (pa.schema([updates_schema(WIDE).field(name)]) for name in ("size", "word", "day"))
    assert has_no_null(store, whole, size)
    assert not has_no_null(store, holed, size)
    assert has_no_null(store, holed, word)
    assert not has_no_null(store, whole, day)
    assert not has_no_null(store, whole, pa.schema([*size, updates_schema(TODAY).field("more")])), "not in the file"


def test_what_a_footer_does_not_say_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    options = writer._parquet_options
    monkeypatch.setattr(writer, "_parquet_options", lambda *words: {**options(*words), "write_statistics": False})
    store, field = MemoryStore(), updates_schema(WIDE).field("size")
    (part,) = write(store, WIDE, of_updates(WIDE, [Update((1,), (4, "w", None), 0, 0, 1)]))
    assert list(bounds_by_part(store, [part], field)) == [[None]]
    assert not has_no_null(store, part, pa.schema([field]))
    with pytest.raises(Corruption, match="has no statistics of column size"):
        integer_bounds(store, part, field)


def test_footers_of_many_parts_are_read_at_once_and_come_in_order() -> None:
    store = Gathering(MemoryStore())
    field = updates_schema(WIDE).field("size")
    rows = [of_updates(WIDE, [Update((n,), (n, "w", None), 0, 0, 1)]) for n in range(3 * READERS)]
    parts = [write(store, WIDE, row)[0] for row in rows]
    assert list(bounds_by_part(store, parts, field)) == [[Bounds(n, n)] for n in range(len(parts))]
    store.gather()
    assert none_has_null(store, parts, pa.schema([field]))
    (holed,) = write(store, WIDE, of_updates(WIDE, [Update((99,), (None, "w", None), 0, 0, 1)]))
    store.gather()
    assert not none_has_null(store, [*parts, holed], pa.schema([field]))
    assert not none_has_null(store, [holed], pa.schema([field]))


class Gathering(WrappedStore):
    """No file is opened before as many are being opened as are read at once; later ones are as they come."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.gather()

    def gather(self) -> None:
        self.opened, self._barrier, self._lock = 0, threading.Barrier(READERS, timeout=20), threading.Lock()

    def open_input(self, key: str) -> Any:
        with self._lock:
            self.opened += 1
            early = self.opened <= READERS
        if early:
            self._barrier.wait()
        return self.inner.open_input(key)


def test_inspection_finds_an_earlier_part_as_it_was_written() -> None:
    """Its digest is over the columns it has; that those are an earlier declaration's is no defect."""
    store = MemoryStore()
    updates = [
        Update((1,), (7, "a", 2), 3, 3, 1),
        Update((1,), (7, "a", 2), 3, 4, 1),
        Update((2,), (0, "b", 1), 3, 3, -1),
    ]
    (part,) = write(store, WIDE, of_updates(WIDE, updates))
    answer = inspect_part(store, InspectTask(TODAY, part, False))
    assert answer.columns == tuple(updates_schema(TODAY).names)
    assert (answer.digest, answer.rows, answer.unsorted, answer.repeated) == (part.digest, 3, 0, 0)
    assert (answer.first_key, answer.last_key) == ((1,), (2,))


def test_inspection_reports_columns_no_declaration_had() -> None:
    store = MemoryStore()
    (part,) = write(store, WIDE, of_updates(WIDE, [Update((1,), (7, "a", 2), 3, 3, 1)]))
    wide = updates_schema(WIDE)
    assert is_earlier(wide, updates_schema(TODAY))
    assert not is_earlier(updates_schema(TODAY), wide), "a later one"
    assert not is_earlier(pa.schema([wide.field(at) for at in (0, 2, 1, 3, 4, 5, 6)]), updates_schema(TODAY)), "order"
    assert not is_earlier(pa.schema([*wide, pa.field("x", pa.int64())]), updates_schema(TODAY)), "more"
    of_today = inspect_part(store, InspectTask(TODAY, replace(part, schema=TODAY.schema), False))
    assert of_today.columns == tuple(wide.names), "recorded as of today, it has to have today's"
    assert of_today.digest == 0


def test_a_merge_writes_todays_columns_and_sums_both_sides_over_them() -> None:
    store = MemoryStore()
    old = write(store, WIDE, of_updates(WIDE, [Update((1,), (7, "a", 2), 3, 3, 1), Update((2,), (1, "b", 0), 3, 3, 1)]))
    new = write(store, TODAY, batch(updates_schema(TODAY), [(1, 7, "a", 2 * 86_400_000_000, None, 3, 3, -1)]))
    task = MergeTask(TODAY, (*old, *new), KeyRange(), 0, 100, CompactionFunction(0), "out")
    answer = merge_range(store, task)
    assert sum(part.digest for part in answer.parts) == answer.digest_read
    assert {part.schema for part in answer.parts} == {TODAY.schema}
    assert read_as(store, answer.parts, updates_schema(TODAY)) == [(2, 1, "b", 0, None, 3, 3, 1)]
