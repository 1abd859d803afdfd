"""Which windows of an aligned kind a row is in, as SQL: subqueries, one around the other, that give rows their windows.

A row stands once for each window it is in, with the columns START and END, in the type of the collection's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.model.collection import ColumnType, ValueType
from tidemark.model.window.kind import Aligned, Calendar, Cumulate, Hopping, Tumbling, Unit

AT, START, END = "_at", "_start", "_end"
"""When a row happened, in microseconds; and when its window begins and ends."""
TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.INT)
"""Types of a column that windows may be on; a whole number is taken for microseconds."""
_UNITS = {
    Unit.DAY: ("{}", "date_add({}, 1)"),
    Unit.WEEK: ("trunc({}, 'WEEK')", "date_add({}, 7)"),
    Unit.MONTH: ("trunc({}, 'MONTH')", "add_months({}, 1)"),
    Unit.QUARTER: ("trunc({}, 'QUARTER')", "add_months({}, 3)"),
    Unit.YEAR: ("trunc({}, 'YEAR')", "add_months({}, 12)"),
}
"""Of each unit the first day of the one that a date is in, and of the next one."""


@dataclass(frozen=True)
class Source:
    """A query whose rows are those of the input and more, to stand in a FROM under the input's name."""

    sql: str
    name: str

    @property
    def rows(self) -> str:
        return f"({self.sql}) AS `{self.name}`"

    def adding(self, where: str = "", **columns: str) -> Source:
        """The rows for which a condition holds, with more columns."""
        more = ", ".join(f"{sql} AS `{name}`" for name, sql in columns.items())
        return Source(f"SELECT *, {more} FROM {self.rows}{f' WHERE {where}' if where else ''}", self.name)


def happening(name: str, on: str, of: ValueType, by: Sequence[str], where: str) -> Source:
    """The rows of an input that are in windows, with AT: those of which it is told when they happened, and by what."""
    column = f"`{name}`.`{on}`"
    at = column if of is ColumnType.INT else f"unix_micros(CAST({column} AS timestamp))"
    condition = " AND ".join([f"`{name}`.`{one}` IS NOT NULL" for one in (on, *by)] + ([f"({where})"] if where else []))
    return Source(f"SELECT *, {at} AS `{AT}` FROM `{name}` WHERE {condition}", name)


def assigned(kind: Aligned, rows: Source, of: ValueType) -> Source:
    """The rows of `happening`, once for each window they are in."""
    match kind:
        case Tumbling():
            placed = rows.adding(_first=_floor(kind.size, kind.offset))
            first, last = "_first", f"_first + {kind.size}"
        case Hopping():
            placed = rows.adding(_newest=_floor(kind.advance, kind.offset))
            further = f"({kind.size - 1} - ({AT} - _newest)) DIV {kind.advance}"
            placed = placed.adding(where=f"{AT} - _newest < {kind.size}", _back=_each("0", further))
            first, last = f"_newest - _back * {kind.advance}", f"_newest - _back * {kind.advance} + {kind.size}"
        case Cumulate():
            placed = rows.adding(_first=_floor(kind.size, kind.offset))
            shortest = f"({AT} - _first) DIV {kind.step} + 1"
            placed = placed.adding(_steps=_each(shortest, str(kind.size // kind.step)))
            first, last = "_first", f"_first + _steps * {kind.step}"
        case Calendar():
            return _by_calendar(kind, rows, of)
    return placed.adding(**{START: typed(first, of), END: typed(last, of)})


def _floor(size: int, offset: int) -> str:
    """The last multiple of a size, moved by an offset, that is not after AT."""
    return f"{AT} - pmod({AT} - {offset % size}, {size})"


def _each(first: str, last: str) -> str:
    """A row for each whole number between two."""
    return f"explode(sequence(CAST({first} AS bigint), CAST({last} AS bigint)))"


def _by_calendar(kind: Calendar, rows: Source, of: ValueType) -> Source:
    """A unit begins at the first instant at which clocks show its first day: where they are put forward at midnight,
    after that; where midnight comes twice, at the first. What they show of a day again after it had begun to be the
    next one belongs to the next, so that no instant is in two units."""
    unit, following = _UNITS[kind.unit]
    local = f"CAST(from_utc_timestamp(timestamp_micros({AT}), '{kind.zone}') AS date)"
    shown = rows.adding(_unit=unit.format(local))
    once, twice = following.format("_unit"), following.format(following.format("_unit"))
    begins = {name: _begins(day, kind.zone) for name, day in (("_this", "_unit"), ("_next", once), ("_last", twice))}
    placed = shown.adding(**begins)
    first = f"CASE WHEN {AT} < _next THEN _this ELSE _next END"
    last = f"CASE WHEN {AT} < _next THEN _next ELSE _last END"
    return placed.adding(**{START: typed(first, of), END: typed(last, of)})


def _begins(day: str, zone: str) -> str:
    return f"unix_micros(CAST(to_utc_timestamp(CAST({day} AS timestamp), '{zone}') AS timestamp))"


def typed(micros: str, of: ValueType) -> str:
    return f"CAST({micros} AS bigint)" if of is ColumnType.INT else f"timestamp_micros({micros})"
