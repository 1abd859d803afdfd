"""A column of a source file as it must be: of its declared type, no nulls where none may be; refused with its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import csvfile, jsonlfile, local_times
from tidemark.arrow.decode.columns_in_file import from_path, if_missing
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.csvnumbers import plain_numbers
from tidemark.arrow.decode.far_times import first_far, within_years
from tidemark.arrow.decode.jsonlfile import Field
from tidemark.arrow.decode.strict import (
    Misfit,
    counting,
    described,
    empty_as_null,
    fitted,
    from_unscaled,
    is_text,
    parsed,
    precise,
    shown,
    since_epoch,
)
from tidemark.arrow.rows.arrays import bools_of, first_true, scalar_of
from tidemark.arrow.rows.columns import Bools, Ints
from tidemark.arrow.rows.schema import TIMES, arrow_type
from tidemark.model.collection import Collection, Column, ColumnType, DecimalType, Envelope, Format, Source

MOST_KEY_BYTES = 2**16
"""Bytes of a text, or of bytes, in a key. The first key of every row group is kept in the table of parts, and travels
with tasks."""

_LONG = (ColumnType.STRING, ColumnType.BYTES, ColumnType.JSON)


def typed(content: Content, collection: Collection, column: Column, array: pa.Array, rows: Ints) -> pa.Array:
    """A column of a block as its declared type; `rows` are the values' places. Raises BadFile."""
    try:
        return _typed(collection.landed.source, column, epoch_unit(collection, column), array)
    except Misfit as misfit:
        in_path = column.name in dict(collection.landed.source.from_paths)
        at = None if misfit.index is None or in_path else int(rows[misfit.index])
        raise refusal(content, collection.landed.source.format, column.name, misfit.reason, at) from None


def fitting(collection: Collection, column: Column, array: pa.Array) -> tuple[pa.Array, Bools]:
    """A column of a block as its declared type, null where a value does not fit, and which these are."""
    try:
        values = _typed(collection.landed.source, column, epoch_unit(collection, column), array)
        return values, np.zeros(len(array), np.bool_)
    except Misfit as misfit:
        if misfit.index is None or len(array) == 1:
            return pa.nulls(len(array), arrow_type(column.type)), bools_of(array.is_valid())
    half = len(array) // 2
    parts = [fitting(collection, column, part) for part in (array.slice(0, half), array.slice(half))]
    return pa.concat_arrays([values for values, _ in parts]), np.concatenate([unfit for _, unfit in parts])


def _typed(source: Source, column: Column, unit: str | None, array: pa.Array) -> pa.Array:
    """A column as its declared type. Raises Misfit."""
    in_file = array
    try:
        if source.format is Format.CSV and not source.csv.has_plain_numbers and (unit or _is_number(source, column)):
            array = plain_numbers(array, column.type, source.csv)
        beyond = source.beyond_of(column.name) if source.beyond else None
        values = _counts(source, column, unit, array)
        if beyond is None:
            return _converted(source, column, unit, values)
        convert = partial(_converted, source, column, unit)
        return within_years(values, column.type, unit, beyond, convert)
    except Misfit as misfit:
        counts = column.type in TIMES and pa.types.is_integer(array.type) and unit is None
        advice = count_advice(column.name) if counts else ""
        reason = misfit.reason
        if misfit.index is not None and source.format is Format.CSV:
            text = in_file[misfit.index].as_py()
            reason = reason.replace(array[misfit.index].as_py(), text, 1) if array is not in_file else reason
            is_empty = text == "" and source.csv.null is not None and "" not in source.csv.null
            advice = '; to have empty fields null, add "" to csv.null' if is_empty else ""
        raise Misfit(f"{reason}{advice}", misfit.index) from None


def cells(content: Content, collection: Collection, column: Column, read: pa.RecordBatch, prefix: str = "") -> pa.Array:
    """A column of a block before it is typed, from the rows or from the file's path."""
    from_file = from_path(content, collection, column, read.num_rows)
    return read.column(prefix + column.name) if from_file is None else from_file


def _is_written(source: Source, column: Column) -> bool:
    """Whether a column comes as texts that may be values of any type, as those of CSV and of paths are."""
    return source.format is Format.CSV or _is_in_path(source, column)


def _is_in_path(source: Source, column: Column) -> bool:
    return column.name in dict(source.from_paths)


def _counts(source: Source, column: Column, unit: str | None, array: pa.Array) -> pa.Array:
    """The integers that texts of CSV are in a column with a unit; any other column as it is."""
    if unit is None or not _is_written(source, column):
        return array
    with described(ColumnType.INT, counting(column.type, unit)):
        return parsed(array, ColumnType.INT, empty_is_null=source.csv.null is None or _is_in_path(source, column))


def _converted(source: Source, column: Column, unit: str | None, array: pa.Array) -> pa.Array:
    """A column as its declared type, whatever its times are. Raises Misfit."""
    zone = source.timezone_of(column.name)
    times = _instants(source, column, unit, array)
    if zone is None:
        return times
    is_instant = local_times.with_offset(array)
    if source.format_of(column.name):
        is_instant &= False
    return local_times.instants(times, is_instant, column.type, zone, source.choice_of(column.name))


def _instants(source: Source, column: Column, unit: str | None, array: pa.Array) -> pa.Array:
    """A column as its declared type, a time without an offset as one of UTC. Raises Misfit."""
    is_csv = _is_written(source, column)
    empty_is_null = is_csv and (source.csv.null is None or _is_in_path(source, column))
    if column.type is ColumnType.JSON and source.format is Format.JSONL:
        return array
    if isinstance(column.type, DecimalType) and source.decimals_of(column.name) == "precise":
        return from_unscaled(array, column.type, empty_is_null=empty_is_null)
    if (form := source.format_of(column.name)) and is_text(array.type):
        return local_times.formatted(empty_as_null(array) if empty_is_null else array, column.type, form)
    if unit is not None and pa.types.is_integer(array.type):
        return since_epoch(array, column.type, unit)
    if is_csv or (pa.types.is_string(array.type) and source.format is Format.JSONL):
        return parsed(array, column.type, empty_is_null=empty_is_null)
    if unit is None and column.type in TIMES and is_text(array.type):
        return parsed(array.cast(pa.string()), column.type, empty_is_null=False)
    return fitted(array, column.type)


def _is_number(source: Source, column: Column) -> bool:
    """Whether the texts of a column are numbers."""
    if isinstance(column.type, DecimalType):
        return source.decimals_of(column.name) != "precise"
    return column.type in (ColumnType.INT, ColumnType.FLOAT)


def field_of(collection: Collection, column: Column, prefix: str = "") -> Field:
    """How JSON lines have a column, at its place in a row."""
    source, name = collection.landed.source, prefix + column.name
    is_named = column.name in dict(source.from_fields)
    places = tuple(prefix + place for place in source.places_of(column.name)) if is_named else ()
    optional, advice = column.name in source.optional, if_missing(collection, column)
    return replace(_field_of(collection, column, name), places=places, optional=optional, if_missing=advice)


def _field_of(collection: Collection, column: Column, name: str) -> Field:
    source = collection.landed.source
    if unit := epoch_unit(collection, column):
        return Field(name, ColumnType.INT, counting(column.type, unit))
    if isinstance(column.type, DecimalType) and source.decimals_of(column.name) == "precise":
        return Field(name, ColumnType.BYTES, precise(column.type), decimal=column.type)
    if form := source.format_of(column.name):
        return Field(name, column.type, local_times.written_as(column.type, form))
    return Field(name, column.type, str(column.type), advice=count_advice(column.name) if column.type in TIMES else "")


def count_advice(name: str) -> str:
    """What to declare where a whole number is a time."""
    return f"; if it counts since the epoch, write columns: {{{name}: {{unit: ms}}}}"


def check_values(content: Content, collection: Collection, column: Column, array: pa.Array, rows: pa.Array) -> None:
    """Raise BadFile for a value that a row may not have; `rows` are the values' places."""
    if (wrong := wrong_value(collection, column, array)) is not None:
        problem, at = wrong
        raise refusal(content, collection.landed.source.format, column.name, problem, rows[at].as_py())


def wrong_value(collection: Collection, column: Column, array: pa.Array) -> tuple[str, int] | None:
    """What is wrong with a column's values, and with which: a null where none may be, a key that is too long, a time
    before the epoch, or one that a published table has not. None if all are right."""
    if column.type in _LONG and column.name in (key.name for key in collection.key):
        lengths = pc.binary_length(array)
        if (at := first_true(pc.greater(lengths, scalar_of(MOST_KEY_BYTES, lengths.type)))) >= 0:
            what = "text" if column.type is ColumnType.STRING else column.type
            most = f"a key's {what} has at most {MOST_KEY_BYTES:,}"
            return f"holds {lengths[at].as_py():,} bytes; {most}: let it be a value", at
    for role in _never_null(collection, column.name):
        if array.null_count:
            return f"is null; {role} never is", first_true(array.is_null())
    if column.name in (collection.landed.time, collection.landed.event_time):
        micros = array.cast(pa.int64())
        negative = first_true(pc.less(micros, scalar_of(0, micros.type)))
        if negative >= 0:
            return f"holds a time before 1970: {shown(micros[negative].as_py())} µs", negative
    return _unpublishable(collection, column, array) if collection.publish else None


def _unpublishable(collection: Collection, column: Column, array: pa.Array) -> tuple[str, int] | None:
    """What a published table cannot have, if the column is one of it."""
    formats = (table.format for table in collection.publish if table.format.is_within_years(column.type))
    bounding = next(formats, None)
    if bounding is None or column.name not in (each.name for each in collection.columns):
        return None
    if (far := first_far(array)) is None:
        return None
    (problem, at), is_key = far, column.name in {each.name for each in collection.key}
    advice = "" if is_key else "; write beyond: null, or clip, at the column"
    return f"{problem}, which no table of {bounding} has{advice}", at


def epoch_unit(collection: Collection, column: Column) -> str | None:
    """What the column's integers count since the epoch; None where times are no numbers."""
    return collection.landed.source.unit_of(column.name) if column.type in TIMES else None


def refusal(content: Content, file_format: Format, column: str, problem: str, row: int | None = None) -> BadFile:
    """The error for a column, or for its value in a row."""
    where = "" if row is None else f"{place(content, file_format, row)}: "
    return BadFile(content.path, f"{where}column {column} {problem}")


def place(content: Content, file_format: Format, row: int) -> str:
    """Where a row (from 0) is, for people: its line as an editor counts them, or its number from 1."""
    match file_format:
        case Format.PARQUET:
            return f"row {row + 1}"
        case Format.CSV:
            return f"line {csvfile.line_of(content, row)}"
        case Format.JSONL:
            return jsonlfile.where(content, jsonlfile.line_of(content, row))


def _never_null(collection: Collection, name: str) -> Iterator[str]:
    """The reasons why a column may hold no nulls."""
    if any(name == column.name for column in collection.key):
        yield "a key"
    if name in (collection.landed.time, collection.landed.event_time):
        yield "a time"
    if collection.landed.source.envelope is Envelope.UPDATES and name == collection.landed.source.diff:
        yield "a diff"
