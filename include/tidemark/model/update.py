"""Updates and their laws, in plain Python: what every other implementation must agree with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

Scalar = bool | int | float | str | None
Row = tuple[Scalar, ...]


class Update(NamedTuple):
    """A signed change of multiplicity. `time`: when the collection learned it; `event_time`: when it happened."""

    key: Row
    value: Row
    time: int
    event_time: int
    diff: int


def sort_key(update: Update) -> tuple[object, ...]:
    """The order at rest: key, value, time, event_time; within a column nulls first, NaN next."""
    return (ordered(update.key), ordered(update.value), update.time, update.event_time)


def ordered(row: Row) -> tuple[object, ...]:
    """What rows at rest are sorted by: nulls first, NaN next."""
    return tuple((0, 0) if x is None else (1, 0) if x != x else (2, x) for x in row)


def advance(updates: Iterable[Update], forward: Callable[[int], int]) -> list[Update]:
    """Forward both coordinates by a compaction function: a reader at times it keeps sees no difference from the
    original."""
    return [u._replace(time=forward(u.time), event_time=forward(u.event_time)) for u in updates]


def consolidate(updates: Iterable[Update]) -> list[Update]:
    """Sum diffs of equal (key, value, time, event_time), drop zeros, sort. Idempotent; input order does not matter."""
    sums: dict[tuple[Row, Row, int, int], int] = defaultdict(int)
    for key, value, time, event_time, diff in updates:
        sums[key, value, time, event_time] += diff
    return sorted((Update(*at, diff) for at, diff in sums.items() if diff), key=sort_key)


def as_of(updates: Iterable[Update], *, time: int, event_time: int) -> list[tuple[Row, Row, int]]:
    """The collection as known at `time`, as of `event_time`: (key, value, multiplicity), sorted, no zeros."""
    known = [u._replace(time=0, event_time=0) for u in updates if u.time <= time and u.event_time <= event_time]
    return [(u.key, u.value, u.diff) for u in consolidate(known)]


def changes(updates: Iterable[Update], *, after: int, upto: int) -> list[Update]:
    """The consolidated updates with `after < time <= upto`."""
    return consolidate(u for u in updates if after < u.time <= upto)
