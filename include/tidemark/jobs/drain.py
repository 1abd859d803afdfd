"""Drain: move what is sealed from unsealed to the trace, as one level-0 batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job
from tidemark.jobs.trim import trim
from tidemark.jobs.write import check_sums, trace_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part
from tidemark.model.change import Drained
from tidemark.model.frontier import IDENTITY
from tidemark.model.interval import Interval
from tidemark.plan.drain import DrainRequest, plan_drain
from tidemark.plan.ranges import overlaps, split_keys
from tidemark.plan.tasks import KeyRange, MergeTask, ResolveTask, WriteAnswer
from tidemark.storage import parts_table
from tidemark.storage.log import Head

TASK_ROWS = 1_000_000
"""Rows a task merges: seconds of work, far above a task's fixed cost, far below an executor's memory."""


def drain(job: Job, interval: Interval) -> dict[str, Any]:
    """Move `[trace_upper, seal)` into the trace; afterwards the trace upper is at the seal. `interval` names the run.

    Idempotent, and right whatever drained meanwhile. Raises Unvouched without the certificates of the gates before it.
    """
    read: list[WriteAnswer] = []

    def change_for(head: Head) -> Drained | None:
        read.clear()
        request = plan_drain(head.state)
        if request is None:
            return None
        head, fence = job.fenced(head, "drain", interval)
        batch = job.new_id()
        read.extend(_execute(job, head.state, request, batch))
        parts = [part for answer in read for part in answer.parts]
        return Drained(fence, trace_batch(job, batch, request.description, 0, parts))

    head, change, fresh = job.commit_until_fit(change_for)
    trimmed = trim(job, interval)
    result: dict[str, Any] = {
        "outcome": "nothing to do",
        "version": head.version,
        "trace_upper": head.state.trace_upper,
    }
    if isinstance(change, Drained):
        result |= {
            "outcome": "applied" if fresh else "already applied",
            "batch": change.batch.id,
            "rows": change.batch.rows,
            "rows_read": sum(answer.rows_read for answer in read),
            "bytes_read": sum(answer.bytes_read for answer in read),
            "bytes_written": change.batch.bytes,
        }
    if trimmed:
        result |= {"trimmed": trimmed, "version": job.log.load().version}
    return result


def _execute(job: Job, state: Arrangement, request: DrainRequest, batch: str) -> list[WriteAnswer]:
    if not request.batches:
        return []
    tasks = (
        _resolve_tasks(job, state, request, batch)
        if state.collection.keyed
        else _merge_tasks(job, state, request, batch)
    )
    job.note(f"draining {sum(held.rows for held in request.batches)} rows in {len(tasks)} tasks")
    answers: list[WriteAnswer] = job.runner().run("resolve" if state.collection.keyed else "merge", tasks)
    _check_complete(request, answers)
    if not state.collection.keyed:
        check_sums(answers)
    return answers


def _merge_tasks(job: Job, state: Arrangement, request: DrainRequest, batch: str) -> list[MergeTask]:
    parts = _of_interval(parts_table.parts_of(job.store, request.batches), request)
    description = request.description
    return [
        MergeTask(
            state.collection,
            tuple(part for part in parts if overlaps(part, keys)),
            keys,
            description.lower,
            description.upper,
            IDENTITY,
            f"data/{batch}",
        )
        for keys in split_keys(parts, target_rows=TASK_ROWS)
    ]


def _resolve_tasks(job: Job, state: Arrangement, request: DrainRequest, batch: str) -> list[ResolveTask]:
    new = _of_interval(parts_table.parts_of(job.store, request.batches), request)
    facts = parts_table.parts_of(job.store, request.remembered)
    trace = parts_table.parts_of(job.store, request.trace)
    description = request.description

    def held(parts: Sequence[Part], keys: KeyRange) -> tuple[Part, ...]:
        return tuple(part for part in parts if overlaps(part, keys))

    return [
        ResolveTask(
            state.collection,
            held(facts, keys),
            held(trace, keys),
            keys,
            description.lower,
            description.upper,
            request.horizon,
            f"data/{batch}",
        )
        for keys in split_keys(new, target_rows=TASK_ROWS)
    ]


def _of_interval(parts: Sequence[Part], request: DrainRequest) -> list[Part]:
    lower, upper = request.description.lower, request.description.upper
    return [part for part in parts if part.first_time < upper and part.last_time >= lower]


def _check_complete(request: DrainRequest, answers: Sequence[WriteAnswer]) -> None:
    """Every row of batches that lie wholly in the interval was read, and no more than the others can hold."""
    lower, upper = request.description.lower, request.description.upper
    inside = [batch for batch in request.batches if batch.first_time >= lower and batch.last_time < upper]
    least, most = sum(batch.rows for batch in inside), sum(batch.rows for batch in request.batches)
    read = sum(answer.rows_read for answer in answers)
    if not least <= read <= most:
        raise Corruption(f"the drain of {request.description} read {read} rows, its batches hold {least} to {most}")
