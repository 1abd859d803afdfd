"""Windows of the calendar: [first instant of a unit, first instant of the next one)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration
from tidemark.model.window.calendar import Unit, Weekday, unit_of
from tidemark.model.window.kinds.fields import Offset, ZoneName
from tidemark.model.window.kinds.kind import SideBySide, Window
from tidemark.model.zone import zone_named

_DAY = 86_400_000_000
_LONGEST_UNIT = 367 * _DAY
_SHORTEST = {Unit.DAY: 1, Unit.WEEK: 7, Unit.MONTH: 28, Unit.QUARTER: 90, Unit.YEAR: 365}
"""Days of the shortest unit of each kind."""


@dataclass(frozen=True)
class Calendar(SideBySide):
    """Days, weeks, months, quarters or years, as clocks in a zone show them. `calendar: day` is short for
    `{unit: day}`."""

    unit: Unit
    """What is a window."""
    zone: ZoneName = "UTC"
    """The time zone, as `America/New_York`: a day on which clocks change has 23 or 25 hours."""
    starts: Weekday = Weekday.MONDAY
    """On which day a week begins: `sunday`."""
    clock_offset: Offset = 0
    """How long after midnight windows begin, by the clock of the zone: with `6h` a day is from 06:00 to 06:00, also
    where clocks change between. `-6h` is before midnight."""
    kind: Literal["calendar"] = "calendar"

    written_as: ClassVar[Mapping[str, str]] = {"clock_offset": "offset"}
    # Under a name of its own: the offsets of other kinds are elapsed time, and always in a fingerprint.
    summary: ClassVar[str] = "Windows of the calendar: `day`, or `{unit: month, zone: America/New_York}`."

    def __post_init__(self) -> None:
        zone_named(self.zone)
        if self.starts is not Weekday.MONDAY and self.unit is not Unit.WEEK:
            raise InvalidUsage(f"starts: {self.starts} is for weeks, and the unit is {self.unit}; leave it out")
        if abs(self.clock_offset) >= (shortest := _SHORTEST[self.unit] * _DAY):
            raise InvalidUsage(
                f"the offset of a {self.unit} is {format_duration(abs(self.clock_offset))}; it must be less than "
                f"{format_duration(shortest)}"
            )

    def earliest_after(self, at: int) -> Window:
        return Window(*self.bounds_at(at))

    def bounds_at(self, at: int) -> tuple[int, int]:
        """The bounds of the window that an instant is in."""
        return unit_of(self.unit, self.zone, at, starts=self.starts, offset=self.clock_offset)

    @property
    def reach(self) -> int:
        return _LONGEST_UNIT

    @property
    def called(self) -> str:
        starts = "" if self.starts is Weekday.MONDAY else f" from {self.starts.capitalize()}"
        side = "after" if self.clock_offset > 0 else "before"
        offset = f", {format_duration(abs(self.clock_offset))} {side} midnight" if self.clock_offset else ""
        return f"calendar windows of a {self.unit}{starts} in {self.zone}{offset}"

    @property
    def wrong_of_dates(self) -> str:
        if self.clock_offset:
            return "has no time of day, so that an offset makes no difference; leave out the offset"
        if self.zone == "UTC":
            return ""
        return f"has no time of day, so that {self.zone} makes no difference; leave out the zone"
