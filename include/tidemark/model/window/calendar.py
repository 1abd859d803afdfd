"""Units of the calendar as clocks in a zone show them: [first instant, first instant of the next), in microseconds.

A unit begins at the first instant at which the clock shows its first day, or a later one: where clocks are put forward
over midnight that is when they are; where they are put back over it, when midnight is reached for the first time. So
every instant is in one unit, and what a clock shows twice stays in the unit that had begun.

Outside the years that Python's dates have, the calendar is that of 400, 800, … years before or after: it repeats then,
with its weekdays and the rules of zones.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache

from tidemark.model.instant import EPOCH, MICROSECOND, from_datetime
from tidemark.model.window.zone import zone_named

_CYCLE = 146_097 * 86_400_000_000
"""400 years, which are a whole number of weeks."""
_FIRST, _BEHIND = (from_datetime(datetime(year, 1, 1, tzinfo=UTC)) for year in (400, 9600))


class Unit(StrEnum):
    """Units of the calendar. Weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


def unit_of(unit: Unit, zone: str, at: int) -> tuple[int, int]:
    """The unit that an instant is in, however far away that is."""
    cycles = 0
    if not _FIRST <= at < _BEHIND:
        cycles = (at - _FIRST) // _CYCLE if at < _FIRST else (at - _BEHIND) // _CYCLE + 1
    first, end = _unit_of_dates(unit, zone, at - cycles * _CYCLE)
    return first + cycles * _CYCLE, end + cycles * _CYCLE


def _unit_of_dates(unit: Unit, zone: str, at: int) -> tuple[int, int]:
    day = (EPOCH + at * MICROSECOND).astimezone(zone_named(zone)).date()
    first = first_day(unit, day)
    end = first_instant(next_first_day(unit, first), zone)
    while end <= at:  # the clock was put back over midnight: it shows the last day again
        first = next_first_day(unit, first)
        end = first_instant(next_first_day(unit, first), zone)
    return first_instant(first, zone), end


def first_day(unit: Unit, day: date) -> date:
    """The first day of the unit that a day is in."""
    if unit is Unit.WEEK:
        return day - timedelta(days=day.weekday())
    if unit is Unit.MONTH:
        return day.replace(day=1)
    if unit is Unit.QUARTER:
        return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
    return day.replace(month=1, day=1) if unit is Unit.YEAR else day


def next_first_day(unit: Unit, first: date) -> date:
    """The first day of the unit after the one that begins at `first`."""
    longest = {Unit.DAY: 1, Unit.WEEK: 7, Unit.MONTH: 31, Unit.QUARTER: 92, Unit.YEAR: 366}[unit]
    return first_day(unit, first + timedelta(days=longest))


@lru_cache(maxsize=4096)
def first_instant(day: date, zone: str) -> int:
    """When clocks in a zone first show a day, or a later one."""
    here = zone_named(zone)
    midnight = datetime.combine(day, time(), here)
    found = from_datetime(midnight.astimezone(UTC))
    if (EPOCH + found * MICROSECOND).astimezone(here).replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return found
    # Midnight was left out. By the offset before the change it is not before it, by the offset after it not after it.
    earliest = from_datetime(midnight.replace(fold=1).astimezone(UTC))
    while earliest < found:
        middle = (earliest + found) // 2
        if (EPOCH + middle * MICROSECOND).astimezone(here).date() >= day:
            found = middle
        else:
            earliest = middle + 1
    return found
