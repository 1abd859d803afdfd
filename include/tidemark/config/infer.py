"""Column types as a first source file shows them. A type is inferred only where values come back as they were written.

Types of Parquet are those of the file, types of JSON those of its values, by Arrow's inference; texts of CSV are looked
at one by one (config/infer_text.py). Timestamps without a zone are UTC.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from tidemark.arrow.decode import csvfile, jsonlfile
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.jsontexts import is_nested
from tidemark.arrow.decode.parquetfile import stored_type
from tidemark.arrow.decode.strict import may_hold, shorter
from tidemark.arrow.rows.columns import nested as nested_schema
from tidemark.config.infer_text import TextKind
from tidemark.errors import InvalidUsage, TidemarkError, listed, out_of_memory
from tidemark.model import field_path
from tidemark.model.canonical_json import Literal
from tidemark.model.collection import MAX_PRECISION, ColumnType, DecimalType, Format, Source, ValueType
from tidemark.model.condition.evaluate import truth
from tidemark.model.condition.tree import Condition
from tidemark.model.ledger import SourceFile
from tidemark.model.nearest import similar

SAMPLE_BYTES = 16 * 2**20
"""How much of a jsonl file is looked at. Of csv it is all: a value further on may be one that a type would change."""
_LONG = re.compile(rb"[0-9][0-9.]{15}")
"""A number that may have more digits than a float keeps."""
_NULL_LINE = re.compile(rb"^null[ \t\r]*\n", re.MULTILINE)
"""A message that is null (a tombstone), of which Arrow dies."""


@dataclass(frozen=True)
class Inferred:
    """The type of a column, and why it is that one, in a few words."""

    type: ValueType
    why: str


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
    path: str, source: Source, columns: Mapping[str, Sequence[str]], taken: Taken | None = None
) -> dict[str, Inferred]:
    """The types of `columns` in a file, each given with the paths where it may be in a row.

    Of a file of JSON lines the rows `taken` are looked at, or all.

    Raises InvalidUsage if the file cannot be read, lacks a column, or shows no type for one (it is null throughout, or
    of a type Tidemark does not have): declare that column's type then.
    """
    content = _content(path, source)
    if source.format is Format.CSV:
        with _readable(path):
            content.check_kind()
            header = csvfile.names(content)
            _check_has(path, [name for name, places in columns.items() if not _in_header(places, header)], header)
            return _of_csv(content, columns)
    schema = _schema_of(content, columns, taken)
    types = {}
    for name, places in columns.items():
        field = next((field for field in (_field(schema, place) for place in places) if field is not None), None)
        if field is None:
            _check_has(path, [name], schema.names)
        else:
            what = f"{shorter(str(field.type))} in the file"
            types[name] = Inferred(
                _column_type(path, field), what if source.format is Format.PARQUET else "as JSON has it"
            )
    floats = {name: columns[name] for name, each in types.items() if each.type is ColumnType.FLOAT}
    if floats and source.format is Format.JSONL:
        _check_numbers(content, floats, taken)
    return types


def _check_has(path: str, columns: Iterable[str], names: Sequence[str]) -> None:
    """Raise InvalidUsage for a column that a file does not have."""
    for name in columns:
        if name not in names:
            near = similar(name, [*names])
            meant = f"; did you mean {near!r}?" if near else ""
            raise InvalidUsage(
                f"{path} has no column {name} to infer a type from; it has {listed(names)}; declare its type under "
                f"columns:, or infer from a newer file{meant}"
            )


def _content(path: str, source: Source) -> Content:
    return Content(SourceFile(path, 0, ""), "", 0, None, source=source)


def _of_csv(content: Content, columns: Mapping[str, Sequence[str]]) -> dict[str, Inferred]:
    header = csvfile.names(content)
    fields = {name: _in_header(places, header) or name for name, places in columns.items()}
    kinds = {name: TextKind(content.source.csv) for name in columns}
    for block in csvfile.read_blocks(content, dict.fromkeys(fields.values(), "")):
        for name, kind in kinds.items():
            kind.see(block.column(fields[name]))
    for name, kind in kinds.items():
        if not kind.values:
            raise InvalidUsage(f"column {name} of {content.path} holds only nulls; declare its type under columns:")
    return {name: Inferred(kind.type, kind.why) for name, kind in kinds.items()}


def _in_header(places: Sequence[str], header: Sequence[str]) -> str | None:
    """The first place of a column that a file of CSV has."""
    return next((name for name in map(field_path.shown, places) if name in header), None)


def _check_numbers(content: Content, floats: Mapping[str, Sequence[str]], taken: Taken | None) -> None:
    """Raise InvalidUsage for a number that a float would round: it may identify something."""
    sample = _sample(content)
    if not _LONG.search(sample):
        return
    for line in sample.splitlines():
        row = json.loads(line, parse_int=Literal, parse_float=Literal) if _LONG.search(line) else None
        if row is None or (taken is not None and not taken.holds(row)):
            continue
        for name, places in floats.items():
            value = _first(row, places)
            if isinstance(value, Literal) and Decimal(value.text) != Decimal(repr(float(value))):
                number = Decimal(value.text)
                _, digits, exponent = number.as_tuple()
                scale = max(0, -int(exponent))
                precision = max(20, len(digits) + max(0, int(exponent)), scale)
                needed = f'"decimal({precision}, {scale})"' if precision <= MAX_PRECISION else "json"
                what = "a whole number" if not scale else "a number"
                raise InvalidUsage(
                    f"column {name} of {content.path} holds {shorter(value.text)}, {what} that a float would round; "
                    f"declare its type under columns: {{{name}: {needed}}}"
                )


def lacking(path: str, source: Source, columns: Mapping[str, Sequence[str]]) -> tuple[str, list[str]] | None:
    """The first of some columns that a file does not have, and the names of those that it has; None if it has all.

    Args:
        columns: Of each column the paths where it may be in a row.

    Raises:
        InvalidUsage: The file cannot be read.
    """
    content = _content(path, source)
    if source.format is Format.CSV:
        with _readable(path):
            content.check_kind()
            names = csvfile.names(content)
        absent = (name for name, places in columns.items() if _in_header(places, names) is None)
        return next(((name, names) for name in absent), None)
    schema = _schema_of(content, columns)
    for name, places in columns.items():
        if all(_field(schema, place) is None for place in places):
            return name, schema.names
    return None


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raise InvalidUsage where a file cannot be read."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(path, error) from error
    except BadFile as bad:
        raise InvalidUsage(f"{path} cannot be read to infer types from: {bad.reason}") from None
    except (pa.ArrowException, OSError, TidemarkError) as error:
        raise InvalidUsage(f"{path} cannot be read to infer types from: {str(error).splitlines()[0]}") from None


def _schema_of(content: Content, columns: Mapping[str, Sequence[str]], taken: Taken | None = None) -> pa.Schema:
    with _readable(content.path):
        content.check_kind()
        if content.source.format is Format.PARQUET:
            with content.open() as file:
                return pq.ParquetFile(file).schema_arrow
        return _schema(_sample(content), columns, taken)


def _field(schema: pa.Schema, place: str) -> pa.Field | None:
    of, field = pa.struct(list(schema)), None
    for step in field_path.steps(place):
        at = of.get_field_index(step) if pa.types.is_struct(of) else -1
        if at < 0:
            return None
        field = of.field(at)
        of = field.type
    return field


def _sample(content: Content) -> bytes:
    """The first lines of a file of JSON lines."""
    sample = b""
    for block in jsonlfile.blocks(content):
        sample += block
        if len(sample) >= SAMPLE_BYTES:
            break
    return _NULL_LINE.sub(b"", sample)


def _schema(sample: bytes, columns: Mapping[str, Sequence[str]], taken: Taken | None) -> pa.Schema:
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
    for step in field_path.steps(place):
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
