"""Several interval indexes asked as one, and what is below the items of an index, asked as if it were one, too.

The index of a version is the forest of its batches' indexes, each of which is built once and kept with its immutable
batch. A single insertion makes a run of one; it is merged with the runs before it while these are no longer than what
was merged so far. So the lengths of inserted runs fall, and an interval is moved O(log N) times in N insertions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, merge
from typing import Generic, TypeVar

from tidemark.model.chunk.index import Found, IntervalIndex

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Forest(Generic[T]):
    """Indexes, in the order in which they came."""

    runs: tuple[IntervalIndex[T], ...] = ()

    def __len__(self) -> int:
        return sum(len(run) for run in self.runs)

    def inserted(self, first: int, last: int, item: T) -> Forest[T]:
        """With one more interval."""
        runs, intervals = list(self.runs), [(first, last, item)]
        while runs and len(runs[-1]) <= len(intervals):
            intervals = [*runs.pop(), *intervals]
        return Forest((*runs, IntervalIndex(intervals)))

    def overlapping(self, low: int, high: int) -> Found[T]:
        """The items of the intervals that have a value in [low, high], run by run, and the entries looked at."""
        found = [run.overlapping(low, high) for run in self.runs]
        return Found([item for each in found for item in each.items], sum(each.visited for each in found))

    def falling(self, at: int, lowest: int | None = None) -> Iterator[tuple[int, T]]:
        """As `IntervalIndex.falling`, over all runs."""
        return merge(*(run.falling(at, lowest) for run in self.runs), key=lambda each: -each[0])


class Descent(Generic[T, U]):
    """(bound, item) by falling bound, of what is below some items that come by falling bound, too: `below` says it of
    one of them, when its turn comes. Nothing below an item has a greater bound than the item.

        >>> parts = {"new": [(9, "c"), (4, "b")], "old": [(3, "a")]}
        >>> chunks = Descent(iter([(9, "new"), (5, "old")]), lambda part: iter(parts[part]))
        >>> next(chunks), chunks.bound
        ((9, 'c'), 5)
        >>> chunks.sharpen(), chunks.bound, next(chunks)
        (True, 4, (4, 'b'))
    """

    def __init__(self, above: Iterator[tuple[int, T]], below: Callable[[T], Iterator[tuple[int, U]]]) -> None:
        self._above, self._below = above, below
        self._following = next(above, None)
        self._heads: list[tuple[int, int, U, Iterator[tuple[int, U]]]] = []
        self._count = 0

    @property
    def bound(self) -> int | None:
        """What is still to come has no greater bound; None: nothing is to come."""
        heads = [-self._heads[0][0]] if self._heads else []
        return max([*heads, *([] if self._following is None else [self._following[0]])], default=None)

    def sharpen(self) -> bool:
        """Look below the next item if what comes next may be there, and say whether that was so."""
        if self._following is None or self.peek() is not None:
            return False
        _, item = self._following
        self._following = next(self._above, None)
        self._push(self._below(item))
        return True

    def peek(self) -> tuple[int, U] | None:
        """What comes next, if that is known without looking below another item."""
        if not self._heads or (self._following is not None and self._following[0] > -self._heads[0][0]):
            return None
        return -self._heads[0][0], self._heads[0][2]

    def __iter__(self) -> Iterator[tuple[int, U]]:
        return self

    def __next__(self) -> tuple[int, U]:
        while self.sharpen():
            pass
        if not self._heads:
            raise StopIteration
        bound, _, item, rest = heappop(self._heads)
        self._push(rest)
        return -bound, item

    def _push(self, items: Iterator[tuple[int, U]]) -> None:
        if (first := next(items, None)) is not None:
            self._count += 1  # no two heads compare equal, so nothing behind is compared
            heappush(self._heads, (-first[0], self._count, first[1], items))
