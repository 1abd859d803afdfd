"""What Tidemark's windows over the flights must hold, from what demo/independent.py says of the flights themselves.

It shares no code with Tidemark either, and does by brute force what the words say, in UTC. Rows are the flights
whose current status is `arrived`, by when they were scheduled:

- An hour of an airport holds the flights from its start to just before its end.
- A half hour of an airport: slide a start over time. Each time the set of flights in [start, start + 30 minutes], both
  ends included, becomes another one that is not empty, a window begins.
- An aircraft's day is a chain of its flights of which each was scheduled at most eight hours after the one before. It
  ends eight hours after the last: a flight at that very instant would still belong to it.

A window is there as soon as all below its end and the grace is complete; an end that belongs to it, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from demo.independent import INSTANT, Key, Value

HOUR, HALF_HOUR, GAP = timedelta(hours=1), timedelta(minutes=30), timedelta(hours=8)
GRACE, LATE_MINUTES = timedelta(hours=6), 15
KEY_COLUMNS = 3
"""A window's row begins with whose it is, its start and its end."""

Rows = Counter[tuple[Any, ...]]


def delays_by_hour(current: Counter[tuple[Key, Value]], complete: datetime) -> Rows:
    """(origin, start, end, flights, sum of delays, mean, worst, later than LATE_MINUTES) of the hours that are there
    when all below `complete` is."""
    found: Rows = Counter()
    for origin, flights in arrivals(current, lambda value: value.origin).items():
        hours: defaultdict[datetime, list[Value]] = defaultdict(list)
        for flight in flights:
            hours[flight.scheduled_at.replace(minute=0, second=0, microsecond=0)].append(flight)
        for start, within in hours.items():
            if start + HOUR + GRACE <= complete:
                late = sum(1 for delay in delays(within) if delay > LATE_MINUTES)
                figures = len(within), total(within), mean(within), worst(within), late
                found[origin, start, start + HOUR, *figures] += 1
    return found


def busy_half_hours(current: Counter[tuple[Key, Value]], complete: datetime) -> Rows:
    """(origin, start, end, flights, mean delay) of the half hours that are there when all below `complete` is."""
    found: Rows = Counter()
    for origin, flights in arrivals(current, lambda value: value.origin).items():
        for start, first, after in slid([flight.scheduled_at for flight in flights], HALF_HOUR):
            within, end = flights[first:after], start + HALF_HOUR
            if end + INSTANT + GRACE <= complete:
                found[origin, start, end, len(within), mean(within)] += 1
    return found


def aircraft_days(current: Counter[tuple[Key, Value]], complete: datetime) -> Rows:
    """(tailnum, start, end, legs, first origin, last destination, sum of delays, worst) of the days that are there when
    all below `complete` is. Of flights at one instant the first has the smallest origin, the last the largest
    destination."""
    found: Rows = Counter()
    for tailnum, flights in arrivals(current, lambda value: value.tailnum).items():
        for chain in chained(flights, lambda before, after: after.scheduled_at - before.scheduled_at <= GAP):
            start, end = chain[0].scheduled_at, chain[-1].scheduled_at + GAP
            origin = min((flight.scheduled_at, flight.origin) for flight in chain)[1]
            dest = max((flight.scheduled_at, flight.dest) for flight in chain)[1]
            if end + INSTANT <= complete:
                found[tailnum, start, end, len(chain), origin, dest, total(chain), worst(chain)] += 1
    return found


def arrivals(current: Counter[tuple[Key, Value]], whose: Callable[[Value], Any]) -> dict[Any, list[Value]]:
    """The flights whose status is `arrived` by whose they are, in the order they were scheduled."""
    found: defaultdict[Any, list[Value]] = defaultdict(list)
    for (_, value), multiplicity in current.items():
        if value.status == "arrived":
            found[whose(value)] += [value] * multiplicity
    return {one: sorted(flights, key=lambda flight: flight.scheduled_at) for one, flights in found.items()}


def slid(instants: Sequence[datetime], size: timedelta) -> Iterator[tuple[datetime, int, int]]:
    """The starts at which [start, start + size] begins to contain another set of the instants, which are in order, and
    that is not empty; with the place of its first and the one after its last. It changes nowhere but where an instant
    comes in at the end, and just after one, which is out then."""
    before = (0, 0)
    for start in sorted({at - size for at in instants} | {at + INSTANT for at in instants}):
        within = bisect_left(instants, start), bisect_right(instants, start + size)
        if within != before and within[0] < within[1]:
            yield start, *within
        before = within


def chained(flights: Iterable[Value], joins: Callable[[Value, Value], bool]) -> list[list[Value]]:
    """Flights in order, cut where one does not join the one before."""
    chains: list[list[Value]] = []
    for flight in flights:
        if chains and joins(chains[-1][-1], flight):
            chains[-1].append(flight)
        else:
            chains.append([flight])
    return chains


def delays(flights: Iterable[Value]) -> list[int]:
    return [flight.delay_min for flight in flights if flight.delay_min is not None]


def total(flights: Iterable[Value]) -> int | None:
    known = delays(flights)
    return sum(known) if known else None


def mean(flights: Iterable[Value]) -> float | None:
    known = delays(flights)
    return sum(known) / len(known) if known else None


def worst(flights: Iterable[Value]) -> int | None:
    return max(delays(flights), default=None)


def revisions(stages: Iterable[Rows]) -> dict[tuple[Any, ...], int]:
    """How often the row of each window that is there in the end changed since it was there first, where these are what
    was there at one time after the other."""
    changed: Counter[tuple[Any, ...]] = Counter()
    before: Rows = Counter()
    for rows in stages:
        changed.update({row[:KEY_COLUMNS] for row in (before - rows) + (rows - before)})
        before = rows
    return {row[:KEY_COLUMNS]: changed[row[:KEY_COLUMNS]] - 1 for row in before}
