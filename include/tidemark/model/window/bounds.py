"""The bounds of windows, and which windows of the aligned kinds hold an instant."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from tidemark.model.window.calendar import unit_of
from tidemark.model.window.kind import Aligned, Calendar, Cumulate, Hopping, Tumbling


class Window(NamedTuple):
    """A window's bounds. The end belongs to sliding windows, and to no others."""

    start: int
    end: int


def windows_at(kind: Aligned, at: int, *, clamp_start_at_zero: bool = False) -> tuple[Window, ...]:
    """The windows that hold an instant, in order of start and end. None where a sampling kind leaves it out. With
    `clamp_start_at_zero` those that start below 0 do not exist, as Kafka has it.

    Raises InvalidUsage for an instant that no calendar has.
    """
    if isinstance(kind, Tumbling):
        start = _grid(at, kind.size, kind.offset)
        found = [Window(start, start + kind.size)]
    elif isinstance(kind, Hopping):
        newest = _grid(at, kind.advance, kind.offset)
        oldest = _grid(at - kind.size, kind.advance, kind.offset) + kind.advance
        found = [Window(start, start + kind.size) for start in range(oldest, newest + 1, kind.advance)]
    elif isinstance(kind, Cumulate):
        start = _grid(at, kind.size, kind.offset)
        first = start + (at - start) // kind.step * kind.step + kind.step
        found = [Window(start, end) for end in range(first, start + kind.size + 1, kind.step)]
    elif isinstance(kind, Calendar):
        found = [Window(*unit_of(kind.unit, kind.zone, at))]
    else:
        assert_never(kind)
    return tuple(window for window in found if not clamp_start_at_zero or window.start >= 0)


def earliest_after(kind: Aligned, at: int, *, clamp_start_at_zero: bool = False) -> Window:
    """The first window, by start and end, that ends after an instant."""
    if isinstance(kind, Hopping):
        start = _grid(at - kind.size, kind.advance, kind.offset) + kind.advance
        if clamp_start_at_zero and start < 0:
            start = _grid(-1, kind.advance, kind.offset) + kind.advance
        return Window(start, start + kind.size)
    if not isinstance(kind, Tumbling | Cumulate | Calendar):
        assert_never(kind)
    if clamp_start_at_zero and windows_at(kind, at)[0].start < 0:
        return earliest_after(kind, windows_at(kind, -1)[-1].end)
    return windows_at(kind, at)[0]


def earliest_from(kind: Aligned, window: Window) -> int:
    """The first instant for which a window is the `earliest_after`: the end of the one before it, by start and end."""
    match kind:
        case Hopping():
            return window.end - kind.advance
        case Cumulate():
            return window.end - kind.step
        case Tumbling() | Calendar():
            return window.start
        case _:
            assert_never(kind)


def _grid(at: int, step: int, offset: int) -> int:
    """The last of the instants n * step + offset that is not after `at`."""
    return (at - offset) // step * step + offset
