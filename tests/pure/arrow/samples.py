"""Collections, rows and parts for the tests of the Arrow kernels, in the model's plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tidemark.arrow.parts.reader import read_groups
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.order import sort
from tidemark.arrow.rows.schema import facts_schema, plain_scalars, sort_columns, updates_schema
from tidemark.model.batch import Part
from tidemark.model.collection import (
    Collection,
    Column,
    ColumnType,
    DecimalType,
    Envelope,
    Format,
    Landed,
    Source,
    ValueType,
)
from tidemark.model.decimals import from_units
from tidemark.model.derived import Definition, Derived
from tidemark.model.fact import Fact
from tidemark.model.update import Row, Scalar, Update
from tidemark.storage.stores.memory import MemoryStore

NAN = float("nan")
"""The one NaN object of the tests: tuples that hold it are equal to each other."""


KEY = (Column("number", ColumnType.INT), Column("name", ColumnType.STRING))
MONEY = DecimalType(12, 2)
VALUE = (*(Column(f"a_{type_}", type_) for type_ in ColumnType), Column("a_decimal", MONEY))


def collection(envelope: Envelope, *, key: Sequence[Column] = KEY, value: Sequence[Column] = VALUE) -> Collection:
    order_by = "a_int" if envelope is Envelope.UPSERT and any(c.name == "a_int" for c in value) else None
    return Collection(
        "sample", tuple(key), tuple(value), Landed(Source("*", Format.PARQUET, envelope, order_by=order_by))
    )


APPEND = collection(Envelope.APPEND)
EXACT = (Column("price", MONEY), Column("data", ColumnType.BYTES), Column("doc", ColumnType.JSON))
"""Types of which equality is exact, for keys: in metadata they are other scalars than in columns."""
KEYED_BY_ALL = collection(Envelope.UPDATES, key=EXACT, value=(Column("word", ColumnType.STRING),))
SMALL = collection(Envelope.UPDATES, key=KEY[:1], value=(Column("word", ColumnType.STRING),))
NULLABLE = Collection(
    "sample",
    (*KEY[::-1], Column("day", ColumnType.DATE), *EXACT),
    (Column("word", ColumnType.STRING),),
    Derived(("others",), Definition("SELECT * FROM others")),
)
"""A derived collection: any column of its key may be null."""
KEYED = collection(
    Envelope.UPSERT, key=KEY[:1], value=(Column("word", ColumnType.STRING), Column("x", ColumnType.FLOAT))
)

CELLS: dict[ValueType, st.SearchStrategy[Scalar]] = {
    ColumnType.BOOL: st.sampled_from([None, False, True]),
    ColumnType.INT: st.sampled_from([None, -(2**63), -1, 0, 2**63 - 1]),
    ColumnType.FLOAT: st.sampled_from([None, NAN, float("-inf"), -1.5, 0.0, 2.0**60]),
    ColumnType.STRING: st.sampled_from([None, "", "a", "a\0", "é", "\U0001f30a", "eight by", "nine byte", "z" * 40]),
    ColumnType.DATE: st.sampled_from([None, -1, 0, 20000]),
    ColumnType.TIMESTAMP: st.sampled_from([None, -1, 0, 1_700_000_000_000_001]),
    ColumnType.BYTES: st.sampled_from([None, "", "00", "7f", "80", "ff", "ff00", "c3a9" * 5]),
    ColumnType.JSON: st.sampled_from([None, "1", '"1"', "[]", '{"a":1}', '{"a":1,"b":null}', "true"]),
    MONEY: st.sampled_from([None, -(10**12) + 1, -100, -1, 0, 5, 10**12 - 1]),
}
"""As metadata holds them: bytes as hex, decimals in units of their last digit."""


def keys(of: Collection, most: int = 3) -> st.SearchStrategy[Row]:
    kinds: dict[ValueType, st.SearchStrategy[Scalar]] = {
        ColumnType.INT: st.integers(0, most),
        ColumnType.STRING: st.sampled_from(["", "k", "ké"]),
        ColumnType.DATE: st.integers(-1, 2),
        ColumnType.BYTES: st.sampled_from(["", "7f", "ff", "ff00"]),
        ColumnType.JSON: st.sampled_from(["1", '"1"', '{"a":1}']),
        MONEY: st.sampled_from([-100, -1, 0, 5, 10**12 - 1]),
    }
    nothing = [st.none()] if of.is_derived else []
    return st.tuples(*(st.one_of(*nothing, kinds[column.type]) for column in of.key))


def values(of: Collection) -> st.SearchStrategy[Row]:
    return st.tuples(*(CELLS[column.type] for column in of.value))


def updates(of: Collection, *, most: int = 16, times: int = 12) -> st.SearchStrategy[list[Update]]:
    time = st.integers(0, times)
    one = st.builds(Update, keys(of), values(of), time, time, st.integers(-2, 2))
    return st.lists(one, max_size=most)


def array(cells: Iterable[Any], type_: pa.DataType) -> pa.Array:
    """An array of plain scalars, as schema.plain_scalars gives them back."""
    if pa.types.is_timestamp(type_):
        return pa.array(cells, pa.int64()).cast(type_)
    if pa.types.is_date32(type_):
        return pa.array(cells, pa.int32()).cast(type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if x is None else from_units(x, type_.scale) for x in cells], type_)
    if pa.types.is_binary(type_):
        return pa.array([None if x is None else bytes.fromhex(x) for x in cells], type_)
    return pa.array(cells, type_)


def batch(schema: pa.Schema, rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = [array(cells, field.type) for cells, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows(of: pa.Table | pa.RecordBatch) -> list[Row]:
    """The rows as plain scalars, every NaN the one of the tests."""
    columns = [[NAN if x is not None and x != x else x for x in plain_scalars(column)] for column in of.columns]
    return list(zip(*columns, strict=True))


def of_updates(of: Collection, some: Iterable[Update]) -> pa.RecordBatch:
    """Updates at rest: sorted, not consolidated."""
    table = batch(updates_schema(of), [(*u.key, *u.value, u.time, u.event_time, u.diff) for u in some])
    return sort(table, sort_columns(of, facts=False))


def as_updates(of: Collection, tables: Iterable[pa.Table | pa.RecordBatch]) -> list[Update]:
    width, end = len(of.key), len(of.columns)
    return [Update(row[:width], row[width:end], *row[end:]) for table in tables for row in rows(table)]  # type: ignore[arg-type]


def of_facts(of: Collection, some: Iterable[Fact]) -> pa.RecordBatch:
    """Facts at rest; a fact's order is (`_order`, file, row)."""
    nothing = (None,) * len(of.value)
    tuples = [
        (*f.key, *(nothing if f.value is None else f.value), f.value is None, f.time, f.event_time, *f.order)
        for f in some
    ]
    return sort(batch(facts_schema(of), tuples), sort_columns(of, facts=True))  # type: ignore[arg-type]


_serial = count()


def write(
    store: MemoryStore,
    of: Collection,
    table: pa.RecordBatch,
    *,
    facts: bool = False,
    group_rows: int = 3,
    part_rows: int = 9,
    records_consolidated: bool = False,
    retracted: bool = False,
) -> tuple[Part, ...]:
    """The table as parts of tiny row groups."""
    writer = PartWriter(
        store,
        "in",
        table.schema,
        key_width=len(of.key),
        facts=facts,
        group_rows=group_rows,
        part_rows=part_rows,
        records_consolidated=records_consolidated,
        retracted=retracted,
        name=lambda: f"{next(_serial)}",
    )
    with writer:
        writer.write(table)
        return writer.close()


def read(store: MemoryStore, parts: Iterable[Part]) -> list[pa.RecordBatch]:
    return [table for part in parts for table in read_groups(store, part)]
