"""Rows ahead of the frontier: which of them go into parts of their own, so that a drain opens what is due.

Times are counted in buckets: the first ends at the frontier, the next is as wide as an interval, each one after it
twice as wide. Parts are cut between buckets, where that pays: a part that holds rows of today and of next year is
opened by every drain in between. Few rows, or rows that are due soon, stay with the others: a part of their own would
cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.model.instant import MAX_TIME

OPEN_ROWS = 1_000
"""Opening a part costs about as much as reading so many rows."""
SPARE_ROWS = 65_536
"""What one more part, or one more version, costs, in rows read: to save less than that does not pay."""
MOST_PARTS = 8
"""Parts that rows are cut into at once, at most, by each of their times: the last takes all that is farther ahead, and
is cut in turn when its time comes."""


def pays(drains: int, rows: int) -> bool:
    """Whether one more part pays if it saves `drains` drains from reading `rows` rows for nothing."""
    return drains * (OPEN_ROWS + rows) >= SPARE_ROWS


def bucket_starts(frontier: int, width: int) -> tuple[int, ...]:
    """Where the buckets beyond `frontier` begin, ascending; times are at most MAX_TIME."""
    starts: list[int] = []
    start, width = frontier, max(1, width)
    while start <= MAX_TIME:
        starts.append(start)
        start += width
        width *= 2
    return tuple(starts)


def cuts(counts: Sequence[int], starts: Sequence[int]) -> tuple[int, ...]:
    """Where to cut rows of which `counts[0]` are before `starts[0]` and `counts[i]` in the bucket from `starts[i - 1]`
    on: a part begins at each of the times returned, and one before the first."""
    found: list[int] = []
    first = rows = 0
    for bucket, count in enumerate(counts):
        if not count:
            continue
        if rows and len(found) < MOST_PARTS - 1 and pays(_drains(first, bucket), rows + count):
            found.append(starts[bucket - 1])
            rows = 0
        first = bucket if not rows else first
        rows += count
    return tuple(found)


def _drains(first: int, last: int) -> int:
    """How many drains go by between the beginning of one bucket and the end of another, if each takes an interval."""
    return int(2**last - (2 ** (first - 1) if first else 1))


@dataclass(frozen=True)
class Cut:
    """Where rows are cut into parts: by time, at `times`; those before the first of these, where facts are remembered,
    by event time, at `event_times`."""

    times: tuple[int, ...] = ()
    event_times: tuple[int, ...] = ()

    @property
    def parts(self) -> int:
        return 1 + len(self.times) + len(self.event_times)
