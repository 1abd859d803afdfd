"""Arrow tables as rows of plain values: for JSON, CSV and tables, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant, parse_instant

EPOCH_DAY = date(1970, 1, 1)
_TRUTHS = {"true": True, "false": False}


def filtered(table: pa.Table, conditions: Mapping[str, str]) -> pa.Table:
    """The rows whose columns have these values, written as text; `null` is null, but in a text. InvalidUsage for text
    that is no value of its column's type."""
    for name, text in conditions.items():
        column = table.column(name)
        if text == "null" and not pa.types.is_string(column.type):
            table = table.filter(pc.is_null(column))
            continue
        table = table.filter(pc.equal(column, _value(name, text, column.type)))
    return table


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as JSON has them: timestamps and dates in ISO 8601, undefined and infinite floats as text."""
    columns = [_plain(table.column(at)) for at in range(table.num_columns)]
    return list(zip(*columns, strict=True))


def _value(name: str, text: str, type_: pa.DataType) -> pa.Scalar:
    try:
        if pa.types.is_timestamp(type_):
            return pa.scalar(parse_instant(text), pa.int64()).cast(type_)
        if pa.types.is_date32(type_):
            return pa.scalar(date.fromisoformat(text), type_)
        if pa.types.is_boolean(type_):
            return pa.scalar(_TRUTHS[text.lower()], type_)
        if pa.types.is_integer(type_):
            return pa.scalar(int(text), type_)
        if pa.types.is_floating(type_):
            return pa.scalar(float(text), type_)
    except (InvalidUsage, ValueError, KeyError, OverflowError, pa.ArrowInvalid):
        raise InvalidUsage(f"column {name} is of type {type_}; {text!r} is no value of it") from None
    return pa.scalar(text, type_)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return [None if micros is None else format_instant(micros) for micros in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(column.type):
        return [None if days is None else _iso_day(days) for days in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_floating(column.type):
        return [x if x is None or math.isfinite(x) else str(x) for x in column.to_pylist()]
    return list(column.to_pylist())


def _iso_day(days: int) -> str:
    try:
        return (EPOCH_DAY + timedelta(days=days)).isoformat()
    except OverflowError:
        return str(days)
