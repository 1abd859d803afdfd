"""Whether storage still holds what the state names: every object, its size, its checksum; and its own history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import DIGEST_MODULUS, Part, TraceBatch, UnsealedBatch
from tidemark.storage import ledger, parts_table
from tidemark.storage.log import StateLog
from tidemark.storage.store import ObjectStore


@dataclass(frozen=True)
class Finding:
    """One broken promise: the rule, the object or batch at fault, what was expected and found."""

    rule: str
    subject: str
    detail: str


def verify_history(log: StateLog) -> Iterator[Finding]:
    """Fold every retained version from the first: chain of hashes, transitions and checkpoints must all agree."""
    try:
        log.replay()
    except Corruption as error:
        yield Finding(error.rule or "history", "versions", str(error))


def verify_objects(store: ObjectStore, state: Arrangement) -> Iterator[Finding]:
    """Every object the state names, directly or through a parts table, exists with its size; tables match checksums,
    a batch's recorded rows, bytes and sum are those of its parts, and parts of the trace follow one another by key."""
    for batch in state.batches:
        if batch.parts is None:
            continue
        try:
            parts = parts_table.load(store, batch.parts)
        except Corruption as error:
            yield Finding("parts table", batch.id, str(error))
            continue
        yield from _batch_totals(batch, parts)
        for part in parts:
            yield from _object(store, batch.id, part.file.key, part.file.bytes)
    for run in state.ledger:
        try:
            entries = ledger.load_run(store, run)
        except Corruption as error:
            yield Finding("ledger run", run.object.key, str(error))
            continue
        for entry in entries:
            if entry.late is not None:
                yield from _object(store, entry.path, entry.late.key, entry.late.bytes)


def _batch_totals(batch: UnsealedBatch | TraceBatch, parts: tuple[Part, ...]) -> Iterator[Finding]:
    found = {
        "part count": len(parts),
        "rows": sum(part.rows for part in parts),
        "bytes": sum(part.file.bytes for part in parts),
        "sum": sum(part.digest for part in parts) % DIGEST_MODULUS,
    }
    recorded = {"part count": batch.part_count, "rows": batch.rows, "bytes": batch.bytes, "sum": batch.digest}
    for rule, value in recorded.items():
        if found[rule] != value:
            yield Finding(rule, batch.id, f"recorded {value}, its parts give {found[rule]}")
    for older, newer in pairwise(parts) if isinstance(batch, TraceBatch) else ():
        if newer.first_key < older.last_key:
            detail = f"{newer.file.key} begins at key {newer.first_key}, the part before it ends at {older.last_key}"
            yield Finding("parts disjoint", batch.id, detail)


def _object(store: ObjectStore, subject: str, key: str, size: int) -> Iterator[Finding]:
    info = store.stat(key)
    if info is None:
        yield Finding("object exists", subject, f"{key} is missing")
    elif info.bytes != size:
        yield Finding("object size", subject, f"{key} has {info.bytes} bytes, recorded were {size}")
