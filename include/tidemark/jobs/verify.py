"""Verify: whether storage holds what the state promises. Metadata always; on request every row of every part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.errors import Corruption
from tidemark.jobs.job import Job, Runner
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Part, TraceBatch, UnsealedBatch
from tidemark.model.instant import format_instant
from tidemark.model.invariants import Rule
from tidemark.plan.tasks import InspectAnswer, InspectTask
from tidemark.storage import parts_table
from tidemark.storage.verify import Finding, verify_history, verify_objects

Batch = UnsealedBatch | TraceBatch
_BOUNDS = (Rule.TIMES_FROM_LOWER, Rule.TIMES_TO_UPPER_OR_SINCE)
Progress = Callable[[int, int], None]
"""Told parts read and parts in all, as they are read."""
TASKS_AT_ONCE = 8
"""Parts per slot of the runner in one go: enough to keep it busy, few enough that progress is seen."""


@dataclass(frozen=True)
class Report:
    """What was looked at and every broken promise that was found."""

    collection: str
    version: int
    batches: int
    parts_read: int
    rows_read: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}


def verify(job: Job, *, data: bool = False, progress: Progress = lambda done, total: None) -> Report:
    """Check the version chain and every object the newest state names; with `data` re-read every row of every part.

    Never raises for what it finds: it is all in the report. Raises Corruption only where no state can be had at all.
    """
    findings = list(verify_history(job.log))
    head = job.log.load()
    state = head.state
    broken = list(verify_objects(job.store, state))
    findings += broken
    batches: tuple[Batch, ...] = (*state.unsealed, *state.trace, *state.quarantined)
    answers: list[InspectAnswer] = []
    if data:
        # A batch whose objects are missing or cut short is at fault already; what is left of it proves nothing more.
        broken_batches = {finding.subject for finding in broken}
        readable = [batch for batch in batches if batch.parts is not None and batch.id not in broken_batches]
        findings += _verify_data(job, state, readable, answers, progress)
    rows = sum(answer.rows for answer in answers)
    return Report(state.collection.name, head.version, len(batches), len(answers), rows, tuple(findings))


def _verify_data(
    job: Job, state: Arrangement, batches: Sequence[Batch], answers: list[InspectAnswer], progress: Progress
) -> Iterator[Finding]:
    held = [(batch, part) for batch in batches for part in parts_table.parts_of(job.store, [batch])]
    runner = job.runner() if held else None
    step = max(1, runner.parallelism * TASKS_AT_ONCE) if runner else 1
    progress(0, len(held))
    for start in range(0, len(held), step):
        some = held[start : start + step]
        tasks = [InspectTask(state.collection, part, _holds_facts(state, batch)) for batch, part in some]
        for (batch, part), answer in zip(some, _inspected(runner, tasks) if runner else (), strict=True):
            if isinstance(answer, Corruption):
                yield Finding("readable", _subject(batch, part), str(answer))
            else:
                answers.append(answer)
                yield from judge(batch, part, answer)
        progress(start + len(some), len(held))


def _inspected(runner: Runner, tasks: Sequence[InspectTask]) -> list[InspectAnswer | Corruption]:
    """What each part holds, or why it cannot be read. One that cannot must not hide what is wrong with the others."""
    try:
        return list(runner.run("inspect", tasks))
    except Corruption as error:
        if len(tasks) == 1:
            return [error]
        middle = len(tasks) // 2
        return [*_inspected(runner, tasks[:middle]), *_inspected(runner, tasks[middle:])]


def _subject(batch: Batch, part: Part) -> str:
    return f"batch {batch.id}, {part.file.key}"


def _holds_facts(state: Arrangement, batch: Batch) -> bool:
    return isinstance(batch, UnsealedBatch) and state.collection.keyed


def judge(batch: Batch, part: Part, answer: InspectAnswer) -> Iterator[Finding]:
    """What a part's rows break of what was recorded of it, of its batch's promise and of the rules at rest."""
    subject = _subject(batch, part)
    if answer.sha256 != part.file.sha256:
        yield Finding("content", subject, f"sha256 is {answer.sha256[:12]}, recorded was {part.file.sha256[:12]}")
    for rule, recorded, found in _compared(part, answer):
        if recorded != found:
            yield Finding(rule, subject, f"recorded {recorded}, the rows give {found}")
    counts = {"no null keys": answer.null_keys, str(Rule.SORTED): answer.unsorted}
    if isinstance(batch, TraceBatch):
        counts |= {Rule.NO_ZERO_DIFFS: answer.zero_diffs, Rule.CONSOLIDATED: answer.repeated}
    for rule, count in counts.items():
        if count:
            yield Finding(rule, subject, f"{count} of {answer.rows} rows break it")
    yield from _bounds(batch, subject, answer)


def _compared(part: Part, answer: InspectAnswer) -> Iterator[tuple[str, object, object]]:
    yield "rows", part.rows, answer.rows
    yield "sum", f"{part.digest:016x}", f"{answer.digest:016x}"
    if answer.rows:
        yield "first key", tuple(part.first_key), tuple(answer.first_key or ())
        yield "last key", tuple(part.last_key), tuple(answer.last_key or ())
        for name in ("first_time", "last_time", "first_event_time", "last_event_time"):
            recorded, found = format_instant(getattr(part, name)), format_instant(getattr(answer, name))
            yield name.replace("_", " "), recorded, found


def _bounds(batch: Batch, subject: str, answer: InspectAnswer) -> Iterator[Finding]:
    """Rows outside the times their batch stands for."""
    if not answer.rows:
        return
    lower, last = _promised(batch)
    names = _BOUNDS if isinstance(batch, TraceBatch) else ("times as recorded", "times as recorded")
    if answer.first_time < lower:
        yield Finding(names[0], subject, f"holds {_at(answer.first_time)}, below the batch's {_at(lower)}")
    if answer.last_time > last:
        yield Finding(names[1], subject, f"holds {_at(answer.last_time)}, beyond the batch's {_at(last)}")


def _promised(batch: Batch) -> tuple[int, int]:
    """The first and last time a batch may hold: a trace batch's last is since where that has passed its upper."""
    if isinstance(batch, UnsealedBatch):
        return batch.first_time, batch.last_time
    return batch.description.first_possible, batch.description.last_possible


def _at(time: int) -> str:
    return format_instant(time)
