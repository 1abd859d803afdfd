"""Quarantine takes a batch out of the collection and frees its source files; release puts it back. Metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.job import Job, Outcome
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Quarantined, Released
from tidemark.model.ledger import LedgerEntry, Status, late_identity, path_hash
from tidemark.model.transition import Overtaken, Stale
from tidemark.storage.log.log import Committed, Head, Lost
from tidemark.storage.sidecars import ledger


def quarantine(job: Job, batch: str) -> dict[str, Any]:
    """Take an unsealed batch out, so that one bad file does not block every later seal; its files may be mended and
    ingested again. Its data stay, under `quarantined`. Of a file that it corrected what was said before holds again.
    InvalidUsage if the batch is unknown or was drained already, or if dead letters of its files were replayed, or its
    files corrected, by a batch that is still in.
    """
    head = job.log.load()
    batch = _identified(_held(head.state), batch)
    _check_not_corrected(job, head, batch)
    entries = _entries(job, head, batch)
    _check_not_replayed(job, head, entries)
    freed = [entry.replaced or replace(entry, status=Status.FREED) for entry in entries]
    run = ledger.save_run(job.store, f"ledger/{job.new_id()}.json", freed)
    return _committed(job, head, Quarantined(batch, run), batch)


def release(job: Job, batch: str) -> dict[str, Any]:
    """Put a quarantined batch back. InvalidUsage if its files were ingested again, or the seal has passed it."""
    head = job.log.load()
    batch = _identified(_held(head.state), batch)
    entries = _entries(job, head, batch)
    held = [b.rows for b in head.state.quarantined if b.id == batch]
    if held and sum(entry.rows for entry in entries) != held[0]:
        raise InvalidUsage(
            f"the files of batch {batch} were taken by others since, and the ledger knows it no more; ingest them again"
        )
    last = ledger.known(job.store, head.state.ledger, [entry.path for entry in entries])
    for entry in entries:
        newer = last[entry.path]
        if entry.replaced is not None:
            if newer != entry.replaced:
                raise InvalidUsage(f"{entry.path} was corrected or taken out since; run {entry.interval} again")
        elif newer.status is Status.INGESTED and newer.batch != batch:
            raise InvalidUsage(f"{entry.path} was ingested again as batch {newer.batch}; quarantine that batch first")
    _check_letters_are_there(job, head, entries)
    claimed = [replace(entry, status=Status.INGESTED) for entry in entries]
    run = ledger.save_run(job.store, f"ledger/{job.new_id()}.json", claimed)
    sources = tuple(sorted(path_hash(entry.path) for entry in entries))
    return _committed(job, head, Released(batch, run, sources), batch)


def _check_not_replayed(job: Job, head: Head, entries: Sequence[LedgerEntry]) -> None:
    """A mended file brings its dead letters again: those of the old one must not count then."""
    letters = {late_identity(entry.late): entry.path for entry in entries if entry.late is not None}
    for name, replay in ledger.known(job.store, head.state.ledger, list(letters)).items():
        if replay.status is Status.INGESTED:
            raise InvalidUsage(
                f"dead letters of {letters[name]} were replayed as batch {replay.batch}; quarantine that batch first"
            )


def _check_not_corrected(job: Job, head: Head, batch: str) -> None:
    """A correction is the difference to what was said before: it goes first. Only the last word on a file tells of all
    it stands upon, as merges of the ledger drop those before."""
    for last in ledger.entries(job.store, head.state.ledger):
        before = last.replaced if last.status is Status.INGESTED else None
        while before is not None:
            if before.batch == batch:
                raise InvalidUsage(f"{last.path} was corrected as batch {last.batch}; quarantine that batch first")
            before = before.replaced


def _check_letters_are_there(job: Job, head: Head, entries: Sequence[LedgerEntry]) -> None:
    """Dead letters count again only if the file they came in still does, as it was."""
    replays = {entry.replay_of: entry for entry in entries if entry.replay_of is not None}
    for path, named in ledger.known(job.store, head.state.ledger, list(replays)).items():
        if named.status is not Status.INGESTED or named.late is None or late_identity(named.late) != replays[path].path:
            raise InvalidUsage(
                f"the dead letters of batch {replays[path].batch} came in {path}, which was taken out or ingested "
                f"again; replay the dead letters of what counts now"
            )


def _held(state: Arrangement) -> list[str]:
    """What can be taken out and put back: batches, and full snapshots without rows, which have none."""
    batches = [held.id for held in (*state.unsealed, *state.quarantined)]
    return [*batches, *(snapshot.batch for snapshot in state.snapshots if not snapshot.rows)]


def _identified(batches: list[str], asked: str) -> str:
    """The one batch whose id starts with what was asked."""
    found = [batch for batch in batches if batch.startswith(asked)]
    if len(found) != 1:
        raise InvalidUsage(
            f"{'no' if not found else 'more than one'} unsealed or quarantined batch is called {asked!r}"
        )
    return found[0]


def _entries(job: Job, head: Head, batch: str) -> list[LedgerEntry]:
    """What the ledger says of the files of a batch: of each the newest entry that names the batch."""
    runs = (ledger.scan(job.store, run) for run in head.state.ledger)
    return list({e.path: e for run in runs for e in run if e.batch == batch}.values())


def _committed(job: Job, head: Head, change: Quarantined | Released, batch: str) -> dict[str, Any]:
    outcome = job.log.commit(head, change)
    if isinstance(outcome, Stale):
        if isinstance(outcome, Lost | Overtaken):
            raise Contention(outcome.reason)
        raise InvalidUsage(outcome.reason)
    assert isinstance(outcome, Committed)
    done = Outcome.APPLIED if outcome.fresh else Outcome.ALREADY_APPLIED
    return {"outcome": str(done), "version": outcome.head.version, "batch": batch}
