"""Which windows a row is in, as Spark SQL: one query for each kind, over rows with AT, that gives each row once for
each window it is in, with START and END in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.oracles.sql_windows.aggregates import AT, END, START
from tidemark.model.window.calendar import Unit
from tidemark.model.window.kinds import AlignedKind, Calendar, Cumulate, Hopping, Session, Sliding, Tumbling

_UNITS = {
    Unit.DAY: ("{}", "date_add({}, 1)"),
    Unit.WEEK: ("trunc({}, 'WEEK')", "date_add({}, 7)"),
    Unit.MONTH: ("trunc({}, 'MONTH')", "add_months({}, 1)"),
    Unit.QUARTER: ("trunc({}, 'QUARTER')", "add_months({}, 3)"),
    Unit.YEAR: ("trunc({}, 'YEAR')", "add_months({}, 12)"),
}
"""Of each unit the first day of the one that a date is in, and of the next one."""


@dataclass(frozen=True)
class Rows:
    """A query that gives rows."""

    sql: str

    def adding(self, where: str = "", **columns: str) -> Rows:
        """The rows for which a condition holds, with more columns."""
        more = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return Rows(f"SELECT *, {more} FROM ({self.sql}){f' WHERE {where}' if where else ''}")


def placed(kind: AlignedKind, rows: Rows) -> Rows:
    """The rows of an aligned kind's windows."""
    match kind:
        case Tumbling():
            found = rows.adding(**{START: _floor(AT, kind.size, kind.offset)})
            return found.adding(**{END: f"{START} + {kind.size}"})
        case Hopping():
            found = rows.adding(_newest=_floor(AT, kind.advance, kind.offset))
            back = _each("0", f"({kind.size - 1} - ({AT} - _newest)) DIV {kind.advance}")
            found = found.adding(where=f"{AT} - _newest < {kind.size}", _back=back)
            found = found.adding(**{START: f"_newest - _back * {kind.advance}"})
            return found.adding(**{END: f"{START} + {kind.size}"})
        case Cumulate():
            found = rows.adding(**{START: _floor(AT, kind.size, kind.offset)})
            steps = _each(f"({AT} - {START}) DIV {kind.step} + 1", str(kind.size // kind.step))
            return found.adding(_steps=steps).adding(**{END: f"{START} + _steps * {kind.step}"})
        case Calendar():
            return in_units(kind, rows, AT, START, END)


def open_at(kind: AlignedKind, rows: Rows, instant: str, start: str, end: str) -> Rows:
    """The rows, with the first window that ends after an instant (the kind's `earliest_after`)."""
    match kind:
        case Tumbling():
            found = rows.adding(**{start: _floor(instant, kind.size, kind.offset)})
            return found.adding(**{end: f"{start} + {kind.size}"})
        case Hopping():
            before = _floor(f"({instant} - {kind.size})", kind.advance, kind.offset)
            return rows.adding(**{start: f"{before} + {kind.advance}"}).adding(**{end: f"{start} + {kind.size}"})
        case Cumulate():
            step = _floor(instant, kind.step, kind.offset)
            return rows.adding(**{start: _floor(instant, kind.size, kind.offset), end: f"{step} + {kind.step}"})
        case Calendar():
            return in_units(kind, rows, instant, start, end)


def in_units(kind: Calendar, rows: Rows, instant: str, start: str, end: str) -> Rows:
    """The rows, with the unit of a calendar that holds an instant. A unit begins at the first instant at which clocks
    show its first day or a later one, and what they show of a day again belongs to the next one."""
    first, following = _UNITS[kind.unit]
    day = f"{start}_day"
    local = f"CAST(from_utc_timestamp(timestamp_micros({instant}), '{kind.zone}') AS date)"
    found = rows.adding(**{day: first.format(local)})
    bounds = [day, following.format(day), following.format(following.format(day))]
    begins = {f"{day}_{n}": _begins(bound, kind.zone) for n, bound in enumerate(bounds)}
    later = f"{instant} >= {day}_1"
    return found.adding(**begins).adding(
        **{start: f"IF({later}, {day}_1, {day}_0)", end: f"IF({later}, {day}_2, {day}_1)"}
    )


def slid(kind: Sliding, by: Sequence[str], rows: Rows) -> Rows:
    """The rows of sliding windows: of each instant the window that ends with it and the one just after it, joined with
    all rows that are in them."""
    instants = Rows(f"SELECT DISTINCT {_listed(by, AT)} FROM ({rows.sql}){_condition(kind)}")
    return joined(by, rows, starts(kind, by, instants, instants), f"r.{AT} BETWEEN w.{START} AND w.{END}")


def starts(kind: Sliding, by: Sequence[str], before: Rows, after: Rows) -> Rows:
    """The windows that end with some instants, and those just after others."""
    left = f"greatest({AT} - {kind.size}, 0)" if kind.clamp_start_at_zero else f"{AT} - {kind.size}"
    windows = Rows(
        f"SELECT {_listed(by, f'{left} AS {START}')} FROM ({before.sql}) "
        f"UNION SELECT {_listed(by, f'{AT} + 1 AS {START}')} FROM ({after.sql})"
    )
    return windows.adding(**{END: f"{START} + {kind.size}"})


def eligible(kind: Sliding, rows: Rows) -> Rows:
    """The rows that a window may contain."""
    return Rows(f"SELECT * FROM ({rows.sql}){_condition(kind)}")


def _condition(kind: Sliding) -> str:
    return f" WHERE {AT} >= 0" if kind.clamp_start_at_zero else ""


def in_sessions(kind: Session, by: Sequence[str], rows: Rows) -> Rows:
    """The rows of sessions: the instants of each key, in order, are folded to the sessions they make."""
    last, next_ = "element_at(found, -1)", "named_struct('_first', _next, '_last', _next)"
    fits = f"_next - {last}._last {'<=' if kind.exact_gap_merges else '<'} {kind.gap}"
    if kind.max_length is not None:
        fits += f" AND _next - {last}._first < {kind.max_length}"
    longer = f"named_struct('_first', {last}._first, '_last', _next)"
    grown = f"concat(slice(found, 1, size(found) - 1), array({longer}))"
    begun = "array(named_struct('_first', _instants[0], '_last', _instants[0]))"
    fold = f"aggregate(_instants, {begun}, (found, _next) -> IF({fits}, {grown}, concat(found, array({next_}))))"
    keys = f" GROUP BY {_listed(by)}" if by else " HAVING count(*) > 0"
    instants = f"SELECT {_listed(by, f'array_sort(collect_set({AT})) AS _instants')} FROM ({rows.sql}){keys}"
    each = f"SELECT {_listed(by, f'explode({fold}) AS _session')} FROM ({instants})"
    end = f"_session._last + {kind.gap}"
    if kind.max_length is not None:
        end = f"least({end}, _session._first + {kind.max_length})"
    shown = _listed(by, f"_session._first AS {START}", "_session._last AS _last", f"{end} AS {END}")
    return joined(by, rows, Rows(f"SELECT {shown} FROM ({each})"), f"r.{AT} BETWEEN w.{START} AND w._last")


def joined(by: Sequence[str], rows: Rows, windows: Rows, within: str) -> Rows:
    """The rows once for each window of their values of `by` that they are within; nulls are values."""
    same = " AND ".join([*(f"r.`{name}` <=> w.`{name}`" for name in by), within])
    return Rows(f"SELECT r.*, w.{START}, w.{END} FROM ({rows.sql}) r JOIN ({windows.sql}) w ON {same}")


def _listed(by: Sequence[str], *more: str) -> str:
    return ", ".join([*(f"`{name}`" for name in by), *more])


def _floor(instant: str, size: int, offset: int) -> str:
    """The last multiple of a size, moved by an offset, that is not after an instant."""
    return f"{instant} - pmod({instant} - {offset % size}, {size})"


def _each(first: str, last: str) -> str:
    """A row for each whole number between two."""
    return f"explode(sequence(CAST({first} AS bigint), CAST({last} AS bigint)))"


def _begins(day: str, zone: str) -> str:
    return f"unix_micros(CAST(to_utc_timestamp(CAST({day} AS timestamp), '{zone}') AS timestamp))"
