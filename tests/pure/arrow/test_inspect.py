"""Inspection reports what is in the file, whatever was recorded of it."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import APPEND, KEYED, NULLABLE, SMALL, batch, of_facts, of_updates, updates, write
from tests.support.budget import laws
from tidemark.arrow.kernels import inspect
from tidemark.arrow.kernels.inspect import inspect_part
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.schema import facts_schema, updates_schema
from tidemark.errors import Corruption
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.collection import Collection
from tidemark.model.fact import Fact
from tidemark.model.key import NULL
from tidemark.model.update import Update
from tidemark.plan.tasks import InspectAnswer, InspectTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


def stored(store: MemoryStore, table: pa.RecordBatch, group_rows: int = 3) -> Part:
    """A table as it is, in order or not, written by another hand than ours."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_batches([table]), buffer, row_group_size=group_rows)
    store.objects["foreign"] = buffer.getvalue()
    metadata = pq.ParquetFile(io.BytesIO(buffer.getvalue())).metadata
    groups = tuple(((0,), metadata.row_group(at).num_rows) for at in range(metadata.num_row_groups))
    return Part(ObjectRef("foreign", len(buffer.getvalue()), "?"), table.num_rows, 0, groups, (0,), 0, 0, 0, 0)


def found(store: MemoryStore, of: Collection, part: Part, *, facts: bool = False) -> InspectAnswer:
    return inspect_part(store, InspectTask(of, part, facts))


@laws
@given(updates(APPEND).filter(bool), st.integers(1, 20))
def test_what_the_writer_recorded_is_found_again(some: list[Update], group_rows: int) -> None:
    store = MemoryStore()
    for part in write(store, APPEND, of_updates(APPEND, some), group_rows=group_rows, part_rows=20):
        answer = found(store, APPEND, part)
        assert (answer.sha256, answer.file) == (part.file.sha256, part.file)
        for name in ("rows", "digest", "first_key", "last_key", "first_time", "last_time"):
            assert getattr(answer, name) == getattr(part, name)
        assert (answer.first_event_time, answer.last_event_time) == (part.first_event_time, part.last_event_time)
        assert (answer.null_keys, answer.unsorted) == (0, 0)
        assert answer.columns == tuple(updates_schema(APPEND).names)


def test_disorder_repetition_and_zeros_are_counted_across_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "GROUPS_AT_ONCE", 1)
    some = [
        (2, "b", 5, 5, 1),
        (2, "b", 5, 5, 0),
        (1, "z", 9, 9, 1),
        (3, None, 1, 7, 1),
        (3, None, 1, 7, 2),
        (3, "a", 0, 0, 0),
    ]
    store = MemoryStore()
    answer = found(store, SMALL, stored(store, batch(updates_schema(SMALL), some), 2))
    assert (answer.rows, answer.unsorted, answer.repeated, answer.zero_diffs) == (6, 1, 2, 2)
    assert (answer.first_key, answer.last_key) == ((2,), (3,))
    assert (answer.first_time, answer.last_time, answer.first_event_time, answer.last_event_time) == (0, 9, 0, 9)


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("group_rows", [1, 2, 3])
def test_what_should_cancel_is_added_up_across_row_groups(
    at_once: int, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "GROUPS_AT_ONCE", at_once)
    gone = [(1, "a", 1, 1, 1), (1, "a", 2, 2, -1), (2, "a", 1, 1, 2), (2, "a", 4, 2, -1), (2, "a", 4, 3, -1)]
    store, kept = MemoryStore(), [(1, "b", 3, 3, 1), (2, "a", 9, 9, 1)]
    for rows, count in ((gone, 0), (sorted([*gone, *kept]), 2), ([*gone, (3, "a", 1, 1, 1)], 1)):
        part = stored(store, batch(updates_schema(SMALL), rows), group_rows)
        assert found(store, SMALL, replace(part, cancels=True)).uncancelled == count
        assert found(store, SMALL, part).uncancelled == 0


def test_null_keys_are_counted() -> None:
    table = batch(updates_schema(SMALL), [(1, "a", 0, 0, 1), (2, "a", 0, 0, 1)])
    holed = table.set_column(0, pa.field("number", pa.int64()), pa.array([None, 1]))
    store = MemoryStore()
    answer = found(store, SMALL, stored(store, holed))
    assert (answer.null_keys, answer.first_key, answer.last_key) == (1, (NULL,), (1,))


def test_null_keys_of_a_derived_collection_are_none_too_many() -> None:
    store, key = MemoryStore(), (None,) * len(NULLABLE.key)
    some = [Update(key, ("a",), 0, 0, 1), Update((*key[:-1], "1"), ("a",), 0, 0, 1)]
    (part,) = write(store, NULLABLE, of_updates(NULLABLE, some))
    answer = found(store, NULLABLE, part)
    assert (answer.null_keys, answer.unsorted, answer.misplaced) == (0, 0, 0)
    assert (answer.first_key, answer.last_key) == ((NULL,) * 6, (*(NULL,) * 5, "1")) == (part.first_key, part.last_key)


def test_facts_are_in_order_of_what_happened() -> None:
    some = [Fact((1,), ("w", 1.0), 9, e, (None, "f", row)) for e, row in ((1, 0), (2, 1), (2, 2))]
    table = of_facts(KEYED, some)
    store = MemoryStore()
    answer = found(store, KEYED, stored(store, table), facts=True)
    assert (answer.rows, answer.unsorted, answer.repeated, answer.zero_diffs) == (3, 0, 0, 0)
    assert answer.digest == digest(table)
    assert answer.columns == tuple(facts_schema(KEYED).names)
    turned = table.take(pa.array([0, 2, 1]))
    assert found(store, KEYED, stored(store, turned), facts=True).unsorted == 1


def test_other_columns_are_reported_and_not_guessed_at() -> None:
    table = pa.record_batch({"number": [1, 2], "other": ["a", "b"]})
    store = MemoryStore()
    answer = found(store, SMALL, stored(store, table))
    assert (answer.columns, answer.rows, answer.digest) == (("number", "other"), 2, 0)


def test_a_swapped_file_of_the_same_size_is_detected_by_its_checksum() -> None:
    store = MemoryStore()
    (one,) = write(store, SMALL, batch(updates_schema(SMALL), [(1, "a", 0, 0, 1)]))
    (two,) = write(store, SMALL, batch(updates_schema(SMALL), [(1, "b", 0, 0, 1)]))
    assert one.file.bytes == two.file.bytes
    store.objects[one.file.key] = store.objects[two.file.key]
    with pytest.raises(Corruption, match="has a footer"):
        found(store, SMALL, one)
    answer = found(store, SMALL, replace(one, tail=None))  # as an older release recorded it
    assert answer.sha256 == two.file.sha256 == hashlib.sha256(store.objects[one.file.key]).hexdigest()
    assert answer.digest == two.digest != one.digest


def test_what_cannot_be_read_is_corruption_naming_the_file() -> None:
    store = MemoryStore()
    (part,) = write(store, SMALL, batch(updates_schema(SMALL), [(1, "a", 0, 0, 1)]))
    store.objects[part.file.key] = store.objects[part.file.key][:-1]
    with pytest.raises(Corruption, match=rf"{part.file.key} has \d+ bytes, recorded were"):
        found(store, SMALL, part)
    store.delete(part.file.key)
    with pytest.raises(Corruption, match=f"{part.file.key} is missing"):
        found(store, SMALL, part)
    with pytest.raises(Corruption, match="nowhere is missing"):
        found(store, SMALL, replace(part, file=ObjectRef("nowhere", 1, "")))
