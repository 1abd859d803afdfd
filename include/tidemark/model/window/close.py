"""When windows close: one predicate, which says what may be shown as final and what comes late.

A frontier `close` says that no row that is on time comes below it. A window is closed when nothing on time can change
it: when the frontier has passed its end, and the grace. Whatever emits windows or judges
rows late asks here, so that a window is open to rows exactly as long as it is not shown as closed.
"""

from __future__ import annotations

from tidemark.model.window.kinds import Kind


def end_exclusive(kind: Kind, end: int) -> int:
    """The first instant at which a row does not change a window of that end: just past an end that belongs to the
    window; of sessions just past it too where a row exactly the gap after the last one still joins."""
    return end + 1 if kind.joins_at_end else end


def closes_at(kind: Kind, end: int, grace: int) -> int:
    """The first frontier at which a window of that end is closed."""
    return end_exclusive(kind, end) + grace


def is_closed(kind: Kind, end: int, grace: int, close: int) -> bool:
    """Whether a window of that end is closed for a frontier."""
    return closes_at(kind, end, grace) <= close


def frozen_from(kind: Kind, end: int, grace: int, max_lateness: int | None) -> int | None:
    """What is learned from this time on no longer changes the window. None: everything changes it."""
    return None if max_lateness is None else closes_at(kind, end, grace) + max_lateness


def is_frozen(kind: Kind, end: int, grace: int, max_lateness: int | None, learned: int) -> bool:
    """Whether what is learned at that time no longer changes a window of that end."""
    since = frozen_from(kind, end, grace, max_lateness)
    return since is not None and since <= learned
