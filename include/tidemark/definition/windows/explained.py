"""Windows in words: what they are, in how many a row is, when their rows are there, and what a late row costs."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.model.instant import format_duration
from tidemark.model.window.windows import Late, Windows


def explained_windows(windows: Windows) -> tuple[str, ...]:
    """Lines for people."""
    return tuple(_lines(windows))


def _lines(windows: Windows) -> Iterator[str]:
    by = f", for each {', '.join(windows.by)}" if windows.by else ", of all rows"
    kind, lateness = windows.kind, windows.counts_late_for
    yield f"{kind.called} on {windows.on}{by}"
    corrects = "; where one comes late, the row of each is retracted and the right one added"
    yield f"a row changes {kind.changes}{corrects if lateness is None else ''}"
    if lateness is not None:
        closed = f"been closed for {format_duration(lateness)}" if lateness else "closed"
        yield f"a row that comes once a {kind.noun} has {closed} no longer changes it, and is {kind.late_is_counted}"
        if windows.late is Late.NEXT_WINDOW:
            yield "a row that comes late for all of its windows is in the first one that is open when it comes"
    if windows.early:
        yield "a window is there as soon as it has rows, and changes until it closes"
    elif windows.grace:
        yield f"a window is there from {format_duration(windows.grace)} after its end on"
    else:
        yield "a window is there from its end on"
