"""What a read of latest rows has to open: as known at many times at once, and of few keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import format_instant
from tidemark.model.key import BehindNull, Key
from tidemark.plan.ranges import behind, ranges_of
from tidemark.plan.read import ReadRequest, plan_as_of
from tidemark.plan.tasks import ALL_KEYS, KeyRange, ReadTask

MOST_RANGES = 1000
"""Ranges of keys that a read jumps between. Between more it would hardly skip a row group."""
MOST_KEYS = 50_000
"""Keys that are looked for one by one. More of them are in most row groups, and looking takes longer than reading."""


def plan_known(
    state: Arrangement, upto: int | None = None, event_time: int | None = None, keys: KeyRange = ALL_KEYS
) -> ReadRequest:
    """Read the updates by which it can be said what was known at any time up to `upto` (None: seal - 1): all of them,
    distinguished by when they were learned. Raises InvalidUsage as `plan_as_of`."""
    return replace(plan_as_of(state, upto, event_time, keys), sums=False)


def check_known(times: Sequence[int], function: CompactionFunction, seal: int) -> None:
    """Raise InvalidUsage unless it can be said what was known at some times, which ascend. Where there are no rungs
    their ends are enough: all from since on are kept."""
    for time in times:
        if not 0 <= time < seal or not function.keeps(time):
            at, since = (format_instant(time) if time >= 0 else str(time)), format_instant(function.since)
            raise InvalidUsage(f"known_at {at} is outside the readable [since {since}, seal {format_instant(seal)})")


def asks_one_key(task: ReadTask) -> bool:
    """Whether a task asks for one key and no other, by its range of keys."""
    keys, lower = task.keys, task.keys.lower
    if (
        task.collection.layout
        or task.ranges
        or keys.upper is None
        or lower is None
        or len(lower) != len(task.collection.key)
    ):
        return False
    return not any(isinstance(scalar, BehindNull) for scalar in lower) and keys.upper == behind(lower)  # type: ignore[arg-type]


def narrowed_to(task: ReadTask, keys: Sequence[Key]) -> ReadTask | None:
    """A task that reads some keys, which ascend, and few others; None where none of them is its own."""
    own = [key for key in keys if _inside(task.keys, key)]
    groups = sorted(first for some in task.at_rest for part in some.parts for first, _ in part.groups)
    return _of_ranges(task, ranges_of(own, groups, MOST_RANGES)) if own else None


def narrowed_between(task: ReadTask, first: Key, last: Key) -> ReadTask | None:
    """A task that reads the keys from one to another one; None where none of them is its own."""
    lower, upper, end = task.keys.lower, task.keys.upper, behind(last)
    keys = KeyRange(
        first if lower is None else max(lower, first),
        upper if end is None else end if upper is None else min(upper, end),
    )
    empty = keys.upper is not None and keys.lower is not None and keys.lower >= keys.upper
    return None if empty else _of_ranges(task, [keys])


def _of_ranges(task: ReadTask, ranges: Sequence[KeyRange]) -> ReadTask:
    whole = KeyRange(ranges[0].lower, ranges[-1].upper)
    lowers = [keys.lower or () for keys in ranges]

    def needed(part: Part) -> bool:
        """Whether a part can hold a key of the last range that begins before it ends, and so of any."""
        at = bisect_right(lowers, part.last_key) - 1
        upper = ranges[at].upper
        return at >= 0 and (upper is None or part.first_key < upper)

    at_rest = tuple(replace(some, parts=tuple(filter(needed, some.parts))) for some in task.at_rest)
    unsealed = None if task.unsealed is None else replace(task.unsealed, keys=whole)
    several = tuple(ranges) if len(ranges) > 1 else ()
    return replace(task, keys=whole, at_rest=at_rest, unsealed=unsealed, ranges=several)


def _inside(keys: KeyRange, key: Key) -> bool:
    return (keys.lower is None or key >= keys.lower) and (keys.upper is None or key < keys.upper)
