"""The columns at rest: the user's under their own names, key first, then Tidemark's, each with an underscore.

The value columns are all there ever were, in order of id; one that was dropped is called `_dropped_` and its id, a
hidden one by its own name, which begins with an underscore too. Key
and value columns carry their id as the Parquet field id, by which they are found under whatever name (fields.py).
Where a collection has a layout by time, `_bucket` is before its key: rows are in order of that first (layout.py).

Updates: key, value, `_time`, `_event_time`, `_diff`; sorted by key, value, `_time`, `_event_time`. Where files may be
corrected, those that an ingest writes have the number of their file among the batch's, `_source`, before `_diff`.
Facts (unsealed batches of keyed collections): key, value (all null in a tombstone), `_deleted`, `_time`,
`_event_time`, `_order`, `_file`, `_row`; sorted by key, `_event_time`, `_order`, `_file`, `_row`. Where transactions
are one change, `_transaction` and `_lacks` follow, and a tombstone may have the values of its before-image.
Only value columns, `_order`, these two, and the keys of derived collections may hold nulls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import pyarrow as pa

from tidemark.arrow.rows.arrays import of_values
from tidemark.model import decimals
from tidemark.model.collection import MOST_UNSORTED_ROWS, Collection, Column, ColumnType, DecimalType, ValueType
from tidemark.model.key import Key, KeyScalar, key_scalar, plain_scalar
from tidemark.model.update import Scalar

TIME = "_time"
EVENT_TIME = "_event_time"
DIFF = "_diff"
DELETED = "_deleted"
ORDER = "_order"
FILE = "_file"
ROW = "_row"
SOURCE = "_source"
BUCKET = "_bucket"
TRANSACTION = "_transaction"
LACKS = "_lacks"
FIELD_ID = b"PARQUET:field_id"
SCHEMA = b"tidemark.schema"
TIMELINES = b"tidemark.timelines"
UNSORTED_ROWS = b"tidemark.max_rows_if_unsorted"
"""Of a field: what becomes the field id in Parquet. Of a schema: which `Collection.schema` it is, which columns are
timelines, by their ids, and the most rows of a chunk that is not in order of these."""

ARROW_TYPES: dict[ColumnType, pa.DataType] = {
    ColumnType.BOOL: pa.bool_(),
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.STRING: pa.string(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us", "UTC"),
    ColumnType.BYTES: pa.binary(),
    ColumnType.JSON: pa.string(),
}
"""Of the types without parameters."""
TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE)
"""The types whose values a source may write as numbers that count since the epoch."""


def arrow_type(of: ValueType) -> pa.DataType:
    """The Arrow type of a column."""
    return pa.decimal128(of.precision, of.scale) if isinstance(of, DecimalType) else ARROW_TYPES[of]


@lru_cache(maxsize=64)  # a read of one key asks for it four times, which is a twentieth of its time
def updates_schema(collection: Collection) -> pa.Schema:
    """The columns of updates: all of the trace, and unsealed batches of collections that are not keyed."""
    own = [_required(name, pa.int64()) for name in (TIME, EVENT_TIME, DIFF)]
    return pa.schema([*_declared(collection), *own], metadata=_numbered(collection))


def facts_schema(collection: Collection) -> pa.Schema:
    """The columns of facts: unsealed batches of keyed collections."""
    return pa.schema(
        [
            *_declared(collection),
            _required(DELETED, pa.bool_()),
            _required(TIME, pa.int64()),
            _required(EVENT_TIME, pa.int64()),
            pa.field(ORDER, order_type(collection)),
            _required(FILE, pa.string()),
            _required(ROW, pa.int64()),
            *transaction_fields(collection),
        ],
        metadata=_numbered(collection),
    )


def transaction_fields(collection: Collection) -> list[pa.Field]:
    """The columns of facts that say what transaction they are of, and what their images lack; none without these."""
    return [pa.field(name, pa.string()) for name in (TRANSACTION, LACKS)] if collection.has_transactions else []


def said_columns(collection: Collection) -> list[str]:
    """The columns of facts that say what a key became, beside where and when."""
    return [DELETED, *value_columns(collection), *(field.name for field in transaction_fields(collection))]


def unsealed_schema(collection: Collection) -> pa.Schema:
    """The columns of what an ingest writes: facts, updates, or updates with the file each belongs to."""
    if collection.kind.facts:
        return facts_schema(collection)
    return sourced_schema(collection) if collection.correctable_for else updates_schema(collection)


def sourced_schema(collection: Collection) -> pa.Schema:
    """The columns of updates that say which file each belongs to. Whoever reads updates need not know of it."""
    *others, diff = updates_schema(collection)
    return pa.schema([*others, _required(SOURCE, pa.int64()), diff], metadata=_numbered(collection))


def without_source(names: Sequence[str]) -> list[str]:
    """The columns that say what rows are, and not which file they belong to."""
    return [name for name in names if name != SOURCE]


def source_schema(columns: Iterable[Column]) -> pa.Schema:
    """The columns of decoded source rows: those declared, a user's with its id, and `_row`."""
    fields = [
        pa.field(column.name, arrow_type(column.type), metadata={FIELD_ID: str(column.id)} if column.id else None)
        for column in columns
    ]
    return pa.schema([*fields, pa.field(ROW, pa.int64())])


def order_type(collection: Collection) -> pa.DataType:
    """The type of `_order`: that of the column it copies, or bytes (rows/places.py); int64, and null, without one."""
    if collection.has_places:
        return pa.binary()
    order_by = collection.order_by
    return arrow_type(collection.type_of(order_by)) if order_by else pa.int64()


def live_schema(collection: Collection, *, facts: bool) -> pa.Schema:
    """The columns at rest without those no answer has, hidden ones, dropped ones and the bucket."""
    schema = facts_schema(collection) if facts else updates_schema(collection)
    unseen = {BUCKET, *(_name_at_rest(collection, column) for column in collection.unseen)}
    return some_of(schema, set(schema.names) - unseen)


def some_of(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Some fields of a schema, in its order."""
    wanted = set(names)
    return pa.schema([field for field in schema if field.name in wanted], metadata=schema.metadata)


def value_columns(collection: Collection) -> list[str]:
    """The value columns at rest, dropped ones included, by their names there."""
    return [field.name for field in _declared(collection)[len(key_at_rest(collection)) :]]


def key_at_rest(collection: Collection) -> list[str]:
    """The columns of the key as rows at rest are in order of it: with a layout the bucket comes first."""
    return [*([BUCKET] if collection.layout else []), *(column.name for column in collection.key)]


def live_prefix(collection: Collection) -> list[str]:
    """The columns that can be read by which rows at rest are in order: all, up to the first that was dropped."""
    names = key_at_rest(collection)
    for column in collection.stored_value:
        if column in collection.dropped:
            break
        names.append(column.name)
    return names


def sort_columns(collection: Collection, *, facts: bool) -> tuple[str, ...]:
    """The columns rows at rest are sorted by: nulls first, NaN next, ascending (order.py)."""
    if facts:
        return (*(column.name for column in collection.key), EVENT_TIME, ORDER, FILE, ROW)
    return (*(field.name for field in _declared(collection)), TIME, EVENT_TIME)


def keys_of(table: pa.Table | pa.RecordBatch, rows: Sequence[int], key_width: int) -> list[Key]:
    """The keys (the first `key_width` columns) of some rows as metadata holds them: tuples of plain scalars, NULL for a
    null.

    Timestamps are int microseconds, dates int days, decimals int units of their last digit, bytes hex text: so plain
    scalars compare as the columns do.
    """
    at = of_values(rows, pa.int64())
    columns = [key_scalars(table.column(index).take(at)) for index in range(key_width)]
    return list(zip(*columns, strict=True))


def key_scalars(array: pa.Array | pa.ChunkedArray) -> list[KeyScalar]:
    """The values of a key column as metadata holds them."""
    return [key_scalar(scalar) for scalar in plain_scalars(array)]


def key_column_of(scalars: Sequence[KeyScalar], of: pa.DataType) -> pa.Array:
    """The key column that has these values: `key_scalars` the other way round, which raises as `column_of` does."""
    return column_of([plain_scalar(scalar) for scalar in scalars], of)


def plain_scalars(array: pa.Array | pa.ChunkedArray) -> list[Scalar]:
    """The values of a column as plain scalars, in the column's order."""
    of = array.type
    if pa.types.is_timestamp(of):
        array = array.cast(pa.int64())
    elif pa.types.is_date32(of):
        array = array.cast(pa.int32())
    scalars: list[Scalar] = array.to_pylist()
    if pa.types.is_decimal128(of):
        return [None if x is None else decimals.count(x, of.scale) for x in array.to_pylist()]
    if pa.types.is_binary(of):
        return [None if x is None else x.hex() for x in array.to_pylist()]
    return scalars


def column_of(scalars: Sequence[Scalar], of: pa.DataType) -> pa.Array:
    """The column that has these plain scalars: `plain_scalars` the other way round. Raises ValueError, TypeError or
    ArithmeticError (Arrow's errors are among these) for what is none of the type."""
    if pa.types.is_decimal128(of):
        return of_values([None if x is None else decimals.from_units(x, of.scale) for x in scalars], of)  # type: ignore[arg-type]
    if pa.types.is_binary(of):
        return of_values([None if x is None else bytes.fromhex(x) for x in scalars], of)  # type: ignore[arg-type]
    return of_values(scalars, of)


def _declared(collection: Collection) -> list[pa.Field]:
    placed = [_required(BUCKET, pa.int64())] if collection.layout else []
    return placed + [
        pa.field(
            _name_at_rest(collection, column),
            arrow_type(column.type),
            nullable=collection.is_derived or column not in collection.key,
            metadata={FIELD_ID: str(column.id)},
        )
        for column in (*collection.key, *collection.stored_value)
    ]


def names_at_rest(collection: Collection, numbers: Iterable[int]) -> tuple[str, ...]:
    """The value columns of some numbers, by their names at rest."""
    wanted = set(numbers)
    return tuple(_name_at_rest(collection, column) for column in collection.stored_value if column.id in wanted)


def _name_at_rest(collection: Collection, column: Column) -> str:
    return f"_dropped_{column.id}" if column in collection.dropped else column.name


def _numbered(collection: Collection) -> dict[bytes, str]:
    """A schema's metadata: it travels with the schema to whatever writes parts, and is in no file."""
    ids = [column.id for column in collection.value if column.name in collection.timelines]
    limit = collection.max_rows_if_unsorted
    limited = {UNSORTED_ROWS: str(limit)} if ids and limit < MOST_UNSORTED_ROWS else {}
    return {SCHEMA: str(collection.schema)} | (_named(ids) if ids else {}) | limited


def _named(ids: Iterable[int]) -> dict[bytes, str]:
    return {TIMELINES: ",".join(map(str, ids))}


def with_timelines(schema: pa.Schema, ids: Iterable[int]) -> pa.Schema:
    """A schema by which the columns of these ids are timelines, and no others."""
    return schema.with_metadata(_named(ids))


def timelines_of(schema: pa.Schema) -> list[tuple[int, int]]:
    """Where the timelines are among the columns of a schema: the id and the position of each."""
    named = (schema.metadata or {}).get(TIMELINES, b"").decode()
    ids = {int(each) for each in named.split(",") if each}
    numbers = ((int((field.metadata or {}).get(FIELD_ID, 0)), at) for at, field in enumerate(schema))
    return [(number, at) for number, at in numbers if number in ids]


def unsorted_rows_of(schema: pa.Schema) -> int | None:
    """The most rows of a chunk that is not in order of the timelines of a schema; None: as many as of any."""
    limit = (schema.metadata or {}).get(UNSORTED_ROWS)
    return None if limit is None else int(limit)


def _required(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)
