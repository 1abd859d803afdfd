"""Compact: replace neighbouring trace batches by one, until no two neighbours share a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.retain import retain
from tidemark.jobs.write import check_sums, trace_batch
from tidemark.model.arrangement import Arrangement, LedgerRun
from tidemark.model.batch import DIGEST_MODULUS, TraceBatch
from tidemark.model.change import Compacted, LedgerMerged
from tidemark.model.instant import MAX_TIME, format_instant
from tidemark.model.interval import Interval
from tidemark.plan.compact import CompactionRequest, plan_compaction
from tidemark.plan.ranges import overlaps, split_keys
from tidemark.plan.tasks import MergeTask, WriteAnswer
from tidemark.storage import ledger, parts_table
from tidemark.storage.log import Head

TASK_ROWS = 1_000_000


def compact(job: Job, interval: Interval) -> dict[str, Any]:
    """Move `since` by the retention, then run every compaction that is due, each as one streaming merge; also merge the
    ledger's runs. `interval` names the run. Raises Unvouched if the trace gate has not vouched for an input.
    """
    moved = retain(job)
    merges = rows = written = 0
    while (change := _compact_once(job, interval)) is not None:
        merges += 1
        rows += change.batch.rows
        written += change.batch.bytes
    while _merge_ledger_once(job):
        pass
    head = job.log.load()
    return {
        "outcome": str(Outcome.APPLIED if merges or moved else Outcome.NOTHING_TO_DO),
        "version": head.version,
        "merges": merges,
        "rows": rows,
        "bytes_written": written,
        "live_batches": len(head.state.trace),
        **({"since": head.state.since, "since_text": format_instant(head.state.since)} if moved else {}),
    }


def _compact_once(job: Job, interval: Interval) -> Compacted | None:
    def change_for(head: Head) -> Compacted | None:
        request = plan_compaction(head.state)
        if request is None:
            return None
        head, fence = job.fenced(head, "compact", interval)
        return Compacted(fence, tuple(batch.id for batch in request.inputs), execute(job, head.state, request))

    return job.commit_until_fit(change_for).change


def execute(job: Job, state: Arrangement, request: CompactionRequest) -> TraceBatch:
    """Write what a request asks for; the batch, not yet committed. Corruption where sums do not agree."""
    identity = job.new_id()
    if request.moves_no_data:
        return _taken_over(request, identity)
    parts = parts_table.parts_of(job.store, request.with_data)
    function = request.description.function
    tasks = [
        MergeTask(
            state.collection,
            tuple(part for part in parts if overlaps(part, keys)),
            keys,
            0,
            MAX_TIME,
            function,
            f"data/{identity}",
        )
        for keys in split_keys(parts, target_rows=TASK_ROWS)
    ]
    total = sum(batch.rows for batch in request.inputs)
    job.note(f"merging {len(request.inputs)} batches of {total} rows in {len(tasks)} tasks")
    answers: list[WriteAnswer] = job.runner().run("merge", tasks)
    _check(request, answers, alike=all(part.schema == state.collection.schema for part in parts))
    written = [part for answer in answers for part in answer.parts]
    rows = sum(part.rows for part in written)
    return trace_batch(job, identity, request.description, request.level(rows), written)


def _taken_over(request: CompactionRequest, identity: str) -> TraceBatch:
    """At most one input has data and its times stay as they are: its parts serve the output, nothing is rewritten."""
    highest = max(batch.level for batch in request.inputs)
    if not request.with_data:
        return TraceBatch(identity, request.description, highest, 0, 0, 0)
    return replace(request.with_data[0], id=identity, description=request.description, level=highest)


def _check(request: CompactionRequest, answers: Sequence[WriteAnswer], *, alike: bool) -> None:
    """The inputs were read whole, and their recorded sums, where forwarding leaves those alone, are the output's.

    `alike` says whether the inputs have the output's columns: hashes are over columns, so else sums cannot be compared.
    """
    total = check_sums(answers)
    read, held = sum(answer.rows_read for answer in answers), sum(batch.rows for batch in request.inputs)
    if read != held:
        raise Corruption(f"the compaction read {read} rows, its inputs hold {held}; refused")
    if alike and all(batch.description.function == request.description.function for batch in request.with_data):
        recorded = sum(batch.digest for batch in request.inputs) % DIGEST_MODULUS
        if total != recorded:
            raise Corruption(f"the inputs' recorded sums give {recorded:016x}, the merge read {total:016x}; refused")


def _merge_ledger_once(job: Job) -> bool:
    def change_for(head: Head) -> LedgerMerged | None:
        due: tuple[LedgerRun, ...] = ledger.due_for_merge(head.state.ledger)
        if not due:
            return None
        run = ledger.merge_runs(job.store, f"ledger/{job.new_id()}.json", due)
        return LedgerMerged(tuple(held.object.key for held in due), run)

    return job.commit_until_fit(change_for).change is not None
