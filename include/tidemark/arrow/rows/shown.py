"""Columns of any type of Arrow as rows are shown, which knows the types of collections only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa


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
        texts = [None if value is None else _text(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return None


def _text(value: Any) -> str:
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
