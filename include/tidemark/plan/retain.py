"""Where `since` may move: the retention policy, measured from up to where the collection is complete and not from the
clock, under the holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement, Hold
from tidemark.model.change import CompactionAllowed
from tidemark.model.frontier import EMPTY, IDENTITY, CompactionFunction, Rung
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.retention import LEAST_RECENT, Step

NATURAL = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000)
"""A day, an hour, a minute, a second: intervals that divide one another, so that any may follow any."""


@dataclass(frozen=True)
class ReadAsked:
    """A read somebody asked for: as of `upto`, or the changes after `after` up to it. `newest`: of the newest complete
    time, without naming one."""

    upto: int
    after: int | None = None
    newest: bool = False


def plan_retention(state: Arrangement, now: int, asked: Sequence[ReadAsked] | None = None) -> CompactionAllowed | None:
    """Move `since` as far as the policy and the holds at wall-clock `now` allow; None if it is there.

    `asked` are the reads asked lately (storage/sidecars/asked_reads.py), which only `adaptive` needs.
    """
    wanted = _wanted(state, asked or ()).capped(_corrected_from(state))
    for hold in alive(state.holds, now):
        wanted = wanted.capped(hold.since)
    target = state.function.then(wanted)
    expired = len(alive(state.holds, now)) < len(state.holds)
    if target == state.function and not expired:
        return None
    return CompactionAllowed(target.since, target.rungs, now)


def _corrected_from(state: Arrangement) -> int:
    """Where late rows may still correct history, by the lateness the owner declared: retention leaves that alone. Where
    rows may come however late there is no such bound: those below `since` are refused."""
    lateness = state.collection.lateness
    complete = state.complete_below
    bound = complete if lateness == MAX_TIME else max(0, complete - lateness)
    return min(bound, max(0, _correctable_snapshots_from(state) - 1))


def _correctable_snapshots_from(state: Arrangement) -> int:
    """Full snapshots from here on may be corrected, or are: what they said is not merged with what was said before."""
    if not state.collection.kind.whole_intervals:
        return EMPTY
    return min(
        [state.correctable_from, *(snapshot.time for snapshot in state.snapshots if snapshot.learned_at is not None)]
    )


def alive(holds: Sequence[Hold], now: int) -> tuple[Hold, ...]:
    """The holds that have not expired."""
    return tuple(hold for hold in holds if hold.expires is None or hold.expires > now)


def check_hold(state: Arrangement, since: int) -> None:
    """Raise InvalidUsage unless reads from `since` on are exact today: a hold cannot bring back what was merged."""
    if since < state.since:
        before, after = state.function.nearest(since)
        some = ", ".join(format_instant(time) for time in (before, after) if time is not None and time != EMPTY)
        raise InvalidUsage(
            f"cannot hold {format_instant(since)}: history below since {format_instant(state.since)} is merged already"
            + (f"; nearest readable: {some}" if some else "")
        )


def _wanted(state: Arrangement, asked: Sequence[ReadAsked]) -> CompactionFunction:
    retention, complete = state.collection.retention, state.complete_below
    if complete == 0 or retention.policy == "all":
        return IDENTITY
    if retention.policy == "full_merge":
        return CompactionFunction(complete - 1)
    if retention.policy == "tiered":
        return _tiered(state, retention.keep_recent or 1)
    if retention.policy == "time_boundary":
        return _boundaries(complete, retention.interval or 1)
    if retention.policy == "adaptive":
        return _adaptive(state, asked)
    return ladder(complete, retention.steps)


def _tiered(state: Arrangement, keep_recent: int) -> CompactionFunction:
    """The newest `keep_recent` seals stay distinct: what was known when each of them was complete can be read. Ticks
    are no seals, and what was learned by those since the oldest stays distinct, too."""
    kept = state.seals[-keep_recent:]
    return CompactionFunction(kept[0] - 1) if len(kept) == keep_recent else IDENTITY


def _boundaries(complete: int, interval: int) -> CompactionFunction:
    since = complete // interval * interval
    return CompactionFunction(since, (Rung(0, interval),)) if since else IDENTITY


def ladder(complete: int, steps: Sequence[Step]) -> CompactionFunction:
    """The function of a ladder where the collection is complete below `complete`: each step ends at a whole interval of
    the step behind it."""
    first = steps[0].interval or 1
    since = upper = complete // first * first
    rungs: list[Rung] = []
    for step, older in zip(steps, [*steps[1:], None], strict=True):
        unit = (older or step).interval or 1
        lower = 0 if step.reach is None else max(0, complete - step.reach) // unit * unit
        if step.interval is None:
            since = upper = lower
        elif lower < upper:
            rungs.append(Rung(lower, step.interval))
            upper = lower
    return CompactionFunction(since, tuple(rungs)) if since else IDENTITY


def _adaptive(state: Arrangement, asked: Sequence[ReadAsked]) -> CompactionFunction:
    """By the reads asked: history that was asked for stays; where only the present was, all is merged; where ranges
    were, the coarsest natural interval that divides them is kept; else the newest seals."""
    if not asked:
        return _tiered(state, LEAST_RECENT)
    named = [read.upto for read in asked if read.after is None and not read.newest]
    ranges = [(read.after, read.upto) for read in asked if read.after is not None]
    present = CompactionFunction(state.complete_below - 1)
    wanted = _dividing(state, ranges) if ranges else present
    return wanted.capped(min(named)) if named else wanted


def _dividing(state: Arrangement, ranges: Sequence[tuple[int, int]]) -> CompactionFunction:
    """The coarsest natural intervals of which all ranges are made, and that those kept already go with."""
    common = gcd(*(end + 1 for ends in ranges for end in ends))
    for unit in NATURAL:
        wanted = _boundaries(state.complete_below, unit)
        if common % unit == 0 and _goes_with(state.function, wanted):
            return wanted
    return IDENTITY


def _goes_with(function: CompactionFunction, wanted: CompactionFunction) -> bool:
    try:
        function.then(wanted)
    except InvalidUsage:
        return False
    return True
