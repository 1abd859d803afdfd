"""Times and durations as callers give them, in microseconds."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta
from typing import SupportsIndex

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, MICROSECOND, from_datetime, parse_duration, parse_instant

Time = str | date | datetime | SupportsIndex
"""A time: ISO 8601 text, a date (its first instant), a datetime (UTC if it names no zone) or microseconds."""
Duration = str | timedelta | SupportsIndex
"""A duration: text like `30m` or `7d`, a timedelta or microseconds."""


def micros(time: Time, name: str = "time") -> int:
    """A time in microseconds since the epoch, UTC. What is finer (a pandas.Timestamp may be) is cut off.

    Raises InvalidUsage for what is no time or before the epoch; `name` is what the argument is called.
    """
    if isinstance(time, str):
        return parse_instant(time)
    try:
        found = _micros(time)
    except (TypeError, ValueError):
        raise InvalidUsage(
            f"{name} is {time!r} ({type(time).__name__}); write text like '2013-01-02T03:04:05Z', a datetime, or whole "
            "microseconds since 1970"
        ) from None
    if not 0 <= found <= MAX_TIME:
        raise InvalidUsage(f"{name} {time!r} is outside [1970-01-01, {MAX_TIME} µs]")
    return found


def _micros(time: date | datetime | SupportsIndex) -> int:
    """TypeError or ValueError for what is no time: floats, truths, pandas.NaT."""
    if isinstance(time, datetime):
        return from_datetime(time)
    if isinstance(time, date):
        return from_datetime(datetime(time.year, time.month, time.day, tzinfo=UTC))
    if isinstance(time, bool):
        raise TypeError
    return operator.index(time)


def lasting(duration: Duration, name: str = "lasts") -> int:
    """A duration in microseconds. Raises InvalidUsage for what is none."""
    if isinstance(duration, timedelta):
        if duration < timedelta(0):
            raise InvalidUsage(f"{name} is {duration}; it must not be negative")
        return duration // MICROSECOND
    if isinstance(duration, str):
        return parse_duration(duration)
    try:
        if isinstance(duration, bool):
            raise TypeError
        return parse_duration(operator.index(duration))
    except TypeError:
        raise InvalidUsage(
            f"{name} is {duration!r} ({type(duration).__name__}); write '12h', '7d', a timedelta or whole microseconds"
        ) from None
