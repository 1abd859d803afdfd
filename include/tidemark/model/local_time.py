"""Times as clocks in a zone show them: the one place where a wall clock becomes an instant.

A wall clock is a datetime without a zone. Where clocks are put forward some of what they could show is left out, and
where they are put back they show it twice. So an instant is found by when the clock shows a time, or a later one, for
the first time.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from functools import lru_cache

from tidemark.errors import InvalidUsage
from tidemark.model.instant import EPOCH, MICROSECOND, format_instant, from_datetime, parse_instant
from tidemark.model.zone import zone_named


def clock(at: int, zone: str) -> datetime:
    """What clocks in a zone show at an instant. OverflowError outside the years 1 to 9999."""
    return moment_in(at, zone).replace(tzinfo=None)


def offset(at: int, zone: str) -> int:
    """How far clocks in a zone are ahead of UTC at an instant, in microseconds."""
    return from_datetime(clock(at, zone)) - at


@lru_cache(maxsize=4096)
def first_shown(wall: datetime, zone: str) -> int:
    """The first instant at which clocks in a zone show a time, or a later one."""
    if zone == "UTC":
        return from_datetime(wall)
    here = zone_named(zone)
    first = from_datetime(wall.replace(tzinfo=here).astimezone(UTC))
    if clock(first, zone) == wall:
        return first
    # It is left out. By the offset before the change it is not before it, by the offset after it not after it.
    earliest = from_datetime(wall.replace(tzinfo=here, fold=1).astimezone(UTC))
    while earliest < first:
        middle = (earliest + first) // 2
        if clock(middle, zone) >= wall:
            first = middle
        else:
            earliest = middle + 1
    return first


def first_instant(day: date, zone: str) -> int:
    """When a day begins in a zone. InvalidUsage for days that begin before 1970."""
    at = first_shown(datetime.combine(day, time()), zone)
    if at < 0:
        raise InvalidUsage(f"{day} in {zone} begins before 1970-01-01T00:00:00Z")
    return at


def parse_local(text: str, zone: str) -> int:
    """As `parse_instant`, but a date without a time is the beginning of that day in a zone."""
    at = parse_instant(text)
    if zone == "UTC":
        return at
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return at
    return first_instant(day, zone)


def format_local(micros: int, zone: str) -> str:
    """As `format_instant` in UTC, else with the offset of clocks in the zone: `2024-01-01T00:00:00-05:00`."""
    try:
        return format_instant(micros) if zone == "UTC" else moment_in(micros, zone).isoformat()
    except OverflowError:
        return format_instant(micros)


def moment_in(at: int, zone: str) -> datetime:
    """An instant as a datetime in a zone. OverflowError outside the years 1 to 9999."""
    return (EPOCH + at * MICROSECOND).astimezone(UTC if zone == "UTC" else zone_named(zone))
