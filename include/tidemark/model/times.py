"""Sets of instants that come at regular intervals: as arithmetic runs, so that many take no more room than one.

>>> hourly = Times.of(range(59, 3600, 60))
>>> hourly.runs
(Run(first=59, step=60, count=60),)
>>> hourly.remove(119).runs
(Run(first=59, step=120, count=2), Run(first=239, step=60, count=57))
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidemark.errors import InvalidUsage


@dataclass(frozen=True)
class Run:
    """`first`, `first + step`, …: `count` instants, at least one. A single one has step 0."""

    first: int
    step: int
    count: int

    def __post_init__(self) -> None:
        if self.count < 1 or (self.step < 1) != (self.count == 1):
            raise InvalidUsage(f"{self} must have one instant and step 0, or more and a step of 1 or more")

    @property
    def last(self) -> int:
        return self.first + self.step * (self.count - 1)

    @property
    def instants(self) -> range:
        return range(self.first, self.last + 1, self.step or 1)


@dataclass(frozen=True)
class Times:
    """Instants in ascending order, each once. Runs are made from the first instant on, each as long as it can be, so
    equal sets are equal values."""

    runs: tuple[Run, ...] = ()

    @staticmethod
    def of(instants: Iterable[int]) -> Times:
        """The set of some instants, in any order."""
        found = Times()
        for instant in sorted(set(instants)):
            found = found._with_last(instant)
        return found

    def __iter__(self) -> Iterator[int]:
        return (instant for run in self.runs for instant in run.instants)

    def __contains__(self, instant: int) -> bool:
        return any(instant in run.instants for run in self.runs)

    def __len__(self) -> int:
        return sum(run.count for run in self.runs)

    def add(self, instant: int) -> Times:
        """The set with one instant more; cheap for one after all others."""
        if not self.runs or instant > self.runs[-1].last:
            return self._with_last(instant)
        return self if instant in self else Times.of([*self, instant])

    def remove(self, instant: int) -> Times:
        """The set without one instant."""
        return Times.of(other for other in self if other != instant) if instant in self else self

    def since(self, lower: int) -> Times:
        """The instants at or after `lower`."""
        if not self.runs or self.runs[0].first >= lower:
            return self
        return Times.of(instant for instant in self if instant >= lower)

    def _with_last(self, instant: int) -> Times:
        if not self.runs:
            return Times((Run(instant, 0, 1),))
        *others, last = self.runs
        step = instant - last.last
        if last.count > 1 and step != last.step:
            return Times((*self.runs, Run(instant, 0, 1)))
        return Times((*others, Run(last.first, step, last.count + 1)))


def around(instants: Sequence[int], instant: int) -> tuple[int | None, bool, int | None]:
    """Of instants in ascending order the one before `instant`, whether it is among them, and the one after it."""
    at, after = bisect_left(instants, instant), bisect_right(instants, instant)
    return (instants[at - 1] if at else None), after > at, (instants[after] if after < len(instants) else None)
