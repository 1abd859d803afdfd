"""Half-open intervals of time `[lower, upper)` and sets of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.local_time import format_local

INTERVALS_OF_RUN, MOST_INTERVALS_OF_RUN = 31, 1_000
"""How many intervals of a schedule a run of a backfill is about, unless somebody says otherwise, and at most: a run of
more would take hours, and be a single square of Airflow's grid."""

OVER_GRACE = 60_000_000
"""Microseconds by which clocks may differ: an interval whose end is no further ahead counts as over."""
NOT_OVER = "is not over: rows of it may still come"


class _Displayed:
    """By which clock people are shown an interval. It is no field: intervals of equal bounds are equal."""

    __slots__ = ("_zone",)


@dataclass(frozen=True, order=True, slots=True)
class Interval(_Displayed):
    """`[lower, upper)` in microseconds, never empty. `in_zone` says by which clock people are shown it, no more."""

    lower: int
    upper: int

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper <= MAX_TIME:
            bounds = f"[{_shown(self.lower)}, {_shown(self.upper)})"
            raise InvalidUsage(f"interval {bounds} must satisfy 0 <= lower < upper")

    def __contains__(self, time: int) -> bool:
        return self.lower <= time < self.upper

    def __str__(self) -> str:
        return f"[{format_local(self.lower, self.zone)}, {format_local(self.upper, self.zone)})"

    @property
    def zone(self) -> str:
        """The zone of that clock."""
        return getattr(self, "_zone", "UTC")

    def in_zone(self, zone: str) -> Interval:
        """The same interval, shown as clocks in a zone show it."""
        if zone == self.zone:
            return self
        local = Interval(self.lower, self.upper)
        object.__setattr__(local, "_zone", zone)
        return local

    def is_over(self, now: int) -> bool:
        """Whether it has ended by a clock, in microseconds."""
        return self.upper <= now + OVER_GRACE


def _shown(time: int) -> str:
    """A time as people write it; a number that is none as it is."""
    return format_instant(time) if 0 <= time <= MAX_TIME else str(time)


@dataclass(frozen=True)
class IntervalSet:
    """A set of times as disjoint intervals in ascending order, never touching: equal sets are equal values."""

    members: tuple[Interval, ...] = ()

    def __post_init__(self) -> None:
        for older, newer in zip(self.members, self.members[1:], strict=False):
            if newer.lower <= older.upper:
                raise InvalidUsage(f"intervals {older} and {newer} overlap, touch or are out of order")

    def __iter__(self) -> Iterator[Interval]:
        return iter(self.members)

    def add(self, interval: Interval) -> IntervalSet:
        """The union with one interval."""
        lower, upper = interval.lower, interval.upper
        disjoint = []
        for member in self.members:
            if member.upper < lower or upper < member.lower:
                disjoint.append(member)
            else:
                lower, upper = min(lower, member.lower), max(upper, member.upper)
        return IntervalSet(tuple(sorted([*disjoint, Interval(lower, upper)])))

    def below(self, time: int) -> IntervalSet:
        """What of the set is below a time."""
        return IntervalSet(tuple(Interval(m.lower, min(m.upper, time)) for m in self.members if m.lower < time))

    def covers(self, interval: Interval) -> bool:
        """Whether every time of `interval` is in the set."""
        return any(m.lower <= interval.lower and interval.upper <= m.upper for m in self.members)

    def complete_from(self, start: int) -> int:
        """The first time at or after `start` that is not in the set: what was read without a hole."""
        for member in self.members:
            if member.lower <= start < member.upper:
                return member.upper
        return start

    def first_hole(self, start: int, upper: int) -> Interval | None:
        """The oldest interval of `[start, upper)` that is missing, or None."""
        lower = self.complete_from(start)
        if lower >= upper:
            return None
        following = [m.lower for m in self.members if m.lower > lower]
        return Interval(lower, min([*following, upper]))
