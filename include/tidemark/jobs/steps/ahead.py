"""Rows stored ahead: a drain puts there what is not due yet, and `settle` sorts it by how far ahead it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemark.jobs.job import Job
from tidemark.jobs.steps.ingest import unsealed_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, UnsealedBatch
from tidemark.model.change import AheadMerged
from tidemark.model.interval import Interval
from tidemark.plan.drain import DrainRequest
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.tasks import MergeTask, WriteAnswer
from tidemark.plan.undue import Rows, SettleRequest, check, check_output, plan_settle, settle_tasks, stage
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import parts_table


def set_ahead(
    job: Job, state: Arrangement, request: DrainRequest, parts: PartsOf
) -> tuple[tuple[str, ...], tuple[UnsealedBatch, ...]]:
    """What the drain of a request, whose batches' `parts` were opened, leaves: the batches that give way, by id, and
    what they give way to. Parts are taken as they are; nothing is read."""
    if not state.collection.kind.waits_ahead:
        return (), ()
    left = list(request.still_to_come)
    for batch in request.unsealed.batches:
        kept = request.still_ahead(batch, parts)
        if kept and len(kept) < batch.part_count:
            left.append(replace(_batch_of(job, batch.id, batch.interval, kept), trimmed=True, level=batch.level))
        elif kept and batch not in state.ahead:
            left.append(batch)
    return tuple(batch.id for batch in left), tuple(left)


def settle(job: Job, interval: Interval) -> list[AheadMerged]:
    """Sort the rows stored ahead by time buckets, as far as that is due (plan/undue.py). Return the merges.
    `interval` names the run."""
    return [*iter(lambda: _settle_once(job, interval), None)]


def _settle_once(job: Job, interval: Interval) -> AheadMerged | None:
    def change_for(head: Head) -> AheadMerged | None:
        staged = stage(head.state)
        if not staged:
            return None
        tables = {batch.id: parts_table.load(job.store, batch.parts) for batch in staged}
        request = plan_settle(head.state, staged, tables)
        head, fence = job.fenced(head, "settle", interval)
        batches, answers = execute(job, head.state, request)
        written = sum(part.file.bytes for answer in answers for part in answer.parts)
        return AheadMerged(fence, tuple(batch.id for batch in request.inputs), batches, written)

    return job.commit_until_fit(change_for).change


def execute(
    job: Job, state: Arrangement, request: SettleRequest
) -> tuple[tuple[UnsealedBatch, ...], list[WriteAnswer]]:
    """Write what a request asks for; the batches, not yet committed, and what was answered. Corruption where a part is
    not as recorded, or sums do not agree."""
    total = sum(batch.rows for batch in request.inputs)
    job.note(f"sorting {total} rows ahead, of {len(request.inputs)} batches, into {len(request.outputs)}")
    batches: list[UnsealedBatch] = []
    read: list[WriteAnswer] = []
    taken = 0
    for rows in request.outputs:
        identity = job.new_id()
        parts = (*parts_table.parts_of(job.store, rows.batches), *rows.parts)
        if rows.as_they_are:
            taken += sum(part.rows for part in parts)
        else:
            answers = _merged(job, state, request, rows, parts, f"data/{identity}")
            parts = tuple(part for answer in answers for part in answer.parts)
            read += answers
        if parts:
            batches.append(replace(_batch_of(job, identity, request.interval, parts), level=request.level))
    check(request, parts_table.parts_of(job.store, request.inputs), read, taken)
    return tuple(batches), read


def _merged(
    job: Job, state: Arrangement, request: SettleRequest, rows: Rows, parts: Sequence[Part], prefix: str
) -> list[WriteAnswer]:
    tasks = settle_tasks(state.collection, request, rows, parts, target_rows=TASK_ROWS, prefix=prefix)
    answers: list[WriteAnswer] = job.runner().run(MergeTask.kernel, tasks)
    check_output(rows, parts, answers, state.collection.schema)
    return answers


def _batch_of(job: Job, identity: str, interval: Interval, parts: Sequence[Part]) -> UnsealedBatch:
    return unsealed_batch(job, identity, interval, parts, learned_at=None)
