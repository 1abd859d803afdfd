"""Correcting files that an ingest meets again with another content: what they differ by joins the interval's batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidemark.errors import GateFailed, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.ledger import Contribution, Correctable, LedgerEntry, SourceFile, Status, late_identity
from tidemark.plan.ingest import IngestRequest, group_files, numbered
from tidemark.plan.tasks import Contributed, CorrectAnswer, CorrectTask, Reread
from tidemark.storage.sidecars import ledger, parts_table


@dataclass(frozen=True)
class Corrections:
    """What became of files that were read again: parts by which they differ, and of each the entry it had and has."""

    answers: tuple[CorrectAnswer, ...] = ()
    entries: tuple[tuple[LedgerEntry, LedgerEntry], ...] = ()
    bad: tuple[LedgerEntry, ...] = ()

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

    Raises InvalidUsage where dead letters of one were replayed, GateFailed where one cannot be taken and the collection
    says `stop`: what it said before stays.
    """
    if not request.corrected:
        return Corrections()
    _check_not_replayed(job, state, [entry for _, entry in request.corrected])
    runner = job.runner()
    tasks = list(_tasks(job, state, request, batch, first, runner.parallelism))
    job.note(f"reading {len(request.corrected)} corrected files in {len(tasks)} tasks")
    answers: list[CorrectAnswer] = runner.run("correct", tasks)
    read = [entry for answer in answers for entry in answer.entries]
    bad = [entry for entry in read if entry.status is Status.QUARANTINED]
    if bad and state.collection.landed.source.bad_files == "stop":
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise GateFailed(
            f"{bad[0].path}: {bad[0].reason}{more}; what it said before stays; mend the file and run again"
        )
    taken = zip((entry for _, entry in request.corrected), read, strict=True)
    entries = tuple((old, new) for old, new in taken if new.status is not Status.QUARANTINED)
    return Corrections(tuple(answers), entries, tuple(bad))


def _check_not_replayed(job: Job, state: Arrangement, entries: Sequence[LedgerEntry]) -> None:
    letters = {late_identity(entry.late): entry.path for entry in entries if entry.late is not None}
    for name, replay in ledger.known(job.store, state.ledger, list(letters)).items():
        if replay.status is Status.INGESTED:
            raise InvalidUsage(
                f"{letters[name]} changed or is gone, and dead letters of it were replayed as batch {replay.batch}, "
                "which is no part of what it says now; put the correction in a new file, or quarantine that batch first"
            )


def _tasks(
    job: Job, state: Arrangement, request: IngestRequest, batch: str, first: int, parallelism: int
) -> Iterable[CorrectTask]:
    tables: dict[str, tuple[Part, ...]] = {}
    for start, group in numbered(group_files([_Again(*pair) for pair in request.corrected], parallelism)):
        held: dict[ObjectRef, list[tuple[int, int]]] = {}
        for number, again in enumerate(group, first + start):
            for contribution in again.entry.contributed:
                held.setdefault(contribution.parts, []).append((contribution.number, number))
        for ref in held:
            tables[ref.key] = tables.get(ref.key) or parts_table.load(job.store, ref)
        yield CorrectTask(
            state.collection,
            request.interval,
            tuple(again.reread for again in group),
            tuple(Contributed(tables[ref.key], tuple(pairs)) for ref, pairs in held.items()),
            request.seal,
            state.function,
            batch,
            f"data/{batch}",
            first + start,
        )


@dataclass(frozen=True)
class _Again:
    """A file that is read again, or withdrawn, and its entry."""

    file: SourceFile | None
    entry: LedgerEntry

    @property
    def bytes(self) -> int:
        return self.file.bytes if self.file else self.entry.bytes

    @property
    def reread(self) -> Reread:
        judged = _correctable(self.entry)
        return Reread(self.entry.path, self.file, judged.complete_below, judged.seal, judged.since)


def _correctable(entry: LedgerEntry) -> Correctable:
    assert entry.correctable is not None  # others are no part of a request
    return entry.correctable


def contributing(
    state: Arrangement, request: IngestRequest, new: Sequence[LedgerEntry], done: Corrections, table: ObjectRef | None
) -> list[LedgerEntry]:
    """The entries of files that may be corrected, as the ledger is to have them, where the batch's parts are told in
    `table`: new files, in order, and those that were corrected."""
    judged_by = (request.complete_below, request.seal, request.since)
    found = [
        replace(entry, correctable=Correctable(*judged_by, _contribution(table, number, entry.rows)))
        if entry.status is Status.INGESTED
        else entry
        for number, entry in enumerate(new)
    ]
    unsealed = {batch.id for batch in state.unsealed}
    numbers = {entry.path: number for number, (_, entry) in enumerate(request.corrected, len(request.files))}
    for old, entry in done.entries:
        judged = _correctable(old)
        if not entry.rows:
            found.append(replace(entry, batch=old.batch, rows=old.rows, correctable=judged))
            continue
        # What was drained cannot be taken out any more, so nothing is restored beyond it.
        before = old if old.batch in unsealed else replace(old, correctable=replace(judged, replaced=None))
        contributed = (*judged.contributed, *_contribution(table, numbers[old.path], entry.rows))
        found.append(replace(entry, correctable=replace(judged, contributed=contributed, replaced=before)))
    return found


def _contribution(table: ObjectRef | None, number: int, rows: int) -> tuple[Contribution, ...]:
    return (Contribution(table, number),) if rows and table is not None else ()
