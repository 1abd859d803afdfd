"""Column types as a first source file shows them, by Arrow's inference; timestamps without a zone are UTC."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from tidemark.arrow.decode.content import HEAD, another_kind
from tidemark.arrow.decode.jsontexts import is_nested
from tidemark.arrow.decode.parquetfile import stored_type
from tidemark.arrow.decode.strict import may_hold, shorter
from tidemark.arrow.rows.columns import nested as nested_schema
from tidemark.errors import InvalidUsage, listed, out_of_memory
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, Format, ValueType
from tidemark.model.condition.evaluate import truth
from tidemark.model.condition.tree import Condition
from tidemark.model.field_path import steps
from tidemark.storage.landing import open_source

SAMPLE_BYTES = 16 * 2**20
"""How much of a csv or jsonl file is looked at."""


_LONG, _WHOLE = re.compile(rb"[0-9]{16}"), re.compile(r"[+-]?[0-9]{16,4000}")
_NULL_LINE = re.compile(rb"^null[ \t\r]*\n", re.MULTILINE)
"""A message that is null (a tombstone), of which Arrow dies."""


@dataclass(frozen=True)
class Taken:
    """The rows of a file that are looked at: those for which a condition is true, whose fields are at some places."""

    condition: Condition
    places: Mapping[str, Sequence[str]]

    def holds(self, row: object) -> bool:
        """Whether a row of JSON is one; one whose fields are of other types is."""
        cells = {name: _first(row, places) for name, places in self.places.items()}
        try:
            return truth(self.condition, cells) is True
        except TypeError:
            return True


def inferred(
    path: str, file_format: Format, columns: Mapping[str, Sequence[str]], taken: Taken | None = None
) -> dict[str, ValueType]:
    """The types of `columns` in a file, each given with the paths where it may be in a row.

    Of a file of JSON lines the rows `taken` are looked at, or all.

    Raises InvalidUsage if the file cannot be read, lacks a column, or shows no type for one (it is null throughout, or
    of a type Tidemark does not have): declare that column's type then.
    """
    schema = _schema_of(path, file_format, columns, taken)
    types = {}
    for name, places in columns.items():
        found = next((field for field in (_field(schema, place) for place in places) if field is not None), None)
        if found is None:
            raise InvalidUsage(
                f"{path} has no column {name} to infer a type from; it has {listed(schema.names)}; "
                "declare its type under columns:, or infer from a newer file"
            )
        types[name] = _column_type(path, found)
    floats = {name: columns[name] for name in types if types[name] is ColumnType.FLOAT}
    if floats and file_format is not Format.PARQUET:
        _check_whole_numbers(path, file_format, floats, taken)
    return types


def _check_whole_numbers(
    path: str, file_format: Format, floats: Mapping[str, Sequence[str]], taken: Taken | None
) -> None:
    """Raise InvalidUsage for a whole number that a float would round: it may identify something."""
    with open_source(path) as source:
        sample = source.read(SAMPLE_BYTES)
    if not _LONG.search(sample):
        return
    for name, value in _whole_numbers(sample, file_format, floats, taken):
        if float(value) != value or not -(2**63) <= value < 2**63:
            digits = max(20, len(str(abs(value))))
            text = "string" if file_format is Format.CSV else "json"
            needed = f'"decimal({digits}, 0)"' if digits <= MAX_PRECISION else text
            raise InvalidUsage(
                f"column {name} of {path} holds {shorter(str(value))}, a whole number that a float would round; "
                f"declare its type under columns: {{{name}: {needed}}}"
            )


def _whole_numbers(
    sample: bytes, file_format: Format, columns: Mapping[str, Sequence[str]], taken: Taken | None
) -> Iterator[tuple[str, int]]:
    """The long whole numbers of some columns, as they are written: of JSON lines in the rows `taken`, or in all."""
    lines = sample.splitlines()[:-1] if len(sample) == SAMPLE_BYTES else sample.splitlines()
    if file_format is Format.CSV:
        rows: Iterable[Any] = csv.DictReader(line.decode(errors="replace") for line in lines)
    else:
        loaded = (json.loads(line) for line in lines if _LONG.search(line))
        rows = (row for row in loaded if taken is None or taken.holds(row))
    for row in rows:
        for name, places in columns.items():
            value = _first(row, places)
            if isinstance(value, int) or (isinstance(value, str) and _WHOLE.fullmatch(value)):
                yield name, int(value)


def lacking(path: str, file_format: Format, columns: Mapping[str, Sequence[str]]) -> tuple[str, list[str]] | None:
    """The first of some columns that a file does not have, and the names of those that it has; None if it has all.

    Args:
        columns: Of each column the paths where it may be in a row.

    Raises:
        InvalidUsage: The file cannot be read.
    """
    schema = _schema_of(path, file_format, columns)
    for name, places in columns.items():
        if all(_field(schema, place) is None for place in places):
            return name, schema.names
    return None


def _schema_of(
    path: str, file_format: Format, columns: Mapping[str, Sequence[str]], taken: Taken | None = None
) -> pa.Schema:
    try:
        with open_source(path) as source:
            if another := another_kind(source.read(HEAD), file_format):
                raise InvalidUsage(f"{path} {another}, or declare the types under columns:")
            source.seek(0)
            return _schema(source, file_format, columns, taken)
    except MemoryError as error:
        raise out_of_memory(path, error) from error
    except (pa.ArrowException, OSError) as error:
        raise InvalidUsage(f"{path} cannot be read to infer types from: {str(error).splitlines()[0]}") from None


def _field(schema: pa.Schema, place: str) -> pa.Field | None:
    of, field = pa.struct(list(schema)), None
    for step in steps(place):
        at = of.get_field_index(step) if pa.types.is_struct(of) else -1
        if at < 0:
            return None
        field = of.field(at)
        of = field.type
    return field


def _schema(
    source: pa.NativeFile, file_format: Format, columns: Mapping[str, Sequence[str]], taken: Taken | None
) -> pa.Schema:
    if file_format is Format.PARQUET:
        return pq.ParquetFile(source).schema_arrow
    sample = source.read(SAMPLE_BYTES)
    if len(sample) == SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1]
    if file_format is Format.CSV:
        whole = pa.BufferReader(sample)
        reading = pa.csv.ReadOptions(block_size=len(sample) + 1, use_threads=False)
        converting = pa.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        return pa.csv.read_csv(whole, reading, parsing, converting).schema
    sample = _NULL_LINE.sub(b"", sample)
    if not sample.lstrip().startswith(b"{"):
        raise pa.ArrowInvalid("its first line is not a JSON object")
    if taken is not None:
        lines = [line for line in sample.splitlines() if line.strip() and taken.holds(_loaded(line))]
        sample = b"\n".join(lines or sample.splitlines()[:1])
    try:
        return _json_schema(sample)
    except pa.ArrowInvalid:
        return _without_nested(sample, columns)


def _json_schema(sample: bytes) -> pa.Schema:
    whole = pa.BufferReader(sample)
    return pa.json.read_json(whole, pa.json.ReadOptions(block_size=len(sample) + 1, use_threads=False)).schema


def _without_nested(sample: bytes, columns: Mapping[str, Sequence[str]]) -> pa.Schema:
    """The schema of the columns alone, at their places in the rows: objects and arrays may hold what has no type of
    Arrow. Those that hold some are maps in it. Raises ArrowInvalid for what is no JSON, or of several types."""
    nested, flat = set(), []
    for line in sample.splitlines():
        row = _loaded(line) if line.strip() else {}
        cells: dict[str, object] = {}
        for name, places in columns.items():
            value = _first(row, places)
            if isinstance(value, dict | list):
                nested.add(name)
            elif value is not None:
                cells[name] = value
        flat.append(json.dumps(cells))
    schema = _json_schema("\n".join(flat).encode())
    schema = pa.schema([field for field in schema if field.name not in nested])
    for name in nested:
        schema = schema.append(pa.field(name, pa.map_(pa.string(), pa.string())))
    return nested_schema(pa.schema([(columns[field.name][0], field.type) for field in schema]))


def _loaded(line: bytes) -> object:
    """A line as Python has it. Raises ArrowInvalid for what is no JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise pa.ArrowInvalid(f"a line is not JSON: {error}") from None


def _first(row: object, places: Sequence[str]) -> Any:
    """What is at the first of some places that is not null."""
    return next((value for value in (_at(row, place) for place in places) if value is not None), None)


def _at(row: object, place: str) -> object:
    for step in steps(place):
        row = row.get(step) if isinstance(row, dict) else None
    return row


def _column_type(path: str, field: pa.Field) -> ValueType:
    of = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if isinstance(of, pa.BaseExtensionType) and of.extension_name == "arrow.json":
        return ColumnType.JSON
    of = stored_type(of)
    tests = (
        (pa.types.is_boolean, ColumnType.BOOL),
        (pa.types.is_integer, ColumnType.INT),
        (pa.types.is_floating, ColumnType.FLOAT),
        (pa.types.is_string, ColumnType.STRING),
        (pa.types.is_large_string, ColumnType.STRING),
        (pa.types.is_string_view, ColumnType.STRING),
        (pa.types.is_date, ColumnType.DATE),
        (pa.types.is_timestamp, ColumnType.TIMESTAMP),
        (pa.types.is_binary, ColumnType.BYTES),
        (pa.types.is_large_binary, ColumnType.BYTES),
        (pa.types.is_binary_view, ColumnType.BYTES),
        (pa.types.is_fixed_size_binary, ColumnType.BYTES),
        (is_nested, ColumnType.JSON),
    )
    # A fixed-size binary is what Arrow takes a decimal for, too.
    if pa.types.is_decimal(of) and of.precision <= MAX_PRECISION and 0 <= of.scale <= of.precision:
        return DecimalType(of.precision, of.scale)
    for matches, column_type in tests:
        if matches(of):
            return column_type
    if pa.types.is_null(of):
        raise InvalidUsage(f"column {field.name} of {path} holds only nulls; declare its type under columns:")
    takes = any(may_hold(of, declared) for declared in (*ColumnType, DecimalType(MAX_PRECISION, 0)))
    advice = "declare its type under columns:" if takes else "write it as a text or a number at the source"
    raise InvalidUsage(f"column {field.name} of {path} is of type {of}, which Tidemark does not have; {advice}")
