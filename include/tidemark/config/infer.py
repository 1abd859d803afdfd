"""Column types as a first source file shows them, by Arrow's inference; timestamps without a zone are UTC."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from tidemark.errors import InvalidUsage, listed, out_of_memory
from tidemark.model.collection import ColumnType, Format
from tidemark.storage.landing import open_source

SAMPLE_BYTES = 16 * 2**20
"""How much of a csv or jsonl file is looked at."""


_NULL_LINE = re.compile(rb"^null[ \t\r]*\n", re.MULTILINE)
"""A message that is null (a tombstone), of which Arrow dies."""


def inferred(path: str, file_format: Format, columns: Mapping[str, Sequence[str]]) -> dict[str, ColumnType]:
    """The types of `columns` in a file, each given with the paths where it may stand in a row.

    Raises InvalidUsage if the file cannot be read, lacks a column, or shows no type for one (it is null throughout, or
    of a type Tidemark does not have): declare that column's type then.
    """
    try:
        with open_source(path) as source:
            schema = _schema(source, file_format)
    except MemoryError as error:
        raise out_of_memory(path, error) from error
    except (pa.ArrowException, OSError) as error:
        raise InvalidUsage(f"{path} cannot be read to infer types from: {str(error).splitlines()[0]}") from None
    types = {}
    for name, places in columns.items():
        found = next((field for field in (_field(schema, place) for place in places) if field is not None), None)
        if found is None:
            raise InvalidUsage(
                f"{path} has no column {name} to infer a type from; it has {listed(schema.names)}; "
                "declare its type under columns:, or infer from a newer file"
            )
        types[name] = _column_type(path, found)
    return types


def _field(schema: pa.Schema, place: str) -> pa.Field | None:
    of, field = pa.struct(list(schema)), None
    for step in place.split("."):
        at = of.get_field_index(step) if pa.types.is_struct(of) else -1
        if at < 0:
            return None
        field = of.field(at)
        of = field.type
    return field


def _schema(source: pa.NativeFile, file_format: Format) -> pa.Schema:
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
    whole = pa.BufferReader(sample)
    return pa.json.read_json(whole, pa.json.ReadOptions(block_size=len(sample) + 1, use_threads=False)).schema


def _column_type(path: str, field: pa.Field) -> ColumnType:
    of = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    tests = (
        (pa.types.is_boolean, ColumnType.BOOL),
        (pa.types.is_integer, ColumnType.INT),
        (pa.types.is_floating, ColumnType.FLOAT),
        (pa.types.is_string, ColumnType.STRING),
        (pa.types.is_large_string, ColumnType.STRING),
        (pa.types.is_string_view, ColumnType.STRING),
        (pa.types.is_date, ColumnType.DATE),
        (pa.types.is_timestamp, ColumnType.TIMESTAMP),
    )
    for is_of, column_type in tests:
        if is_of(of):
            return column_type
    what = "holds only nulls" if pa.types.is_null(of) else f"is of type {of}, which Tidemark does not have"
    raise InvalidUsage(f"column {field.name} of {path} {what}; declare its type under columns:")
