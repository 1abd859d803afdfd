"""The replay kernel: dead letters in, unsealed parts, ledger entries and the letters that are left out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.decode.source import decoded_schema
from tidemark.arrow.kernels.ingest import LateObject, SortedParts
from tidemark.arrow.kernels.lateness import APPLIED, ORIGINAL, LatenessBounds, may_apply, revive
from tidemark.arrow.kernels.letters import check, dead_letters
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.fields import as_wanted, field_id, found
from tidemark.arrow.rows.memory import Gathered
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.tasks import DeadLetters, Left, ReplayAnswer, ReplayTask
from tidemark.storage.stores.store import ObjectStore


def replay_dead_letters(store: ObjectStore, task: ReplayTask) -> ReplayAnswer:
    """Apply the task's dead letters as far as they may be; what is left of an object goes into a new one.

    A late object of which nothing may apply gives no entry, and stays what it is. Raises InvalidUsage for one that
    lacks a column the declaration has needed since, Corruption for one that is not what the ledger recorded.
    """
    entries, left = [], []
    with Gathered("sorted") as room:
        parts = SortedParts(store, task, room)
        for number, source in enumerate(task.sources, task.first):
            entry, remains = _replay(store, task, source, number, parts)
            entries += [entry] if entry else []
            left += [remains] if remains else []
        return ReplayAnswer(parts.close(), tuple(entries), tuple(left))


def _replay(
    store: ObjectStore, task: ReplayTask, source: DeadLetters, number: int, parts: SortedParts
) -> tuple[LedgerEntry | None, Left | None]:
    bounds = LatenessBounds(task.seal, task.seal, task.since, task.seal)
    check(store, source.object)
    some, left = _surveyed(store, task, source, bounds)
    if not some:
        return None, left
    applied = moved = 0
    with LateObject(store, task.prefix) as late:
        for letters in dead_letters(store, source.object):
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
    for letters in dead_letters(store, source.object, [APPLIED, ORIGINAL]):
        dead = np.zeros(letters.num_rows, np.bool_) if task.as_now else ~may_apply(letters, task.collection, bounds)
        some = some or not dead.all()
        if dead.any():
            left += int(np.count_nonzero(dead))
            last = max(last, int(integers(letters, ORIGINAL)[dead].max()))
    return some, Left(source.path, left, last) if left else None


def _decoded(letters: pa.RecordBatch, collection: Collection, source: DeadLetters) -> pa.RecordBatch:
    """Letters as source rows are decoded today, whatever the declaration was when they came."""
    wanted = decoded_schema(collection)
    try:
        pairs = found(letters.schema, wanted)
        lacking = [field.name for field, column in pairs if column is None and field_id(field) is None]
        if lacking:
            raise KeyError(f"column {lacking[0]} was not read then")
        return as_wanted(letters, pairs, letters.num_rows)
    except (KeyError, pa.ArrowInvalid) as error:
        reason = error.args[0] if error.args else error
        raise InvalidUsage(
            f"the dead letters of {source.path} do not fit collection {collection.name} as it is declared now: {reason}"
        ) from None
