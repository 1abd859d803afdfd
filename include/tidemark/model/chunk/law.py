"""The pruning law: which chunks can matter to a read, decided before one is opened.

A chunk has *bounds*: the first and the last of its keys, times and event times, and of some columns the least and the
greatest value. A read *wants* ranges of keys, a span of times and spans of columns. A chunk is left out where its
bounds and one of these do not meet, and the answer stays exact:

1. An update and its retraction have the same key and the same value. So a span of a key or value column keeps all
   updates of one (key, value) or none of them, and chunks are left out *before* anything is added up.
2. Times leave out from above (`upto`, `event_upto`), for changes also from below (`after`). They are compared as the
   chunk stores them; the least event time wanted is compared with what the chunk's are forwarded to.
3. Facts that are still to be resolved, and the rows they are resolved against, have no spans of columns: a fact hides a
   value that may be anywhere. The updates that result from them follow rule 1.
4. Changes that report one value for another, and whatever else looks at all rows of a key, have spans of key columns
   only: the other half of the pair may be outside.
5. Bounds may be too wide, never too narrow. Nothing is known of a column of which a chunk says nothing (None), and a
   chunk that has no value in a column (NO_VALUE) meets no span of it: a null is in no span.

An example. Chunk A has the keys (1) to (9), the times 10 to 20, and of column 3 the values 100 to 200; chunk B the keys
(5) to (7), the times 30 to 40, and only nulls in column 3.

    >>> from tidemark.model.chunk.bounds import TimelineBounds
    >>> from tidemark.model.chunk.hull import Hull
    >>> a = Hull(1, 9, 99, (1,), (9,), 10, 20, 10, 20, (TimelineBounds(3, 100, 200, 0),))
    >>> b = Hull(1, 3, 99, (5,), (7,), 30, 40, 30, 40, (TimelineBounds(3, None, None, 3),))
    >>> [can_matter(chunk, Wanted(upto=25)) for chunk in (a, b)]
    [True, False]
    >>> [can_matter(chunk, Wanted(spans=(Span(3, ((150, 160),)),))) for chunk in (a, b)]
    [True, False]
    >>> [can_matter(chunk, Wanted(spans=(Span(3, ((0, 99), (201, None))),))) for chunk in (a, b)]
    [False, False]

What it costs: a few comparisons a chunk, and one bisection for each span of many intervals.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tidemark.model.chunk.bounds import DAY, Bounds
from tidemark.model.column import Column, ColumnType
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import MAX_TIME
from tidemark.model.key import Bound, Key


class Keys(Protocol):
    """`[lower, upper)` of keys; None is unbounded."""

    @property
    def lower(self) -> Bound | None: ...
    @property
    def upper(self) -> Bound | None: ...


class Chunk(Protocol):
    """What is known of rows before they are opened; all bounds are included."""

    @property
    def first_key(self) -> Key: ...
    @property
    def last_key(self) -> Key: ...
    @property
    def first_time(self) -> int: ...
    @property
    def last_time(self) -> int: ...
    @property
    def first_event_time(self) -> int: ...
    @property
    def last_event_time(self) -> int: ...
    def bounds_of(self, column_id: int) -> Bounds | None:
        """Of the column of an id, as recorded; None: nothing is known."""


Interval = tuple[int | None, int | None]
"""From one value to another, both included; None is unbounded. Whole numbers, days or microseconds, as the column's
keys are."""


@dataclass(frozen=True)
class Span:
    """That the column of an id has a value in one of some intervals, which ascend and are disjoint; none: no row
    fits. `unit` is as how many one of its values is recorded: DAY of a date, else 1."""

    column: int
    intervals: tuple[Interval, ...]
    unit: int = 1

    @classmethod
    def of(cls, column: Column, intervals: tuple[Interval, ...]) -> Span:
        """Values of a column in one of some intervals."""
        return cls(column.id, intervals, DAY if column.type is ColumnType.DATE else 1)

    def meets(self, bounds: Bounds | None) -> bool:
        """Whether a chunk with these bounds can have such a value."""
        if bounds is None:
            return True
        if bounds.first is None or bounds.last is None:
            return False
        # The first interval that does not end before the bounds is the only one to look at.
        first: float = bounds.first
        at = bisect_left(self.intervals, first, key=_end_of)
        if at == len(self.intervals):
            return False
        lower = self.intervals[at][0]
        return lower is None or lower <= bounds.last


def _end_of(interval: Interval) -> float:
    return float("inf") if interval[1] is None else interval[1]


def interval_of(spans: Iterable[Span], column: int) -> Interval:
    """From where to where the values of a column may be that are in all of its spans; `spans` of others are ignored."""
    own = [span.intervals for span in spans if span.column == column and span.intervals]
    lowers = [intervals[0][0] for intervals in own if intervals[0][0] is not None]
    uppers = [intervals[-1][1] for intervals in own if intervals[-1][1] is not None]
    return max(lowers, default=None), min(uppers, default=None)


@dataclass(frozen=True)
class Wanted:
    """What a read wants: `after < time <= upto`, `event_from <= event_time <= event_upto` once forwarded by `function`,
    rows with a value in every one of the `spans`."""

    after: int = -1
    upto: int = MAX_TIME
    event_upto: int = MAX_TIME
    event_from: int = 0
    function: CompactionFunction = field(default_factory=CompactionFunction)
    spans: tuple[Span, ...] = ()


class Miss(StrEnum):
    """By what a chunk is known not to matter."""

    KEYS = "keys"
    TIMES = "times"
    VALUES = "values"
    SUMS = "sums"
    """All its rows are added up, and add up to nothing."""


def can_matter(chunk: Chunk, wanted: Wanted, ranges: Sequence[Keys] = ()) -> bool:
    """Whether a chunk can hold a row of a read; with `ranges`, one whose key is in one of them."""
    return miss_of(chunk, wanted, ranges) is None


def miss_of(chunk: Chunk, wanted: Wanted, ranges: Sequence[Keys] = ()) -> Miss | None:
    """Why a chunk cannot hold a row of a read; None: it can."""
    if ranges and not any(meets_keys(chunk, keys) for keys in ranges):
        return Miss.KEYS
    if not meets_times(chunk, wanted):
        return Miss.TIMES
    return None if meets_spans(chunk, wanted.spans) else Miss.VALUES


def meets_keys(chunk: Chunk, keys: Keys) -> bool:
    """Whether a chunk can hold a key of a range."""
    return (keys.upper is None or chunk.first_key < keys.upper) and (keys.lower is None or chunk.last_key >= keys.lower)


def meets_times(chunk: Chunk, wanted: Wanted) -> bool:
    """Whether a chunk can hold a row of the times wanted."""
    return (
        chunk.last_time > wanted.after
        and chunk.first_time <= wanted.upto
        and chunk.first_event_time <= wanted.event_upto
        and wanted.event_from <= wanted.function(chunk.last_event_time)
    )


def meets_spans(chunk: Chunk, spans: Iterable[Span]) -> bool:
    """Whether a chunk, by what is recorded of it, can hold a row with a value in every one of some spans."""
    recorded = ((span, chunk.bounds_of(span.column)) for span in spans)
    return all(span.meets(bounds and bounds.over(span.unit)) for span, bounds in recorded)
