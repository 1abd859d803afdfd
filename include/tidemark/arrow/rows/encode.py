"""Rows as a file of a source's format, which decodes to the same rows (arrow/decode says what fits what)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.rows.plain import plain_rows, plain_values
from tidemark.arrow.rows.schema import TIMES
from tidemark.errors import InvalidUsage
from tidemark.model import decimals
from tidemark.model.collection import Column, ColumnType, DecimalType, Format, Source
from tidemark.model.dialect import PLAIN_CSV
from tidemark.model.epoch import first_and_last

SUFFIX = {Format.PARQUET: ".parquet", Format.JSONL: ".jsonl", Format.CSV: ".csv"}


def encode(rows: pa.Table, columns: tuple[Column, ...], source: Source) -> bytes:
    """The bytes of a file of these rows, whose columns are `columns` in order."""
    if source.format is not Format.PARQUET:
        for at, column in enumerate(columns):
            rows = rows.set_column(at, column.name, as_written(column, rows.column(at), source))
    match source.format:
        case Format.PARQUET:
            sink = pa.BufferOutputStream()
            pq.write_table(rows, sink, compression="zstd", compression_level=1, write_page_checksum=True)
            return bytes(sink.getvalue())
        case Format.JSONL:
            return _json_lines(rows, columns)
        case Format.CSV:
            lines = [[column.name for column in columns], *plain_rows(rows)]
            return "".join(",".join(map(_field, line)) + "\n" for line in lines).encode()


def as_written(column: Column, values: pa.ChunkedArray | pa.Array, source: Source) -> pa.ChunkedArray | pa.Array:
    """The values as files of texts have them: times in their unit, precise decimals as the bytes of a whole number.

    Raises:
        InvalidUsage: A time is no whole number of its unit.
    """
    if isinstance(column.type, DecimalType) and source.decimals_of(column.name) == "precise":
        scale = column.type.scale
        counts = [None if number is None else decimals.count(number, scale) for number in values.to_pylist()]
        return pa.array([None if each is None else decimals.unscaled(each) for each in counts], pa.binary())
    unit = source.unit_of(column.name) if column.type in TIMES else None
    if unit is None:
        return values
    if unit == "days":
        return values.cast(pa.int32()).cast(pa.int64())
    try:
        return values.cast(pa.timestamp(unit, "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        said = f"column {column.name} holds a time that is no whole number of {unit} of 64 bits"
        raise InvalidUsage(f"{said}, its unit in {source.format}") from None


def check_plain(name: str, source: Source) -> None:
    """Raise InvalidUsage where files of a source are written in a way that `encode` does not write."""
    words = (("csv", source.csv != PLAIN_CSV), ("compression", source.compression not in ("auto", "none")))
    for word, is_declared in (*words, ("rows", bool(source.rows))):
        if is_declared:
            raise InvalidUsage(
                f"source.{word} of {name} says how others write its files, and appended rows are written plainly; "
                f"let a collection without {word} take them"
            )


def check_writable(name: str, column: Column, values: pa.Array, source: Source) -> None:
    """Raise InvalidUsage for a value that no file of the source can hold. `name` is whose rows they are."""
    file_format = source.format
    if file_format is Format.PARQUET or not len(values):
        return
    if file_format is Format.CSV and column.type is ColumnType.STRING and values.null_count:
        raise InvalidUsage(f"column {column.name} is null, and csv has no null text; let {name} be jsonl or parquet")
    if file_format is Format.CSV and column.type is ColumnType.BYTES and pc.any(pc.equal(values, b"")).as_py():
        raise InvalidUsage(
            f"column {column.name} is empty bytes, which csv has as null; let {name} be jsonl or parquet"
        )
    if column.type in TIMES and source.unit_of(column.name) is not None:
        as_written(column, values, source)
    elif column.type in TIMES:
        is_date = column.type is ColumnType.DATE
        first, last = first_and_last("days" if is_date else "us")
        numbers = values.cast(pa.int32() if is_date else pa.int64()).drop_null()
        for number in pc.min_max(numbers).as_py().values():
            if number is not None and not first <= number <= last:
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
