"""Windows of the calendar: [first instant of a unit, first instant of the next one)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.model.window.calendar import Unit, unit_of
from tidemark.model.window.kinds.fields import ZoneName
from tidemark.model.window.kinds.kind import SideBySide, Window
from tidemark.model.window.zone import zone_named

_LONGEST_UNIT = 367 * 86_400_000_000


@dataclass(frozen=True)
class Calendar(SideBySide):
    """Days, weeks (from Monday), months, quarters or years, as clocks in a zone show them. `calendar: day` is short for
    `{unit: day}`."""

    unit: Unit
    """What is a window."""
    zone: ZoneName = "UTC"
    """The time zone, as `America/New_York`: a day on which clocks change has 23 or 25 hours."""
    kind: Literal["calendar"] = "calendar"

    summary: ClassVar[str] = "Windows of the calendar: `day`, or `{unit: month, zone: America/New_York}`."

    def __post_init__(self) -> None:
        zone_named(self.zone)

    def earliest_after(self, at: int) -> Window:
        return Window(*unit_of(self.unit, self.zone, at))

    @property
    def reach(self) -> int:
        return _LONGEST_UNIT

    @property
    def called(self) -> str:
        return f"calendar windows of a {self.unit} in {self.zone}"

    @property
    def wrong_of_dates(self) -> str:
        if self.zone == "UTC":
            return ""
        return f"has no time of day, so that {self.zone} makes no difference; leave out the zone"
