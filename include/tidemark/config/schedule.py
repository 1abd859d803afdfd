"""A collection's schedule: the boundaries that cut time into the intervals its files arrive by.

The one place where an interval is compared with a schedule. Whatever takes an interval from a person, a run of Airflow
or another program asks here: it is exactly one interval of the schedule, or is split into those it consists of, or
refused. A source path is rendered once an interval, so a wider one would count as read what nobody looked for.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise, takewhile

from croniter import CroniterError, croniter

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.instant import EPOCH, MAX_TIME, MICROSECOND, from_datetime
from tidemark.model.interval import Interval
from tidemark.model.landed import Landed
from tidemark.model.local_time import clock, first_shown, format_local, offset
from tidemark.model.zone import zone_named

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
SEARCHED_YEARS = 5
"""Within so many years a zone whose clocks change has put them back, but for those that stop or begin to."""
_SECOND = 1_000_000
_ONE_SECOND = timedelta(seconds=1)
_DAY = 86_400 * _SECOND
_FOUR_YEARS = 1461 * 86_400 * _SECOND
_CHANCE = re.compile(r"(?i)(?<![a-z])[hr](?![a-z])")
"""Fields that represent a hashed or random number: no two calls would agree on the boundaries."""


@dataclass(frozen=True)
class Schedule:
    """A cron expression of five fields or a preset, by the clock of a zone.

    A boundary is the first instant at which the clock shows a time of the expression, or a later one. Only a schedule
    of every hour counts what the clock shows twice twice: an hour that is repeated is an interval of its own.
    InvalidUsage if the text is neither, has no boundaries, or the zone is not known.
    """

    text: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.zone != "UTC":
            zone_named(self.zone)
        try:
            if len(self.expression.split()) != 5 or _CHANCE.search(self.expression):
                raise InvalidUsage("it has not five fields that say when")
            croniter(self.expression)
        except (CroniterError, ValueError) as error:
            raise InvalidUsage(f"schedule {self.text!r} is not a cron expression or preset: {error}") from None

    @classmethod
    def of(cls, landed: Landed) -> Schedule:
        """The schedule of a collection."""
        return cls(landed.schedule, landed.timezone)

    def __str__(self) -> str:
        return self.text if self.zone == "UTC" else f"{self.text} in {self.zone}"

    @property
    def expression(self) -> str:
        return PRESETS.get(self.text, self.text)

    @property
    def is_of_every_hour(self) -> bool:
        """Whether each hour of its days has a boundary."""
        return croniter(self.expression).expanded[1] == ["*"]

    def text_of(self, time: int) -> str:
        """A time for people, as the clock of its zone shows it."""
        return format_local(time, self.zone)

    def following(self, time: int) -> int:
        """The first boundary after `time`."""
        return next(self.after(time))

    def latest(self, time: int) -> int:
        """The last boundary at or before `time`."""
        try:
            return self._latest(time)
        except (CroniterError, OverflowError):
            raise self._no_boundary(time) from None

    def interval_from(self, lower: int) -> Interval:
        """The interval that starts at the boundary `lower`."""
        return self._interval(lower, self.following(lower))

    def longest_from(self, lower: int) -> int:
        """The length of the longest interval from the boundary `lower` on, among those that are over within four years,
        one of which has a leap day; of the first MOST_INTERVALS of them, and of the first one however long it is."""
        ends = takewhile(lambda end: end <= lower + _FOUR_YEARS, islice(self.after(lower), MOST_INTERVALS))
        return max([self.following(lower) - lower, *(upper - begin for begin, upper in pairwise([lower, *ends]))])

    def last_before(self, time: int) -> Interval:
        """The last interval that is over at `time`."""
        upper = self.latest(time)
        return self._interval(self.latest(upper - 1), upper)

    def split(self, interval: Interval) -> list[Interval]:
        """The intervals of the schedule that `interval` consists of, in order.

        Raises InvalidUsage, naming the nearest boundaries, if it begins or ends between two of them; and for more than
        MOST_INTERVALS.
        """
        for verb, time in (("begins", interval.lower), ("ends", interval.upper)):
            if (nearest := self.latest(time)) != time:
                raise InvalidUsage(
                    f"interval {interval.in_zone(self.zone)} {verb} at {self.text_of(time)}, between two boundaries of "
                    f"schedule {self}; write {self.text_of(nearest)} or {self.text_of(self.following(time))}"
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
        return [self._interval(*bounds) for bounds in pairwise(times)]

    def completed(self, lower: int, upper: int) -> list[Interval]:
        """The intervals that end in `(lower, upper]`, in order: what is complete below `upper` and was not below
        `lower`. None where both are in one interval. InvalidUsage for more than MOST_INTERVALS."""
        ended = self.latest(upper)
        return self.beginning(self.latest(lower), ended) if ended > lower else []

    def repeated_hour(self, lower: int, upper: int | None) -> tuple[Interval, Interval, Interval] | None:
        """Find the first two intervals in `[lower, upper)` that a clock which is put back shows in the same hour.

        Returns: The interval before them, and both. None for a schedule that is not of every hour, and where clocks
            are not put back within SEARCHED_YEARS.
        """
        if self.zone == "UTC" or not self.is_of_every_hour:
            return None
        behind = min(lower + SEARCHED_YEARS * 366 * _DAY, MAX_TIME if upper is None else upper)
        while lower < behind:
            change = self._first_change(lower, min(lower + _DAY, behind))
            if change is not None and (back := offset(change - 1, self.zone) - offset(change, self.zone)) > 0:
                again = self.following(change - 1)
                first = self.latest(again - back)
                before = self.latest(first - 1)
                if again < behind and before >= 0:
                    return self.interval_from(before), self.interval_from(first), self.interval_from(again)
            lower += _DAY
        return None

    def after(self, time: int) -> Iterator[int]:
        """The boundaries after `time`, ascending."""
        try:
            if self.zone == "UTC":
                yield from map(from_datetime, self._ticks(EPOCH + (time - time % _SECOND) * MICROSECOND))
            elif self.is_of_every_hour:
                yield from self._every_hour_after(time)
            else:
                yield from self._by_clock_after(time)
        except (CroniterError, OverflowError):
            raise self._no_boundary(time) from None

    def _interval(self, lower: int, upper: int) -> Interval:
        return Interval(lower, upper).in_zone(self.zone)

    def _ticks(self, wall: datetime) -> Iterator[datetime]:
        """The times of the expression after one, in whole seconds."""
        # From the second before the one after it: a boundary at a whole second is found, one at that time is not.
        ticks = croniter(self.expression, wall, ret_type=datetime)
        while True:
            yield ticks.get_next()

    def _tick_at_or_before(self, wall: datetime) -> datetime:
        # It counts in seconds: what is before the next second is at this time, if anything is.
        tick: datetime = croniter(self.expression, wall.replace(microsecond=0) + _ONE_SECOND).get_prev(datetime)
        return tick

    def _by_clock_after(self, time: int) -> Iterator[int]:
        last = time
        for tick in self._ticks(clock(time - time % _SECOND, self.zone)):
            # Several that were left out are one, and what is shown again is not after its first time.
            if (boundary := first_shown(tick, self.zone)) > last:
                yield boundary
                last = boundary

    def _every_hour_after(self, time: int) -> Iterator[int]:
        while True:
            ahead = offset(time, self.zone)
            for tick in self._ticks(clock(time - time % _SECOND, self.zone)):
                boundary = from_datetime(tick) - ahead
                change = self._first_change(time, boundary)
                if change is None:
                    yield boundary
                    time = boundary
                    continue
                if self._is_boundary(change):
                    yield change
                time = change
                break

    def _latest(self, time: int) -> int:
        if self.zone == "UTC":
            return from_datetime(self._tick_at_or_before(EPOCH + time * MICROSECOND))
        if self.is_of_every_hour:
            boundary = from_datetime(self._tick_at_or_before(clock(time, self.zone))) - offset(time, self.zone)
            change = self._first_change(boundary, time)
            if change is None or change == boundary:
                return boundary
            return change if self._is_boundary(change) else self._latest(change - 1)
        # The clock may have been put back: what it showed before was after what it shows now.
        ahead = max(offset(at, self.zone) for at in (time, max(0, time - _DAY)))
        tick = self._tick_at_or_before((EPOCH + (time + ahead) * MICROSECOND).replace(tzinfo=None))
        while (boundary := first_shown(tick, self.zone)) > time:
            tick = self._tick_at_or_before(tick - _ONE_SECOND)
        return boundary

    def _first_change(self, lower: int, upper: int) -> int | None:
        """When clocks are changed first in `(lower, upper]`; None if they are not."""
        before = offset(lower, self.zone)
        while lower < upper:
            step = min(lower + _DAY, upper)
            if offset(step, self.zone) != before:
                return bisect_left(range(step), True, lower, key=lambda at: offset(at, self.zone) != before)
            lower = step
        return None

    def _is_boundary(self, change: int) -> bool:
        """Whether a change of the clock is a boundary: the clock shows a time of the expression then, or would have."""
        walls = [EPOCH + (change + offset(at, self.zone)) * MICROSECOND for at in (change, change - 1)]
        return any(self._tick_at_or_before(wall) == wall for wall in walls)

    def _no_boundary(self, time: int) -> InvalidUsage:
        return InvalidUsage(f"schedule {self.text!r} has no boundary near {self.text_of(time)}")


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
    schedule = Schedule.of(landed)
    for verb, time in (("starts", landed.start), ("ends", landed.end)):
        if time is not None and (nearest := schedule.latest(time)) != time:
            raise InvalidUsage(
                f"collection {collection.name} {verb} at {schedule.text_of(time)}, between two intervals of its "
                f"schedule {schedule}; write {schedule.text_of(nearest)} or "
                f"{schedule.text_of(schedule.following(time))}"
            )
