"""Values as JSON and people have them, exactly: also those that no calendar of Python reaches."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from tidemark.model import decimals, encoded_bytes
from tidemark.model.instant import format_instant

Plain = tuple[Any, ...]
_EPOCH_DAY = date(1970, 1, 1)


def plain_rows(table: pa.Table | pa.RecordBatch) -> list[Plain]:
    """The rows as JSON has them: timestamps and dates in ISO 8601 (beyond the years 1 to 9999 as the microseconds and
    days since the epoch that they are), undefined and infinite floats as text, decimals as text in all their digits (a
    number would be read as a double), bytes as base64, json as its canonical text."""
    columns = [plain_values(table.column(at)) for at in range(table.num_columns)]
    return list(zip(*columns, strict=True))


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of one column, as plain_rows has them."""
    if pa.types.is_timestamp(column.type):
        return [None if micros is None else format_instant(micros) for micros in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(column.type):
        return [None if days is None else format_day(days) for days in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_floating(column.type):
        return [x if x is None or math.isfinite(x) else str(x) for x in column.to_pylist()]
    if pa.types.is_decimal(column.type):
        return [None if x is None else decimals.text(x) for x in column.to_pylist()]
    if pa.types.is_binary(column.type):
        return [None if x is None else encoded_bytes.encoded(x) for x in column.to_pylist()]
    return list(column.to_pylist())


def format_day(days: int) -> str:
    """ISO 8601 of days since the epoch; beyond the years 1 to 9999 the number itself."""
    try:
        return (_EPOCH_DAY + timedelta(days=days)).isoformat()
    except OverflowError:
        return str(days)
