"""Whether a full snapshot has far fewer rows than the one before, which a person should look at before they go.

What is drained of a full snapshot deletes all rows that it does not have. So one that is empty after one that was not,
or that has less than a share of the rows of a large one, asks (docs/decisions/0070). It is compared with the last one
*before it in time* that is drained, or is to be and is not short itself; a correction with what its full snapshot said
until then. So the order in which days are read does not matter to the days that are drained one by one.

    >>> from tidemark.model.interval import Interval
    >>> counts = enumerate((4_000, 0, 1_900, 2_000))
    >>> days = [FullSnapshot(f"day {n}", Interval(n, n + 1), rows, net=rows) for n, rows in counts]
    >>> for name, each in compared(days, lambda snapshot: False, (), 0.5).items():
    ...     print(name, each.rows, each.before, each.least)
    day 0 4000 None None
    day 1 0 4000 2000
    day 2 1900 4000 2000
    day 3 2000 4000 2000
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import ceil

from tidemark.model.full_snapshot import Effect, FullSnapshot

LEAST_COMPARED = 1_000
"""Rows. Of fewer a share says little: a list of twelve may well become one of five. Only that none is left counts."""
MOST_REMEMBERED = 64
"""Drained full snapshots whose rows a state knows, so that one of an earlier day finds the one before it."""


@dataclass(frozen=True)
class SnapshotRows:
    """How many rows the drained full snapshot of a time has."""

    time: int
    rows: int


@dataclass(frozen=True)
class Compared:
    """The `rows` that a full snapshot has (None: not known), those of the one `before` (None: there is none, or it is
    not known), and the `least` that it must have to pass (None: any)."""

    rows: int | None
    before: int | None
    least: int | None

    @property
    def is_short(self) -> bool:
        """Whether it has fewer rows than it must have."""
        return self.rows is not None and self.least is not None and self.rows < self.least


def least_rows(before: int | None, min_share: float) -> int | None:
    """The rows that a full snapshot must have after one of `before` rows; None if any will do."""
    if not before or not min_share:
        return None
    # Exactly the share as it is written: 0.07 of 10,000 is 700.
    return ceil(Fraction(str(min_share)) * before) if before >= LEAST_COMPARED else 1


def compared(
    pending: Iterable[FullSnapshot],
    has_passed: Callable[[FullSnapshot], bool],
    drained: Iterable[SnapshotRows],
    min_share: float,
) -> dict[str, Compared]:
    """Compare what is learned of full snapshots, in the order in which it came, each with the one before it in time.

    Args:
        has_passed: Whether a gate has certified it, so that it counts however few its rows are.

    Returns:
        The comparisons by the ids of their batches. What is learned of one at the same instant is judged together.
    """
    content: dict[int, int | None] = {each.time: each.rows for each in drained}
    counts = {each.time: each.rows for each in drained}
    comparisons: dict[str, Compared] = {}

    def instant(snapshot: FullSnapshot) -> tuple[int, int]:
        return snapshot.time, snapshot.known

    for (time, _), group in groupby(sorted(pending, key=instant), key=instant):
        learned = list(group)
        before = None if learned[0].effect is Effect.ANNOUNCED else counts.get(time)
        before = _before(counts, time) if before is None else before
        for snapshot in learned:
            content[time] = _rows_of(snapshot, content.get(time))
        comparison = Compared(rows := content[time], before, least_rows(before, min_share))
        comparisons |= {snapshot.batch: comparison for snapshot in learned}
        if rows is None:
            counts.pop(time, None)
        elif not comparison.is_short or all(map(has_passed, learned)):
            counts[time] = rows
    return comparisons


def rows_remembered(
    drained: Iterable[SnapshotRows], learned: Iterable[FullSnapshot], since: int
) -> tuple[SnapshotRows, ...]:
    """What is known of drained full snapshots once those `learned` are drained, too: of the newest that are true at
    `since` or later, as something may still be learned of these, and of the last one before."""
    content: dict[int, int | None] = {each.time: each.rows for each in drained}
    for snapshot in learned:
        content[snapshot.time] = _rows_of(snapshot, content.get(snapshot.time))
    times = sorted(time for time, rows in content.items() if rows is not None)
    first = max(0, bisect_left(times, since) - 1)
    return tuple(SnapshotRows(time, content[time] or 0) for time in times[first:][-MOST_REMEMBERED:])


def _rows_of(snapshot: FullSnapshot, before: int | None) -> int | None:
    before = 0 if snapshot.effect is Effect.ANNOUNCED else before
    if snapshot.effect is Effect.WITHDRAWN or before is None or snapshot.net is None:
        return None
    return before + snapshot.net


def _before(counts: dict[int, int], time: int) -> int | None:
    """The rows of the last one before a time."""
    return max(((each, rows) for each, rows in counts.items() if each < time), default=(0, None))[1]
