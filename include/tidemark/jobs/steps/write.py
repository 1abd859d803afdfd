"""What drain and compact share: turning written parts into a trace batch."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.jobs.job import Job
from tidemark.model.batch import DIGEST_MODULUS, Description, Part, TraceBatch, verified
from tidemark.storage.sidecars import parts_table


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
        verified(parts),
    )
