"""Sliding windows that take late rows for a while only, by bands of starts.

From which start on a row counts follows from when it came (`sliding.first_start`), and rows came at ends of intervals.
So between two of these starts, in a *band*, every window holds what had come by one time: within a band windows are
those of plain rows: ranges of cells, whose bounds follow from the rows. A row goes to each band in which a window may
hold it, or begins just after it. So the cost is linear in the rows, each as often as intervals end in a window's size,
and once or twice more.

Which windows there are follows, too: a row that is late for whatever window could hold it is in no band, so that it
opens none; one that is not is in the band of the window that ends with it if it was in time for that, and always in
the one of the window just after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.model.window.kinds import Sliding
from tidemark.model.window.sliding import first_start


@dataclass(frozen=True)
class Bands:
    """The bands of a kind of windows: `bounds` are the starts at which one begins, ascending; below the first is one
    more. Windows take rows for `lateness` after they closed, with a `grace`."""

    kind: Sliding
    grace: int
    lateness: int
    bounds: tuple[int, ...]

    @classmethod
    def of(cls, kind: Sliding, grace: int, lateness: int, learned: Iterable[int]) -> Bands:
        """The bands where rows came at these times."""
        firsts = {first_start(kind, grace, lateness, time) for time in learned}
        return cls(kind, grace, lateness, tuple(sorted(firsts)))

    def first(self, learned: int) -> int:
        """The least start of the windows that what came then counts in."""
        return first_start(self.kind, self.grace, self.lateness, learned)

    def band(self, start: int) -> int:
        """The band of windows that start there."""
        return bisect_right(self.bounds, start)

    def reached(self, at: int, learned: int | None) -> range:
        """The bands in which a row at an instant is; none if it came too late for all of them. None: it came in time
        for whatever holds it."""
        start = at - self.kind.size if learned is None else max(at - self.kind.size, self.first(learned))
        return range(self.band(start), self.band(at + 1) + 1) if start <= at else range(0)

    def frozen_count(self, frozen: int | None) -> int:
        """How many bands, from the first on, hold no window but such as were frozen at a time (None: there is none)."""
        return 0 if frozen is None else self.band(self.first(frozen))
