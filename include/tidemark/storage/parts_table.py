"""A batch's table of parts: one immutable object, so that a state stays small whatever a batch holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.model.batch import ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.storage import sidecar
from tidemark.storage.store import ObjectStore
from tidemark.storage.upgrade import Kind


@dataclass(frozen=True)
class PartsTable:
    """The parts of a batch, in order of key where it is a trace batch."""

    parts: tuple[Part, ...]


def save(store: ObjectStore, key: str, parts: Sequence[Part]) -> ObjectRef:
    """Write a parts table under a fresh key."""
    return sidecar.write(store, key, PartsTable(tuple(parts)))


def load(store: ObjectStore, ref: ObjectRef) -> tuple[Part, ...]:
    """The parts a table names; Corruption if the table is not what was recorded."""
    table: PartsTable = sidecar.read(store, ref, Kind.PARTS, PartsTable)
    return table.parts


def parts_of(store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch]) -> tuple[Part, ...]:
    """The parts of several batches, in order."""
    return tuple(part for batch in batches if batch.parts is not None for part in load(store, batch.parts))


def is_one(ref: ObjectRef) -> bool:
    """Whether a reference is to a table of parts, by its name."""
    return ref.key.rpartition("/")[2].startswith("parts-")
