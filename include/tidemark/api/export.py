"""Rows in files of others' formats, which appear whole: Parquet, CSV and JSON lines, in one file or by partitions.

All is written beside the place it is meant for and moved there at once (export_place.py), so a reader finds what was
there before, or all of the new, and nothing unfinished. Who reads a folder while it is replaced may find that a file of
the old one is gone.

    flights.parquet                            one file
    flights/carrier=UA/rows.parquet            by partitions, in folders as Hive names them: the column is in the name
    flights/_tidemark_export                   lists the files, so that another export may replace them

All values are exact, and a collection file reads what an export of a collection wrote (read_back.py). Of answers, CSV
and JSON are written as the command line writes them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.api.export_place import in_its_place, mark, place_of
from tidemark.api.read_back import FarTimes, ReadBack
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.csv_text import csv_line
from tidemark.arrow.rows.plain import plain_rows
from tidemark.arrow.rows.shown import as_shown
from tidemark.errors import NAME_LENGTH, InvalidUsage, Unwritable, listed, shortened
from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.nearest import nearest
from tidemark.storage.stores.local import sync_path

MOST_PARTITIONS = 1_000
"""So many files are open at once; a column of more values is not what one partitions by."""
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""How Hive calls the folder of rows without a value; Spark, DuckDB and Arrow read it as null."""


@dataclass(frozen=True)
class Exported:
    """What was written: how many `rows`, into how many `files`, at which `path`.

    Of a collection's rows `declaration` is the text of the collection file that reads them back; where none can, it is
    empty, and `no_declaration` says why.
    """

    path: Path
    rows: int
    files: int
    declaration: str
    no_declaration: str


class _Writer(Protocol):
    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class _Text:
    """A file of lines, each a row in the form of `line`, behind a `heading`."""

    def __init__(
        self, path: Path, line: Callable[[tuple[Any, ...]], str], read_back: ReadBack | None, heading: str = ""
    ) -> None:
        self._line, self._read_back = line, read_back
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._stream.write(heading)

    def write(self, rows: pa.RecordBatch) -> None:
        table = self._read_back.as_texts(rows) if self._read_back else pa.Table.from_batches([rows])
        self._stream.writelines(map(self._line, plain_rows(as_shown(table))))

    def close(self) -> None:
        self._stream.close()


def _csv(path: Path, schema: pa.Schema, read_back: ReadBack | None) -> _Writer:
    return _Text(path, csv_line, read_back, csv_line(schema.names))


def _jsonl(path: Path, schema: pa.Schema, read_back: ReadBack | None) -> _Writer:
    types = read_back.types if read_back else {}
    fields = [(f"{_json(name)}: ", _IN_JSON.get(types.get(name), _json)) for name in schema.names]

    def line(row: tuple[Any, ...]) -> str:
        texts = (head + written(value) for (head, written), value in zip(fields, row, strict=True))
        return f"{{{', '.join(texts)}}}\n"

    return _Text(path, line, read_back)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


_IN_JSON: dict[ValueType | None, Callable[[Any], str]] = {
    ColumnType.JSON: lambda text: "null" if text is None else text,
    ColumnType.FLOAT: lambda number: _json({"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(number, number)),
}
"""How values are written that a collection file does not read as they are shown: JSON as a value, not as a text, and
what is no number by its name in JSON lines."""


def _parquet(path: Path, schema: pa.Schema, read_back: ReadBack | None) -> _Writer:
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            raise InvalidUsage(
                f"column {field.name} is of type {field.type}, which Parquet does not have; cast it to another one, "
                "such as VARCHAR in SQL, or export CSV or JSON lines"
            ) from None
    writer: _Writer = pq.ParquetWriter(path, schema, write_page_checksum=True)
    return writer


FORMATS: dict[str, Callable[[Path, pa.Schema, ReadBack | None], _Writer]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
}
_ENDINGS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}


def export(
    batches: Callable[[], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
    path: str | os.PathLike[str],
    *,
    versions: Mapping[str, int],
    format: str | None = None,
    partition_by: str | None = None,
    replace: bool = False,
    read_back: ReadBack | None = None,
) -> Exported:
    """Write rows to a file, or with `partition_by` into a folder with a file for each value of that column.

    Args:
        batches: Gives the rows, the same ones each time.
        versions: The collections that the rows are from, by name.
        format: parquet, csv or jsonl. Default: what the file's ending says.
        replace: Replace a file that is there, or a folder that an export made.
        read_back: What a collection file is to read; None where the rows are no collection's.

    Raises:
        InvalidUsage: The format, the column or the place is none, or something there may not be replaced.
        Contention: Another export to the same place is running.
        Unwritable: The place cannot be written.
    """
    place = place_of(path)
    ending = _format(place, format)
    if partition_by is not None and partition_by not in schema.names:
        near = nearest(partition_by, schema.names)
        near = near if "did you mean" in near else f"; there are {listed(schema.names)}"
        raise InvalidUsage(f"partition_by: there is no column {partition_by!r}{near}")
    if partition_by is not None and len(schema) == 1:
        raise InvalidUsage(f"partition_by: {partition_by} is the only column; a file needs another one")

    def open_writer(file: Path, columns: pa.Schema) -> _Writer:
        return FORMATS[ending](file, columns, read_back)

    while True:
        rows_again = batches() if read_back is None else read_back.watched(batches(), partition_by)
        try:
            with in_its_place(place, folder=partition_by is not None, replace=replace) as beside:
                if partition_by is not None:
                    beside.mkdir()
                    rows, names = _partitioned(rows_again, schema, beside, partition_by, open_writer, ending)
                    mark(beside, versions, names)
                else:
                    rows, names = _one(rows_again, open_writer(beside, schema)), [place.name]
                sync_path(beside)
            break
        except FarTimes as far:
            assert read_back is not None, "only rows of a collection are looked at"
            read_back.numbers |= far.columns
        except OSError as error:
            raise Unwritable(f"{place} cannot be written: {error.strerror or error}") from None
    declaration = why_none = ""
    try:
        declaration = read_back.declaration(schema.names, place, ending, partition_by) if read_back else ""
    except InvalidUsage as error:
        why_none = str(error)
    return Exported(place, rows, len(names), declaration, why_none)


def _format(place: Path, given: str | None) -> str:
    found = given if given is not None else _ENDINGS.get(place.suffix.lower())
    if found is None:
        raise InvalidUsage(f"{place}: its ending says no format; end it in {', '.join(_ENDINGS)}, or give one")
    if found not in FORMATS:
        raise InvalidUsage(f"format is {found!r}; write {', '.join(FORMATS)}")
    return found


def _one(batches: Iterable[pa.RecordBatch], writer: _Writer) -> int:
    rows = 0
    try:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    finally:
        writer.close()
    return rows


def _partitioned(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    column: str,
    open_writer: Callable[[Path, pa.Schema], _Writer],
    ending: str,
) -> tuple[int, list[str]]:
    """Write the files of a folder; return the number of rows, and the names of the files."""
    at = schema.get_field_index(column)
    inner = schema.remove(at)
    head = f"{quote(column, safe='')}="
    null, empty = f"{head}{NULL_PARTITION}", head
    writers: dict[str, _Writer] = {}
    rows = 0
    with ExitStack() as stack:
        for batch in batches:
            for value, some in _by_value(batch, at):
                name = null if value is None else head + quote(value, safe=" ")
                if name == null and value is not None:
                    raise InvalidUsage(
                        f"partition_by: {column} has the text {NULL_PARTITION}, which names the folder of rows without "
                        "a value; take another column, or one file"
                    )
                if name not in writers:
                    if len(writers) == MOST_PARTITIONS:
                        raise InvalidUsage(
                            f"partition_by: {column} has more than {MOST_PARTITIONS:,} values; take a column of fewer"
                        )
                    if {null, empty} <= {name, *writers}:
                        raise InvalidUsage(
                            f"partition_by: {column} has rows without a value, and with an empty one, whose folders "
                            "some readers take for the same; take another column, or one file"
                        )
                    _make(folder / name, column)
                    writers[name] = open_writer(folder / name / f"rows.{ending}", inner)
                    stack.callback(writers[name].close)
                writers[name].write(pa.RecordBatch.from_arrays(some.remove_column(at).columns, schema=inner))
            rows += batch.num_rows
    for name in writers:
        sync_path(folder / name / f"rows.{ending}")
        sync_path(folder / name)
    return rows, [f"{name}/rows.{ending}" for name in writers]


def _make(folder: Path, column: str) -> None:
    """Make the folder of a value."""
    try:
        folder.mkdir()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise InvalidUsage(
            f"partition_by: {column} has a value that is too long for the name of a folder, "
            f"{shortened(folder.name, NAME_LENGTH)}; take another column"
        ) from None


def _by_value(batch: pa.RecordBatch, at: int) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """The rows of a batch by their value of a column, as text."""
    column = batch.column(at)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        column = as_shown(pa.Table.from_arrays([column], ["value"])).column(0).combine_chunks()
    encoded = column.dictionary_encode(null_encoding="encode")
    texts = [text for (text,) in plain_rows(as_shown(pa.Table.from_arrays([encoded.dictionary], ["value"])))]
    numbers = np.asarray(encoded.indices)
    for number, text in enumerate(texts):
        places = np.flatnonzero(numbers == number)
        yield None if text is None else _as_text(text), batch.take(of_numbers(places))


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
