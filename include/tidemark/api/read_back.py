"""The collection file that reads an export back: an append of its rows, each as often as the export has it.

It has one interval, the last whole day that was complete, and another name than the collection: declared below the same
root, it changes nothing of that.

Texts have no times before the year 1 and after 9999. A column that has one is written as numbers, in all rows, and
declared with their unit; rows that were written before are written once more.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.arrow.decode.far_times import first_far
from tidemark.errors import InvalidUsage
from tidemark.model.collection import NAME, Collection, Column, ColumnType, ValueType
from tidemark.model.dialect import SUFFIXES
from tidemark.model.epoch import LAST_DAY
from tidemark.model.path_value import folder_values

_DAY = 86_400_000_000
_NUMBERS: dict[ValueType, tuple[pa.DataType, str]] = {
    ColumnType.TIMESTAMP: (pa.int64(), "us"),
    ColumnType.DATE: (pa.int32(), "days"),
}
_OPENING = re.compile(r"\{(?=[{%#])")
"""What begins something else than text in a path."""


class FarTimes(Exception):
    """A batch has times that no text has, in columns that were written as texts so far."""

    def __init__(self, columns: frozenset[str]) -> None:
        super().__init__(columns)
        self.columns = columns


@dataclass
class ReadBack:
    """What an export of a collection must be like, and the file that reads it.

    Attributes:
        collection: The collection.
        complete: Up to where the rows are complete, in microseconds.
        numbers: The columns of times that are written as numbers.
        without_key: The columns of the key that are null in some row.
    """

    collection: Collection
    complete: int
    numbers: frozenset[str] = frozenset()
    without_key: set[str] = field(default_factory=set)

    @property
    def types(self) -> dict[str, ValueType]:
        """The types of columns."""
        return {column.name: column.type for column in self.collection.columns}

    def watched(self, batches: Iterable[pa.RecordBatch], partition_by: str | None) -> Iterator[pa.RecordBatch]:
        """The same rows; whether their keys are whole is found out. Names of folders are texts. Raises FarTimes."""
        names = [column.name for column in self.collection.key]
        for batch in batches:
            self.without_key |= {name for name in names if name in batch.schema.names and batch[name].null_count}
            if partition_by is None:
                yield batch
                continue
            at = batch.schema.get_field_index(partition_by)
            column = self.as_texts(batch.select([partition_by])).column(0).combine_chunks()
            field = batch.schema.field(at).with_type(column.type)
            schema = batch.schema.set(at, field)
            yield pa.RecordBatch.from_arrays([*batch.columns[:at], column, *batch.columns[at + 1 :]], schema=schema)

    def as_texts(self, rows: pa.RecordBatch) -> pa.Table:
        """Rows whose values all have a text. Raises FarTimes."""
        table, far = pa.Table.from_batches([rows]), set()
        for column in self._times(rows.schema.names):
            at = rows.schema.get_field_index(column.name)
            if column.name in self.numbers:
                table = table.set_column(at, column.name, rows.column(at).cast(_NUMBERS[column.type][0]))
            elif first_far(rows.column(at)) is not None:
                far.add(column.name)
        if far:
            raise FarTimes(frozenset(far))
        return table

    def _times(self, names: Iterable[str]) -> list[Column]:
        return [column for column in self.collection.columns if column.name in names and column.type in _NUMBERS]

    def declaration(self, names: list[str], place: Path, format: str, partition_by: str | None) -> str:
        """The text of the collection file. Raises InvalidUsage where none can read the export, which says why."""
        key = [column.name for column in self.collection.key]
        if missing := [name for name in key if name not in names]:
            raise InvalidUsage(f"column {missing[0]} of the key is not in it")
        if self.without_key:
            raise InvalidUsage(
                f"column {min(self.without_key)} of the key is null in a row, and keys of files never are"
            )
        if key == [partition_by]:
            raise InvalidUsage(f"the key, {partition_by}, is in the names of its folders alone")
        if partition_by is not None and folder_values(f"{place.absolute()}/", partition_by):
            raise InvalidUsage(f"a folder above it is called {partition_by}=..., as its own are")
        import yaml

        day = max(0, min(self.complete // _DAY - 1, LAST_DAY - 1))
        start = date(1970, 1, 1) + timedelta(days=day)
        columns = {name: self._column(self.collection.column(name), partition_by) for name in names}
        path = _OPENING.sub("{{ '{' }}", glob.escape(str(place.absolute())))
        source: dict[str, Any] = {"path": path, "format": format, "envelope": "append"}
        if partition_by is not None:
            # Rows that differ in that column alone are equal files.
            source |= {"path": f"{path}/*/rows.{format}", "duplicate_files": "count"}
        elif place.suffix.lower() in SUFFIXES and format != "parquet":
            source["compression"] = "none"
        if format == "csv":
            source["csv"] = {"null": [""]}
        name, end = name_of(self.collection.name), start + timedelta(days=1)
        document: dict[str, Any] = {
            "name": name,
            "key": key,
            "value": [name for name in names if name not in key],
            "columns": columns,
            "start": start,
            "end": end,
            "time": "arrival",
            "source": source,
        }
        line = f"`tidemark init` with this file, and `tidemark advance {name} --to {end}`, read it back."
        text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100)
        return f"# {line}\n{text}"

    def _column(self, column: Column, partition_by: str | None) -> Any:
        said: dict[str, Any] = {"type": str(column.type)}
        if column.name in self.numbers:
            said["unit"] = _NUMBERS[column.type][1]
        if column.name == partition_by:
            said["from_path"] = partition_by
        if column.name in self.collection.masked:
            said["masked"] = True
        return said if len(said) > 1 else said["type"]


def name_of(collection: str) -> str:
    """What the collection is called that an export becomes."""
    name = f"{collection}_export"
    return name if NAME.fullmatch(name) else f"{collection[: -len('_export')]}_export"
