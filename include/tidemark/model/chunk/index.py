"""The interval index: which of many intervals overlap a range, and which reach latest below a time.

Intervals are sorted by their first value. Above their last values is a tree: each entry is the greatest last value
of FAN entries below it. A range is answered from the top: an entry whose greatest last value is below the range is
passed by with all below it, and no entry is looked at behind the last interval that begins in the range. One long
interval therefore costs one path, wherever it is.

Of N intervals, K of them found: a range looks at O(FAN log N + K) entries where the found ones are neighbours, and at
most FAN ⌈log N / log FAN⌉ entries for each one found and for each end of the range. `falling` looks at as many for each
interval it gives. The answers say how many entries were looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
BITS = 4
FAN = 1 << BITS


class Found(NamedTuple, Generic[T]):
    """The items of the intervals that overlap a range, by first value, and how many entries were looked at."""

    items: list[T]
    visited: int


class IntervalIndex(Generic[T]):
    """Intervals (first, last, item), both ends included. It never changes."""

    __slots__ = ("_firsts", "_items", "_levels")

    def __init__(self, intervals: Iterable[tuple[int, int, T]]) -> None:
        ordered = sorted(intervals, key=itemgetter(0))
        self._firsts = [first for first, _, _ in ordered]
        self._items = [item for _, _, item in ordered]
        self._levels = [[last for _, last, _ in ordered]]
        while len(level := self._levels[-1]) > FAN:
            self._levels.append([max(level[at : at + FAN]) for at in range(0, len(level), FAN)])

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[tuple[int, int, T]]:
        return zip(self._firsts, self._levels[0], self._items, strict=True)

    def overlapping(self, low: int, high: int) -> Found[T]:
        """Those that have a value in [low, high]; none if low is above high."""
        stop = bisect_right(self._firsts, high) if low <= high else 0
        top = len(self._levels) - 1
        entries = list(range(_entries(stop, top)))
        visited = 0
        for number in range(top, -1, -1):
            level = self._levels[number]
            visited += len(entries)
            entries = [at for at in entries if level[at] >= low]
            if number:
                below = _entries(stop, number - 1)
                entries = [child for at in entries for child in range(at * FAN, min(at * FAN + FAN, below))]
        return Found([self._items[at] for at in entries], visited)

    def falling(self, at: int, lowest: int | None = None) -> Falling[T]:
        """(bound, item) of those that begin at or before `at` and end at or after `lowest`, by falling bound: the
        smaller of `at` and their last value. Found one by one, as they are asked for."""
        return Falling(self._levels, self._items, bisect_right(self._firsts, at), at, lowest)


class Falling(Generic[T]):
    """Intervals by falling bound, those of equal bound by first value; `visited` counts the entries looked at."""

    def __init__(self, levels: list[list[int]], items: list[T], stop: int, at: int, lowest: int | None) -> None:
        self._levels, self._items, self._stop, self._at, self._lowest = levels, items, stop, at, lowest
        self._waiting: list[tuple[int, int, int]] = []
        self.visited = 0
        self._push(len(levels) - 1, range(_entries(stop, len(levels) - 1)))

    def __iter__(self) -> Iterator[tuple[int, T]]:
        return self

    def __next__(self) -> tuple[int, T]:
        while self._waiting:
            bound, start, level = heappop(self._waiting)
            if level == 0:
                return -bound, self._items[start]
            at = start >> -level * BITS
            below = _entries(self._stop, -level - 1)
            self._push(-level - 1, range(at * FAN, min(at * FAN + FAN, below)))
        raise StopIteration

    def _push(self, level: int, entries: range) -> None:
        """Let entries wait, first those of the greatest bound, then those that begin first, then whole subtrees."""
        self.visited += len(entries)
        lasts = self._levels[level]
        for at in entries:
            if self._lowest is None or lasts[at] >= self._lowest:
                heappush(self._waiting, (-min(lasts[at], self._at), at << level * BITS, -level))


def _entries(stop: int, level: int) -> int:
    """How many entries of a level cover the first `stop` intervals."""
    return -(-stop >> level * BITS)
