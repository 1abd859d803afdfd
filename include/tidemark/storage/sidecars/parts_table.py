"""A batch's table of parts: in the state while it is small, because one more object would cost more; else an immutable
object of its own, so that a state stays small whatever a batch holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidemark.model import batch
from tidemark.model.batch import ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.plan.read import ReadRequest
from tidemark.plan.unsealed import PartsOf, UnsealedRequest
from tidemark.storage.documents.codec import encode
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.sidecars import sidecar
from tidemark.storage.stores.store import ObjectStore

SMALL = 2_048
"""Bytes of JSON up to which a table, and a leaf of the ledger, is kept in the state: a part of few row groups is 500,
an entry of the ledger 400. At most so many a state has for each live batch."""


@dataclass(frozen=True)
class PartsTable:
    """The parts of a batch, in order of key where it is a trace batch."""

    parts: tuple[Part, ...]


def save(store: ObjectStore, key: str, parts: Sequence[Part]) -> batch.PartsTable:
    """A parts table as a batch has it; one that is not small is written under a fresh key."""
    table = PartsTable(tuple(parts))
    return table.parts if len(encode(table)) <= SMALL else sidecar.write(store, key, table)


def save_apart(store: ObjectStore, key: str, parts: Sequence[Part]) -> ObjectRef:
    """A parts table that others than its batch name too: an object whatever its size."""
    return sidecar.write(store, key, PartsTable(tuple(parts)))


def load(store: ObjectStore, held: batch.PartsTable) -> tuple[Part, ...]:
    """The parts a batch's table names; Corruption if the table is not what was recorded."""
    if not isinstance(held, ObjectRef):
        return held
    table: PartsTable = sidecar.read(store, held, Kind.PARTS, PartsTable)
    return table.parts


def parts_of(store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch]) -> tuple[Part, ...]:
    """The parts of several batches, in order."""
    return tuple(part for batch in batches if batch.parts is not None for part in load(store, batch.parts))


def opened(store: ObjectStore, request: UnsealedRequest) -> tuple[UnsealedRequest, PartsOf]:
    """The parts that a request for unsealed rows needs, and the request as these narrow it down."""
    if request.is_empty:
        return request, {}
    parts = _tables(store, request.batches)
    request = request.among(parts)
    return request, parts | _tables(store, request.others)


def opened_read(store: ObjectStore, request: ReadRequest) -> tuple[ReadRequest, PartsOf]:
    """The parts that a read needs, and the request as these narrow it down."""
    unsealed, parts = opened(store, request.unsealed)
    missing = [batch for batch in request.trace if batch.id not in parts]
    return replace(request, unsealed=unsealed), {**parts, **_tables(store, missing)}


def _tables(store: ObjectStore, batches: Iterable[UnsealedBatch | TraceBatch]) -> dict[str, tuple[Part, ...]]:
    return {batch.id: load(store, batch.parts) if batch.parts else () for batch in batches}


def is_one(ref: ObjectRef) -> bool:
    """Whether a reference is to a table of parts, by its name."""
    return ref.key.rpartition("/")[2].startswith("parts-")
