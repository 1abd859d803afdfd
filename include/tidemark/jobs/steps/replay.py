"""Replay: apply dead letters after all, each exactly once, as an unsealed batch like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job, Proposal
from tidemark.jobs.queries.late import late_files
from tidemark.jobs.steps.ingest import recorded_run, sources_of, unsealed_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, PartsTable
from tidemark.model.change import REPLAY, Ingested
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import Contribution, Correctable, LedgerEntry
from tidemark.model.wording import counted
from tidemark.plan.ingest import group_files, numbered
from tidemark.plan.replay import ReplayRequest, plan_replay
from tidemark.plan.tasks import Left, ReplayAnswer, ReplayTask
from tidemark.storage.log.log import Head


def replay(
    job: Job,
    *,
    intervals: Sequence[Interval] = (),
    path: str | None = None,
    batch: str | None = None,
    as_now: bool = False,
) -> dict[str, Any]:
    """Apply the dead letters of some files (chosen as in `late_rows`), learned at the seal: they can be read once the
    seal step has passed that, with or without an interval more.

    They keep their event times where history can still be corrected there; what happened before is left a dead letter,
    and counted under `left`, unless it may apply `as_now`: as if it happened at the seal. Idempotent: each late object
    is a source of its own in the ledger. Raises InvalidUsage for letters that do not fit the declaration any more.
    """

    def propose(head: Head) -> Proposal[Ingested, _Remains]:
        request = _plan(job, head.state, intervals, path, batch)
        if request is None:
            return Proposal(None, _Remains())
        name = job.new_id()
        read = _execute(job, head.state, request, name, as_now)
        remains = _Remains(tuple(left for answer in read for left in answer.left), request.since)
        if not any(answer.parts for answer in read):
            return Proposal(None, remains)
        # Only now, as nothing may have come of it; what others did since the plan the commit finds out all the same.
        _, fence = job.fenced(head, REPLAY, request.interval)
        parts = [part for answer in read for part in answer.parts]
        kept = head.state.collection.landed.reprocess_for > 0
        made = unsealed_batch(job, name, request.interval, parts, learned_at=request.seal, as_object=kept)
        entries = [entry for answer in read for entry in answer.entries]
        entries = _contributing(request, entries, made.parts) if kept else entries
        change = Ingested(
            fence,
            replace(made, difference=True),
            recorded_run(job, entries),
            sources=sources_of(entries),
            rows_late_moved=sum(entry.rows_late_moved for entry in entries),
            rows_replayed=sum(entry.rows for entry in entries),
        )
        return Proposal(change, remains)

    done = job.settle(propose)
    change, remains = done.change, done.found
    result: dict[str, Any] = {"outcome": str(done.outcome), "version": done.head.version, "rows": 0}
    if change is not None:
        result |= {
            "batch": change.batch.id if change.batch else None,
            "rows": change.rows_replayed,
            "moved": change.rows_late_moved,
            "files": len(change.sources),
        }
    return result | {"left": remains.rows, "reason": remains.reason}


def _plan(
    job: Job, state: Arrangement, intervals: Sequence[Interval], path: str | None, batch: str | None
) -> ReplayRequest | None:
    files = late_files(job.store, state, intervals=intervals, path=path, batch=batch)
    return plan_replay(state, [file.last for file in files])


def _execute(job: Job, state: Arrangement, request: ReplayRequest, batch: str, as_now: bool) -> list[ReplayAnswer]:
    runner = job.runner()
    groups = group_files(request.sources, runner.parallelism)
    job.note(f"reading the dead letters of {counted(len(request.sources), 'file')} in {counted(len(groups), 'task')}")
    tasks = [
        ReplayTask(state.collection, group, request.seal, request.since, as_now, batch, f"data/{batch}", first)
        for first, group in numbered(groups)
    ]
    answers: list[ReplayAnswer] = runner.run("replay", tasks)
    written = sum(part.rows for answer in answers for part in answer.parts)
    expected = sum(entry.rows for answer in answers for entry in answer.entries)
    if written != expected:
        raise Corruption(f"the replay wrote {written} rows, {expected} dead letters were to be applied")
    return answers


def _contributing(request: ReplayRequest, entries: Sequence[LedgerEntry], table: PartsTable) -> list[LedgerEntry]:
    """The entries of a replay, as correcting the files of its letters needs them."""
    assert isinstance(table, ObjectRef)  # written as an object
    numbers = {source.path: number for number, source in enumerate(request.sources)}
    judged_by = request.seal, request.seal, request.since
    return [
        replace(entry, correctable=Correctable(*judged_by, (Contribution(table, numbers[entry.path]),)))
        for entry in entries
    ]


@dataclass(frozen=True)
class _Remains:
    """The dead letters that stay so: history below `since` can no longer be corrected."""

    left: tuple[Left, ...] = ()
    since: int = 0

    @property
    def rows(self) -> int:
        return sum(left.rows for left in self.left)

    @property
    def reason(self) -> str | None:
        """Why they were left, with both times, and what would apply them."""
        if not self.left:
            return None
        last = max(left.last_event_time for left in self.left)
        letters, them = ("dead letter", "it") if self.rows == 1 else ("dead letters", "them")
        return (
            f"{self.rows:,} {letters} happened up to {format_instant(last)}, and history below "
            f"{format_instant(self.since)} can no longer be corrected; --as-now applies {them} as of the seal"
        )
