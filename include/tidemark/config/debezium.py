"""What a collection file must say, and may leave out, where its source holds change messages of Debezium."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tidemark.config.document import Loc
from tidemark.errors import InvalidUsage
from tidemark.model import field_path, only, time_format
from tidemark.model.collection import COLUMN_NAME, Collection, ColumnType, DecimalType, ValueType
from tidemark.model.epoch import unit_of
from tidemark.model.ledger import SourceFile
from tidemark.model.place import field_type

if TYPE_CHECKING:
    from tidemark.arrow.decode.content import Content
    from tidemark.arrow.decode.debezium_files import LogicalType
    from tidemark.config.declaration import Declaration
    from tidemark.config.infer import Inferred

DEBEZIUM = "debezium"
MOST_MESSAGES = 10_000
"""Messages of a file whose tables are looked at."""
BODIES = ("", "payload.", "value.", "value.payload.")
"""Where the fields of a message may be in a file's rows."""


def problem(declared: Declaration) -> tuple[Loc, str] | None:
    """What is wrong about the columns of messages, and where; None if nothing is."""
    source = declared.source
    coordinates = [
        (("time", "column"), declared.time_column),
        (("event_time", "column"), declared.event_time_column),
        *((("source", "order_by"), name) for name in source.order_columns),
    ]
    if source.envelope != DEBEZIUM:
        for field, used in (("units", source.units), ("decimals", source.decimals)):
            if used:
                instead = f"write columns: {{NAME: {{{field.removesuffix('s') if field == 'units' else field}: ...}}}}"
                wrong = f"{field} belong to the debezium envelope, not to {source.envelope}"
                return ("source", field), f"{wrong}; {instead}"
        looked_at = ((("source", "only"), name) for name in only.fields(source.only))
        for loc, name in [*coordinates, *((("columns", name), name) for name in declared.columns), *looked_at]:
            if name and not COLUMN_NAME.fullmatch(name):
                if "." not in name:
                    return loc, f"column name {name!r} must match {COLUMN_NAME.pattern}"
                return loc, f"column {name} is a field within a message, which only the debezium envelope has"
        return None
    stored = {*declared.key, *declared.value}
    for loc, name in coordinates:
        if name in stored:
            return loc, (
                f"{name} is a column of the key or the value, which no delete has; name a field of the message "
                "itself, such as source.ts_ms or source.lsn"
            )
    known = {*stored, *(name for _, name in coordinates)}
    for name in source.units:
        if name not in known:
            return ("source", "units", name), f"column {name} is in no other field"
    return None


def implied(declared: Declaration, name: str) -> ValueType:
    """The type of a column that is read and not kept, where the file says none.

    That is a timestamp, but for what orders, and what `only` looks at.
    """
    source = declared.source
    coordinates = (declared.time_column, declared.event_time_column, *source.order_columns)
    if source.only and name not in coordinates and name in only.fields(source.only):
        return only.implied(source.only, name)
    if source.envelope != DEBEZIUM or name not in source.order_columns:
        return ColumnType.TIMESTAMP
    if isinstance(source.order_by, list) and name not in (declared.time_column, declared.event_time_column):
        return field_type(name)
    return ColumnType.TIMESTAMP if unit_of(name, declared.units.items()) else ColumnType.INT


def check_units(collection: Collection) -> None:
    """Raise InvalidUsage where numbers would be read as microseconds though they count something else."""
    landed, source = collection.landed, collection.landed.source
    for role, name in (("time", landed.time), ("event_time", landed.event_time)):
        if name and collection.type_of(name) is ColumnType.INT and (unit := source.unit_of(name)) not in (None, "us"):
            raise InvalidUsage(f"{role} column {name} is an int and counts {unit}; leave its type out: a timestamp")


def check_decimals(collection: Collection) -> None:
    """Raise InvalidUsage where messages have decimals, and nothing says how: a text such as `1234` may be the number,
    or the base64 of another one."""
    source = collection.landed.source
    names = [
        column.name
        for column in (*collection.columns, *collection.landed.inputs)
        if isinstance(column.type, DecimalType) and column.name not in dict(source.column_decimals)
    ]
    if source.envelope == DEBEZIUM and names and not source.decimals:
        raise InvalidUsage(
            f"column {names[0]} is a decimal; say how the connector writes them, its decimal.handling.mode: "
            "source: {decimals: precise} (base64), or string, or double"
        )


def _content(declared: Declaration, path: str) -> Content | None:
    """A file of messages; None where rows are no messages."""
    from tidemark.arrow.decode.content import Content

    if declared.source.envelope != DEBEZIUM:
        return None
    return Content(SourceFile(path, 0, ""), "", 0, None, source=declared.source.as_written)


def no_messages(declared: Declaration, path: str) -> str | None:
    """Why a file has no messages, if it has none and is not of flattened ones."""
    from tidemark.arrow.decode import debezium_files
    from tidemark.arrow.decode.content import BadFile
    from tidemark.arrow.decode.messages import FLATTENED

    if (content := _content(declared, path)) is None:
        return None
    try:
        debezium_files.images(content, declared.source.file_format, 1)
    except BadFile as bad:
        return None if FLATTENED in bad.reason else str(bad)
    return None


def another_table(declared: Declaration, path: str) -> InvalidUsage | None:
    """The refusal of a file whose messages are of two tables, if they are and nothing says which to take."""
    from tidemark.arrow.decode import debezium_files
    from tidemark.arrow.decode.content import BadFile

    if declared.source.only or (content := _content(declared, path)) is None:
        return None
    try:
        tables = islice(debezium_files.tables(content, declared.source.file_format), MOST_MESSAGES)
        names = [*dict.fromkeys(table for _, table in tables)]
    except BadFile:
        return None
    return InvalidUsage(f"{path}: {only.two_tables(names[1], names[0])}") if names[1:] else None


def inferred_types(declared: Declaration, columns: Mapping[str, Inferred], path: str) -> dict[str, Inferred]:
    """Columns of a file, those that are times by what is said of them as that.

    Where messages come with their schema it is said what else that has for a column.
    """
    times = {name: (unit != "days", f"its unit is {unit}") for name, unit in declared.units.items()}
    for name, column in declared.columns.items():
        if column.format or column.timezone:
            has_clock = bool(column.timezone) or time_format.has_clock(column.format or "")
            times[name] = has_clock, f"its format is {column.format}" if column.format else "it has a timezone"
    said = dict(columns)
    for name in columns.keys() & times:
        has_clock, why = times[name]
        said[name] = replace(columns[name], type=ColumnType.TIMESTAMP if has_clock else ColumnType.DATE, why=why)
    for name, logical in _logical_types(declared, path).items():
        if name in said and name not in times and (instead := logical.declared):
            said[name] = replace(said[name], why=f"{said[name].why}; of {logical.name}: write {instead}")
    return said


def _logical_types(declared: Declaration, path: str) -> Mapping[str, LogicalType]:
    """What the schema of a file's first message says of columns of the images."""
    from tidemark.arrow.decode import debezium_files
    from tidemark.arrow.decode.content import BadFile

    if declared.source.format == "parquet" or (content := _content(declared, path)) is None:
        return {}
    try:
        types = debezium_files.logical_types(content)
    except BadFile:
        return {}
    names = {name: declared.fields.get(name, (name,)) for name in (*declared.key, *declared.value)}
    return {name: types[field] for name, fields in names.items() for field in fields[:1] if field in types}


def places(declared: Declaration, columns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Where each column may be in a row of the source."""
    in_messages = declared.source.envelope == DEBEZIUM
    images = {*declared.key, *declared.value} if in_messages else set()
    paths = {name: _paths(declared, name) for name in columns}
    within = {name: [f"after.{path}" if name in images else path for path in paths[name]] for name in paths}
    bodies = BODIES if in_messages else ("",)
    return {name: tuple(body + path for body in bodies for path in within[name]) for name in paths}


def _paths(declared: Declaration, name: str) -> tuple[str, ...]:
    names = declared.fields.get(name)
    if declared.source.format == "csv":
        return tuple(map(field_path.literal, names or (name,)))
    return tuple(path for each in names for path in field_path.both(each)) if names else (name,)
