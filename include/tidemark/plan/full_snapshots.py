"""What an ingest of full snapshots has to read, as all files of an interval together are one, announced once, and
corrected or withdrawn as one; and the task by which they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.collection import Collection
from tidemark.model.full_snapshot import Effect, FullSnapshot, derivative, last_announced
from tidemark.model.instant import format_duration, format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import Correctable, LedgerEntry, SourceFile, Status
from tidemark.model.times import Times
from tidemark.plan.tasks import DifferenceTask, KeyRange, SnapshotRows

OTHERWISE = "wait for the next full snapshot"
"""How an owner corrects a file that was ingested and cannot be corrected."""

Corrected = tuple[tuple[SourceFile | None, LedgerEntry], ...]


@dataclass(frozen=True)
class WholeInterval:
    """What is read of an interval: `new` files that are its full snapshot, or files by which that is `corrected`; with
    its `effect`, which is learned at the seal `learned_at` (None: when it is true)."""

    new: tuple[SourceFile, ...]
    corrected: Corrected
    effect: Effect
    learned_at: int | None


def whole_interval(
    state: Arrangement,
    interval: Interval,
    files: Sequence[SourceFile],
    known: Mapping[str, LedgerEntry],
    new: Sequence[SourceFile],
    corrected: Corrected,
) -> WholeInterval:
    """What the `files` listed of an interval mean, of which some are `new` to the ledger, and some `corrected` or gone.

    Where a full snapshot of the interval counts, what differs from it corrects it: a file more joins it; without any
    file left it is withdrawn. Where none counts, all files together are it: also those of one that was withdrawn.
    Raises InvalidUsage where none can be announced, or corrected, any more.
    """
    time = interval.upper - 1
    learned_at = state.seal if time < state.seal else None
    if state.is_announced(time):
        for file in new:
            if why := _cannot_join(state, interval):
                batches = [one.batch for one in state.pending_snapshots if one.time == time]
                name = f", as batch {batches[-1]}" if batches else ""
                raise InvalidUsage(
                    f"the full snapshot of {interval} was read already{name}, without {file.identity}; {why}"
                )
        joined = tuple((file, _joining(state, interval, file)) for file in new)
        left = len(files) > 0 or not corrected
        return WholeInterval((), (*corrected, *joined), Effect.CORRECTED if left else Effect.WITHDRAWN, learned_at)
    counted = [file for file in files if _of_another(known.get(file.identity), interval)]
    fresh = tuple(file for file in files if file not in counted) if new or corrected else ()
    if fresh and learned_at is not None and (why := _too_late(state, interval)):
        raise InvalidUsage(
            f"{fresh[0].identity} is a full snapshot of {format_instant(time)}, "
            f"which the seal {format_instant(state.seal)} has passed; {why}"
        )
    if counted:
        raise InvalidUsage(
            f"{counted[0].identity} of {interval} was counted with another interval; the files of a full snapshot "
            "count once, so give each interval a path of its own (source.path)"
        )
    return WholeInterval(fresh, (), Effect.ANNOUNCED, learned_at)


def difference_task(
    collection: Collection,
    trace: Sequence[Part],
    announced: Times,
    learned: Sequence[tuple[FullSnapshot, Sequence[Part]]],
    keys: KeyRange,
    prefix: str = "",
) -> DifferenceTask:
    """The task that compares what is learned, each with its parts, with one another and with the trace, in which the
    full snapshots of the times `announced` are."""
    snapshots = [snapshot for snapshot, _ in learned]
    meant, checked = derivative(announced, snapshots), last_announced(snapshots)
    rows = (SnapshotRows(tuple(parts), meant.said[number]) for number, (_, parts) in enumerate(learned))
    as_of = (checked[0].known, checked[0].time) if checked else None
    return DifferenceTask(collection, tuple(trace), meant.bounds, meant.of_trace, tuple(rows), as_of, keys, prefix)


def judged_below(state: Arrangement, interval: Interval) -> int:
    """By what rows of the interval are judged: none of a full snapshot is late, whenever that is announced."""
    return min(state.complete_below, interval.upper - 1)


def _of_another(entry: LedgerEntry | None, interval: Interval) -> bool:
    return entry is not None and entry.status is Status.INGESTED and entry.interval != interval


def _joining(state: Arrangement, interval: Interval, file: SourceFile) -> LedgerEntry:
    """What the ledger would say of a file that has contributed nothing yet."""
    judged = Correctable(judged_below(state, interval), state.seal, max(state.since, state.forgotten_below))
    return LedgerEntry(file.identity, 0, "", "", interval, Status.FREED, correctable=judged)


def _cannot_join(state: Arrangement, interval: Interval) -> str | None:
    if not state.collection.landed.reprocess_for:
        return "quarantine that batch before it is drained, then all files of the interval are read together"
    return _beyond(state, interval)


def _too_late(state: Arrangement, interval: Interval) -> str | None:
    if not state.collection.landed.reprocess_for:
        return "the next full snapshot will give the current rows"
    return _beyond(state, interval)


def _beyond(state: Arrangement, interval: Interval) -> str | None:
    if interval.lower >= state.correctable_from:
        return None
    return (
        f"reprocess_for {format_duration(state.collection.landed.reprocess_for)} lets intervals be corrected that "
        f"begin at {format_instant(state.correctable_from)} or later; {OTHERWISE}"
    )
