"""Rows as a file of a source's format, which decodes to the same rows (arrow/decode says what fits what)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.rows.plain import plain_rows, plain_values
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, Format

SUFFIX = {Format.PARQUET: ".parquet", Format.JSONL: ".jsonl", Format.CSV: ".csv"}
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and last instant of the years 1 to 9999, the only ones that texts can name."""
_DAY = 86_400_000_000


def encode(rows: pa.Table, columns: tuple[Column, ...], file_format: Format) -> bytes:
    """The bytes of a file of these rows, whose columns are `columns` in order."""
    match file_format:
        case Format.PARQUET:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd", compression_level=1, write_page_checksum=True)
            return bytes(sink.getvalue())
        case Format.JSONL:
            return _json_lines(rows, columns)
        case Format.CSV:
            lines = [[column.name for column in columns], *plain_rows(rows)]
            return "".join(",".join(map(_field, line)) + "\n" for line in lines).encode()


def check_writable(name: str, column: Column, values: pa.Array, file_format: Format) -> None:
    """Raise InvalidUsage for a value that no file of the format can hold. `name` is whose rows they are."""
    if file_format is Format.PARQUET or not len(values):
        return
    if file_format is Format.CSV and column.type is ColumnType.STRING and values.null_count:
        raise InvalidUsage(f"column {column.name} is null, and csv has no null text; let {name} be jsonl or parquet")
    if file_format is Format.CSV and column.type is ColumnType.BYTES and pc.any(pc.equal(values, b"")).as_py():
        raise InvalidUsage(
            f"column {column.name} is empty bytes, which csv has as null; let {name} be jsonl or parquet"
        )
    if column.type in (ColumnType.TIMESTAMP, ColumnType.DATE):
        unit = 1 if column.type is ColumnType.TIMESTAMP else _DAY
        numbers = values.cast(pa.int64() if unit == 1 else pa.int32()).drop_null()
        for number in pc.min_max(numbers).as_py().values():
            if number is not None and not _FIRST <= number * unit <= _LAST:
                raise InvalidUsage(
                    f"column {column.name} holds {number}, beyond the years 1 to 9999, and {file_format} has times as "
                    f"texts; let {name} be parquet"
                )


def _json_lines(rows: pa.Table, columns: tuple[Column, ...]) -> bytes:
    writers = [_json_writer(column) for column in columns]
    leads = [json.dumps(column.name) + ": " for column in columns]
    cells = [
        [lead + write(value) for value in _values(rows.column(at), column)]
        for at, (column, lead, write) in enumerate(zip(columns, leads, writers, strict=True))
    ]
    return "".join("{" + ", ".join(line) + "}\n" for line in zip(*cells, strict=True)).encode()


def _values(column: pa.ChunkedArray, declared: Column) -> list[Any]:
    # A number that is undefined or infinite is written as one: text is none.
    return column.to_pylist() if declared.type is ColumnType.FLOAT else plain_values(column)


def _json_writer(column: Column) -> Callable[[Any], str]:
    """How a value becomes JSON: what is JSON already stays as it is."""
    if column.type is ColumnType.JSON:
        return lambda value: "null" if value is None else value
    return json.dumps


def _field(value: Any) -> str:
    """A field of CSV: null is empty, what could be misread is quoted."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(c in text for c in '",\r\n') else text
