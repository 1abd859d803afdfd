"""What a collection knew at a time of the wall clock, as a time of knowledge: the instant before the seal of then.

A state has a line for each commit that moved the seal (docs/decisions/0092). Of commits before release 0.7 it has none;
their times are in their versions, as long as these are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tidemark.api.pinned import Pinned
from tidemark.errors import InvalidUsage
from tidemark.model.change import Created, Dropped, Restored, Sealed
from tidemark.model.commit_times import SealCommit
from tidemark.model.instant import format_instant
from tidemark.storage.sidecars import commit_runs


def chosen_time(pinned: Pinned, time: int | None, committed: int | None, name: str = "time") -> int | None:
    """The time as known at which is read, where one of two clocks says it; None: neither does.

    Raises:
        InvalidUsage: Both say one, and as `known_at`. `name` is what the time by the schedule is called.
    """
    if committed is None:
        return time
    if time is not None:
        clock = "committed" if name == "time" else f"committed_{name}"
        raise InvalidUsage(f"{name} is a time of the schedule, and {clock} of the wall clock; give one of them")
    return known_at(pinned, committed)


def known_at(pinned: Pinned, committed: int) -> int | None:
    """Find the time as known at which the collection answers what it answered at a time of the wall clock.

    Returns:
        The instant before the seal of then, in microseconds; None where nothing is sealed yet, and no time can be read.

    Raises:
        InvalidUsage: Nothing was sealed by then, or what was known then is merged; with the earliest time there is.
    """
    state = pinned.state
    if not state.seal:
        return None
    line = commit_runs.last_line(pinned.store, state.commits, committed) or _of_versions(pinned, committed)
    if line is not None and state.function.keeps(line.seal - 1):
        return line.seal - 1
    readable = (each.at for each in _lines(pinned) if state.function.keeps(each.seal - 1))
    earliest = next(readable, None)
    following = (
        earliest if earliest is None or earliest > committed else next((t for t in readable if t > committed), None)
    )
    moments = [
        f"the {which} moment that can be asked is {format_instant(moment)}"
        for which, moment in (("earliest", earliest), ("next", following if following != earliest else None))
        if moment is not None
    ]
    why = (
        "no commit by then is recorded"
        if line is None
        else f"its history up to {format_instant(line.seal - 1)} was merged (since is {format_instant(state.since)})"
    )
    when = f"what {pinned.name} knew at {format_instant(committed)} cannot be read"
    raise InvalidUsage("; ".join([f"{when}: {why}", *moments]))


def _of_versions(pinned: Pinned, committed: int) -> SealCommit | None:
    last = None
    for line in _unrecorded(pinned):
        if line.at > committed:
            break
        last = line
    return last


def _lines(pinned: Pinned) -> Iterator[SealCommit]:
    return chain(_unrecorded(pinned), commit_runs.all_lines(pinned.store, pinned.state.commits))


def _unrecorded(pinned: Pinned) -> Iterator[SealCommit]:
    """The lines that kept versions give, before the first whose time is recorded in states; ascending."""
    log, incarnation = pinned.log, pinned.state.incarnation
    first = max(1, log.oldest_version())
    oldest = log.load(first).arrangement
    if oldest is not None and oldest.commits.first is not None:
        return
    ours = oldest is not None and oldest.incarnation == incarnation
    seal, before, at = oldest.seal if oldest else 0, 0, 0
    for version in log.versions.between(first, pinned.version):
        match version.record.change:
            case Created() as change:
                ours, seal = change.incarnation == incarnation, 0
            case Restored() as change:
                ours, seal = change.state.incarnation == incarnation, change.state.seal
            case Dropped():
                ours = False
            case Sealed() as change if version.number > first:
                if change.at and ours:
                    return
                seal = max(seal, change.upper)
        if ours and seal > before:
            before, at = seal, max(at, version.record.written_at)
            yield SealCommit(at, seal)
