"""Quarantine takes a batch out of the collection and frees its source files; release puts it back. Metadata only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Quarantined, Released
from tidemark.model.ledger import LedgerEntry, Status, path_hash
from tidemark.model.transition import Stale
from tidemark.storage import ledger
from tidemark.storage.log import Committed, Head


def quarantine(job: Job, batch: str) -> dict[str, Any]:
    """Take an unsealed batch out, so that one bad file does not block every later seal; its files may be mended and
    ingested again. Its data stay, under `quarantined`. InvalidUsage if the batch is unknown or was drained already.
    """
    head = job.log.load()
    batch = _identified(_held(head.state), batch)
    freed = [replace(entry, status=Status.FREED) for entry in _entries(job, head, batch)]
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
        if newer.status is Status.INGESTED and newer.batch != batch:
            raise InvalidUsage(f"{entry.path} was ingested again as batch {newer.batch}; quarantine that batch first")
    claimed = [replace(entry, status=Status.INGESTED) for entry in entries]
    run = ledger.save_run(job.store, f"ledger/{job.new_id()}.json", claimed)
    sources = tuple(sorted(path_hash(entry.path) for entry in entries))
    return _committed(job, head, Released(batch, run, sources), batch)


def _held(state: Arrangement) -> list[str]:
    """What can be taken out and put back: batches, and dumps without rows, which have none."""
    batches = [held.id for held in (*state.unsealed, *state.quarantined)]
    return [*batches, *(dump.batch for dump in state.dumps if not dump.rows)]


def _identified(batches: list[str], asked: str) -> str:
    """The one batch whose id starts with what was asked."""
    found = [batch for batch in batches if batch.startswith(asked)]
    if len(found) != 1:
        raise InvalidUsage(
            f"{'no' if not found else 'more than one'} unsealed or quarantined batch is called {asked!r}"
        )
    return found[0]


def _entries(job: Job, head: Head, batch: str) -> list[LedgerEntry]:
    """What the ledger says of the files of a batch, the last word each batch had on them."""
    runs = (ledger.scan(job.store, run) for run in head.state.ledger)
    return list({e.path: e for run in runs for e in run if e.batch == batch}.values())


def _committed(job: Job, head: Head, change: Quarantined | Released, batch: str) -> dict[str, Any]:
    outcome = job.log.commit(head, change)
    if isinstance(outcome, Stale):
        if "another run" in outcome.reason:
            raise Contention(outcome.reason)
        raise InvalidUsage(outcome.reason)
    assert isinstance(outcome, Committed)
    done = "applied" if outcome.fresh else "already applied"
    return {"outcome": done, "version": outcome.head.version, "batch": batch}
