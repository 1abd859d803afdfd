"""Data intervals as people name them: by a day or by a range of days, on the collection's schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MICROSECOND, from_datetime
from tidemark.model.interval import Interval

_QUARTERLY = "0 0 1 */3 *"
"""The one preset of Airflow that cron libraries do not know."""
MOST_INTERVALS = 10_000
"""A longer range is more likely a typing error than a wish."""


def intervals(schedule: str, first: str, last: str) -> list[Interval]:
    """The intervals of a schedule (a cron expression or @daily and the like, UTC) that start on the days `first` to
    `last`, both included. InvalidUsage if there are none, or for what is not a day or not a schedule."""
    starts, ends = _midnight(first), _midnight(last) + timedelta(days=1)
    if ends <= starts:
        raise InvalidUsage(f"--from {first} is later than --to {last}; swap them")
    times = _times(schedule, starts, ends)
    found = [Interval(lower, upper) for lower, upper in pairwise(times)]
    if not found:
        days = first if first == last else f"{first} to {last}"
        raise InvalidUsage(f"no interval of schedule {schedule!r} starts on {days}; give --lower and --upper")
    return found


def _times(schedule: str, starts: datetime, ends: datetime) -> list[int]:
    """The schedule's times in `[starts, ends)` and the one after them, ascending."""
    from croniter import CroniterError, croniter

    try:
        ticks = croniter(_QUARTERLY if schedule == "@quarterly" else schedule, starts - MICROSECOND, ret_type=datetime)
        times = [from_datetime(ticks.get_next())]
        while times[-1] < from_datetime(ends) and len(times) <= MOST_INTERVALS:
            times.append(from_datetime(ticks.get_next()))
    except (CroniterError, ValueError) as error:
        raise InvalidUsage(f"schedule {schedule!r} has no days ({error}); give --lower and --upper") from None
    if len(times) > MOST_INTERVALS:
        raise InvalidUsage(f"more than {MOST_INTERVALS} intervals of schedule {schedule!r}; give a shorter range")
    return times


def _midnight(day: str) -> datetime:
    try:
        return datetime.strptime(f"{day} +0000", "%Y-%m-%d %z").astimezone(UTC)
    except ValueError:
        raise InvalidUsage(f"not a day: {day!r}; write 2013-01-02") from None
