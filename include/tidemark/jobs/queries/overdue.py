"""Which interval of a collection is overdue: over for longer than its file allows, and not sealed yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidemark.config.schedule import Schedule
from tidemark.model.collection import Collection
from tidemark.model.instant import format_instant, roughly
from tidemark.model.interval import Interval
from tidemark.model.local_time import format_local


@dataclass(frozen=True)
class Overdue:
    """The oldest interval of a collection that is overdue, since when, and where the last overdue interval ends. Times
    in microseconds; `complete_below` is up to where the collection was complete."""

    collection: str
    interval: Interval
    since: int
    upto: int
    complete_below: int

    def words(self, now: int) -> str:
        """One sentence that names the collection and the interval; `now` is in microseconds."""
        late = roughly(now - self.since)
        more = (
            f", and all up to {format_local(self.upto, self.interval.zone)}" if self.upto > self.interval.upper else ""
        )
        reached = f"complete below {format_instant(self.complete_below)}" if self.complete_below else "not sealed yet"
        return f"{self.collection}: {self.interval}{more} is overdue by {late}; the collection is {reached}"

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601."""
        times = {
            **{"lower": self.interval.lower, "upper": self.interval.upper, "since": self.since, "upto": self.upto},
            "complete_below": self.complete_below,
        }
        return {"collection": self.collection, **{name: format_instant(time) for name, time in times.items()}}


def overdue(name: str, complete_below: int, landed: Sequence[Collection], *, after: int, now: int) -> Overdue | None:
    """The oldest interval that ended more than `after` ago and is not complete below; None if none is. Pure.

    `landed` is the collection itself, or, of a derived one, the landed collections it is computed from: it is as
    complete as the least of these, so the interval that it waits for is the one that ends last. What a collection's
    grace holds back is not overdue for that, and one that has ended has no further interval. Times in microseconds.
    """
    waits = [interval for one in landed if (interval := _next_interval(one, complete_below)) is not None]
    if not waits:
        return None
    interval = max(waits, key=lambda one: one.upper)
    since = interval.upper + after
    if since > now:
        return None
    ends = (_last_end(one, now - after) for one in landed if _next_interval(one, complete_below) is not None)
    return Overdue(name, interval, since, max(interval.upper, min(ends)), complete_below)


def _next_interval(collection: Collection, complete_below: int) -> Interval | None:
    """The first interval that is not complete where all is complete below a time; None if there is none left."""
    landed = collection.landed
    if landed.end is not None and complete_below >= landed.end:
        return None
    schedule = Schedule.of(landed)
    lower = max(landed.start, schedule.latest(complete_below + landed.grace))
    return None if landed.end is not None and lower >= landed.end else schedule.interval_from(lower)


def _last_end(collection: Collection, time: int) -> int:
    """The end of the collection's last interval that is over at a time."""
    landed = collection.landed
    last = Schedule.of(landed).latest(time)
    return last if landed.end is None else min(last, landed.end)
