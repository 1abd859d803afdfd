"""Drain: move what is sealed from unsealed to the trace, as one level-0 batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidemark.jobs.job import Job, Proposal
from tidemark.jobs.steps.ahead import set_ahead
from tidemark.jobs.steps.trim import trim
from tidemark.jobs.steps.write import trace_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS
from tidemark.model.change import UNMATCHED, Drained
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.wording import counted
from tidemark.plan.drain import DrainRequest, plan_drain
from tidemark.plan.kinds import plan_of, tasks_of
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.tasks import WriteAnswer
from tidemark.plan.unsealed import PartsOf
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import parts_table


def drain(job: Job, interval: Interval) -> dict[str, Any]:
    """Move `[trace_upper, seal)` into the trace; afterwards the trace upper is at the seal. `interval` names the run.

    Idempotent, and right whatever drained meanwhile. Raises Uncertified without the certificates of the gates before
    it.
    """

    def propose(head: Head) -> Proposal[Drained, list[WriteAnswer]]:
        request = plan_drain(head.state)
        if request is None:
            return Proposal(None, [])
        head, fence = job.fenced(head, "drain", interval)
        batch = job.new_id()
        unsealed, tables = parts_table.opened(job.store, request.unsealed)
        read = execute(job, head.state, replace(request, unsealed=unsealed), tables, batch)
        parts = [part for answer in read for part in answer.parts]
        taken_over = any(answer.taken_over for answer in read)
        opened, ahead = set_ahead(job, head.state, request, tables)
        drained = trace_batch(job, batch, request.description, 0, parts)
        unmatched = sum(answer.unmatched for answer in read)
        return Proposal(Drained(fence, drained, taken_over, opened, ahead, unmatched), read)

    done = job.settle(propose)
    trimmed = trim(job, interval)
    head, change, read = done.head, done.change, done.found
    result: dict[str, Any] = {
        "outcome": str(done.outcome),
        "version": head.version,
        "trace_upper": head.state.trace_upper,
        "trace_upper_text": format_instant(head.state.trace_upper),
    }
    if change is not None:
        result |= {
            "batch": change.batch.id,
            "rows": change.batch.rows,
            "rows_read": sum(answer.rows_read for answer in read),
            "bytes_read": sum(answer.bytes_read for answer in read),
            "bytes": change.batch.bytes,
            "bytes_written": 0 if change.taken_over else change.batch.bytes,
            "images_unmatched": change.unmatched,
        }
        if change.unmatched:
            job.note(
                f"{counted(change.unmatched, 'before-image')} {UNMATCHED}: messages may be missing, or were changed on "
                "their way; rows are as the messages after them say"
            )
    if trimmed:
        result |= {"trimmed": trimmed, "version": job.log.load().version}
    return result


def execute(job: Job, state: Arrangement, request: DrainRequest, parts: PartsOf, batch: str) -> list[WriteAnswer]:
    """Write what a request, whose batches were opened, asks for as parts of `batch`, not yet committed. Corruption
    where sums do not agree. Where parts of ingests are what it would write, these are taken over."""
    if request.unsealed.is_empty:
        return []
    collection, unsealed = state.collection, request.unsealed
    plan = plan_of(collection.kind)
    if taken := plan.taken_over(collection, unsealed, parts):
        rows, digest = sum(part.rows for part in taken), sum(part.digest for part in taken) % DIGEST_MODULUS
        answers = [WriteAnswer(taken, rows, digest, 0, taken_over=True)]
    else:
        tasks = tasks_of(collection, unsealed, parts, target_rows=TASK_ROWS, prefix=f"data/{batch}")
        job.note(
            f"draining {counted(sum(one.rows for one in unsealed.batches), 'row')} in {counted(len(tasks), 'task')}"
        )
        answers = job.runner().run(tasks[0].kernel, tasks) if tasks else []
    plan.check(collection, unsealed, parts, answers)
    return answers
