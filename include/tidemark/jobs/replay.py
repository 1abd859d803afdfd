"""Replay: apply dead letters after all, each exactly once, as an unsealed batch like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.ingest import recorded_run, sources_of, unsealed_batch
from tidemark.jobs.job import Job
from tidemark.jobs.late import late_files
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import REPLAY, Ingested
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.ingest import group_files
from tidemark.plan.replay import ReplayRequest, plan_replay
from tidemark.plan.tasks import Left, ReplayAnswer, ReplayTask
from tidemark.storage.log import Head


def replay(
    job: Job,
    *,
    intervals: Sequence[Interval] = (),
    path: str | None = None,
    batch: str | None = None,
    as_now: bool = False,
) -> dict[str, Any]:
    """Apply the dead letters of some files (chosen as in `late_rows`), learned at the seal.

    They keep their event times where history can still be corrected there; what happened before is left a dead letter,
    and counted under `left`, unless it may apply `as_now`: as if it happened at the seal. Idempotent: each late object
    is a source of its own in the ledger. Raises InvalidUsage for letters that do not fit the declaration any more.
    """
    read: list[ReplayAnswer] = []
    planned: list[ReplayRequest] = []

    def change_for(head: Head) -> Ingested | None:
        read.clear()
        planned.clear()
        request = _plan(job, head.state, intervals, path, batch)
        if request is None:
            return None
        planned.append(request)
        name = job.new_id()
        read.extend(_execute(job, head.state, request, name, as_now))
        if not any(answer.parts for answer in read):
            return None
        # Only now, as nothing may have come of it; what others did since the plan the commit finds out all the same.
        _, fence = job.fenced(head, REPLAY, request.interval)
        entries = [entry for answer in read for entry in answer.entries]
        return Ingested(
            fence,
            unsealed_batch(job, name, request.interval, [part for answer in read for part in answer.parts]),
            recorded_run(job, entries),
            sources=sources_of(entries),
            rows_late_moved=sum(entry.rows_late_moved for entry in entries),
            rows_replayed=sum(entry.rows for entry in entries),
        )

    head, change, fresh = job.commit_until_fit(change_for)
    left = [remains for answer in read for remains in answer.left]
    result: dict[str, Any] = {"outcome": "nothing to do", "version": head.version, "rows": 0}
    if isinstance(change, Ingested):
        result |= {
            "outcome": "applied" if fresh else "already applied",
            "batch": change.batch.id if change.batch else None,
            "rows": change.rows_replayed,
            "moved": change.rows_late_moved,
            "files": len(change.sources),
        }
    return result | {"left": sum(remains.rows for remains in left), "reason": _reason(left, planned)}


def _plan(
    job: Job, state: Arrangement, intervals: Sequence[Interval], path: str | None, batch: str | None
) -> ReplayRequest | None:
    files = late_files(job.store, state, intervals=intervals, path=path, batch=batch)
    return plan_replay(state, [file.last for file in files])


def _execute(job: Job, state: Arrangement, request: ReplayRequest, batch: str, as_now: bool) -> list[ReplayAnswer]:
    runner = job.runner()
    groups = group_files(request.sources, runner.parallelism)
    job.note(f"reading the dead letters of {len(request.sources)} files in {len(groups)} tasks")
    tasks = [
        ReplayTask(state.collection, group, request.seal, request.since, as_now, batch, f"data/{batch}")
        for group in groups
    ]
    answers: list[ReplayAnswer] = runner.run("replay", tasks)
    written = sum(part.rows for answer in answers for part in answer.parts)
    counted = sum(entry.rows for answer in answers for entry in answer.entries)
    if written != counted:
        raise Corruption(f"the replay wrote {written} rows, {counted} dead letters were to be applied")
    return answers


def _reason(left: Sequence[Left], planned: Sequence[ReplayRequest]) -> str | None:
    """Why dead letters were left, with both times, and what would apply them."""
    if not left:
        return None
    rows, last = sum(remains.rows for remains in left), max(remains.last_event_time for remains in left)
    letters, them = ("dead letter", "it") if rows == 1 else ("dead letters", "them")
    return (
        f"{rows:,} {letters} happened up to {format_instant(last)}, and history below "
        f"{format_instant(planned[-1].since)} can no longer be corrected; --as-now applies {them} as of the seal"
    )
