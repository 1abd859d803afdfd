"""What drain and compact share: turning written parts into a trace batch, after checking them against what was read."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.errors import Corruption
from tidemark.jobs.job import Job
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch
from tidemark.plan.tasks import WriteAnswer
from tidemark.storage import parts_table


def check_sums(answers: Sequence[WriteAnswer]) -> int:
    """Consolidation keeps the sum of hash times diff: per task, what was written must add up to what was read.

    Returns the whole sum; raises Corruption if a task's sums differ.
    """
    for number, answer in enumerate(answers):
        written = sum(part.digest for part in answer.parts) % DIGEST_MODULUS
        if written != answer.digest_read:
            raise Corruption(f"task {number} read a sum of {answer.digest_read:016x} and wrote {written:016x}; refused")
    return sum(answer.digest_read for answer in answers) % DIGEST_MODULUS


def trace_batch(job: Job, batch: str, description: Description, level: int, parts: Sequence[Part]) -> TraceBatch:
    """A trace batch of the given parts, whose table is written; without parts it is data-free."""
    if not parts:
        return TraceBatch(batch, description, level, 0, 0, 0)
    return TraceBatch(
        batch,
        description,
        level,
        sum(part.rows for part in parts),
        sum(part.file.bytes for part in parts),
        sum(part.digest for part in parts) % DIGEST_MODULUS,
        parts_table.save(job.store, f"data/{batch}/parts-{job.new_id()}.json", parts),
        len(parts),
        sum(part.retractions for part in parts),
    )
