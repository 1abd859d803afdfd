"""The replay kernel: dead letters in, unsealed parts, ledger entries and the letters that are left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.decode.parquetfile import whole
from tidemark.arrow.decode.source import decoded_schema
from tidemark.arrow.kernels.ingest import LateObject, SortedParts
from tidemark.arrow.kernels.lateness import APPLIED, ORIGINAL, LatenessBounds, may_apply, revive
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.fields import as_wanted, field_id, found
from tidemark.errors import Corruption, InvalidUsage, out_of_memory
from tidemark.model.batch import ObjectRef
from tidemark.model.collection import Collection
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.tasks import DeadLetters, Left, ReplayAnswer, ReplayTask
from tidemark.storage.stores.store import Missing, ObjectStore

BATCH_ROWS = 65_536
_READ_BYTES = 2**20


def replay_dead_letters(store: ObjectStore, task: ReplayTask) -> ReplayAnswer:
    """Apply the task's dead letters as far as they may be; what is left of an object goes into a new one.

    A late object of which nothing may apply gives no entry, and stays what it is. Raises InvalidUsage for one that
    lacks a column the declaration has needed since, Corruption for one that is not what the ledger recorded.
    """
    parts = SortedParts(store, task)
    entries, left = [], []
    for number, source in enumerate(task.sources, task.first):
        entry, remains = _replay(store, task, source, number, parts)
        entries += [entry] if entry else []
        left += [remains] if remains else []
    return ReplayAnswer(parts.close(), tuple(entries), tuple(left))


def _replay(
    store: ObjectStore, task: ReplayTask, source: DeadLetters, number: int, parts: SortedParts
) -> tuple[LedgerEntry | None, Left | None]:
    bounds = LatenessBounds(task.seal, task.seal, task.since, task.seal)
    _check(store, source.object)
    some, left = _surveyed(store, task, source, bounds)
    if not some:
        return None, left
    applied = moved = 0
    with LateObject(store, task.prefix) as late:
        for letters in _letters(store, source.object):
            rows = _decoded(letters, task.collection, source)
            judged = revive(rows, letters, task.collection, bounds, task.as_now, number)
            parts.add(judged)
            late.write(judged.late)
            applied += judged.applied.num_rows
            moved += judged.late_moved
        remains = late.close()
    size, digest = source.object.bytes, source.object.sha256
    entry = LedgerEntry(
        source.path,
        size,
        digest,
        "",
        source.interval,
        Status.INGESTED,
        task.batch,
        applied,
        rows_late_discarded=left.rows if left else 0,
        late=remains,
        rows_late_moved=moved,
        replay_of=source.of,
    )
    return entry, left


def _surveyed(
    store: ObjectStore, task: ReplayTask, source: DeadLetters, bounds: LatenessBounds
) -> tuple[bool, Left | None]:
    """Whether any of the letters may apply, and those that may not."""
    some, left, last = False, 0, 0
    for letters in _letters(store, source.object, [APPLIED, ORIGINAL]):
        dead = np.zeros(letters.num_rows, np.bool_) if task.as_now else ~may_apply(letters, task.collection, bounds)
        some = some or not dead.all()
        if dead.any():
            left += int(np.count_nonzero(dead))
            last = max(last, int(integers(letters, ORIGINAL)[dead].max()))
    return some, Left(source.path, left, last) if left else None


def _letters(store: ObjectStore, ref: ObjectRef, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a late object that were not applied."""
    try:
        with store.open_input(ref.key) as native:
            file = pq.ParquetFile(native, page_checksum_verification=True)
            for batch in whole(file, BATCH_ROWS, columns):
                if (letters := batch.filter(pc.invert(batch.column(APPLIED)))).num_rows:
                    yield letters
    except MemoryError as error:
        raise out_of_memory(ref.key, error) from error
    except pa.ArrowException as error:
        raise Corruption(f"{ref.key} holds late rows and cannot be read: {str(error).splitlines()[0]}") from None


def _check(store: ObjectStore, ref: ObjectRef) -> None:
    """Raise Corruption if the object is not the one recorded."""
    sha256, size = hashlib.sha256(), 0
    try:
        with store.open_input(ref.key) as native:
            while chunk := native.read(_READ_BYTES):
                sha256.update(chunk)
                size += len(chunk)
    except Missing:
        raise Corruption(f"{ref.key} holds late rows the ledger names, and does not exist") from None
    if (size, sha256.hexdigest()) != (ref.bytes, ref.sha256):
        raise Corruption(
            f"{ref.key} has {size} bytes sha256 {sha256.hexdigest()[:12]}, recorded were {ref.bytes} bytes sha256 "
            f"{ref.sha256[:12]}"
        )


def _decoded(letters: pa.RecordBatch, collection: Collection, source: DeadLetters) -> pa.RecordBatch:
    """Letters as source rows are decoded today, whatever the declaration was when they came."""
    wanted = decoded_schema(collection)
    try:
        pairs = found(letters.schema, wanted)
        lacking = [field.name for field, held in pairs if held is None and field_id(field) is None]
        if lacking:
            raise KeyError(f"column {lacking[0]} was not read then")
        return as_wanted(letters, pairs, letters.num_rows)
    except (KeyError, pa.ArrowInvalid) as error:
        reason = error.args[0] if error.args else error
        raise InvalidUsage(
            f"the dead letters of {source.path} do not fit collection {collection.name} as it is declared now: {reason}"
        ) from None
