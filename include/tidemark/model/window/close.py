"""When windows close: one predicate, which says what may be told as final and what comes late.

A frontier `close` says that no row that is on time comes below it. A window is closed when nothing on time can change
it: when the frontier has passed its end, and the grace. Whatever emits windows, judges rows late or lets go of windows
asks here, so that a window is open to rows exactly as long as it is not told as closed.
"""

from __future__ import annotations

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration, parse_duration
from tidemark.model.window.bounds import Window
from tidemark.model.window.kind import Calendar, Session, Unit, WindowKind

DAY = parse_duration("1d")
MOST_DAYS = {Unit.DAY: 2, Unit.WEEK: 8, Unit.MONTH: 32, Unit.QUARTER: 93, Unit.YEAR: 367}
"""So many days of 24 hours no unit is longer than, also where clocks are put back."""


def end_exclusive(kind: WindowKind, end: int) -> int:
    """The first instant at which a row does not change a window of that end: just past an end that belongs to the
    window; of sessions just past it too where a row exactly the gap after the last one still joins."""
    joins_at_end = kind.inclusive or (isinstance(kind, Session) and kind.exact_gap_merges)
    return end + 1 if joins_at_end else end


def closes_at(kind: WindowKind, end: int, grace: int) -> int:
    """The first frontier at which a window of that end is closed."""
    return end_exclusive(kind, end) + grace


def is_closed(kind: WindowKind, end: int, grace: int, close: int) -> bool:
    """Whether a window of that end is closed for a frontier."""
    return closes_at(kind, end, grace) <= close


def frozen_from(kind: WindowKind, end: int, grace: int, max_lateness: int | None) -> int | None:
    """What is learned from this time on changes the window no more. None: everything changes it."""
    return None if max_lateness is None else closes_at(kind, end, grace) + max_lateness


def is_frozen(kind: WindowKind, end: int, grace: int, max_lateness: int | None, learned: int) -> bool:
    """Whether what is learned at that time changes a window of that end no more."""
    since = frozen_from(kind, end, grace, max_lateness)
    return since is not None and since <= learned


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
            f"rows are kept for {format_duration(retention)}; windows are open for up to {format_duration(least)}, the "
            "grace included: keep them for that long, or declare shorter windows"
        )


def is_kept(window: Window, stream_time: int, retention: int) -> bool:
    """Whether a window can still be read where only those that start within `retention` of the newest time are kept."""
    return window.start > stream_time - retention
