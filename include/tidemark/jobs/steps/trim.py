"""Trim: rewrite unsealed batches that were partly drained without what the trace holds now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tidemark.errors import Corruption
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, UnsealedBatch, verified
from tidemark.model.change import Trimmed
from tidemark.model.interval import Interval
from tidemark.plan.tasks import WriteAnswer
from tidemark.plan.trim import Trimming, TrimRequest, plan_trim, trim_tasks, trimming
from tidemark.storage.log.log import Head
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import parts_table


def trim(job: Job, interval: Interval, *, least_share: float = 0.5) -> int:
    """Trim every unsealed batch where that is worth it (`trimming`); how many were. `interval` names the run.

    A batch keeps its identity, and so its certificates. Parts that stay whole are not rewritten.
    """
    trimmed: set[str] = set()
    while (change := _trim_once(job, interval, trimmed, least_share)) is not None:
        trimmed.add(change.batch.id)
    return len(trimmed)


def _trim_once(job: Job, interval: Interval, trimmed: Collection[str], least_share: float) -> Trimmed | None:
    def change_for(head: Head) -> Trimmed | None:
        requests = [request for request in plan_trim(head.state) if request.batch.id not in trimmed]
        tables = read_many(lambda request: parts_table.parts_of(job.store, [request.batch]), requests)
        for request, parts in zip(requests, tables, strict=True):
            wanted = trimming(request, parts, least_share=least_share)
            if wanted is None:
                continue
            head, fence = job.fenced(head, "trim", interval)
            batch = execute(job, head.state, request, parts, wanted)
            return Trimmed(fence, batch, request.batch.parts, request.forgets)
        return None

    return job.commit_until_fit(change_for).change


def execute(
    job: Job, state: Arrangement, request: TrimRequest, parts: Sequence[Part], wanted: Trimming
) -> UnsealedBatch:
    """Write what stays of the request's batch, whose parts are given, not yet committed. Corruption where a part is not
    as recorded."""
    batch = request.batch
    tasks = trim_tasks(state.collection, request, wanted)
    answers: list[WriteAnswer] = job.runner().run("trim", tasks) if tasks else []
    _check_read(wanted.cut, answers, state.collection.schema)
    written = {part.file.key: answer.parts for part, answer in zip(wanted.cut, answers, strict=True)}
    kept = [new for part in parts if part not in wanted.dropped for new in written.get(part.file.key, (part,))]
    return _trimmed(job, batch, kept)


def _check_read(parts: Sequence[Part], answers: Sequence[WriteAnswer], schema: int) -> None:
    """Each part was read whole: its rows are those recorded, and their sum, where it has today's columns."""
    for part, answer in zip(parts, answers, strict=True):
        sums_differ = part.schema == schema and answer.digest_read != part.digest
        if answer.rows_read != part.rows or sums_differ:
            raise Corruption(
                f"{part.file.key} gave {answer.rows_read} rows of sum {answer.digest_read:016x}, "
                f"recorded were {part.rows} of {part.digest:016x}; not trimmed"
            )


def _trimmed(job: Job, batch: UnsealedBatch, parts: Sequence[Part]) -> UnsealedBatch:
    return replace(
        batch,
        trimmed=True,
        parts=parts_table.save(job.store, f"data/{batch.id}/parts-{job.new_id()}.json", parts),
        part_count=len(parts),
        verified_parts=verified(parts),
        rows=sum(part.rows for part in parts),
        bytes=sum(part.file.bytes for part in parts),
        digest=sum(part.digest for part in parts) % DIGEST_MODULUS,
        first_time=min(part.first_time for part in parts),
        last_time=max(part.last_time for part in parts),
        first_event_time=min(part.first_event_time for part in parts),
        last_event_time=max(part.last_event_time for part in parts),
    )
