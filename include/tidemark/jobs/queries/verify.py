"""Verify: whether storage holds what the state promises. Metadata always; on request all data, by the runner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job
from tidemark.jobs.queries.gates_again import Again, gates_again
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch, verified
from tidemark.model.instant import format_instant
from tidemark.model.invariants import Invariant
from tidemark.plan.tasks import ChecksumTask, InspectAnswer, InspectTask
from tidemark.storage.verify.collection import (
    Contents,
    Finding,
    Progress,
    contents,
    late_objects,
    silent,
    verify_history,
)

Batch = UnsealedBatch | TraceBatch
_BOUNDS = (Invariant.TIMES_FROM_LOWER, Invariant.TIMES_TO_UPPER_OR_SINCE)
TASKS_AT_ONCE = 8
"""Tasks per slot of the runner in one go: enough to keep it busy, few enough that progress is seen."""
LATE_AT_ONCE = 100
"""Objects of late rows in one task: they are small and many."""


@dataclass(frozen=True)
class Report:
    """What was looked at and every broken promise that was found. `objects` are those the state names; with data,
    `parts_read` of the `parts` were read in full: one that was not is a finding. `unverified_parts` have no checksums
    that reads verify: a release before 0.6.0 wrote them. With data, `validations` results of gates were judged again
    by Great Expectations (jobs/queries/gates_again.py), and `validations_left` could not be; notes say why."""

    collection: str
    version: int
    batches: int
    objects: int
    parts: int
    parts_read: int
    rows_read: int
    findings: tuple[Finding, ...]
    unverified_parts: int = 0
    validations: int = 0
    validations_left: int = 0

    @property
    def sound(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        findings = [{**asdict(finding), "subject": finding.subject} for finding in self.findings]
        return {**asdict(self), "findings": findings, "sound": self.sound}


def verify(job: Job, *, data: bool = False, progress: Progress = silent) -> Report:
    """Check the version chain and every object the newest state names; with `data` re-read all of them, every row of
    every part, by the runner, and ask Great Expectations again about what gates judged lately.

    Never raises for what it finds, not even where no state can be loaded: it is all in the report. Raises
    UpgradeRequired where a newer Tidemark wrote any of it, as this one cannot decide whether that is sound.
    """
    findings = list(verify_history(job.log, progress))
    try:
        head = job.log.load()
    except Corruption as error:
        name = job.store.url.rstrip("/").rpartition("/")[2]
        unreadable = Finding(error.rule or "state", f"the newest state cannot be loaded: {error}")
        return Report(name, job.log.newest_version(), 0, 0, 0, 0, 0, (*findings, unreadable))
    state = head.state
    found = contents(job.store, state, progress)
    findings += found.findings
    answers: list[InspectAnswer] = []
    again = Again()
    if data:
        findings += _verify_parts(job, state, found, answers, progress)
        findings += _verify_late(job, found, progress)
        again = gates_again(job, state.collection)
        findings += again.findings
    return Report(
        state.collection.name,
        head.version,
        len(state.batches),
        found.objects,
        len(found.parts),
        len(answers),
        sum(answer.rows for answer in answers),
        tuple(findings),
        len(found.parts) - verified(part for _, part in found.parts),
        again.validations,
        again.left,
    )


class Unsound(Corruption):
    """Storage does not hold what was written; `details` say all that was found."""

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.details = details


def audit(job: Job) -> dict[str, Any]:
    """Verify with all data, as a step of a run. Raises Unsound: the first finding as its message, each as a note."""
    report = verify(job, data=True)
    if report.sound:
        return {"outcome": "sound", **report.as_dict()}
    for finding in report.findings:
        job.note(f"{finding.subject}: {finding.rule}: {finding.detail}")
    first, more = report.findings[0], len(report.findings) - 1
    others = f" (and {more} more)" if more else ""
    message = f"{first.subject}: {first.rule}: {first.detail}{others}; run no further step of {report.collection}"
    raise Unsound(message, report.as_dict())


def _verify_parts(
    job: Job, state: Arrangement, found: Contents, answers: list[InspectAnswer], progress: Progress
) -> Iterator[Finding]:
    """Every row of every part that is there: what is missing or cut short is at fault already."""
    present = [(batch, part) for batch, part in found.parts if part.file.key not in found.lost]
    kind = state.collection.kind
    tasks = [InspectTask(state.collection, part, kind.facts_in(batch)) for batch, part in present]
    audited = _ran(job, "audit", tasks, "reading parts", progress)
    for (batch, part), task, audit in zip(present, tasks, audited, strict=True):
        if audit.answer is None:
            yield Finding("readable", audit.error, batch.id, part.file.key)
        else:
            answers.append(audit.answer)
            yield from findings_of(batch, part, audit.answer, _columns(task))


def _verify_late(job: Job, found: Contents, progress: Progress) -> Iterator[Finding]:
    """The checksum of every object of late rows that is there."""
    late = late_objects(found)
    tasks = [
        ChecksumTask(tuple(reference.key for _, reference in late[start : start + LATE_AT_ONCE]))
        for start in range(0, len(late), LATE_AT_ONCE)
    ]
    answers = _ran(job, "checksum", tasks, "reading late rows", progress)
    sums = [sha256 for answer in answers for sha256 in answer.sha256]
    for (entry, reference), sha256 in zip(late, sums, strict=True):
        if sha256 != reference.sha256:
            detail = f"late rows of {entry.path}: sha256 is {sha256[:12]}, recorded was {reference.sha256[:12]}"
            yield Finding("content", detail, entry.batch or "", reference.key)


def _ran(job: Job, kernel: str, tasks: Sequence[Any], what: str, progress: Progress) -> Iterator[Any]:
    """The answers to tasks, some at a time, so that progress is seen. Without tasks no runner is started."""
    runner = job.runner() if tasks else None
    step = max(1, runner.parallelism * TASKS_AT_ONCE) if runner else 1
    for start in range(0, len(tasks), step):
        progress(what, start, len(tasks))
        yield from runner.run(kernel, tasks[start : start + step]) if runner else ()
    if tasks:
        progress(what, len(tasks), len(tasks))


def _columns(task: InspectTask) -> tuple[str, ...]:
    from tidemark.arrow.rows.schema import facts_schema, updates_schema

    return tuple((facts_schema if task.facts else updates_schema)(task.collection).names)


def findings_of(
    batch: Batch, part: Part, answer: InspectAnswer, columns: tuple[str, ...] | None = None
) -> Iterator[Finding]:
    """What a part's rows break of what was recorded of it, of its batch's promise and of the rules at rest; and whether
    it has the `columns` it should have."""

    def finding(rule: str, detail: str) -> Finding:
        return Finding(rule, detail, batch.id, part.file.key)

    if answer.sha256 != part.file.sha256:
        yield finding("content", f"sha256 is {answer.sha256[:12]}, recorded was {part.file.sha256[:12]}")
    if columns is not None and answer.columns != columns:
        yield finding("columns", f"has {', '.join(answer.columns)}, and should have {', '.join(columns)}")
        return
    for rule, recorded, found in _compared(part, answer):
        if recorded != found:
            yield finding(rule, f"recorded {recorded}, the rows give {found}")
    counts = {"no null keys": answer.null_keys, str(Invariant.SORTED): answer.unsorted}
    if isinstance(batch, TraceBatch):
        counts |= {Invariant.NO_ZERO_DIFFS: answer.zero_diffs, Invariant.CONSOLIDATED: answer.repeated}
    for rule, count in counts.items():
        if count:
            yield finding(rule, f"{count} of {answer.rows} rows break it")
    if answer.misplaced:
        yield finding("row groups", f"{answer.misplaced} of {len(part.groups)} begin at another key than recorded")
    yield from (finding("bounds", detail) for detail in answer.misbounded)
    yield from (finding(rule, detail) for rule, detail in _bounds(batch, answer))


def _compared(part: Part, answer: InspectAnswer) -> Iterator[tuple[str, object, object]]:
    yield "rows", part.rows, answer.rows
    yield "sum", f"{part.digest:016x}", f"{answer.digest:016x}"
    if part.cancels:
        yield "values that do not cancel", 0, answer.uncancelled
    if answer.rows:
        yield "first key", tuple(part.first_key), tuple(answer.first_key or ())
        yield "last key", tuple(part.last_key), tuple(answer.last_key or ())
        for name in ("first_time", "last_time", "first_event_time", "last_event_time"):
            recorded, found = format_instant(getattr(part, name)), format_instant(getattr(answer, name))
            yield name.replace("_", " "), recorded, found


def _bounds(batch: Batch, answer: InspectAnswer) -> Iterator[tuple[str, str]]:
    """Rows outside the times that their batch covers."""
    if not answer.rows:
        return
    lower, last = _promised(batch)
    names = _BOUNDS if isinstance(batch, TraceBatch) else ("times as recorded", "times as recorded")
    if answer.first_time < lower:
        yield names[0], f"holds {_at(answer.first_time)}, below the batch's {_at(lower)}"
    if answer.last_time > last:
        yield names[1], f"holds {_at(answer.last_time)}, beyond the batch's {_at(last)}"


def _promised(batch: Batch) -> tuple[int, int]:
    """The first and last time a batch may hold: a trace batch's last is since where that has passed its upper."""
    if isinstance(batch, UnsealedBatch):
        return batch.first_time, batch.last_time
    return batch.description.first_possible, batch.description.last_possible


def _at(time: int) -> str:
    return format_instant(time)
