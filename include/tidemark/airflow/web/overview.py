"""Where every collection below a root stands, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tidemark.airflow.place import no_data
from tidemark.errors import TidemarkError
from tidemark.jobs.app import open_job
from tidemark.jobs.history import Entry, history
from tidemark.jobs.job import Job
from tidemark.jobs.status import status
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.collection import NAME
from tidemark.model.instant import format_instant
from tidemark.storage import open_store

CHANGES = 12
"""Newest versions shown of each collection: about one run."""


def overview(root: str, may_read: Callable[[str], bool]) -> list[dict[str, Any]]:
    """One entry for each collection that `may_read` admits, by name. A broken one is an entry with `error`."""
    names = [name for name in open_store(root).folders("") if NAME.fullmatch(name) and may_read(name)]
    return [entry for name in names if (entry := describe(root, name)) is not None]


def describe(root: str, name: str) -> dict[str, Any] | None:
    """A collection's status, batches and newest changes; None where there is none."""
    try:
        return _described(open_job(root, name, no_data))
    except TidemarkError as error:
        return {"collection": name, "error": f"{error.kind}: {error}"}


def _described(job: Job) -> dict[str, Any] | None:
    head = job.log.load()
    if head.arrangement is None:
        return None
    return {
        **status(head).as_dict(),
        "start": head.state.collection.landed.start,
        "end": head.state.collection.landed.end,
        "batches": _batches(head.state),
        "changes": [entry.as_dict() for entry in islice(_changes(job), CHANGES)],
    }


def _changes(job: Job) -> Iterator[Entry]:
    """What became of attempts, newest first; that they started says little."""
    return (entry for entry in history(job.log, limit=3 * CHANGES) if entry.kind != "attempted")


def _batches(state: Arrangement) -> list[dict[str, Any]]:
    """Live batches with the interval each stands for; the unsealed ones have no level."""
    trace = [_entry(b, b.level, b.description.lower, b.description.upper, state) for b in state.trace]
    return [*trace, *(_entry(b, None, b.interval.lower, b.interval.upper, state) for b in state.pending)]


def _entry(
    batch: TraceBatch | UnsealedBatch, level: int | None, lower: int, upper: int, state: Arrangement
) -> dict[str, Any]:
    return {
        "id": batch.id,
        "level": level,
        "lower": lower,
        "upper": upper,
        "interval": f"[{format_instant(lower)}, {format_instant(upper)})",
        "rows": batch.rows,
        "bytes": batch.bytes,
        "vouched": state.is_vouched(batch),
    }
