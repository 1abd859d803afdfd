"""Units of the calendar as clocks in a zone show them: [first instant, first instant of the next), in microseconds.

A unit begins at the first instant at which the clock shows its first day, or a later one: where clocks are put forward
over midnight that is when they are; where they are put back over it, when midnight is reached for the first time. So
every instant is in one unit, and what a clock shows twice stays in the unit that had begun. An `offset` moves what the
clock shows then, on every day alike: with 6 hours a day begins when the clock first shows 06:00.

Outside the years that Python's dates have, the calendar is that of 400, 800, … years before or after: it repeats then,
with its weekdays and the rules of zones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from tidemark.model.instant import MICROSECOND, from_datetime
from tidemark.model.local_time import clock, first_shown

_CYCLE = 146_097 * 86_400_000_000
"""400 years, which are a whole number of weeks."""
_FIRST, _BEHIND = (from_datetime(datetime(year, 1, 1, tzinfo=UTC)) for year in (400, 9600))


class Unit(StrEnum):
    """Units of the calendar."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


class Weekday(StrEnum):
    """Days on which a week may begin."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


def unit_of(unit: Unit, zone: str, at: int, *, starts: Weekday = Weekday.MONDAY, offset: int = 0) -> tuple[int, int]:
    """The unit that an instant is in, however far away that is; weeks begin on `starts`."""
    cycles = 0
    if not _FIRST <= at < _BEHIND:
        cycles = (at - _FIRST) // _CYCLE if at < _FIRST else (at - _BEHIND) // _CYCLE + 1
    first, end = _unit_of_dates(_Days(unit, starts), zone, at - cycles * _CYCLE, offset * MICROSECOND)
    return first + cycles * _CYCLE, end + cycles * _CYCLE


def _unit_of_dates(days: _Days, zone: str, at: int, offset: timedelta) -> tuple[int, int]:
    first = days.first((clock(at, zone) - offset).date())
    end = _begins(days.next(first), offset, zone)
    while end <= at:  # the clock was put back over the beginning: it shows the last day again
        first = days.next(first)
        end = _begins(days.next(first), offset, zone)
    return _begins(first, offset, zone), end


def _begins(day: date, offset: timedelta, zone: str) -> int:
    return first_shown(datetime.combine(day, time()) + offset, zone)


@dataclass(frozen=True)
class _Days:
    """The first days of units."""

    unit: Unit
    starts: Weekday

    def first(self, day: date) -> date:
        """The first day of the unit that a day is in."""
        if self.unit is Unit.WEEK:
            return day - timedelta(days=(day.weekday() - list(Weekday).index(self.starts)) % 7)
        if self.unit is Unit.MONTH:
            return day.replace(day=1)
        if self.unit is Unit.QUARTER:
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        return day.replace(month=1, day=1) if self.unit is Unit.YEAR else day

    def next(self, first: date) -> date:
        """The first day of the unit after the one that begins on `first`."""
        longest = {Unit.DAY: 1, Unit.WEEK: 7, Unit.MONTH: 31, Unit.QUARTER: 92, Unit.YEAR: 366}[self.unit]
        return self.first(first + timedelta(days=longest))
