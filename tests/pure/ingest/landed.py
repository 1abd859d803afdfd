"""Delta files for tests, in each format, and a task to ingest them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.arrow.decode.source import Content, decode, fetch, source_columns
from tidemark.arrow.rows.schema import arrow_type
from tidemark.model.collection import (
    Collection,
    Column,
    ColumnType,
    DecimalType,
    Envelope,
    Format,
    Landed,
    Late,
    Source,
)
from tidemark.model.interval import Interval
from tidemark.model.ledger import SourceFile
from tidemark.plan.tasks import IngestTask
from tidemark.storage.landing import list_sources

Rows = Sequence[dict[str, Any]]
FORMATS = list(Format)
MONEY = DecimalType(12, 2)


def _by_arrow(compression: str) -> Callable[[bytes], bytes]:
    def packed(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, compression) as stream:
            stream.write(data)
        return bytes(sink.getvalue().to_pybytes())

    return packed


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": _by_arrow("zstd"),
    "lz4": _by_arrow("lz4"),
}
"""How files are compressed, by the name of the compression."""
ALL_TYPES = (*(Column(f"a_{of}", of) for of in ColumnType), Column("a_decimal", MONEY))


def collection(
    *value: Column,
    file_format: Format = Format.PARQUET,
    envelope: Envelope = Envelope.APPEND,
    time: str | None = "t",
    event_time: str | None = None,
    order_by: str | None = None,
    delete_when: str | None = None,
    late: Late | None = None,
    inputs: tuple[Column, ...] = (),
) -> Collection:
    """A collection with the key column `k`, an int, and int times."""
    times = tuple(Column(name, ColumnType.INT) for name in (time, event_time) if name)
    source = Source("/landing/*", file_format, envelope, order_by, "diff", delete_when)
    return Collection(
        "things",
        (Column("k", ColumnType.INT),),
        value,
        Landed(source, time=time, event_time=event_time, late=late or Late(), inputs=(*times, *inputs)),
    )


def write(path: Path, rows: Rows, declared: Collection) -> SourceFile:
    """Write rows, as Python values, in the collection's format."""
    columns = source_columns(declared)
    match declared.landed.source.format:
        case Format.PARQUET:
            arrays = [pa.array([_stored(row.get(c.name), c) for row in rows], arrow_type(c.type)) for c in columns]
            pq.write_table(pa.table(arrays, [c.name for c in columns]), path, row_group_size=3)
        case Format.JSONL:
            lines = (json.dumps(row, default=_json) + "\n" for row in rows)
            path.write_text("".join(_NUMBER.sub(r"\1", line) for line in lines))
        case Format.CSV:
            text = io.StringIO()
            writer = csv.writer(text)
            writer.writerow([c.name for c in columns])
            writer.writerows([[_text(_stored(row.get(c.name), c)) for c in columns] for row in rows])
            path.write_text(text.getvalue(), newline="")
    return listed(path)


def listed(path: Path) -> SourceFile:
    """A file as the landing lists it."""
    return list_sources(str(path))[0]


def decoded(file: SourceFile | Path, declared: Collection) -> pa.Table:
    """All rows of a file; a table without columns if there are none."""
    batches = list(decode(fetch(file if isinstance(file, SourceFile) else listed(file)), declared))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def content_of(path: Path) -> Content:
    return fetch(listed(path))


def task(
    declared: Collection, files: Sequence[SourceFile], *, seal: int = 0, since: int = 0, upper: int = 1000
) -> IngestTask:
    return IngestTask(declared, Interval(0, upper), tuple(files), seal, seal, since, "b1", "data/b1")


def _stored(value: Any, column: Column) -> Any:
    """A JSON value as text, written otherwise than canonical; all else as it is."""
    return json.dumps(value, indent=1) if column.type is ColumnType.JSON and value is not None else value


_NUMBER = re.compile(r'"number:([^"]*)"')


def _json(value: Any) -> Any:
    """A decimal as a text, or as a number with all its digits."""
    if isinstance(value, Decimal):
        return f"number:{value:f}" if value % 2 else str(value)
    return _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date | datetime) else value
