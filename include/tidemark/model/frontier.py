"""Frontiers, and the functions by which compaction forwards times below one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tidemark.errors import InvalidUsage
from tidemark.model.instant import MAX_TIME, format_duration, format_instant

EMPTY = MAX_TIME
"""The empty frontier, beyond every time. Where `since` is empty nobody will read again, and nothing is forwarded."""


@dataclass(frozen=True)
class Rung:
    """From `lower` up to the next newer rung (or since) the last instant of every `interval` microseconds is kept."""

    lower: int
    interval: int


@dataclass(frozen=True)
class CompactionFunction:
    """f, which moves times that need not differ any more to one instant: monotone, never back, f(f(t)) = f(t).

    Times at or above `since` stay. Below it, without rungs, f(t) = since. With rungs (newest first) f(t) is the last
    instant of t's bucket in the rung that holds t, and times below the last rung go where its `lower` goes.

    A time T is *kept* if f(T) = T: then t <= T exactly where f(t) <= T, so what summing diffs at times <= T gives is
    what it gave before. The identity is `CompactionFunction()`.
    """

    since: int = 0
    rungs: tuple[Rung, ...] = ()

    def __post_init__(self) -> None:
        upper = self.since
        if self.since == EMPTY and self.rungs:
            raise InvalidUsage("where since is empty nothing is forwarded, so there are no rungs")
        for rung in self.rungs:
            if not 0 <= rung.lower < upper or rung.interval < 1:
                raise InvalidUsage(f"rung {rung} must begin in [0, {upper}) and have an interval of 1 or more")
            if upper % rung.interval or rung.lower % rung.interval:
                raise InvalidUsage(f"rung [{rung.lower}, {upper}) is not made of whole intervals of {rung.interval}")
            upper = rung.lower

    def __call__(self, time: int) -> int:
        if time >= self.since or self.since == EMPTY:
            return time
        if not self.rungs:
            return self.since
        time = max(time, self.floor)
        rung = next(rung for rung in self.rungs if time >= rung.lower)
        return time // rung.interval * rung.interval + rung.interval - 1

    @property
    def floor(self) -> int:
        """Times below are not distinguished at all."""
        return self.rungs[-1].lower if self.rungs else self.since

    @property
    def changes_nothing(self) -> bool:
        """Whether every time stays where it is."""
        return self.since in (0, EMPTY)

    def keeps(self, time: int) -> bool:
        """Whether a read at `time` is exact."""
        return self.since != EMPTY and self(time) == time

    def nearest(self, time: int) -> tuple[int | None, int | None]:
        """The kept times on both sides of one that is not kept; None where there is none."""
        if self.since == EMPTY:
            return None, None
        rung = next((rung for rung in self.rungs if time >= rung.lower), None)
        if rung is None:
            return None, self(time)
        before = time // rung.interval * rung.interval - 1
        return (before if before >= self.floor else None), self(time)

    def capped(self, limit: int) -> CompactionFunction:
        """The function that leaves times from `limit` on alone, and is as this one below it, as far as whole intervals
        allow."""
        if limit >= self.since:
            return self
        if self.since == EMPTY:
            return IDENTITY
        for at, rung in enumerate(self.rungs):
            since = limit // rung.interval * rung.interval
            if since > rung.lower:
                return CompactionFunction(since, self.rungs[at:])
            if limit >= rung.lower:
                return CompactionFunction(rung.lower, self.rungs[at + 1 :])
        return CompactionFunction(limit)

    def then(self, later: CompactionFunction) -> CompactionFunction:
        """The finest function that absorbs both: it keeps the times that both keep.

        Raises InvalidUsage where buckets of the two overlap and neither interval divides the other.
        """
        if self.absorbs(later):
            return self
        if later.absorbs(self):
            return later
        since, floor = max(self.since, later.since), max(self.floor, later.floor)
        rungs: list[Rung] = []
        for lower in (bound for bound in reversed(self._bounds(later)) if floor <= bound < since):
            interval = _coarser(self._interval_at(lower), later._interval_at(lower), lower)
            if rungs and rungs[-1].interval == interval:
                rungs.pop()
            # A floor within a bucket of the other function: all that is below goes to the end of that bucket.
            rungs.append(Rung(lower // interval * interval if lower == floor else lower, interval))
        return CompactionFunction(since, tuple(rungs))

    def absorbs(self, earlier: CompactionFunction) -> bool:
        """Whether what was forwarded by `earlier` can be forwarded by this one: its since is as far, and it keeps no
        time that `earlier` does not keep. So f(earlier(t)) = f(t) for every t."""
        if self.since == EMPTY or earlier.since > self.since:
            return self.since == EMPTY
        for lower, upper in pairwise(bound for bound in self._bounds(earlier) if self.floor <= bound <= self.since):
            interval = self._interval_at(lower)
            end = lower // interval * interval + interval - 1
            # Where two ends of a progression are kept, all of them are.
            if any(kept < upper and not earlier.keeps(kept) for kept in (end, end + interval)):
                return False
        return True

    def _bounds(self, other: CompactionFunction) -> list[int]:
        """Where an interval of either function begins or ends."""
        return sorted({bound for f in (self, other) for bound in (f.since, *(rung.lower for rung in f.rungs))})

    def _interval_at(self, time: int) -> int:
        if time >= self.since:
            return 1
        return next((rung.interval for rung in self.rungs if time >= rung.lower), 1)

    def __str__(self) -> str:
        if self.since == EMPTY:
            return "empty"
        steps = [
            f"from {format_instant(rung.lower)} the last instant of every {format_duration(rung.interval)}"
            for rung in self.rungs
        ]
        return ", ".join([f"from {format_instant(self.since)} all", *steps])


IDENTITY = CompactionFunction()


def _coarser(one: int, other: int, at: int) -> int:
    small, large = sorted((one, other))
    if large % small:
        raise InvalidUsage(
            f"intervals of {one} and {other} µs meet at {format_instant(at)} and neither divides the other; "
            "keep intervals that divide those already applied"
        )
    return large
