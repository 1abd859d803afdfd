"""What a collection file must say, and may leave out, where its source holds change messages of Debezium."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.config.document import Loc
from tidemark.errors import InvalidUsage
from tidemark.model import field_path, only, time_format
from tidemark.model.collection import COLUMN_NAME, Collection, ColumnType, DecimalType, ValueType
from tidemark.model.epoch import unit_of
from tidemark.model.place import field_type

if TYPE_CHECKING:
    from tidemark.config.declaration import Declaration
    from tidemark.config.infer import Inferred

DEBEZIUM = "debezium"
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


def inferred_types(declared: Declaration, columns: Mapping[str, Inferred]) -> dict[str, Inferred]:
    """Columns of a file, those that are times by what is said of them as that."""
    times = {name: (unit != "days", f"its unit is {unit}") for name, unit in declared.units.items()}
    for name, column in declared.columns.items():
        if column.format or column.timezone:
            has_clock = bool(column.timezone) or time_format.has_clock(column.format or "")
            times[name] = has_clock, f"its format is {column.format}" if column.format else "it has a timezone"
    said = dict(columns)
    for name in columns.keys() & times:
        has_clock, why = times[name]
        said[name] = replace(columns[name], type=ColumnType.TIMESTAMP if has_clock else ColumnType.DATE, why=why)
    return said


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
