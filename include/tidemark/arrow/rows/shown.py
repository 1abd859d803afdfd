"""Columns of any type of Arrow as rows are shown, which knows the types of collections only."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.plain import plain_values


def as_shown(table: pa.Table) -> pa.Table:
    """The same with timestamps of microseconds in UTC, days as dates, times of a day as text, durations as the
    numbers that they are, and lists, structs and maps as JSON."""
    for at, column in enumerate(table.schema):
        converted = _shown(table.column(at))
        if converted is not None:
            table = table.set_column(at, column.name, converted)
    return table


def _shown(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as it is shown; None: as it is."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return column.cast(pa.timestamp("us", type_.tz), safe=False).cast(pa.timestamp("us", "UTC"))
    if pa.types.is_date64(type_):
        return column.cast(pa.date32())
    if pa.types.is_time(type_):
        return column.cast(pa.string())
    if pa.types.is_duration(type_):
        return column.cast(pa.int64())
    if pa.types.is_nested(type_) or pa.types.is_interval(type_):
        values = (value for chunk in column.chunks for value in _values(chunk))
        return pa.chunked_array([pa.array([None if value is None else _text(value) for value in values], pa.string())])
    return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | dict) else str(value)


def _values(column: pa.Array) -> list[Any]:
    """The values of a column as JSON has them, what is nested in them, too: a map is a list of pairs."""
    type_ = column.type
    if pa.types.is_union(type_):
        children = [_values(column.field(at)) for at in range(type_.num_fields)]
        places = range(len(column)) if type_.mode == "sparse" else column.offsets.to_pylist()
        return [children[code][at] for code, at in zip(column.type_codes.to_pylist(), places, strict=True)]
    if pa.types.is_struct(type_):
        fields = [_values(column.field(at)) for at in range(type_.num_fields)]
        rows = zip(*fields, strict=True) if fields else [()] * len(column)
        names = [field.name for field in type_]
        return [
            dict(zip(names, row, strict=True)) if valid else None
            for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)
        ]
    if pa.types.is_map(type_):
        pairs: list[Any] = _values(column.cast(pa.list_(pa.struct([type_.key_field, type_.item_field]))))
        return [None if row is None else [list(pair.values()) for pair in row] for row in pairs]
    if pa.types.is_nested(type_):
        flat = iter(_values(column.flatten()))
        return [None if size is None else [*islice(flat, size)] for size in pc.list_value_length(column).to_pylist()]
    converted = None if pa.types.is_interval(type_) else _shown(pa.chunked_array([column]))
    return plain_values(column if converted is None else converted)
