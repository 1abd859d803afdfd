"""What engines say that let go of rows and windows after a while, and so refuse windows that are open for longer.

Ours keeps the rows of a window wherever a column places it, and refuses windows on event times of an input whose
history is merged, however short they are (docs/decisions/0044)."""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration, parse_duration
from tidemark.model.window.calendar import Unit
from tidemark.model.window.close import end_exclusive
from tidemark.model.window.kinds import Calendar, Session, Window, WindowKind

DAY = parse_duration("1d")
MOST_DAYS = {Unit.DAY: 2, Unit.WEEK: 8, Unit.MONTH: 32, Unit.QUARTER: 93, Unit.YEAR: 367}
"""So many days of 24 hours no unit is longer than, also where clocks are put back."""


def least_retention(kind: WindowKind, grace: int) -> int:
    """For how long rows have to be kept, counted back from a frontier, for every window that it has not closed to be
    there with all its rows. Of sessions that is a row and its gap: what they hold before it is as long as they are."""
    if isinstance(kind, Session):
        reach = end_exclusive(kind, kind.gap)
    elif isinstance(kind, Calendar):
        reach = MOST_DAYS[kind.unit] * DAY
    else:
        reach = end_exclusive(kind, kind.size)
    return reach + grace


def require_retention(kind: WindowKind, grace: int, retention: int) -> None:
    """Raise InvalidUsage where rows are kept for less long than windows are open."""
    if retention < (least := least_retention(kind, grace)):
        raise InvalidUsage(
            f"rows are kept for {format_duration(retention)}; windows are open for up to {format_duration(least)}"
        )


def is_kept(window: Window, stream_time: int, retention: int) -> bool:
    """Whether a window can still be read where only those that start within `retention` of the newest time are kept."""
    return window.start > stream_time - retention
