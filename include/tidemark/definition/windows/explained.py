"""Windows in words: what they are, in how many a row is, when their rows are there, and what a late row costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tidemark.model.instant import format_duration
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import Windows
from tidemark.model.wording import counted


def most_windows(kind: WindowKind) -> int | None:
    """How many windows a row can change at most; None where that depends on other rows: one may join two sessions."""
    match kind:
        case Tumbling() | Calendar():
            return 1
        case Hopping():
            return -(-kind.size // kind.advance)
        case Cumulate():
            return kind.size // kind.step
        case Sliding() | Session():
            return None
        case _:
            assert_never(kind)


def explained_windows(windows: Windows) -> tuple[str, ...]:
    """Lines for people."""
    return tuple(_lines(windows))


def _lines(windows: Windows) -> Iterator[str]:
    by = f", for each {', '.join(windows.by)}" if windows.by else ", of all rows"
    yield f"{_called(windows.kind)} on {windows.on}{by}"
    most = most_windows(windows.kind)
    reach = "windows with rows near it" if most is None else f"at most {counted(most, 'window')}"
    yield f"a row changes {reach}; one that comes late takes back the row of each, and adds the right one"
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
