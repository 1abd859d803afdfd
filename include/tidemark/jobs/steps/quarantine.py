"""Quarantine takes a batch out of the collection and frees its source files; release puts it back. Metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidemark.errors import Contention, InvalidUsage
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.reread import contributed_by
from tidemark.model.arrangement import Arrangement, EmptyReading
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import Quarantined, Released
from tidemark.model.ledger import LedgerEntry, Status, late_identity, path_hash
from tidemark.model.transition import Overtaken, Stale
from tidemark.storage.log.log import Committed, Head, Lost
from tidemark.storage.sidecars import ledger


def quarantine(job: Job, batch: str) -> dict[str, Any]:
    """Take an unsealed batch out, so that one bad file does not block every later seal; its files may be mended and
    ingested again. Its data stay, under `quarantined`. Of a file that it corrected what was said before holds again.
    InvalidUsage if the batch is unknown or was drained already, or if dead letters of its files were replayed, or its
    files corrected, by a batch that is still in. Of a derived collection the youngest goes, with what it had consumed.
    """
    head = job.log.load()
    batch = _identified(quarantined_ids(head.state), batch)
    if head.state.collection.is_derived:
        return _committed(job, head, Quarantined(batch, None), batch)
    _check_not_corrected(job, head, batch)
    entries = entries_of(job, head, batch)
    _check_not_replayed(job, head, entries, batch)
    if not entries and any(reading.id == batch for reading in head.state.empty):
        raise InvalidUsage(
            f"{batch} is an interval without files, there is nothing to take out: accept it at the unsealed gate, or "
            "run the interval again when its files are there"
        )
    if not entries:
        raise InvalidUsage(f"the files of batch {batch} were taken by others since; quarantine those batches first")
    freed = [entry.replaced or replace(entry, status=Status.FREED) for entry in entries]
    run = ledger.save_run(job.store, f"ledger/{job.new_id()}.json", freed)
    return _committed(job, head, Quarantined(batch, run, _judged_together(head.state, batch)), batch)


def _judged_together(state: Arrangement, batch: str) -> tuple[str, ...]:
    """What else there is of the batch's interval, where gates judge that as a whole."""
    if not state.collection.judges_whole and not state.collection.min_share:
        return ()
    unsealed: tuple[UnsealedBatch | EmptyReading, ...] = (*state.pending, *state.without_rows)
    interval = next((each.interval for each in unsealed if each.id == batch), None)
    return tuple(each.id for each in unsealed if each.interval == interval and each.id != batch)


def release(job: Job, batch: str) -> dict[str, Any]:
    """Put a quarantined batch back. InvalidUsage if its files were ingested again, or the seal has passed it."""
    head = job.log.load()
    batch = _identified(quarantined_ids(head.state), batch)
    if head.state.collection.is_derived:
        name = head.state.collection.name
        raise InvalidUsage(f"{name} is derived, and computes again what was taken out: run `tidemark correct {name}`")
    entries = entries_of(job, head, batch)
    recorded = [b.rows for b in head.state.quarantined if b.id == batch]
    if not entries or (recorded and sum(entry.rows for entry in entries) != recorded[0]):
        raise InvalidUsage(
            f"the files of batch {batch} were taken by others since, and the ledger no longer knows it; ingest them"
        )
    last = ledger.known(job.store, head.state.ledger, [entry.path for entry in entries])
    zone = head.state.collection.zone
    for entry in entries:
        newer = last[entry.path]
        if entry.replaced is not None:
            if newer != entry.replaced or not _is_as_it_was(job, head, entry, entries):
                raise InvalidUsage(
                    f"{entry.path} was corrected or taken out since; run {entry.interval.in_zone(zone)} again"
                )
        elif newer.status is Status.INGESTED and newer.batch != batch:
            raise InvalidUsage(f"{entry.path} was ingested again as batch {newer.batch}; quarantine that batch first")
    entries = _with_their_letters(job, head, entries)
    claimed = [replace(entry, status=Status.INGESTED) for entry in entries]
    run = ledger.save_run(job.store, f"ledger/{job.new_id()}.json", claimed)
    sources = tuple(sorted(path_hash(entry.path) for entry in entries))
    return _committed(job, head, Released(batch, run, sources), batch)


def _check_not_replayed(job: Job, head: Head, entries: Sequence[LedgerEntry], batch: str) -> None:
    """A mended file brings its dead letters again: those of the old one must not count then. Letters that a correction
    found replayed go with it."""
    letters = {late_identity(entry.late): entry.path for entry in entries if entry.late is not None}
    for name, replay in ledger.known(job.store, head.state.ledger, list(letters)).items():
        if replay.status is Status.INGESTED and replay.batch != batch:
            raise InvalidUsage(
                f"dead letters of {letters[name]} were replayed as batch {replay.batch}; quarantine that batch first"
            )


def _check_not_corrected(job: Job, head: Head, batch: str) -> None:
    """A correction is the difference to what its file said before, and to what was replayed of it: it goes first. Only
    the newest entry of a file has all entries that it depends on, as merges of the ledger drop those before."""
    dependencies: list[tuple[LedgerEntry, LedgerEntry]] = []
    for last in ledger.entries(job.store, head.state.ledger):
        before = last.replaced if last.status is Status.INGESTED else None
        while before is not None:
            dependencies += [(last, before)] if before.batch == batch or before.late is not None else []
            before = before.replaced
    replayed = ledger.replays(job.store, head.state.ledger, [before for _, before in dependencies])
    for last, before in dependencies:
        replays = (replay.batch for replay in replayed[before.path])
        if before.batch == batch or (last.batch != batch and batch in replays):
            raise InvalidUsage(f"{last.path} was corrected as batch {last.batch}; quarantine that batch first")


def _is_as_it_was(job: Job, head: Head, entry: LedgerEntry, entries: Sequence[LedgerEntry]) -> bool:
    """Whether a correction differs still from what its file said before and from what was replayed of it, where
    `entries` count again."""
    assert entry.replaced is not None
    if head.state.collection.kind.whole_intervals:
        return True  # a full snapshot has no dead letters; withdrawn, it has contributed nothing
    claimed = {one.path: replace(one, status=Status.INGESTED) for one in entries if one.replay_of is not None}
    replays = ledger.replays(job.store, head.state.ledger, [entry.replaced], claimed=claimed)
    before = contributed_by(entry.replaced, replays[entry.path])
    own = 1 if entry.rows else 0
    return entry.contributed[: len(entry.contributed) - own] == before


def _with_their_letters(job: Job, head: Head, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """The entries to put back: without letters of readings that others of these have replaced. Dead letters count again
    only if the file they came in still does, as it was or as it is put back with them; else InvalidUsage."""
    claimed = {entry.path: replace(entry, status=Status.INGESTED) for entry in entries}
    files = _files_of(job, head, [entry for entry in entries if entry.replay_of is not None])
    now = ledger.known(job.store, head.state.ledger, [file.path for file in files.values()])
    count = [file for file in now.values() if file.status is Status.INGESTED]
    count += [entry for entry in entries if entry.replay_of is None]
    chains = ledger.replays(job.store, head.state.ledger, count, claimed=claimed)
    there = {replay.path for chain in chains.values() for replay in chain}
    for letters, file in files.items():
        if letters not in there and file.path not in claimed:
            raise InvalidUsage(
                f"the dead letters of batch {claimed[letters].batch} came in {file.path}, which was taken out or "
                f"ingested again; replay the dead letters of what counts now"
            )
    return [entry for entry in entries if entry.path not in files or entry.path in there]


def _files_of(job: Job, head: Head, replays: Sequence[LedgerEntry]) -> dict[str, LedgerEntry]:
    """The file that the letters of each replay came in, or some entry of it, by the path of the replay."""
    files = {replay.path: replay for replay in replays}
    while above := {path: of.replay_of for path, of in files.items() if of.replay_of is not None}:
        known = ledger.known(job.store, head.state.ledger, list(above.values()))
        files |= {path: known[name] for path, name in above.items()}
    return files


def quarantined_ids(state: Arrangement) -> list[str]:
    """What can be taken out and put back: batches, and intervals and full snapshots without rows, which have none."""
    batches = [batch.id for batch in (*state.unsealed, *state.ahead, *state.quarantined)]
    snapshots = [snapshot.batch for snapshot in state.snapshots if not snapshot.rows]
    return list(dict.fromkeys([*batches, *snapshots, *(reading.id for reading in state.empty)]))


def _identified(batches: list[str], asked: str) -> str:
    """The one batch whose id starts with what was asked."""
    found = [batch for batch in batches if batch.startswith(asked)]
    if len(found) != 1:
        raise InvalidUsage(
            f"{'no' if not found else 'more than one'} unsealed or quarantined batch is called {asked!r}"
        )
    return found[0]


def entries_of(job: Job, head: Head, batch: str) -> list[LedgerEntry]:
    """What the ledger says of the files of a batch: of each the newest entry that names it, under its newest name."""
    runs = (ledger.scan(job.store, run) for run in head.state.ledger)
    entries = {e.path: e for run in runs for e in run if e.batch == batch}
    last = ledger.known(job.store, head.state.ledger, list(entries))
    return [entry for path, entry in entries.items() if not last[path].is_silent]


def _committed(job: Job, head: Head, change: Quarantined | Released, batch: str) -> dict[str, Any]:
    outcome = job.log.commit(head, change)
    if isinstance(outcome, Stale):
        if isinstance(outcome, Lost | Overtaken):
            raise Contention(outcome.reason)
        raise InvalidUsage(outcome.reason)
    assert isinstance(outcome, Committed)
    done = Outcome.APPLIED if outcome.fresh else Outcome.ALREADY_APPLIED
    return {"outcome": str(done), "version": outcome.head.version, "batch": batch}
