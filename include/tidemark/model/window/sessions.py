"""Sessions: rows of one key of which each follows another within a gap."""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.model.window.kinds import Session, Window

Span = tuple[int, int]
"""The first and the last instant with rows."""


def spans(kind: Session, instants: Iterable[int]) -> list[Span]:
    """From where to where the sessions of one key reach that has rows at these instants, in order."""
    found: list[Span] = []
    for at in sorted(set(instants)):
        if found and together(kind, found[-1][1], at) and not is_full(kind, found[-1][0], at):
            found[-1] = found[-1][0], at
        else:
            found.append((at, at))
    return found


def sessions(kind: Session, instants: Iterable[int]) -> list[Window]:
    """The sessions of one key that has rows at these instants, in order."""
    return [session_of(kind, span) for span in spans(kind, instants)]


def session_of(kind: Session, span: Span) -> Window:
    """A session's bounds: it ends a gap after its last row, and no later than `max_length` after its first."""
    first, last = span
    end = last + kind.gap
    return Window(first, end if kind.max_length is None else min(end, first + kind.max_length))


def together(kind: Session, before: int, after: int) -> bool:
    """Whether neighbours in time are in one session."""
    distance = after - before
    return distance < kind.gap or (distance == kind.gap and kind.exact_gap_merges)


def is_full(kind: Session, first: int, at: int) -> bool:
    """Whether a session from its first row on ends before an instant for its length alone."""
    return kind.max_length is not None and at - first >= kind.max_length


def would_take(kind: Session, window: Window, at: int) -> bool:
    """Whether a row at an instant would be in a session of these bounds, or be together with its first or last row."""
    first, second = sorted((window, session_of(kind, (at, at))))
    if first.end != second.start:
        return first.end > second.start
    return kind.exact_gap_merges and not is_full(kind, first.start, second.start)


def merged(own: Iterable[Window], *, exact_gap_merges: bool = True) -> list[Window]:
    """The sessions of rows that have a gap each: `own` are their intervals, each from its instant to its gap after it.
    Those that overlap are one session. So are those that touch, unless `exact_gap_merges` is false."""
    found: list[Window] = []
    for start, end in sorted(own):
        if found and (start < found[-1].end or (start == found[-1].end and exact_gap_merges)):
            found[-1] = Window(found[-1].start, max(found[-1].end, end))
        else:
            found.append(Window(start, end))
    return found
