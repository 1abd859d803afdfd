"""The bounds of a column among some rows: of a part, of a row group, of a block of a parts table.

Values are plain, as keys are in metadata: ints, microseconds, days. Bounds may be too wide and never too narrow. Where
nothing is known there is None in place of bounds: the rows may have any value there, and nulls.

What is *recorded* of a timeline of dates are the microseconds of their midnights, in UTC: so the bounds of parts that
were written before such a column became a timestamp, and after that, are bounds of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value, and how many rows have a null. Both are None where every row has."""

    first: int | None
    last: int | None
    nulls: int = 0

    def encloses(self, other: Bounds) -> bool:
        """Whether rows with the bounds `other` may be among those with these."""
        if other.nulls > self.nulls:
            return False
        return other.first is None or other.last is None or self._encloses(other.first, other.last)

    def _encloses(self, first: int, last: int) -> bool:
        return self.first is not None and self.last is not None and self.first <= first and last <= self.last

    def __or__(self, other: Bounds) -> Bounds:
        """The bounds of both, taken together."""
        firsts = [each for each in (self.first, other.first) if each is not None]
        lasts = [each for each in (self.last, other.last) if each is not None]
        return Bounds(min(firsts, default=None), max(lasts, default=None), self.nulls + other.nulls)

    def times(self, unit: int) -> Bounds:
        """The bounds in a unit of which each of these has so many."""
        if unit == 1:
            return self
        return Bounds(self.first and self.first * unit, self.last and self.last * unit, self.nulls)

    def over(self, unit: int) -> Bounds:
        """The bounds in a unit that has so many of these."""
        if unit == 1:
            return self
        return Bounds(self.first and self.first // unit, self.last and self.last // unit, self.nulls)

    def __str__(self) -> str:
        values = "only nulls" if self.first is None else f"{self.first} to {self.last}"
        return f"{values}, {self.nulls} null" if self.nulls and self.first is not None else values


DAY = 86_400_000_000
"""So many microseconds are a day: as a timeline of dates is recorded."""
NO_VALUE = Bounds(None, None)
"""Of rows of which none has a value, or of no rows."""


def union(some: Iterable[Bounds]) -> Bounds:
    """The bounds of all of some, taken together."""
    return reduce(Bounds.__or__, some, NO_VALUE)


@dataclass(frozen=True)
class TimelineBounds:
    """The bounds of a timeline, the value column of that `id`, as they are recorded."""

    id: int
    first: int | None
    last: int | None
    nulls: int

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.first, self.last, self.nulls)

    @classmethod
    def of(cls, id: int, bounds: Bounds) -> TimelineBounds:
        """The bounds with the column they belong to."""
        return cls(id, bounds.first, bounds.last, bounds.nulls)


def timeline_bounds(kept: Sequence[TimelineBounds], id: int) -> Bounds | None:
    """The bounds of a column among those that are kept; None if there are none of it."""
    return next((each.bounds for each in kept if each.id == id), None)
