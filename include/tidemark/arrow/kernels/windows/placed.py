"""Rows once for each window of an aligned kind that they are in, by arithmetic (model/window/bounds.py), or by the
calendar of a zone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.instants import DAY, micros_of
from tidemark.arrow.kernels.aggregates.sums import Overflowed
from tidemark.arrow.rows.columns import Ints
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import WindowAssignment
from tidemark.definition.windows.assigned import END, START
from tidemark.errors import InvalidUsage
from tidemark.model.window.calendar import unit_of
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Tumbling

_MOST = 2**61
"""Instants and lengths, in microseconds, of which no sum of two is beyond 64 bits."""
_MOST_DAYS = 2**14
"""Days that have instants of one batch: a unit of the calendar is looked for day by day, in some microseconds."""
_MOST_ROWS = 2**22
"""How many rows of one batch come to at most, each once for each of its windows."""


def placed(rows: pa.RecordBatch, rule: WindowAssignment) -> pa.RecordBatch:
    """The rows that are in windows, with START and END, in the order they have. Raises Overflowed for what is left to
    SQL: instants that are too far away, and rows that are in too many windows."""
    rows = rows.filter(pc.is_valid(rows.column(rule.on)))
    of, start, end = _bounds(rule, _instants(rows.column(rule.on)))
    bound = arrow_type(rule.bound)
    found = rows if len(of) == rows.num_rows and isinstance(rule.kind, Tumbling | Calendar) else rows.take(pa.array(of))
    return found.append_column(START, pa.array(start).cast(bound)).append_column(END, pa.array(end).cast(bound))


def _instants(column: pa.Array) -> Ints:
    found = micros_of(column)
    if len(found) and max(abs(int(found.min())), abs(int(found.max()))) > _MOST:
        raise Overflowed("an instant is too far away")
    return found


def _bounds(rule: WindowAssignment, at: Ints) -> tuple[Ints, Ints, Ints]:
    """The windows of some instants, in order: of which instant each is, its start and its end."""
    kind = rule.kind
    if isinstance(kind, Calendar):
        return (np.arange(len(at)), *_units(kind, at))
    if kind.size > _MOST:
        raise Overflowed("a window is too long")
    if isinstance(kind, Tumbling):
        start = _grid(at, kind.size, kind.offset)
        return np.arange(len(at)), start, start + kind.size
    if isinstance(kind, Hopping):
        newest = _grid(at, kind.advance, kind.offset)
        many = np.maximum((kind.size - 1 - (at - newest)) // kind.advance + 1, 0)
        of, each = _repeated(many)
        start = newest[of] - (many[of] - 1 - each) * kind.advance
        return of, start, start + kind.size
    assert isinstance(kind, Cumulate)
    first = _grid(at, kind.size, kind.offset)
    steps = (at - first) // kind.step
    of, each = _repeated(kind.size // kind.step - steps)
    start = first[of]
    return of, start, start + (steps[of] + each + 1) * kind.step


def _units(kind: Calendar, at: Ints) -> tuple[Ints, Ints]:
    """The start and the end of the unit that each instant is in: those that the law has of each day of UTC with
    instants, from its beginning to its end (model/window/calendar.py)."""
    days = np.unique(at // DAY)
    if len(days) > _MOST_DAYS:
        raise Overflowed(f"rows have more than {_MOST_DAYS:,} days")
    units, upto = list[tuple[int, int]](), None
    try:
        for first in (days * DAY).tolist():
            upto = first if upto is None else max(first, upto)
            while upto < first + DAY:
                units.append(unit_of(kind.unit, kind.zone, upto))
                upto = units[-1][1]
    except InvalidUsage as error:
        raise Overflowed(str(error)) from None
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
    if step > _MOST:
        raise Overflowed("the distance between windows is too large")
    return at - (at - offset % step) % step
