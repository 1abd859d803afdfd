"""When a collection's runs are: every interval of its schedule from start to end, none outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from airflow.sdk import CronDataIntervalTimetable
from croniter import CroniterBadCronError, CroniterBadDateError, croniter

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.instant import EPOCH, MICROSECOND, format_instant, from_datetime
from tidemark.model.interval import Interval


@dataclass(frozen=True)
class Schedule:
    """A cron expression or preset in UTC. InvalidUsage if it is neither."""

    text: str

    def __post_init__(self) -> None:
        try:
            croniter(self.expression)
        except (CroniterBadCronError, CroniterBadDateError) as error:
            raise InvalidUsage(f"schedule {self.text!r} is not a cron expression or preset: {error}") from None

    @property
    def expression(self) -> str:
        return str(self.timetable().expression)

    def timetable(self) -> CronDataIntervalTimetable:
        """With data intervals: a bare cron string would give every run an empty one (lower == upper)."""
        return CronDataIntervalTimetable(self.text, timezone="UTC")

    def following(self, time: int) -> int:
        """The first boundary after `time`."""
        return self._boundary(time, lambda ticks: ticks.get_next(datetime))

    def preceding(self, time: int) -> int:
        """The last boundary before `time`."""
        return self._boundary(time, lambda ticks: ticks.get_prev(datetime))

    def interval_from(self, lower: int) -> Interval:
        """The interval that starts at the boundary `lower`."""
        return Interval(lower, self.following(lower))

    def _boundary(self, time: int, step: Callable[[croniter], datetime]) -> int:
        try:
            return from_datetime(step(croniter(self.expression, moment(time))))
        except CroniterBadDateError:
            raise InvalidUsage(f"schedule {self.text!r} has no boundary near {format_instant(time)}") from None


def moment(time: int) -> datetime:
    """A time as Airflow takes it."""
    return EPOCH + time * MICROSECOND


def run_dates(collection: Collection) -> tuple[datetime, datetime | None]:
    """`start_date` and `end_date` of the collection's DAG, both the start of an interval: of its first and its last.

    Raises InvalidUsage if start or end is not on the schedule: the interval across it would never be ingested, and the
    seal would wait for it for ever.
    """
    schedule = Schedule(collection.schedule)
    _on_boundary(schedule, collection, "starts", collection.start)
    if collection.end is None:
        return moment(collection.start), None
    _on_boundary(schedule, collection, "ends", collection.end)
    return moment(collection.start), moment(schedule.preceding(collection.end))


def _on_boundary(schedule: Schedule, collection: Collection, verb: str, time: int) -> None:
    nearest = schedule.preceding(time + 1_000_000)  # croniter counts in seconds
    if nearest != time:
        raise InvalidUsage(
            f"collection {collection.name} {verb} at {format_instant(time)}, between two intervals of its schedule "
            f"{collection.schedule}; write {format_instant(nearest)} or {format_instant(schedule.following(time))}"
        )
