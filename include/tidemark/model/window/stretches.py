"""Stretches of one key's rows by which some of its windows can be judged without the others: a key of many rows is
judged in parts, and what one costs is known before.

A stretch says where its windows start, and which rows decide what these are: those in them, and those next to them,
which decide where sliding windows and sessions begin. An example, sliding windows of 10 µs: of the windows that start
from 20 to 29, the rows from 19 to 39.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tidemark.model.window.contents import Rule
from tidemark.model.window.kinds import AlignedKind, Session, Sliding, Window
from tidemark.model.window.sessions import together
from tidemark.model.window.windows import Late

_FEWEST_ROWS = 16


class Stretch(NamedTuple):
    """The windows that start at `first` (None: whenever) or later, and before `before`; the rows that decide them are
    those from `low` on and below `high`, by their numbers in order of their instants."""

    first: int | None
    before: int | None
    low: int
    high: int

    def has(self, window: Window) -> bool:
        """Whether a window is one of these."""
        late_enough = self.first is None or self.first <= window.start
        return late_enough and (self.before is None or window.start < self.before)


def stretches(rule: Rule, instants: Sequence[int], most: int) -> list[Stretch]:
    """Stretches that hold all windows of a key, each window in one, by the instants of its rows, ascending. Where it
    can be, none has many more than `most` rows."""
    kind, count = rule.kind, len(instants)
    if isinstance(kind, Session):
        cuts = [at for at in range(1, count) if not together(kind, instants[at - 1], instants[at])]
        ends = [*cuts, count]
        starts = [None, *(instants[at] for at in cuts), None]
        return [
            Stretch(first, before, low, high)
            for first, before, low, high in zip(starts[:-1], starts[1:], [0, *cuts], ends, strict=True)
        ]
    if rule.late is Late.NEXT_WINDOW or count <= _FEWEST_ROWS or (not isinstance(kind, Sliding) and count <= most):
        return [Stretch(None, None, 0, count)]
    firsts = sorted({instants[at] for at in range(0, count, _rows_together(kind, instants, most))})[1:]
    bounds = [None, *firsts, None]
    return [_reached(kind, instants, first, before) for first, before in pairwise(bounds)]


def stretch_of(rule: Rule, instants: Sequence[int], window: Window) -> Stretch:
    """A stretch that holds one window, or what would be it."""
    kind = rule.kind
    if rule.late is Late.NEXT_WINDOW:
        return Stretch(None, None, 0, len(instants))
    if not isinstance(kind, Session):
        return _reached(kind, instants, window.start, window.start + 1)
    low, high = bisect_left(instants, window.start), bisect_right(instants, window.end)
    while 0 < low < len(instants) and together(kind, instants[low - 1], instants[low]):
        low -= 1
    while 0 < high < len(instants) and together(kind, instants[high - 1], instants[high]):
        high += 1
    return Stretch(window.start, window.start + 1, low, high)


def reach_of(rule: Rule, window: Window) -> tuple[int, int] | None:
    """From which instant to which, both included, rows decide whether a window is there and what it holds; None where
    that may be any rows of its key. A session is known by its own rows and by that none is near them."""
    kind = rule.kind
    if rule.late is Late.NEXT_WINDOW:
        return None
    if isinstance(kind, Session):
        cut = kind.max_length is not None or rule.lateness is not None
        return None if cut else (window.start - kind.gap, window.end)
    back = 1 if isinstance(kind, Sliding) else 0
    return window.start - back, max(window.start, window.end)


def visits(rule: Rule, stretch: Stretch, instants: Sequence[int], times: int) -> int:
    """About how often a row is looked at when the law judges a stretch whose rows were learned at so many times."""
    kind, rows = rule.kind, stretch.high - stretch.low
    if isinstance(kind, Sliding):
        return rows * rows
    if isinstance(kind, Session):
        length = instants[stretch.high - 1] - instants[stretch.low] if rows else 0
        spans = 1 if kind.max_length is None else 1 + length // kind.max_length
        return rows * spans * (times if rule.lateness is not None else 1)
    return rows * kind.most_windows


def _rows_together(kind: Sliding | AlignedKind, instants: Sequence[int], most: int) -> int:
    """How many rows a stretch begins with: of sliding windows, which look at all of its rows each, as many as windows
    have."""
    if not isinstance(kind, Sliding):
        return max(1, most)
    span = instants[-1] - instants[0] + 1
    return max(_FEWEST_ROWS, min(most, len(instants) * (kind.size + 1) // span))


def _reached(kind: Sliding | AlignedKind, instants: Sequence[int], first: int | None, before: int | None) -> Stretch:
    back = 1 if isinstance(kind, Sliding) else 0
    low = 0 if first is None else bisect_left(instants, first - back)
    high = len(instants) if before is None else bisect_right(instants, before - 1 + kind.reach)
    return Stretch(first, before, low, max(low, high))
