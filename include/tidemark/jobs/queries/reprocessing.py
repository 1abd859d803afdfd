"""What it costs that intervals can be run again: the bytes that are kept for that, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement, evicted
from tidemark.model.batch import ObjectRef, PartsTable
from tidemark.storage.read_many import read_many
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.store import ObjectStore

Sizes = dict[str, int]
"""Bytes of objects, by key."""
_TABLES: dict[tuple[str, str], Sizes] = {}
"""What tables of parts name: they never change, and whoever asks again and again needs not read them again."""
_MOST_TABLES = 10_000
_LOCK = Lock()


def reprocess_bytes(store: ObjectStore, state: Arrangement) -> int | None:
    """The bytes of all that only `reprocess_for` keeps: what files of intervals that can be corrected contributed, in
    parts that no batch holds any more, or none but to remember it. None where nothing may be corrected.

    Reads the ledger's entries of these intervals and, the first time, their tables of parts.
    """
    if not state.collection.correctable_for:
        return None
    kept = {
        ref.key: ref
        for run in state.ledger
        for ref in ledger.named_objects(store, run, corrected_from=state.correctable_from)
        if parts_table.is_one(ref)
    }
    without = _needing_no_corrections(state)
    needed: Sizes = {}
    for batch in without.batches:
        needed |= _sizes_in(store, batch.parts) if batch.parts is not None else {}
    anyway = {needed_batch.id for needed_batch in without.batches}
    others = [batch.parts for batch in state.batches if batch.id not in anyway and batch.parts is not None]
    found: Sizes = {}
    for sizes in read_many(lambda ref: _sizes_in(store, ref), [*kept.values(), *others]):
        found |= sizes
    return sum(size for key, size in found.items() if key not in needed)


def _needing_no_corrections(state: Arrangement) -> Arrangement:
    """The state as it would be if no file could be corrected: what was drained is gone, or kept for late rows only."""
    landed = replace(state.collection.landed, reprocess_for=0, corrected_share=None)
    return evicted(replace(state, collection=replace(state.collection, origin=landed)))


def _sizes_in(store: ObjectStore, table: PartsTable) -> Sizes:
    """The objects of a table of parts, itself among them where it is one; none of a table that is gone: of an older
    version it may be, and whether the newest one's are there is `verify`'s to say."""
    if not isinstance(table, ObjectRef):
        return {part.file.key: part.file.bytes for part in table}
    name = (table.key, table.sha256)
    found = _TABLES.get(name)
    if found is None:
        try:
            found = {ref.key: ref.bytes for ref in parts_table.objects(store, table)}
        except Corruption:
            return {}
        with _LOCK:
            while len(_TABLES) >= _MOST_TABLES:
                del _TABLES[next(iter(_TABLES))]
            _TABLES[name] = found
    return found
