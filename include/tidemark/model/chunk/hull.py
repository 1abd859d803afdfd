"""The hull of some parts: what a block of a parts table says of those below it, so that a read need not open it.

It is as wide as the parts together: what no row within the hull can be, no row of a part is. It has the names of a
part's own bounds, so one test judges both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidemark.model.chunk.bounds import Bounds, TimelineBounds, timeline_bounds, union
from tidemark.model.chunk.law import Chunk
from tidemark.model.key import Key


class Extent(Chunk, Protocol):
    """Where rows can be, and how many: what a part and a hull of parts have in common."""

    @property
    def rows(self) -> int: ...
    @property
    def timelines(self) -> tuple[TimelineBounds, ...]: ...


@dataclass(frozen=True)
class Hull:
    """The closed bounds of some parts, and what they add up to. A timeline is there if all of them have bounds of it,
    which are of one kind, also where a date became a timestamp."""

    parts: int
    rows: int
    bytes: int
    first_key: Key
    last_key: Key
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int
    timelines: tuple[TimelineBounds, ...] = ()

    def bounds_of(self, column_id: int) -> Bounds | None:
        """The bounds of a timeline among the rows of all parts; None if they are not known of each."""
        return timeline_bounds(self.timelines, column_id)


def hull_of(some: Sequence[Extent], *, parts: int, bytes: int) -> Hull:
    """The hull of parts, or of hulls of parts: of so many parts of so many bytes. Not of none."""
    known = set.intersection(*({each.id for each in one.timelines} for one in some))
    return Hull(
        parts,
        sum(one.rows for one in some),
        bytes,
        min(one.first_key for one in some),
        max(one.last_key for one in some),
        min(one.first_time for one in some),
        max(one.last_time for one in some),
        min(one.first_event_time for one in some),
        max(one.last_event_time for one in some),
        tuple(TimelineBounds.of(number, _together(some, number)) for number in sorted(known)),
    )


def _together(some: Sequence[Extent], column_id: int) -> Bounds:
    return union(bounds for one in some if (bounds := one.bounds_of(column_id)) is not None)
