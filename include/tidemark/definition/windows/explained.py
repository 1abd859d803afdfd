"""Windows in words: what they are, in how many a row is, when their rows are there, and what a late row costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tidemark.model.instant import format_duration
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Late, Windows
from tidemark.model.wording import counted


def most_windows(kind: WindowKind) -> int | None:
    """How many windows a row can change at most: so many rows of windows it takes back, so many it adds. None where
    that depends on other rows."""
    match kind:
        case Tumbling() | Calendar():
            return 1
        case Hopping():
            return -(-kind.size // kind.advance)
        case Cumulate():
            return kind.size // kind.step
        case Session():
            return 2 if kind.max_length is None else None
        case Sliding():
            return None
        case _:
            assert_never(kind)


def most_of_all(kind: WindowKind) -> int:
    """How many windows there are for each row, at most."""
    if isinstance(kind, Session):
        return 1
    return most_windows(kind) or 2  # of sliding ones the one that ends with it, and the one just after it


def reach(kind: WindowKind) -> str:
    """Which windows a row changes, where it is not told how many these are at most."""
    if isinstance(kind, Session):
        return (
            "at most 2 sessions, and where one is cut for its length those that follow within the gap: each begins "
            "where the one before was cut"
        )
    assert isinstance(kind, Sliding)
    return f"2 windows of its own, and one for each instant with rows within {format_duration(kind.size)} of it"


def explained_windows(windows: Windows) -> tuple[str, ...]:
    """Lines for people."""
    return tuple(_lines(windows))


def _lines(windows: Windows) -> Iterator[str]:
    by = f", for each {', '.join(windows.by)}" if windows.by else ", of all rows"
    yield f"{_called(windows.kind)} on {windows.on}{by}"
    most = most_windows(windows.kind)
    of = "session" if isinstance(windows.kind, Session) else "window"
    changed = reach(windows.kind) if most is None else f"at most {counted(most, of)}"
    changed += ": it may join two, or part one" if isinstance(windows.kind, Session) and most else ""
    corrects = "; one that comes late takes back the row of each, and adds the right one"
    yield f"a row changes {changed}{corrects if windows.counts_late_for is None else ''}"
    if (lateness := windows.counts_late_for) is not None:
        closed = f"been closed for {format_duration(lateness)}" if lateness else "closed"
        told = f"a row that comes once a {of} has {closed} changes it no more, and is counted"
        yield f"{told} where it joins no other" if of == "session" else told
        if windows.late is Late.NEXT_WINDOW:
            yield "a row that comes late for all of its windows is in the first one that is open when it comes"
    if windows.early:
        yield "a window is there as soon as it has rows, and changes until it closes"
    elif windows.grace:
        yield f"a window is there from {format_duration(windows.grace)} after its end on"
    else:
        yield "a window is there from its end on"


def _called(kind: WindowKind) -> str:
    match kind:
        case Tumbling():
            return f"tumbling windows of {format_duration(kind.size)}"
        case Hopping():
            return f"hopping windows of {format_duration(kind.size)} every {format_duration(kind.advance)}"
        case Cumulate():
            return f"cumulating windows of {format_duration(kind.size)} in steps of {format_duration(kind.step)}"
        case Calendar():
            return f"calendar windows of a {kind.unit} in {kind.zone}"
        case Sliding():
            return f"sliding windows of {format_duration(kind.size)}"
        case Session():
            return f"sessions with a gap of {format_duration(kind.gap)}"
        case _:
            assert_never(kind)
