"""What a collection file says of where a column is in files, and of how its values are written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.config.document import Loc
from tidemark.errors import InvalidUsage
from tidemark.model import only, time_format
from tidemark.model.collection import Collection, ColumnType, DecimalType, Source, ValueType

if TYPE_CHECKING:
    from tidemark.config.declaration import Declaration, DerivedDeclaration

_TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE)
WORDS = ("unit", "beyond", "decimals", "from", "from_path", "optional", "timezone", "ambiguous", "format")
_IMAGES = ("before", "after", "key")


def problem(declared: Declaration) -> tuple[Loc, str] | None:
    """What is said twice of a column, and where; None if nothing is."""
    for name, column in declared.columns.items():
        if column.unit and name in declared.source.units:
            said = f"column {name} has the unit {column.unit} here and {declared.source.units[name]} in source.units"
            return ("columns", name, "unit"), f"{said}; write one of them"
        if column.from_ is not None and column.from_path:
            return ("columns", name, "from_path"), f"column {name} has from and from_path; write one of them"
        if column.ambiguous and not column.timezone:
            return (
                "columns",
                name,
                "ambiguous",
            ), f"column {name} has ambiguous without a timezone; write timezone, too"
        if column.format and (column.unit or name in declared.source.units):
            return (
                "columns",
                name,
                "format",
            ), f"column {name} has format, of texts, and unit, of numbers; write one of them"
    return _looked_at(declared)


def _looked_at(declared: Declaration) -> tuple[Loc, str] | None:
    """What is wrong about the columns that `only` looks at, and about keys that no row has."""
    for name in only.fields(declared.source.only):
        if name in declared.columns and declared.columns[name].from_path:
            return ("source", "only"), f"only: {name} is in the path of files; write it into source.path"
        steps = {field.partition(".")[0] for field in declared.fields.get(name, ())}
        if declared.source.envelope == "debezium" and steps & {*_IMAGES}:
            return ("source", "only"), f"only: {name} is in the images of messages, and can change; take all rows"
    if all(name in declared.columns and declared.columns[name].from_path for name in declared.key):
        return ("key",), "all columns of the key are in the path of files: their rows would be one"
    return None


def misplaced(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    """What is said of how a computed column is written, and where; None if nothing is."""
    for name, column in declared.columns.items():
        for word in WORDS:
            if getattr(column, "from_" if word == "from" else word) not in (None, False):
                return ("columns", name, word), f"{word} says how files write a column, and {name} is computed"
    return None


def stored(decimals: str | None) -> str | None:
    """How decimals are written, as a declaration has it: the numbers of doubles are read as texts are."""
    return "string" if decimals == "double" else decimals


def decimals_of(declared: Declaration) -> tuple[tuple[str, str], ...]:
    """How decimals are written in columns that say it themselves."""
    said = ((name, stored(column.decimals)) for name, column in declared.columns.items())
    return tuple((name, decimals) for name, decimals in said if decimals)


def beyond_of(declared: Declaration) -> tuple[tuple[str, str], ...]:
    """What becomes of far times, by column."""
    return tuple((name, column.beyond) for name, column in declared.columns.items() if column.beyond)


def said(declared: Declaration, word: str) -> tuple[tuple[str, str], ...]:
    """What is said by a word, by column."""
    words = ((name, getattr(column, word)) for name, column in declared.columns.items())
    return tuple((name, said) for name, said in words if said)


def check(collection: Collection, name: str) -> None:
    """Raise InvalidUsage where what a column says of its values does not go with its type, or with what it is for."""
    landed, source = collection.landed, collection.landed.source
    column_type, beyond, unit = collection.type_of(name), source.beyond_of(name), dict(source.units).get(name)
    is_of = f"column {name} is of type {column_type}, and"
    time_type = ColumnType.DATE if unit == "days" else ColumnType.TIMESTAMP
    if unit and column_type is not time_type:
        raise InvalidUsage(f"{is_of} its unit is {unit}: declare it {time_type}")
    if dict(source.column_decimals).get(name) and not isinstance(column_type, DecimalType):
        raise InvalidUsage(f"{is_of} decimals belong to a decimal(p, s); remove it")
    role = "a key" if name in (key.name for key in collection.key) else "a time"
    if name in source.optional and (role == "a key" or name in (landed.time, landed.event_time)):
        raise InvalidUsage(f"column {name} is {role}, and never null; remove optional")
    _check_times(source, name, column_type)
    if beyond is None:
        return
    if column_type not in _TIMES:
        raise InvalidUsage(f"{is_of} beyond belongs to a timestamp or a date; remove it")
    if beyond != "refuse" and name in (key.name for key in collection.key):
        raise InvalidUsage(f"column {name} is a key, and beyond: {beyond} would make one of several; write refuse")
    if beyond == "null" and name in (landed.time, landed.event_time):
        raise InvalidUsage(f"column {name} says when rows are, and is never null; write beyond: refuse or clip")


def _check_times(source: Source, name: str, column_type: ValueType) -> None:
    form, zone = source.format_of(name), source.timezone_of(name)
    if form:
        if column_type not in _TIMES:
            raise InvalidUsage(f"column {name} is of type {column_type}, and format belongs to a timestamp or a date")
        time_format.check(form, has_time=column_type is ColumnType.TIMESTAMP)
    if zone and column_type is not ColumnType.TIMESTAMP:
        raise InvalidUsage(f"column {name} is of type {column_type}, and timezone belongs to a timestamp; remove it")
    if zone and form and "z" in time_format.codes_of(form):
        raise InvalidUsage(f"column {name} has a timezone, and %z in its format, which is an offset; write one of them")
