"""Columns as they are wanted today, from a file that may have been written under an earlier declaration.

A user's column is found by its id, however it was called then; by its name where that has no id: Tidemark's own, those
of a late object that were read and not kept, and all of a file without ids. What the file does not have is null, what
is of a narrower type is widened, exactly or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tidemark.arrow.schema import ARROW_TYPES, FIELD_ID
from tidemark.model.collection import Collection
from tidemark.model.evolution import WIDENINGS

_WIDENINGS = frozenset((ARROW_TYPES[held], ARROW_TYPES[wanted]) for held, wanted in WIDENINGS)

Found = Sequence[tuple[pa.Field, pa.Field | None]]
"""The fields wanted, each with the file's field that gives it, or None if it is null throughout."""


def found(held: pa.Schema, wanted: pa.Schema) -> Found:
    """Where the fields wanted are in a file. Raises KeyError, saying which, if one cannot be had from it."""
    numbered = {number: field for field in held if (number := field_id(field)) is not None}
    bare = {field.name: field for field in held if field_id(field) is None}
    named = {field.name: field for field in held}
    pairs = []
    for field in wanted:
        number = field_id(field)
        source = named.get(field.name) if number is None else numbered.get(number, bare.get(field.name))
        if source is None and not field.nullable:
            raise KeyError(f"there is no column {field.name}")
        if source is not None and source.type != field.type and (source.type, field.type) not in _WIDENINGS:
            raise KeyError(f"column {source.name} is of type {source.type}, which is not {field.type} nor narrower")
        pairs.append((field, source))
    return pairs


def field_id(field: pa.Field) -> int | None:
    """The id of a user's column; None for one without."""
    number = (field.metadata or {}).get(FIELD_ID)
    return None if number is None else int(number)


def as_wanted(rows: pa.RecordBatch, pairs: Found, count: int) -> pa.RecordBatch:
    """The fields wanted, from the columns `rows` of a file, `count` of them. Raises ArrowInvalid for a value that the
    wider type does not hold exactly."""
    fields = [field for field, _ in pairs]
    arrays = [
        pa.nulls(count, field.type) if source is None else _widened(rows.column(source.name), field.type)
        for field, source in pairs
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _widened(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return array if array.type == wanted else array.cast(wanted)


def todays_names(table: pa.Table, collection: Collection) -> pa.Table:
    """Rows under the names users know their columns by today; without columns they dropped."""
    names = {column.id: column.name for column in collection.columns}
    kept = [(field, field_id(field)) for field in table.schema]
    kept = [(field, number) for field, number in kept if number is None or number in names]
    table = table.select([field.name for field, _ in kept])
    return table.rename_columns([field.name if number is None else names[number] for field, number in kept])


def is_earlier(held: pa.Schema, now: pa.Schema) -> bool:
    """Whether a file with the columns `held` was written under an earlier declaration than the one of `now`: it lacks
    nothing but what was added since, and has nothing else, in the same order."""
    try:
        pairs = found(held, now)
    except KeyError:
        return False
    names: list[str] = held.names
    return names == [source.name for _, source in pairs if source is not None]
