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
        shown = _shown(table.column(at))
        if shown is not None:
            table = table.set_column(at, column.name, shown)
    return table


def _shown(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as it is shown; None: as it is."""
    of = column.type
    if pa.types.is_timestamp(of):
        return column.cast(pa.timestamp("us", of.tz), safe=False).cast(pa.timestamp("us", "UTC"))
    if pa.types.is_date64(of):
        return column.cast(pa.date32())
    if pa.types.is_time(of):
        return column.cast(pa.string())
    if pa.types.is_duration(of):
        return column.cast(pa.int64())
    if pa.types.is_nested(of) or pa.types.is_interval(of):
        values = (value for chunk in column.chunks for value in _values(chunk))
        return pa.chunked_array([pa.array([None if value is None else _text(value) for value in values], pa.string())])
    return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | dict) else str(value)


def _values(column: pa.Array) -> list[Any]:
    """The values of a column as JSON has them, what is nested in them, too: a map is a list of pairs."""
    of = column.type
    if pa.types.is_union(of):
        children = [_values(column.field(at)) for at in range(of.num_fields)]
        places = range(len(column)) if of.mode == "sparse" else column.offsets.to_pylist()
        return [children[code][at] for code, at in zip(column.type_codes.to_pylist(), places, strict=True)]
    if pa.types.is_struct(of):
        fields = [_values(column.field(at)) for at in range(of.num_fields)]
        rows = zip(*fields, strict=True) if fields else [()] * len(column)
        names = [field.name for field in of]
        return [
            dict(zip(names, row, strict=True)) if valid else None
            for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True)
        ]
    if pa.types.is_map(of):
        column, of = column.cast(pa.list_(pa.struct([of.key_field, of.item_field]))), None
    if pa.types.is_nested(column.type):
        flat = iter(_values(column.flatten()))
        lists = [None if size is None else [*islice(flat, size)] for size in pc.list_value_length(column).to_pylist()]
        return lists if of else [rows and [[*row.values()] for row in rows] for rows in lists]
    shown = _shown(pa.chunked_array([column])) if not pa.types.is_interval(column.type) else None
    return plain_values(column if shown is None else shown)
