"""A batch's table of parts: one immutable object, so that a state stays small whatever a batch holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemark.model.batch import ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.storage import sidecar
from tidemark.storage.codec import PARTS
from tidemark.storage.store import ObjectStore


def save(store: ObjectStore, key: str, parts: Sequence[Part]) -> ObjectRef:
    """Write a parts table under a fresh key."""
    return sidecar.write(store, key, tuple(parts), PARTS)


def load(store: ObjectStore, ref: ObjectRef) -> tuple[Part, ...]:
    """The parts a table names; Corruption if the table is not what was recorded."""
    parts: tuple[Part, ...] = sidecar.read(store, ref, PARTS)
    return parts


def parts_of(store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch]) -> tuple[Part, ...]:
    """The parts of several batches, in order."""
    return tuple(part for batch in batches if batch.parts is not None for part in load(store, batch.parts))


def is_one(ref: ObjectRef) -> bool:
    """Whether a reference is to a table of parts, by its name."""
    return ref.key.rpartition("/")[2].startswith("parts-")
