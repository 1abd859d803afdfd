"""Looking keys up: the rows found are those a full read and a comparison row by row find, whatever the keys' types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.arrow.samples import array
from tests.support.budget import laws
from tidemark.arrow.parts import lookup as lookups
from tidemark.arrow.parts.lookup import Lookup, Wanted
from tidemark.arrow.parts.reader import Fetched
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import keys_of, some_of, sort_columns, updates_schema
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Source
from tidemark.model.update import Row
from tidemark.storage.stores.memory import MemoryStore

SOME = {
    ColumnType.BOOL: [False, True],
    ColumnType.INT: [-(2**63), -1, 0, 1, 2**63 - 1],
    ColumnType.STRING: ["", "a", "a\0", "é", "\U0001f30a", "z" * 40],
    ColumnType.DATE: [-1, 0, 20000],
    ColumnType.TIMESTAMP: [-1, 0, 1_700_000_000_000_001],
}


def collection(kinds: Sequence[ColumnType]) -> Collection:
    key = tuple(Column(f"k{at}", kind) for at, kind in enumerate(kinds))
    return Collection(
        "sample", key, (Column("word", ColumnType.STRING),), Source("*", Format.PARQUET, Envelope.UPDATES)
    )


def table(of: Collection, keys: Sequence[Row]) -> pa.RecordBatch:
    schema = updates_schema(of)
    cells = [
        *zip(*keys, strict=True),
        [f"word {at % 3}" for at in range(len(keys))],
        *([at] * len(keys) for at in (5, 5, 1)),
    ]
    columns = [array(list(column), field.type) for column, field in zip(cells, schema, strict=True)]
    return sort(pa.RecordBatch.from_arrays(columns, schema=schema), sort_columns(of, facts=False))


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    return keys_of(batch, range(batch.num_rows), batch.num_columns)


def written(store: MemoryStore, of: Collection, rows: pa.RecordBatch, group_rows: int) -> tuple[Part, ...]:
    numbers = count()
    with PartWriter(
        store,
        "data/b",
        updates_schema(of),
        key_width=len(of.key),
        facts=False,
        group_rows=group_rows,
        name=lambda: f"p{next(numbers)}",
    ) as writer:
        writer.write(rows)
        return writer.close()


ALL = Wanted(pa.schema([]), lambda rows: np.ones(rows.num_rows, bool), lambda part: True)


def lookup(store: MemoryStore, of: Collection, parts: Sequence[Part], fetched: Fetched, wanted: Wanted = ALL) -> Lookup:
    schema = updates_schema(of)
    return Lookup(
        store,
        parts,
        keys=some_of(schema, [column.name for column in of.key]),
        others=some_of(schema, ["word", "_event_time", "_diff"]),
        wanted=wanted,
        fetched=fetched,
    )


def test_where_none_of_the_keys_rows_is_wanted_the_rest_of_a_row_group_is_not_read() -> None:
    of = collection([ColumnType.INT])
    store = MemoryStore()
    random = np.random.default_rng(1)
    rows = table(of, [(at,) for at in range(40_000)])
    words = pa.array([random.bytes(20).hex() for _ in range(40_000)])
    parts = written(store, of, rows.set_column(1, rows.schema.field(1), words), 40_000)
    bytes_read, found = [], []
    for upto in (4, 5):
        wanted = Wanted(
            pa.schema([("_event_time", pa.int64())]),
            lambda rows, upto=upto: rows["_event_time"].to_numpy() <= upto,
            lambda _: False,
        )
        fetched = Fetched()
        with lookup(store, of, parts, fetched, wanted) as opened:
            found.append(sum(some.num_rows for some in opened.rows_of(table(of, [(7,)]).select(["k0"]), 2**30)))
        bytes_read.append(fetched.bytes)
    assert found == [0, 1]
    assert 3 * bytes_read[0] < bytes_read[1]


@laws
@given(
    kinds=st.lists(st.sampled_from(list(SOME)), min_size=1, max_size=2),
    data=st.data(),
    group_rows=st.integers(1, 5),
    gathered=st.sampled_from([1, 200, lookups.GATHERED_BYTES]),
)
def test_the_rows_of_keys_are_found(
    kinds: list[ColumnType], data: st.DataObject, group_rows: int, gathered: int
) -> None:
    of = collection(kinds)
    key = st.tuples(*(st.sampled_from(SOME[kind]) for kind in kinds))
    rows = table(of, data.draw(st.lists(key, min_size=1, max_size=24), label="stored"))
    names = [column.name for column in of.key]
    asked = table(of, data.draw(st.lists(key, min_size=1, max_size=8, unique_by=repr), label="asked")).select(names)

    store = MemoryStore()
    parts = written(store, of, rows, group_rows)
    with pytest.MonkeyPatch.context() as patch, lookup(store, of, parts, Fetched()) as opened:
        patch.setattr(lookups, "GATHERED_BYTES", gathered)
        found = opened.rows_of(asked, 2**30)

    wanted = {repr(row) for row in rows_of(asked)}
    stored = rows_of(rows.select([*names, "word", "_event_time", "_diff"]))
    expected = sorted(repr(row) for row in stored if repr(row[: len(names)]) in wanted)
    assert sorted(repr(row) for batch in found for row in rows_of(batch)) == expected


def test_of_a_row_group_without_any_of_the_keys_only_their_first_column_is_read() -> None:
    of = collection([ColumnType.INT, ColumnType.STRING])
    store = MemoryStore()
    random = np.random.default_rng(1)
    keys = [(2 * at, random.bytes(20).hex()) for at in range(40_000)]
    parts = written(store, of, table(of, keys), 40_000)
    fetched = []
    for number in (5_001, 5_000):
        bytes_read = Fetched()
        with lookup(store, of, parts, bytes_read) as opened:
            rows = opened.rows_of(table(of, [(number, keys[2_500][1])]).select(["k0", "k1"]), 2**30)
        assert sum(batch.num_rows for batch in rows) == (number == 5_000)
        fetched.append(bytes_read.bytes)
    assert 10 * fetched[0] < fetched[1]
