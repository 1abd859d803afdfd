"""Windows over an input whose columns are known: every name is one of them, and has a type that can be what it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from tidemark.definition.parse import MAX_TOKENS
from tidemark.definition.recipe import HAPPENED, InputShape
from tidemark.definition.resolve import spelled_alike
from tidemark.definition.types import UNKNOWN
from tidemark.definition.windows.aggregates import check_type
from tidemark.definition.windows.expressions import (
    RowExpression,
    check_expression,
    is_null,
    row_expression,
    size_of,
)
from tidemark.definition.windows.rows import TIMES
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Column, ColumnType, ValueType
from tidemark.model.nearest import nearest
from tidemark.model.window.aggregate import Aggregate
from tidemark.model.window.windows import Windows

_HAPPENED = Column(HAPPENED, ColumnType.TIMESTAMP)


@dataclass(frozen=True)
class Checked:
    """Windows whose names are those of the columns of the view of an input, which has that `shape`: with `happened`
    they are on its column HAPPENED. `on` is the type of the column they are on, `where` the condition, and `aggregates`
    has each aggregate with its argument and its condition."""

    windows: Windows
    shape: InputShape
    happened: bool
    on: ValueType
    where: RowExpression | None
    aggregates: tuple[tuple[Aggregate, RowExpression | None, RowExpression | None], ...]

    @property
    def input(self) -> str:
        """What the input is called."""
        return self.shape.name


def check_expressions(windows: Windows) -> None:
    """Raise InvalidUsage for an expression that is none of a single row, whatever the input's columns are; and for
    expressions that are together larger than a select may be, before any is read."""
    total = 0
    for called, text in _expressions(windows):
        total += size_of(text, called)
        if total > MAX_TOKENS:
            raise InvalidUsage(
                f"{called}: with this expression, those of the windows have {total:,} words, names, values and signs; "
                f"together they may have {MAX_TOKENS:,}: make a derived collection of the rows, with these as columns"
            )
    for called, text in _expressions(windows):
        check_expression(text, called)
        if called.endswith("where") and is_null(text):
            raise InvalidUsage(f"{called}: {text!r} is null for every row, so none counts; write a condition")


@lru_cache(maxsize=64)
def checked(windows: Windows, shape: InputShape) -> Checked:
    """The windows over an input of this shape. Raises InvalidUsage in one line for what does not fit it. What was
    checked is known to the process: to read an expression takes some milliseconds."""
    shapes = spelled_alike([shape])
    columns = {column.name: column for column in shape.columns}
    happened = windows.is_on_event_time(columns)
    on = _HAPPENED if happened else _column(columns, windows.on, "windows.on", shape.name)
    if on.type not in TIMES:
        raise InvalidUsage(
            f"windows.on: column {on.name} of {shape.name} is {on.type}; windows are on a timestamp, a date or an int "
            "of microseconds"
        )
    if on.type is ColumnType.DATE and (wrong := windows.kind.wrong_of_dates):
        raise InvalidUsage(f"windows.{windows.kind.kind}: column {on.name} of {shape.name} is a date, which {wrong}")
    for name in windows.by:
        if _column(columns, name, "windows.by", shape.name).type is ColumnType.FLOAT:
            raise InvalidUsage(
                f"windows.by: column {name} of {shape.name} is a float, and equality of floats identifies nothing; "
                f"make a derived collection of the rows with CAST({name} AS decimal(18, 6)), and the windows over that"
            )

    def read(text: str, called: str) -> RowExpression | None:
        return row_expression(text, called, shape, shapes) if text else None

    found = []
    for one in windows.aggregates:
        of = read(one.of, f"aggregates.{one.name}")
        if of is not None:
            check_type(one, of)
        where = read(one.where, f"aggregates.{one.name}.where")
        found.append((one, of, _condition(where, f"aggregates.{one.name}.where", one.where)))
    where = _condition(read(windows.where, "windows.where"), "windows.where", windows.where)
    seen = shape.with_columns(_HAPPENED) if happened else shape
    return Checked(replace(windows, on=on.name), seen, happened, on.type, where, tuple(found))


def _expressions(windows: Windows) -> list[tuple[str, str]]:
    found = [("windows.where", windows.where)]
    for one in windows.aggregates:
        found += [(f"aggregates.{one.name}", one.of), (f"aggregates.{one.name}.where", one.where)]
    return [(called, text) for called, text in found if text]


def _column(columns: dict[str, Column], name: str, called: str, of: str) -> Column:
    if name not in columns:
        raise InvalidUsage(f"{called}: {of} has no column {name}{nearest(name, list(columns))}")
    return columns[name]


def _condition(given: RowExpression | None, called: str, text: str) -> RowExpression | None:
    if given is not None and given.type not in ("boolean", UNKNOWN):
        raise InvalidUsage(f"{called}: {text!r} is a {given.type}, no condition; write one, as delay > 15")
    return given
