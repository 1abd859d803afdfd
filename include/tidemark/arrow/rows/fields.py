"""Columns as they are wanted today, from a file that may have been written under an earlier declaration.

A user's column is found by its id, however it was called then; by its name where that has no id: Tidemark's own, those
of a late object that were read and not kept, and all of a file without ids. What the file does not have is null, what
has a narrower type is widened, exactly or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidemark.arrow.rows.schema import ARROW_TYPES, FIELD_ID
from tidemark.model.collection import Collection, DecimalType, ValueType
from tidemark.model.evolution import INT_DIGITS, widens

_TYPES = {arrow: of for of, arrow in ARROW_TYPES.items()}

FieldPairs = Sequence[tuple[pa.Field, pa.Field | None]]
"""The fields wanted, each with the file's field that gives it, or None if it is null throughout."""


def found(stored: pa.Schema, wanted: pa.Schema) -> FieldPairs:
    """Where the fields wanted are in a file. Raises KeyError, saying which, if one cannot be made of them."""
    numbered = {number: field for field in stored if (number := field_id(field)) is not None}
    bare = {field.name: field for field in stored if field_id(field) is None}
    named = {field.name: field for field in stored}
    pairs = []
    for field in wanted:
        number = field_id(field)
        source = named.get(field.name) if number is None else numbered.get(number, bare.get(field.name))
        if source is None and not field.nullable:
            raise KeyError(f"there is no column {field.name}")
        if source is not None and source.type != field.type and not _is_narrower(source.type, field.type):
            raise KeyError(f"column {source.name} is of type {source.type}, which is not {field.type} nor narrower")
        pairs.append((field, source))
    return pairs


def field_id(field: pa.Field) -> int | None:
    """The id of a user's column; None for one without."""
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else int(number)


def as_wanted(rows: pa.RecordBatch, pairs: FieldPairs, count: int) -> pa.RecordBatch:
    """The fields wanted, from the columns `rows` of a file, `count` of them. Raises ArrowInvalid for a value that the
    wider type does not hold exactly."""
    fields = [field for field, _ in pairs]
    arrays = [
        pa.nulls(count, field.type) if source is None else _widened(rows.column(source.name), field.type)
        for field, source in pairs
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _is_narrower(stored: pa.DataType, wanted: pa.DataType) -> bool:
    old, new = _value_type(stored), _value_type(wanted)
    return old is not None and new is not None and widens(old, new)


def _value_type(of: pa.DataType) -> ValueType | None:
    return DecimalType(of.precision, of.scale) if pa.types.is_decimal128(of) else _TYPES.get(of)


def _widened(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if pa.types.is_boolean(array.type) and pa.types.is_decimal(wanted):
        array = array.cast(pa.int64())
    return as_decimals(array, wanted) if pa.types.is_decimal(wanted) else array.cast(wanted)


def as_decimals(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Integers or decimals as decimals of another type, exactly. Raises ArrowInvalid for what has more digits."""
    if pa.types.is_integer(array.type):
        # Arrow casts integers only where every one of their type would fit.
        array = array.cast(pa.decimal256(INT_DIGITS + 1 + wanted.scale, wanted.scale))
    cast = array.cast(wanted)
    cast.validate(full=True)
    return cast


def todays_names(table: pa.Table, collection: Collection) -> pa.Table:
    """Rows under the names users know their columns by today; without columns they dropped."""
    names = {column.id: column.name for column in collection.columns}
    kept = [(field, field_id(field)) for field in table.schema]
    kept = [(field, number) for field, number in kept if number is None or number in names]
    table = table.select([field.name for field, _ in kept])
    return table.rename_columns([field.name if number is None else names[number] for field, number in kept])


def is_earlier(stored: pa.Schema, now: pa.Schema) -> bool:
    """Whether a file with the columns `stored` was written under an earlier declaration than the one of `now`: it lacks
    nothing but what was added since, and has nothing else, in the same order."""
    try:
        pairs = found(stored, now)
    except KeyError:
        return False
    names: list[str] = stored.names
    return names == [source.name for _, source in pairs if source is not None]
