"""Data intervals as people name them: by a day or by a range of days, on the collection's schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidemark.errors import InvalidUsage
from tidemark.model.instant import from_datetime
from tidemark.model.interval import Interval


def intervals(schedule: str, first: str, last: str) -> list[Interval]:
    """The intervals of a schedule (a cron expression or @daily and the like, UTC) that start on the days `first` to
    `last`, both included. InvalidUsage if there are none, or for what is not a day or not a schedule."""
    from tidemark.config.schedule import Schedule

    starts, ends = _midnight(first), _midnight(last) + timedelta(days=1)
    if ends <= starts:
        raise InvalidUsage(f"--from {first} is later than --to {last}; swap them")
    found = Schedule(schedule).beginning(from_datetime(starts), from_datetime(ends))
    if not found:
        days = first if first == last else f"{first} to {last}"
        raise InvalidUsage(f"no interval of schedule {schedule!r} starts on {days}; give --lower and --upper")
    return found


def _midnight(day: str) -> datetime:
    try:
        return datetime.strptime(f"{day} +0000", "%Y-%m-%d %z").astimezone(UTC)
    except ValueError:
        raise InvalidUsage(f"not a day: {day!r}; write 2013-01-02") from None
