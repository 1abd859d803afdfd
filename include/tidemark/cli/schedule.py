"""Data intervals as people name them: by a day or by a range of days, on the collection's schedule."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from tidemark.errors import InvalidUsage
from tidemark.model.interval import Interval
from tidemark.model.local_time import first_instant


def intervals(schedule: str, first: str, last: str, timezone: str = "UTC") -> list[Interval]:
    """The intervals of a schedule (a cron expression or @daily and the like) that start on the days `first` to `last`
    of a time zone, both included. InvalidUsage if there are none, or for what is not a day or not a schedule."""
    from tidemark.config.schedule import Schedule

    starts, ends = _day(first), _day(last) + timedelta(days=1)
    if ends <= starts:
        raise InvalidUsage(f"--from {first} is later than --to {last}; swap them")
    by = Schedule(schedule, timezone)
    found = by.beginning(first_instant(starts, timezone), first_instant(ends, timezone))
    if not found:
        days = first if first == last else f"{first} to {last}"
        raise InvalidUsage(f"no interval of schedule {str(by)!r} starts on {days}; give --lower and --upper")
    return found


def _day(day: str) -> date:
    try:
        return datetime.strptime(f"{day} +0000", "%Y-%m-%d %z").date()
    except ValueError:
        raise InvalidUsage(f"not a day: {day!r}; write 2013-01-02") from None
