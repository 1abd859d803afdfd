"""When commits moved the seal: what was known at a time of the wall clock, for ever after.

The seal moves only forward, and what is learned later has a time at it or above. So what a collection knew once a
commit had moved its seal to S are the rows as known at S - 1, whichever later version answers. A line for each such
commit is all that the question "what did we know on Tuesday at nine" needs (docs/decisions/0092).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

from tidemark.model.batch import ObjectRef
from tidemark.model.frontier import CompactionFunction

RECENT = 128
"""Lines in a state from which on they are moved into an object: at most some 5 kB of a checkpoint."""
FAN_IN = 16
"""Neighbouring runs of one size that become one: of 5 million lines, ten years of minutes, a state names 60 at most."""


@dataclass(frozen=True)
class SealCommit:
    """A commit that moved the seal: when, in wall-clock microseconds, and to where."""

    at: int
    seal: int


@dataclass(frozen=True)
class CommitRun:
    """An object with lines, of which the first and the last are recorded. Runs of one level have a similar size."""

    object: ObjectRef
    commits: int
    first: SealCommit
    last: SealCommit
    level: int = 0


@dataclass(frozen=True)
class CommitTimes:
    """The lines of a collection, ascending by both times: older ones in runs, oldest first, and recent ones."""

    runs: tuple[CommitRun, ...] = ()
    recent: tuple[SealCommit, ...] = ()

    @property
    def first(self) -> SealCommit | None:
        """The oldest line that is kept."""
        return self.runs[0].first if self.runs else next(iter(self.recent), None)

    @property
    def last(self) -> SealCommit | None:
        """The newest line."""
        return self.recent[-1] if self.recent else self.runs[-1].last if self.runs else None

    def moved(self, at: int, seal: int) -> CommitTimes:
        """Add a line; its time is that of the line before it where the clock went back."""
        at = max(at, self.last.at if self.last else 0)
        return CommitTimes(self.runs, (*self.recent, SealCommit(at, seal)))

    def readable(self, function: CompactionFunction) -> CommitTimes:
        """Leave out the oldest lines, of which nothing can be read any more."""

        def is_gone(line: SealCommit) -> bool:
            return line.seal <= function.floor

        runs = tuple(dropwhile(lambda run: is_gone(run.last), self.runs))
        return CommitTimes(runs, self.recent if runs else tuple(dropwhile(is_gone, self.recent)))

    def due(self) -> tuple[CommitRun, ...] | None:
        """The newest runs that become one together with the recent lines; None: these are few."""
        if len(self.recent) < RECENT:
            return None
        level, first = 0, len(self.runs)
        while [run.level for run in self.runs[max(0, first - FAN_IN + 1) : first]] == [level] * (FAN_IN - 1):
            level, first = level + 1, first - FAN_IN + 1
        return self.runs[first:]

    def stored(self, inputs: Sequence[str], run: CommitRun) -> CommitTimes | None:
        """Replace the newest runs, by object key, and the recent lines up to the run's last by a run.

        Returns:
            None where these are not there.
        """
        before, replaced = self.runs[: len(self.runs) - len(inputs)], self.runs[len(self.runs) - len(inputs) :]
        taken = bisect_right(self.recent, run.last.seal, key=lambda line: line.seal)
        first = replaced[0].first if replaced else next(iter(self.recent), None)
        fits = taken > 0 and self.recent[taken - 1] == run.last and first == run.first
        if not fits or tuple(each.object.key for each in replaced) != tuple(inputs):
            return None
        return CommitTimes((*before, run), self.recent[taken:])


def line_at(lines: Sequence[SealCommit], at: int) -> SealCommit | None:
    """The last of ascending lines at or before a time."""
    behind = bisect_right(lines, at, key=lambda line: line.at)
    return lines[behind - 1] if behind else None
