"""Correcting files that an ingest meets again with another content: what they differ by joins the interval's batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.full_snapshot import Effect
from tidemark.model.instant import format_instant
from tidemark.model.ledger import Contribution, Correctable, LedgerEntry, SourceFile, Status
from tidemark.model.wording import counted
from tidemark.plan.ingest import IngestRequest, group_files, numbered
from tidemark.plan.kinds import plan_of
from tidemark.plan.tasks import Contributed, Replayed, Reread, RereadAnswer, RereadTask
from tidemark.storage.sidecars import ledger, parts_table


@dataclass(frozen=True)
class Correction:
    """A file that was read again: the entry it `had` and its `replays`, the entry it `has` now, and of its letters
    those that `stay_replayed`."""

    had: LedgerEntry
    replays: tuple[LedgerEntry, ...]
    has: LedgerEntry
    stay_replayed: tuple[LedgerEntry, ...] = ()

    @property
    def replayed(self) -> int:
        """How many more of its letters are replayed ones than were; those that are gone are fewer."""
        return _replayed(self.has, self.stay_replayed) - _replayed(self.had, self.replays)


@dataclass(frozen=True)
class Corrections:
    """What became of files that were read again: parts by which they differ, what the ledger is to know of each, and
    the entries of those that cannot be taken. What files said that were `left` stays."""

    answers: tuple[RereadAnswer, ...] = ()
    files: tuple[Correction, ...] = ()
    bad: tuple[LedgerEntry, ...] = ()
    left: tuple[LedgerEntry, ...] = ()
    """Of files as they were, read again for columns, the verdicts on those that cannot be taken as declared today."""
    withdraws: bool = False
    """Whether all files of the interval are one, and say nothing any more: what they said was counted, not written."""

    @property
    def parts(self) -> list[Part]:
        return [part for answer in self.answers for part in answer.parts]

    @property
    def added(self) -> int:
        """Rows, with their multiplicities."""
        return sum(answer.added for answer in self.answers)

    @property
    def retracted(self) -> int:
        """Rows, with their multiplicities."""
        return sum(answer.retracted for answer in self.answers)

    @property
    def event_times(self) -> list[int] | None:
        """When what differs happened, first and last; None if nothing does."""
        bounds = [time for answer in self.answers for time in answer.event_times or ()]
        return [min(bounds), max(bounds)] if bounds else None


def corrected(job: Job, state: Arrangement, request: IngestRequest, batch: str, *, first: int) -> Corrections:
    """Read the request's corrected files again; they are the batch's from number `first` on.

    Raises InvalidUsage where dead letters of one were replayed when nothing was kept to correct by, or history is
    final, FileRefused where one cannot be taken and the collection says `stop`: what it said before stays.
    """
    if not request.corrected:
        return Corrections()
    replays = _replays(job, state, [entry for _, entry in request.corrected])
    again = [_Again(file, entry, replays[entry.path]) for file, entry in request.corrected]
    runner = job.runner()
    tasks = list(_tasks(job, state, request, again, batch, first, runner.parallelism))
    what = f"file{'s' * (len(again) != 1)} again" if request.columns else f"corrected file{'s' * (len(again) != 1)}"
    job.note(f"reading {len(again):,} {what} in {counted(len(tasks), 'task')}")
    answers: list[RereadAnswer] = runner.run("reread", tasks)
    _check_placed(state, request, [part for answer in answers for part in answer.parts])
    read = [entry for answer in answers for entry in answer.entries]
    verdicts = [pair for pair in zip(again, read, strict=True) if pair[1].status is Status.QUARANTINED]
    bad = [entry for file, entry in verdicts if not file.is_as_it_was]
    renamed = {file.identity for file in request.replaced.files}
    bad.sort(key=lambda entry: entry.path not in renamed)
    if bad and (state.collection.landed.source.bad_files == "stop" or bad[0].path in renamed):
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        said = f"what the files of {request.interval} said" if bad[0].path in renamed else "what it said"
        raise FileRefused(f"{bad[0].path}: {bad[0].reason}{more}; {said} before stays; mend the file and run again")
    letters = {entry.replay_of: entry for answer in answers for entry in answer.stay_replayed}
    files = tuple(
        Correction(one.entry, one.replays, new, tuple(_chain(new, letters)))
        for one, new in zip(again, read, strict=True)
        if new.status is not Status.QUARANTINED
    )
    left = tuple(entry for file, entry in verdicts if file.is_as_it_was)
    return Corrections(tuple(answers), files, tuple(bad), left, request.effect is Effect.WITHDRAWN)


def _check_placed(state: Arrangement, request: IngestRequest, parts: Sequence[Part]) -> None:
    """Raise InvalidUsage where facts would be said or retracted among history that is final: an interval that was read
    long before its time may report such facts."""
    first = min((part.first_event_time for part in parts), default=None)
    if state.retracts_facts and first is not None and first <= state.settled:
        raise InvalidUsage(
            f"what differs in the files of {request.interval} happened at {format_instant(first)}, and what happened "
            f"up to {format_instant(state.settled)} is final; {plan_of(state.collection.kind).correction}"
        )


def _replays(job: Job, state: Arrangement, entries: Sequence[LedgerEntry]) -> dict[str, tuple[LedgerEntry, ...]]:
    """What was replayed of each file. InvalidUsage where that cannot be distinguished."""
    found = ledger.replays(job.store, state.ledger, entries)
    for path, replays in found.items():
        if kept_not := [replay for replay in replays if replay.correctable is None]:
            raise InvalidUsage(
                f"{path} changed or is gone, and dead letters of it were replayed as batch {kept_not[0].batch} when "
                "nothing was kept to correct them by; put the correction in a new file, or quarantine that batch first"
            )
    return found


def _chain(entry: LedgerEntry, letters: Mapping[str | None, LedgerEntry]) -> Iterator[LedgerEntry]:
    """The entries that follow on one, each of the late object of the one before."""
    named = letters.get(entry.path)
    while named is not None:
        yield named
        named = letters.get(named.path)


def _tasks(
    job: Job,
    state: Arrangement,
    request: IngestRequest,
    files: Sequence[_Again],
    batch: str,
    first: int,
    parallelism: int,
) -> Iterable[RereadTask]:
    tables: dict[str, tuple[Part, ...]] = {}
    for start, group in numbered(group_files(files, parallelism)):
        numbers: dict[ObjectRef, list[tuple[int, int]]] = {}
        for number, again in enumerate(group, first + start):
            for contribution in contributed_by(again.entry, again.replays):
                numbers.setdefault(contribution.parts, []).append((contribution.number, number))
        for ref in numbers:
            tables[ref.key] = tables.get(ref.key) or parts_table.load(job.store, ref)
        yield RereadTask(
            state.collection,
            request.interval,
            tuple(again.reread for again in group),
            tuple(Contributed(tables[ref.key], tuple(pairs)) for ref, pairs in numbers.items()),
            request.seal,
            state.function,
            batch,
            f"data/{batch}",
            first + start,
            request.effect is not Effect.WITHDRAWN,
        )


@dataclass(frozen=True)
class _Again:
    """A file that is read again, or withdrawn, its entry and the replays of its dead letters."""

    file: SourceFile | None
    entry: LedgerEntry
    replays: tuple[LedgerEntry, ...]

    @property
    def bytes(self) -> int:
        return self.file.bytes if self.file else self.entry.bytes

    @property
    def is_as_it_was(self) -> bool:
        """Whether its bytes are those that were counted."""
        return self.file is not None and self.file.sha256 == self.entry.sha256

    @property
    def reread(self) -> Reread:
        judged, replayed, letters = _correctable(self.entry), [], self.entry.late
        for replay in self.replays:
            assert letters is not None  # else there was nothing to replay
            by = _correctable(replay)
            replayed.append(Replayed(letters, replay.late, by.seal, by.since))
            letters = replay.late
        judged_by = judged.complete_below, judged.seal, judged.since, judged.late
        return Reread(self.entry.path, self.file, *judged_by, tuple(replayed))


def _correctable(entry: LedgerEntry) -> Correctable:
    assert entry.correctable is not None  # others are no part of a request
    return entry.correctable


def _replayed(entry: LedgerEntry, replays: Sequence[LedgerEntry]) -> int:
    return entry.rows_late_discarded - replays[-1].rows_late_discarded if replays else 0


def contributed_by(entry: LedgerEntry, replays: Iterable[LedgerEntry]) -> tuple[Contribution, ...]:
    """What a file contributed, its dead letters that were replayed too."""
    return (*entry.contributed, *(replayed for replay in replays for replayed in replay.contributed))


def contributing(
    state: Arrangement, request: IngestRequest, new: Sequence[LedgerEntry], done: Corrections, table: ObjectRef | None
) -> list[LedgerEntry]:
    """The entries of files that may be corrected, as the ledger is to have them, where the batch's parts are listed in
    `table`: new files, in order, and those that were corrected, with the letters that stay replayed."""
    judged_by, late = (request.complete_below, request.seal, request.since), state.collection.landed.late
    found = [
        replace(entry, correctable=Correctable(*judged_by, contribution(table, number, entry.rows), late=late))
        if entry.status is Status.INGESTED
        else entry
        for number, entry in enumerate(new)
    ]
    unsealed = {batch.id for batch in state.unsealed} | {snapshot.batch for snapshot in state.snapshots}
    numbers = {entry.path: number for number, (_, entry) in enumerate(request.corrected, len(request.files))}
    for file in done.files:
        if done.withdraws:
            judged = replace(_correctable(file.had), contributed=(), replaced=_restorable(file.had, unsealed))
            found.append(replace(file.has, rows=0, correctable=judged))
            continue
        own = _entry_of(file, unsealed, contribution(table, numbers[file.had.path], file.has.rows), request.columns)
        # A file without rows that joined what was announced is taken out with it.
        own = own if own.batch else replace(own, batch=_announced_as(state, request))
        found += [own, *(replace(entry, batch=own.batch) for entry in file.stay_replayed)]
    return found


def _entry_of(
    file: Correction, unsealed: Set[str], written: tuple[Contribution, ...], columns: Set[int]
) -> LedgerEntry:
    """What the ledger is to have of a file that was read again, for some columns; `written` says which parts contain
    what it contributed."""
    had, has, judged = file.had, file.has, _correctable(file.had)
    judged = replace(judged, columns=tuple(sorted({*judged.columns, *columns})))
    if not has.rows and all(replay.batch == had.batch for replay in file.replays):
        return replace(has, batch=had.batch, rows=had.rows, correctable=judged)
    # A file of which nothing was written depends on its last replay: it is valid as long as that is.
    batch = has.batch if has.rows else file.replays[-1].batch
    contributed = (*contributed_by(had, file.replays), *written)
    restored = _restorable(had, unsealed)
    return replace(has, batch=batch, correctable=replace(judged, contributed=contributed, replaced=restored))


def _restorable(had: LedgerEntry, unsealed: Set[str]) -> LedgerEntry:
    """The entry that holds again if a correction is taken out. What was drained cannot be taken out any more, so
    nothing is restored beyond it."""
    return had if had.batch in unsealed else replace(had, correctable=replace(_correctable(had), replaced=None))


def _announced_as(state: Arrangement, request: IngestRequest) -> str | None:
    """The batch that announced the full snapshot of the interval, if it can still be taken out."""
    found = [snapshot for snapshot in state.pending_snapshots if snapshot.interval == request.interval]
    return next((snapshot.batch for snapshot in reversed(found) if snapshot.effect is Effect.ANNOUNCED), None)


def contribution(table: ObjectRef | None, number: int, rows: int) -> tuple[Contribution, ...]:
    """Where a file's rows are, if it has any."""
    return (Contribution(table, number),) if rows and table is not None else ()
