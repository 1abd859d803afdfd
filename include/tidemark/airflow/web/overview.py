"""Where every collection below a root stands, as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import find
from tidemark.errors import TidemarkError
from tidemark.jobs.questions.history import Entry, history
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
        found = find(root, name)
        return None if found is None else _described(OpenCollection(found))
    except TidemarkError as error:
        return {"collection": name, "error": f"{error.kind}: {error}"}


def _described(opened: OpenCollection) -> dict[str, Any]:
    state = opened.state
    return {
        **opened.status().as_dict(),
        "start": state.collection.landed.start,
        "end": state.collection.landed.end,
        "batches": _batches(state),
        "changes": [entry.as_dict() for entry in islice(_changes(opened), CHANGES)],
    }


def _changes(opened: OpenCollection) -> Iterator[Entry]:
    """What became of attempts, newest first; that they started says little."""
    return (entry for entry in history(opened.log, limit=3 * CHANGES, upto=opened.version) if entry.kind != "attempted")


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
        "certified": state.is_certified(batch),
    }
