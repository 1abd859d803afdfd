"""What lateness for windows is judged by: how far an input was complete when a row of it came.

The times of an input's rows do not say so by themselves. Rows that came on time have times within the interval they
came in, or its last instant where they bring none, and nothing of that interval was complete before all of it was. So a
row counts as learned at the last end of an interval that is not after its time: a function of the row's time and of the
schedule alone, whatever runs there were.

An example, with daily intervals. A row of the file of the 3rd says the time 3rd 17:00 and happened at 12:30. The hour
that holds it closes with the day, so the row was in time. In a file of the 4th, or late after the 3rd was complete, its
time is the 4th or later, and the hour had closed.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tidemark.model.window.kinds import AlignedKind
from tidemark.model.window.windows import Windows


@dataclass(frozen=True)
class Judging:
    """How late the rows of an input came.

    Rows with times below `known_from` came before whatever is judged: they were merged to later times, or were consumed
    before, and count wherever they are. `ends` are the ends of intervals from the last one not after `known_from` on,
    ascending. Windows that were frozen at `frozen_at` stay as they are stored: no row that is new counts in them, and
    which of the old ones do is not known any more (None: all windows are computed).
    """

    known_from: int
    ends: tuple[int, ...]
    frozen_at: int | None = None

    def learned(self, time: int) -> int | None:
        """Up to where the input was complete when a row of that time came; None: before whatever is judged."""
        at = bisect_right(self.ends, time)
        return self.ends[at - 1] if time >= self.known_from and at else None

    def stays(self, frozen: int | None) -> bool:
        """Whether a window that is frozen from that time on (None: never) stays as it is stored."""
        return frozen is not None and self.frozen_at is not None and frozen <= self.frozen_at


def judged_from(windows: Windows, complete_upto: int) -> int:
    """From which time on it must be known of a row when it came, for the windows that are open where an input is
    complete up to `complete_upto`. Rows that came before count in these only where they are in them: what was late then
    is in a window that was the first open one before. All that is new came later."""
    assert isinstance(windows.kind, AlignedKind)
    return windows.kind.earliest_from(windows.kind.earliest_after(complete_upto - windows.grace)) + windows.grace


def judging_of(
    ends: tuple[int, ...],
    *,
    since: int,
    merged: bool,
    consumed: int | None,
    only_new: bool,
    judged_from: int | None = None,
) -> Judging:
    """How rows of an input are judged that keeps its history from `since` on (`merged`: what is below was merged), and
    that was consumed up to `consumed` by what is stored (None: what is stored says nothing of it). With `only_new`
    windows are computed for what is new since then; for these rows are judged that came from `judged_from` on, where
    that is another time. `ends` reach from the last one not after the least of these.

    Where sliding windows start depends on who came before the end up to which what is stored was computed, and who came
    just then: so rows from that end on are judged, though they were consumed. And a window that was frozen by the
    instant after an end, below which rows are merged, may start where such a row was: it stays, too.
    """
    known_from = since + 1 if merged else 0
    known = Judging(0, ends)
    unknown_upto = known.learned(since) if merged else None
    before = None if consumed is None else known.learned(consumed)
    if only_new and before is not None:
        known_from = max(known_from, before if judged_from is None else judged_from)
    frozen_at = (
        before
        if only_new
        else None
        if consumed is None or unknown_upto is None or before is None
        else min(unknown_upto + 1, before)
    )
    return Judging(known_from, ends[max(0, bisect_right(ends, known_from) - 1) :], frozen_at)
