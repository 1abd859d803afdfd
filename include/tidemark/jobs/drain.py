"""Drain: move what is sealed from unsealed to the trace, as one level-0 batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job, Proposal
from tidemark.jobs.trim import trim
from tidemark.jobs.write import check_sums, trace_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.change import Drained
from tidemark.model.frontier import IDENTITY
from tidemark.model.interval import Interval
from tidemark.plan.drain import DrainRequest, plan_drain
from tidemark.plan.ranges import overlaps, split_keys
from tidemark.plan.tasks import DifferenceTask, DumpRows, KeyRange, MergeTask, ResolveTask, WriteAnswer
from tidemark.storage import parts_table
from tidemark.storage.log import Head

TASK_ROWS = 1_000_000
"""Rows a task merges: seconds of work, far above a task's fixed cost, far below an executor's memory."""


def drain(job: Job, interval: Interval) -> dict[str, Any]:
    """Move `[trace_upper, seal)` into the trace; afterwards the trace upper is at the seal. `interval` names the run.

    Idempotent, and right whatever drained meanwhile. Raises Unvouched without the certificates of the gates before it.
    """

    def propose(head: Head) -> Proposal[Drained, list[WriteAnswer]]:
        request = plan_drain(head.state)
        if request is None:
            return Proposal(None, [])
        head, fence = job.fenced(head, "drain", interval)
        batch = job.new_id()
        read = execute(job, head.state, request, batch)
        parts = [part for answer in read for part in answer.parts]
        return Proposal(Drained(fence, trace_batch(job, batch, request.description, 0, parts)), read)

    done = job.settle(propose)
    trimmed = trim(job, interval)
    head, change, read = done.head, done.change, done.found
    result: dict[str, Any] = {
        "outcome": str(done.outcome),
        "version": head.version,
        "trace_upper": head.state.trace_upper,
    }
    if change is not None:
        result |= {
            "batch": change.batch.id,
            "rows": change.batch.rows,
            "rows_read": sum(answer.rows_read for answer in read),
            "bytes_read": sum(answer.bytes_read for answer in read),
            "bytes_written": change.batch.bytes,
        }
    if trimmed:
        result |= {"trimmed": trimmed, "version": job.log.load().version}
    return result


def execute(job: Job, state: Arrangement, request: DrainRequest, batch: str) -> list[WriteAnswer]:
    """Write what a request asks for as parts of `batch`, not yet committed. Corruption where sums do not agree."""
    if not request.batches and not request.dumps:
        return []
    kernel, tasks = _tasks(job, state, request, f"data/{batch}")
    job.note(f"draining {sum(held.rows for held in request.batches)} rows in {len(tasks)} tasks")
    answers: list[WriteAnswer] = job.runner().run(kernel, tasks) if tasks else []
    _check_complete(request, answers)
    if kernel != "resolve":
        check_sums(answers)
    if request.dumps:
        _check_held(job, state, request, answers)
    return answers


def _tasks(job: Job, state: Arrangement, request: DrainRequest, prefix: str) -> tuple[str, Sequence[Any]]:
    """The kernel that drains the collection, and its tasks."""
    if state.collection.keyed:
        return "resolve", _resolve_tasks(job, state, request, prefix)
    if state.collection.dumped:
        return "difference", _difference_tasks(job, state, request, prefix)
    return "merge", _merge_tasks(job, state, request, prefix)


def _merge_tasks(job: Job, state: Arrangement, request: DrainRequest, prefix: str) -> list[MergeTask]:
    parts = request.due(parts_table.parts_of(job.store, request.batches))
    description = request.description
    return [
        MergeTask(
            state.collection,
            _within(parts, keys),
            keys,
            description.lower,
            description.upper,
            IDENTITY,
            prefix,
        )
        for keys in _ranges(parts)
    ]


def _resolve_tasks(job: Job, state: Arrangement, request: DrainRequest, prefix: str) -> list[ResolveTask]:
    new = request.due(parts_table.parts_of(job.store, request.batches))
    request = request.among(new)
    facts = parts_table.parts_of(job.store, request.remembered)
    trace = parts_table.parts_of(job.store, request.trace)
    description = request.description

    return [
        ResolveTask(
            state.collection,
            _within(facts, keys),
            _within(trace, keys),
            keys,
            description.lower,
            description.upper,
            request.horizon,
            prefix,
        )
        for keys in _ranges(new)
    ]


def _difference_tasks(job: Job, state: Arrangement, request: DrainRequest, prefix: str) -> list[DifferenceTask]:
    trace = parts_table.parts_of(job.store, request.trace)
    of_batch = {batch.id: parts_table.parts_of(job.store, [batch]) for batch in request.batches}
    dumps = [DumpRows(dump.time, of_batch.get(dump.batch, ())) for dump in request.dumps]
    parts = [*trace, *(part for dump in dumps for part in dump.parts)]
    return [
        DifferenceTask(
            state.collection,
            _within(trace, keys),
            tuple(replace(dump, parts=_within(dump.parts, keys)) for dump in dumps),
            keys,
            prefix,
        )
        for keys in _ranges(parts)
    ]


def _ranges(parts: Sequence[Part]) -> list[KeyRange]:
    """Key ranges to work on apart; none where nothing is due, so that no runner is started for it."""
    return split_keys(parts, target_rows=TASK_ROWS) if parts else []


def _within(parts: Sequence[Part], keys: KeyRange) -> tuple[Part, ...]:
    return tuple(part for part in parts if overlaps(part, keys))


def _check_complete(request: DrainRequest, answers: Sequence[WriteAnswer]) -> None:
    """Every row of batches that lie wholly in the interval was read, and no more than the others can hold; of the
    trace, where dumps are compared with it, all."""
    lower, upper = request.description.lower, request.description.upper
    inside = [batch for batch in request.batches if batch.first_time >= lower and batch.last_time < upper]
    compared = sum(batch.rows for batch in request.trace) if request.dumps else 0
    least = compared + sum(batch.rows for batch in inside)
    most = compared + sum(batch.rows for batch in request.batches)
    read = sum(answer.rows_read for answer in answers)
    if not least <= read <= most:
        raise Corruption(f"the drain of {request.description} read {read} rows, its batches hold {least} to {most}")


def _check_held(job: Job, state: Arrangement, request: DrainRequest, answers: Sequence[WriteAnswer]) -> None:
    """What was held with what was written is what the last dump said, by the sums recorded when it was ingested (where
    columns changed since, those do not compare)."""
    last = request.dumps[-1]
    parts = parts_table.parts_of(job.store, [batch for batch in request.batches if batch.id == last.batch])
    said = sum(part.digest for part in parts) % DIGEST_MODULUS
    held = sum(answer.digest_held for answer in answers) % DIGEST_MODULUS
    if held != said and all(part.schema == state.collection.schema for part in parts):
        raise Corruption(
            f"after the drain of {request.description} the collection holds a sum of {held:016x}, "
            f"dump {last.batch} has {said:016x}; refused"
        )
