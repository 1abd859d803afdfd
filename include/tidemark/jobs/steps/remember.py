"""Remember: merge batches of facts that were drained and are remembered, so that they do not pile up."""

from __future__ import annotations

from dataclasses import replace

from tidemark.jobs.job import Job
from tidemark.jobs.steps.ingest import unsealed_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import Remembered
from tidemark.model.interval import Interval
from tidemark.model.wording import counted
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.remember import RememberRequest, check, plan_remember, remember_tasks
from tidemark.plan.tasks import WriteAnswer
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import parts_table


def remember(job: Job, interval: Interval) -> list[Remembered]:
    """Merge remembered facts as far as that is due. Return the merges. `interval` names the run."""
    return [*iter(lambda: _remember_once(job, interval), None)]


def _remember_once(job: Job, interval: Interval) -> Remembered | None:
    def change_for(head: Head) -> Remembered | None:
        request = plan_remember(head.state)
        if request is None:
            return None
        head, fence = job.fenced(head, "remember", interval)
        inputs = tuple(batch.id for batch in request.inputs)
        batch = execute(job, head.state, request)
        return Remembered(fence, inputs, batch, request.forgets, batch.bytes if batch else 0)

    return job.commit_until_fit(change_for).change


def execute(job: Job, state: Arrangement, request: RememberRequest) -> UnsealedBatch | None:
    """Write what stays of a request's inputs; the batch, not yet committed, None if nothing does. Corruption where a
    part is not as recorded, or sums do not agree."""
    identity = job.new_id()
    parts = parts_table.parts_of(job.store, request.inputs)
    tasks = remember_tasks(state.collection, request, parts, target_rows=TASK_ROWS, prefix=f"data/{identity}")
    total = sum(batch.rows for batch in request.inputs)
    job.note(
        f"merging {counted(total, 'remembered fact')} of {counted(len(request.inputs), 'batch', 'batches')} "
        f"in {counted(len(tasks), 'task')}"
    )
    answers: list[WriteAnswer] = job.runner().run("remember", tasks)
    check(request, parts, answers, state.collection.schema)
    written = [part for answer in answers for part in answer.parts]
    if not written:
        return None
    batch = unsealed_batch(job, identity, request.interval, written, learned_at=None)
    return replace(batch, level=request.level)
