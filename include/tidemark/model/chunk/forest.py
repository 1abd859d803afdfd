"""Several interval indexes asked as one.

The index of a version is the forest of its batches' indexes, each of which is built once and kept with its immutable
batch. A single insertion makes a run of one; it is merged with the runs before it while these are no longer than what
was merged so far. So the lengths of inserted runs fall, and an interval is moved O(log N) times in N insertions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Generic, TypeVar

from tidemark.model.chunk.index import Found, IntervalIndex

T = TypeVar("T")


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
