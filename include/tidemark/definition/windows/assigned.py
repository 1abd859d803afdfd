"""Which windows of an aligned kind a row is in, as SQL: subqueries, one around the other, that give rows their windows.

A row stands once for each window it is in, with the columns START and END, in the type of the collection's own.
"""

from __future__ import annotations

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


def happening(name: str, on: str, of: ValueType, where: str) -> Source:
    """The rows of an input that are in windows, with AT: those of which it is told when they happened."""
    column = f"`{name}`.`{on}`"
    at = column if of is ColumnType.INT else f"unix_micros(CAST({column} AS timestamp))"
    condition = f"{column} IS NOT NULL{f' AND ({where})' if where else ''}"
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
            placed, first, last = in_units(kind, rows)
    return placed.adding(**{START: typed(first, of), END: typed(last, of)})


def is_last(kind: Aligned) -> str:
    """Of a row that `assigned` gives, whether of the windows that its row is in this is the last to end."""
    match kind:
        case Hopping():
            return "_back = 0"
        case Cumulate():
            return f"_steps = {kind.size // kind.step}"
        case Tumbling() | Calendar():
            return "true"


def earliest_after(kind: Aligned, rows: Source, instant: str) -> tuple[Source, str, str]:
    """The rows, and of each, in microseconds, when the first window begins and ends that ends after an instant, which
    is SQL over the rows too (model/window/bounds.py). Null where that is."""
    match kind:
        case Tumbling():
            start = _floor(kind.size, kind.offset, instant)
            return rows, start, f"{start} + {kind.size}"
        case Hopping():
            start = f"{_floor(kind.advance, kind.offset, f'({instant} - {kind.size})')} + {kind.advance}"
            return rows, start, f"{start} + {kind.size}"
        case Cumulate():
            start = _floor(kind.size, kind.offset, instant)
            end = f"{_floor(kind.step, kind.offset, instant)} + {kind.step}"
            return rows, start, end
        case Calendar():
            return in_units(kind, rows, instant, "_open")


def _floor(size: int, offset: int, instant: str = AT) -> str:
    """The last multiple of a size, moved by an offset, that is not after an instant."""
    return f"{instant} - pmod({instant} - {offset % size}, {size})"


def _each(first: str, last: str) -> str:
    """A row for each whole number between two."""
    return f"explode(sequence(CAST({first} AS bigint), CAST({last} AS bigint)))"


def in_units(kind: Calendar, rows: Source, instant: str = AT, called: str = "") -> tuple[Source, str, str]:
    """The rows with more columns, which `called` begins, and when the unit that holds an instant begins and ends.

    A unit begins at the first instant at which clocks show its first day: where they are put forward at midnight,
    after that; where midnight comes twice, at the first. What they show of a day again after it had begun to be the
    next one belongs to the next, so that no instant is in two units."""
    unit, following = _UNITS[kind.unit]
    this, after, last, day = (f"{called}{name}" for name in ("_this", "_next", "_last", "_unit"))
    local = f"CAST(from_utc_timestamp(timestamp_micros({instant}), '{kind.zone}') AS date)"
    shown = rows.adding(**{day: unit.format(local)})
    once, twice = following.format(day), following.format(following.format(day))
    begins = {name: _begins(first, kind.zone) for name, first in ((this, day), (after, once), (last, twice))}
    placed = shown.adding(**begins)
    begin = f"CASE WHEN {instant} < {after} THEN {this} ELSE {after} END"
    end = f"CASE WHEN {instant} < {after} THEN {after} ELSE {last} END"
    return placed, begin, end


def _begins(day: str, zone: str) -> str:
    return f"unix_micros(CAST(to_utc_timestamp(CAST({day} AS timestamp), '{zone}') AS timestamp))"


def typed(micros: str, of: ValueType) -> str:
    return f"CAST({micros} AS bigint)" if of is ColumnType.INT else f"timestamp_micros({micros})"
