"""Compact: replace neighbouring trace batches by one, as long as a merge is due (plan/compact.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from tidemark.jobs.job import Job, Outcome
from tidemark.jobs.steps.ahead import settle
from tidemark.jobs.steps.remember import remember
from tidemark.jobs.steps.retain import retain
from tidemark.jobs.steps.write import trace_batch
from tidemark.model.arrangement import Arrangement, LedgerRun
from tidemark.model.batch import Part, TraceBatch
from tidemark.model.change import CommitTimesStored, Compacted, LedgerMerged
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.wording import counted
from tidemark.plan.compact import CompactionRequest, check, merge_tasks, plan_compaction
from tidemark.plan.ranges import TASK_ROWS
from tidemark.plan.tasks import MergeTask, WriteAnswer
from tidemark.storage.log.log import Head
from tidemark.storage.sidecars import commit_runs, ledger, parts_table

SETTLED_RUNS = 8
"""Runs of separated rows that a read of the past opens at most."""


def compact(job: Job, interval: Interval) -> dict[str, Any]:
    """Move `since` by the retention, then run every compaction that is due, each as one streaming merge; also sort the
    rows stored ahead, merge remembered facts and the ledger's runs, and store commit times. `interval` names the run.
    Raises Uncertified if the trace gate has not certified an input.
    """
    moved = retain(job)
    settled = settle(job, interval)
    merges = [*iter(lambda: _compact_once(job, interval), None)]
    remembered = remember(job, interval)
    while _merge_ledger_once(job):
        pass
    _store_commit_times(job)
    head = job.log.load()
    return {
        "outcome": str(Outcome.APPLIED if merges or moved or remembered or settled else Outcome.NOTHING_TO_DO),
        "version": head.version,
        "merges": len(merges),
        "rows": sum(merge.batch.rows - merge.kept_rows for merge in merges),
        "bytes_written": sum(merge.batch.bytes - merge.kept_bytes for merge in merges)
        + sum(merge.bytes_written for merge in settled)
        + sum(merge.bytes_written for merge in remembered),
        "live_batches": len(head.state.trace),
        **({"remembered": sum(len(merge.inputs) for merge in remembered)} if remembered else {}),
        **({"settled": sum(len(merge.inputs) for merge in settled)} if settled else {}),
        **({"since": head.state.since, "since_text": format_instant(head.state.since)} if moved else {}),
    }


def _compact_once(job: Job, interval: Interval) -> Compacted | None:
    def change_for(head: Head) -> Compacted | None:
        request = plan_compaction(head.state)
        if request is None:
            return None
        head, fence = job.fenced(head, "compact", interval)
        batch, kept = execute(job, head.state, request)
        return Compacted(fence, tuple(input_.id for input_ in request.inputs), batch, kept.rows, kept.bytes)

    return job.commit_until_fit(change_for).change


@dataclass(frozen=True)
class Kept:
    """Rows and bytes of the parts of a merge's inputs that serve its output as they are."""

    rows: int = 0
    bytes: int = 0


def execute(job: Job, state: Arrangement, request: CompactionRequest) -> tuple[TraceBatch, Kept]:
    """Write what a request asks for: the batch, not yet committed, and what of it was there. Corruption where sums do
    not agree."""
    identity = job.new_id()
    if request.moves_no_data:
        return _taken_over(request, identity), Kept()
    parts = parts_table.parts_of(job.store, request.with_data)
    kept = _kept(request, parts)
    there = {part.file.key for part in kept}
    rest = [part for part in parts if part.file.key not in there]
    tasks = merge_tasks(state.collection, request, rest, target_rows=TASK_ROWS, prefix=f"data/{identity}")
    total = _rows(rest)
    job.note(
        f"merging {counted(len(request.inputs), 'batch', 'batches')} of {counted(total, 'row')} "
        f"in {counted(len(tasks), 'task')}"
    )
    answers: list[WriteAnswer] = job.runner().run(MergeTask.kernel, tasks)
    check(request, answers, alike=all(part.schema == state.collection.schema for part in parts), kept=kept)
    written = [*kept, *(part for answer in answers for part in answer.parts)]
    rows = _rows(written)
    batch = trace_batch(job, identity, request.description, request.level(rows), written)
    return batch, Kept(_rows(kept), sum(part.file.bytes for part in kept))


def _kept(request: CompactionRequest, parts: Sequence[Part]) -> list[Part]:
    """The parts that were separated before and stay as they are: none where times are forwarded. Where they form
    SETTLED_RUNS runs or more, those stay that have more rows than all smaller ones together, and the others are merged,
    too."""
    if request.separate_upto < 0 or any(
        batch.description.function != request.description.function for batch in request.with_data
    ):
        return []
    from tidemark.arrow.kernels.merge import chained

    separated = [part for part in parts if part.cancels]
    runs = sorted(chained(separated), key=_rows)
    if len(runs) < SETTLED_RUNS:
        return separated
    below = accumulate((_rows(run) for run in runs), initial=0)
    return [part for run, smaller in zip(runs, below, strict=False) if _rows(run) > smaller for part in run]


def _rows(parts: Sequence[Part]) -> int:
    return sum(part.rows for part in parts)


def _taken_over(request: CompactionRequest, identity: str) -> TraceBatch:
    """At most one input has data and its times stay as they are: its parts serve the output, nothing is rewritten."""
    highest = max(batch.level for batch in request.inputs)
    if not request.with_data:
        return TraceBatch(identity, request.description, highest, 0, 0, 0)
    return replace(request.with_data[0], id=identity, description=request.description, level=highest)


def _merge_ledger_once(job: Job) -> bool:
    def change_for(head: Head) -> LedgerMerged | None:
        due: tuple[LedgerRun, ...] = ledger.due_for_merge(head.state.ledger)
        if not due:
            return None
        run = ledger.merge_runs(job.store, f"ledger/{job.new_id()}.json", due)
        return LedgerMerged(tuple(input_run.object.key for input_run in due), run)

    return job.commit_until_fit(change_for).change is not None


def _store_commit_times(job: Job) -> None:
    def change_for(head: Head) -> CommitTimesStored | None:
        stored = commit_runs.store_recent(job.store, f"{commit_runs.PREFIX}{job.new_id()}.json", head.state.commits)
        return stored and CommitTimesStored(*stored)

    job.commit_until_fit(change_for)
