"""Rows once for each window of an aligned kind that they are in, by arithmetic (model/window/bounds.py), or by the
calendar of a zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.instants import DAY, micros_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import WindowAssignment
from tidemark.definition.windows.explained import most_of_all
from tidemark.definition.windows.rows import END, START
from tidemark.model.window.calendar import unit_of
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Tumbling

_LEAST, _MOST = -(2**63), 2**63 - 1
_BEYOND = "a window near {} µs has a bound beyond 64 bits; leave such rows out by windows.where"
_MOST_DAYS = 2**14
"""Days that have instants of one batch: a unit of the calendar is looked for day by day, in some microseconds."""
_MOST_ROWS = 2**22
"""How many rows of one batch come to at most, each once for each of its windows."""


def placed(rows: pa.RecordBatch, rule: WindowAssignment) -> pa.RecordBatch:
    """The rows that are in windows, with START and END, in the order they have. Raises Overflowed where rows are in too
    many windows for one batch, and for a window whose bounds are beyond 64 bits."""
    rows = rows.filter(pc.is_valid(rows.column(rule.on)))
    of, start, end = _bounds(rule, micros_of(rows.column(rule.on)))
    found = rows if len(of) == rows.num_rows and isinstance(rule.kind, Tumbling | Calendar) else rows.take(pa.array(of))
    return in_window(found, rule, start, end)


def in_window(rows: pa.RecordBatch, rule: WindowAssignment, start: Ints, end: Ints) -> pa.RecordBatch:
    """Rows with these bounds of a window of each, in microseconds."""
    bound = arrow_type(rule.bound)
    return rows.append_column(START, pa.array(start).cast(bound)).append_column(END, pa.array(end).cast(bound))


def pieces(batches: Iterable[pa.RecordBatch], rule: WindowAssignment) -> Iterator[pa.RecordBatch]:
    """The same rows, so few at a time that those of each batch are not in too many windows, unless a row alone is."""
    most = _MOST_DAYS if isinstance(rule.kind, Calendar) else max(1, _MOST_ROWS // most_of_all(rule.kind))
    for rows in batches:
        for first in range(0, rows.num_rows, most):
            yield rows.slice(first, most)


def first_after(rule: WindowAssignment, instants: Ints) -> tuple[Ints, Ints]:
    """Start and end of the first window that ends after each of some instants (`bounds.earliest_after`). Raises as
    `placed`."""
    kind = rule.kind
    if isinstance(kind, Calendar):
        return _units(kind, instants)
    if isinstance(kind, Hopping):
        start = _plus(_grid(_minus(instants, kind.size), kind.advance, kind.offset), kind.advance)
        return start, _plus(start, kind.size)
    if isinstance(kind, Tumbling):
        start = _grid(instants, kind.size, kind.offset)
        return start, _plus(start, kind.size)
    if isinstance(kind, Cumulate):
        start = _grid(instants, kind.size, kind.offset)
        return start, _plus(_grid(instants, kind.step, kind.offset), kind.step)
    assert_never(kind)


def _bounds(rule: WindowAssignment, at: Ints) -> tuple[Ints, Ints, Ints]:
    """The windows of some instants, in order: of which instant each is, its start and its end."""
    kind = rule.kind
    if isinstance(kind, Calendar):
        return (np.arange(len(at)), *_units(kind, at))
    if isinstance(kind, Tumbling):
        start = _grid(at, kind.size, kind.offset)
        return np.arange(len(at)), start, _plus(start, kind.size)
    if isinstance(kind, Hopping):
        newest = _grid(at, kind.advance, kind.offset)
        many = np.maximum((kind.size - 1 - (at - newest)) // kind.advance + 1, 0)
        of, each = _repeated(many)
        start = _minus(newest[of], (many[of] - 1 - each) * kind.advance)
        return of, start, _plus(start, kind.size)
    if isinstance(kind, Cumulate):
        first = _grid(at, kind.size, kind.offset)
        steps = (at - first) // kind.step
        of, each = _repeated(kind.size // kind.step - steps)
        start = first[of]
        return of, start, _plus(start, (steps[of] + each + 1) * kind.step)
    assert_never(kind)


def _units(kind: Calendar, at: Ints) -> tuple[Ints, Ints]:
    """The start and the end of the unit that each instant is in: those that the law has of each day of UTC with
    instants, from its beginning to its end (model/window/calendar.py)."""
    days = np.unique(at // DAY)
    if len(days) > _MOST_DAYS:
        raise Overflowed(f"rows have more than {_MOST_DAYS:,} days")
    units, upto = list[tuple[int, int]](), None
    for first in (day * DAY for day in days.tolist()):
        upto = first if upto is None else max(first, upto)
        while upto < first + DAY:
            units.append(unit_of(kind.unit, kind.zone, upto))
            upto = units[-1][1]
    if units and (units[0][0] < _LEAST or units[-1][1] > _MOST):
        raise Overflowed(_BEYOND.format(int(at.min()) if units[0][0] < _LEAST else int(at.max())))
    bounds = np.array(units, np.int64).reshape(-1, 2)
    which = np.searchsorted(bounds[:, 0], at, "right") - 1
    return bounds[which, 0], bounds[which, 1]


def _repeated(many: Ints) -> tuple[Ints, Ints]:
    """Each place as often as it says, and which time it is, from 0."""
    if len(many) and int(many.max()) * len(many) > _MOST_ROWS:
        raise Overflowed("rows are in too many windows")
    of = np.repeat(np.arange(len(many)), many)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many)


def _grid(at: Ints, step: int, offset: int) -> Ints:
    """The last of the instants n * step + offset that is not after each."""
    return _minus(at, (at % step - offset % step) % step)


def _plus(at: Ints, more: Ints | int) -> Ints:
    """The sum, where `more` is nowhere below 0."""
    found = at + more
    if len(wrong := np.flatnonzero(found < at)):
        raise Overflowed(_BEYOND.format(int(at[wrong[0]])))
    return found


def _minus(at: Ints, less: Ints | int) -> Ints:
    """The difference, where `less` is nowhere below 0."""
    found = at - less
    if len(wrong := np.flatnonzero(found > at)):
        raise Overflowed(_BEYOND.format(int(at[wrong[0]])))
    return found
