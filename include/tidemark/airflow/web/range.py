"""A range of days that a page is asked about, as its address says it and as its form does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

from tidemark.airflow.web.markup import Markup, tag
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.derived_days import DAYS
from tidemark.model.collection import Landed, Origin
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.model.local_time import first_instant


@dataclass(frozen=True)
class Range:
    """Days from `first` to `last`, both included, by the clock of the collection's zone.

    InvalidUsage where the last is before the first.
    """

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidUsage(f"from {self.first} to {self.last}: the first day is later than the last; swap them")

    @property
    def address(self) -> str:
        """The query of a page about it."""
        return "?" + urlencode({"from": self.first, "to": self.last})

    def intervals(self, of: Origin, now: int) -> list[Interval]:
        """The intervals that begin in the range, of a landed collection's schedule between its start and its end; of a
        derived one UTC days. Those that are not over at `now` (µs) are left out. InvalidUsage for more than a run of
        Airflow could name."""
        landed = of if isinstance(of, Landed) else None
        schedule = Schedule.of(landed) if landed else DAYS
        lower, upper = (first_instant(day, schedule.zone) for day in (self.first, self.last + timedelta(days=1)))
        start = landed.start if landed else 0
        end = MAX_TIME if landed is None or landed.end is None else landed.end
        begin, behind = max(lower, start), min(upper, end, now)
        found = schedule.beginning(begin, behind) if begin < behind else []
        return [one for one in found if one.upper <= now]


def range_of(first: str, last: str) -> Range | None:
    """The range that an address names; None if it names none. InvalidUsage for what are no days."""
    if not first and not last:
        return None
    return Range(_day(first or last), _day(last or first))


def range_form(action: str, chosen: Range | None, says: str) -> Markup:
    """Two days to be filled in, and a button that leads to the page `action` about them."""
    values = [{"value": day} for day in (chosen.first, chosen.last)] if chosen else [{}, {}]
    first = tag("input", type="date", name_="from", required="required", **values[0])
    last = tag("input", type="date", name_="to", required="required", **values[1])
    return tag(
        "form",
        tag("label", "from ", first),
        " ",
        tag("label", "to ", last),
        " ",
        tag("button", says, type="submit"),
        action=action,
        method="get",
        class_="range",
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidUsage(f"{text[:40]!r} is no day; write 2013-01-31") from None
