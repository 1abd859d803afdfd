"""What a collection file says of how the values of a column are written: its unit, its decimals, its far times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.config.document import Loc
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType, DecimalType, Envelope

if TYPE_CHECKING:
    from tidemark.config.declaration import Declaration, DerivedDeclaration

_TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE)
WORDS = ("unit", "beyond", "decimals", "optional")


def problem(declared: Declaration) -> tuple[Loc, str] | None:
    """What is said twice of a column, and where; None if nothing is."""
    for name, column in declared.columns.items():
        if column.unit and name in declared.source.units:
            said = f"column {name} has the unit {column.unit} here and {declared.source.units[name]} in source.units"
            return ("columns", name, "unit"), f"{said}; write one of them"
    return None


def misplaced(declared: DerivedDeclaration) -> tuple[Loc, str] | None:
    """What is said of how a computed column is written, and where; None if nothing is."""
    for name, column in declared.columns.items():
        for word in WORDS:
            if getattr(column, word):
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


def optional_of(declared: Declaration) -> tuple[str, ...]:
    """The columns that a message may lack."""
    return tuple(name for name, column in declared.columns.items() if column.optional)


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
    if name in source.optional and source.envelope is not Envelope.DEBEZIUM:
        raise InvalidUsage(f"column {name} is optional, and only change messages may lack a column; remove it")
    if name in source.optional and name not in (column.name for column in collection.value):
        raise InvalidUsage(f"column {name} is not of the value, and only such may be optional; remove it")
    if beyond is None:
        return
    if column_type not in _TIMES:
        raise InvalidUsage(f"{is_of} beyond belongs to a timestamp or a date; remove it")
    if beyond != "refuse" and name in (key.name for key in collection.key):
        raise InvalidUsage(f"column {name} is a key, and beyond: {beyond} would make one of several; write refuse")
    if beyond == "null" and name in (landed.time, landed.event_time):
        raise InvalidUsage(f"column {name} says when rows are, and is never null; write beyond: refuse or clip")
