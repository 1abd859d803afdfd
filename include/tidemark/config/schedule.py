"""A collection's schedule: the boundaries that cut time into the intervals its files arrive by.

The one place where an interval is compared with a schedule. Whatever takes an interval from a person, a run of Airflow
or another program asks here: it is exactly one interval of the schedule, or is split into those it consists of, or
refused. A source path is rendered once an interval, so a wider one would count as read what nobody looked for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise, takewhile

from croniter import CroniterError, croniter

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.instant import EPOCH, MICROSECOND, format_instant, from_datetime
from tidemark.model.interval import Interval

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Names of schedules, as Airflow has them, with their cron expressions."""
MOST_INTERVALS = 10_000
"""A longer range is more likely a typing error than a wish."""
_SECOND = 1_000_000
_FOUR_YEARS = 1461 * 86_400 * _SECOND
_CHANCE = re.compile(r"(?i)(?<![a-z])[hr](?![a-z])")
"""Fields that represent a hashed or random number: no two calls would agree on the boundaries."""


@dataclass(frozen=True)
class Schedule:
    """A cron expression of five fields or a preset, in UTC. InvalidUsage if it is neither, or has no boundaries."""

    text: str

    def __post_init__(self) -> None:
        try:
            if len(self.expression.split()) != 5 or _CHANCE.search(self.expression):
                raise InvalidUsage("it has not five fields that say when")
            croniter(self.expression)
        except (CroniterError, ValueError) as error:
            raise InvalidUsage(f"schedule {self.text!r} is not a cron expression or preset: {error}") from None

    @property
    def expression(self) -> str:
        return PRESETS.get(self.text, self.text)

    def following(self, time: int) -> int:
        """The first boundary after `time`."""
        return next(self.after(time))

    def latest(self, time: int) -> int:
        """The last boundary at or before `time`."""
        try:
            # It counts in seconds: the boundary before the next second is the one at `time`, if it is one.
            before = croniter(self.expression, _moment(time - time % _SECOND + _SECOND)).get_prev(datetime)
        except (CroniterError, OverflowError):
            raise self._no_boundary(time) from None
        return from_datetime(before)

    def interval_from(self, lower: int) -> Interval:
        """The interval that starts at the boundary `lower`."""
        return Interval(lower, self.following(lower))

    def longest_from(self, lower: int) -> int:
        """The length of the longest interval from the boundary `lower` on, among those that are over within four years,
        one of which has a leap day; of the first MOST_INTERVALS of them, and of the first one however long it is."""
        ends = takewhile(lambda end: end <= lower + _FOUR_YEARS, islice(self.after(lower), MOST_INTERVALS))
        return max([self.following(lower) - lower, *(upper - begin for begin, upper in pairwise([lower, *ends]))])

    def last_before(self, time: int) -> Interval:
        """The last interval that is over at `time`."""
        upper = self.latest(time)
        return Interval(self.latest(upper - 1), upper)

    def split(self, interval: Interval) -> list[Interval]:
        """The intervals of the schedule that `interval` consists of, in order.

        Raises InvalidUsage, naming the nearest boundaries, if it begins or ends between two of them; and for more than
        MOST_INTERVALS.
        """
        for verb, time in (("begins", interval.lower), ("ends", interval.upper)):
            if (nearest := self.latest(time)) != time:
                raise InvalidUsage(
                    f"interval {interval} {verb} at {format_instant(time)}, between two boundaries of schedule "
                    f"{self.text}; write {format_instant(nearest)} or {format_instant(self.following(time))}"
                )
        return self.beginning(interval.lower, interval.upper)

    def beginning(self, lower: int, upper: int) -> list[Interval]:
        """The intervals that begin in `[lower, upper)`, in order. InvalidUsage for more than MOST_INTERVALS."""
        times = []
        for time in self.after(lower - 1):
            times.append(time)
            if time >= upper:
                break
            if len(times) > MOST_INTERVALS:
                raise InvalidUsage(
                    f"more than {MOST_INTERVALS} intervals of schedule {self.text!r}; give a shorter range"
                )
        return [Interval(*bounds) for bounds in pairwise(times)]

    def completed(self, lower: int, upper: int) -> list[Interval]:
        """The intervals that end in `(lower, upper]`, in order: what is complete below `upper` and was not below
        `lower`. None where both are in one interval. InvalidUsage for more than MOST_INTERVALS."""
        ended = self.latest(upper)
        return self.beginning(self.latest(lower), ended) if ended > lower else []

    def after(self, time: int) -> Iterator[int]:
        """The boundaries after `time`, ascending."""
        try:
            # From the second before the one after `time`: a boundary at a whole second is found, one at `time` is not.
            ticks = croniter(self.expression, _moment(time - time % _SECOND), ret_type=datetime)
            while True:
                yield from_datetime(ticks.get_next())
        except (CroniterError, OverflowError):
            raise self._no_boundary(time) from None

    def _no_boundary(self, time: int) -> InvalidUsage:
        return InvalidUsage(f"schedule {self.text!r} has no boundary near {format_instant(time)}")


def interval_ends(schedules: Sequence[Schedule], lower: int, upper: int) -> tuple[int, ...]:
    """Up to where collections of these schedules are complete together, at `lower` and whenever that moves on below
    `upper`: the earliest of the schedules' last interval ends. Ascending."""
    each = [
        [schedule.latest(lower), *takewhile(lambda time: time < upper, schedule.after(lower))] for schedule in schedules
    ]
    times = {lower}.union(*(own[1:] for own in each))
    return tuple(sorted({min(own[bisect_right(own, time) - 1] for own in each) for time in times}))


def check_bounds(collection: Collection) -> None:
    """Raise InvalidUsage, naming the nearest boundaries, if a collection's start or end is not on its schedule: the
    interval across it would never be ingested, and be waited for for ever."""
    landed = collection.landed
    schedule = Schedule(landed.schedule)
    for verb, time in (("starts", landed.start), ("ends", landed.end)):
        if time is not None and (nearest := schedule.latest(time)) != time:
            raise InvalidUsage(
                f"collection {collection.name} {verb} at {format_instant(time)}, between two intervals of its schedule "
                f"{landed.schedule}; write {format_instant(nearest)} or {format_instant(schedule.following(time))}"
            )


def _moment(time: int) -> datetime:
    return EPOCH + time * MICROSECOND
