"""Dead letters at rest, and those of a file that is read again: what was replayed of them counts still, as far as the
file has it still.

A letter of the new reading is one that was replayed if all columns that both readings have are equal, and the
coordinate it was judged by: as a multiset, the oldest replay first. It is applied where that replay put it. Whoever
replayed it has said that it counts, and that another line of the file changed is no reason to think otherwise.

Letters that are looked for are kept as 24 bytes each, however wide they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidemark.arrow.decode.parquetfile import whole
from tidemark.arrow.decode.source import decoded_schema
from tidemark.arrow.kernels.ingest import LateObject
from tidemark.arrow.kernels.lateness import APPLIED, ORIGINAL, LatenessBounds, revive
from tidemark.arrow.rows.allowance import count_decoded
from tidemark.arrow.rows.columns import Bools, Ints, integers, rows_within
from tidemark.arrow.rows.fields import as_wanted, found
from tidemark.arrow.rows.schema import ROW
from tidemark.errors import Corruption, out_of_memory
from tidemark.model.batch import ObjectRef
from tidemark.model.ledger import Correctable, LedgerEntry, Status, late_identity
from tidemark.plan.tasks import Replayed, RereadTask
from tidemark.storage.stores.store import Missing, ObjectStore

BATCH_ROWS = 65_536
_READ_BYTES = 2**20
_SUMMED_BYTES = 8 * 2**20
"""Most bytes of letters made values of Python at a time."""
_SUM = np.dtype("S16")
"""Of a letter: 128 bits, so that no two are taken for one. NumPy leaves zero bytes at the end out of both."""
_NONE = -1


def dead_letters(store: ObjectStore, ref: ObjectRef, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a late object that were not applied. Raises Corruption if it cannot be read."""
    try:
        with store.open_input(ref.key) as native:
            file = pq.ParquetFile(native, page_checksum_verification=True)
            for batch in whole(file, BATCH_ROWS, columns):
                count_decoded(batch.nbytes)
                if (letters := batch.filter(pc.invert(batch.column(APPLIED)))).num_rows:
                    yield letters
    except MemoryError as error:
        raise out_of_memory(ref.key, error) from error
    except pa.ArrowException as error:
        raise Corruption(f"{ref.key} contains late rows and cannot be read: {str(error).splitlines()[0]}") from None


def check(store: ObjectStore, ref: ObjectRef) -> None:
    """Raise Corruption if the object is not the one recorded."""
    sha256, size = hashlib.sha256(), 0
    try:
        with store.open_input(ref.key) as native:
            while chunk := native.read(_READ_BYTES):
                sha256.update(chunk)
                size += len(chunk)
    except Missing:
        raise Corruption(f"{ref.key} contains late rows that the ledger names, and does not exist") from None
    if (size, sha256.hexdigest()) != (ref.bytes, ref.sha256):
        raise Corruption(
            f"{ref.key} has {size} bytes sha256 {sha256.hexdigest()[:12]}, recorded were {ref.bytes} bytes sha256 "
            f"{ref.sha256[:12]}"
        )


class StillReplayed:
    """The letters of one file that is read again, against those that were `replayed`; `number` is the file's among the
    batch's. It is used as a context. Within it `again` is given all late rows; at its end `entries` gives the entries
    for the ledger."""

    def __init__(self, store: ObjectStore, task: RereadTask, replayed: Sequence[Replayed], number: int) -> None:
        self._store, self._task, self._number = store, task, number
        self._replayed = replayed
        self._fields, self._index = _index(store, task, replayed)
        self._rows = [_Counts() for _ in replayed]
        self._stack = ExitStack()
        self._left: list[LateObject] = []

    def __enter__(self) -> StillReplayed:
        self._stack.__enter__()
        self._left = [self._stack.enter_context(LateObject(self._store, self._task.prefix)) for _ in self._replayed]
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def again(self, late: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Of late rows those that count still, as rows to apply."""
        if not self._replayed:
            return
        letters = late.filter(pc.invert(late.column(APPLIED)))
        if not letters.num_rows:
            return
        by = self._index.taken(_sums(letters, self._fields))
        for at, replay in enumerate(self._replayed):
            if (some := by == at).any():
                yield self._applied(letters.filter(pa.array(some)), at, replay)
            left = (by > at) | (by == _NONE)
            self._rows[at].left += int(np.count_nonzero(left))
            self._left[at].write(letters.filter(pa.array(left)))

    def entries(self, entry: LedgerEntry) -> Iterator[LedgerEntry]:
        """What the ledger is to have of the late object of the file's new `entry`, and of what each replay left."""
        named = entry
        for rows, left, replay in zip(self._rows, self._left, self._replayed, strict=True):
            if not rows.applied or named.late is None:
                continue
            named = LedgerEntry(
                late_identity(named.late),
                named.late.bytes,
                named.late.sha256,
                "",
                entry.interval,
                Status.INGESTED,
                entry.batch,
                rows_late_discarded=rows.left,
                late=left.close(),
                rows_late_moved=rows.moved,
                replay_of=named.path,
                correctable=Correctable(replay.seal, replay.seal, replay.since),
            )
            yield named

    def _applied(self, letters: pa.RecordBatch, at: int, replay: Replayed) -> pa.RecordBatch:
        collection = self._task.collection
        rows = as_wanted(letters, found(letters.schema, decoded_schema(collection)), letters.num_rows)
        bounds = LatenessBounds(replay.seal, replay.seal, replay.since, replay.seal)
        judged = revive(rows, letters, collection, bounds, as_now=True, number=self._number)
        self._rows[at].applied += judged.applied.num_rows
        self._rows[at].moved += judged.late_moved
        return judged.applied


class _Counts:
    """Of one replay, in the new reading: letters applied, how many of them lost their event time, and letters left."""

    applied = moved = left = 0


class _Index:
    """The letters that were replayed, by their sums: of each the replays that took one, oldest first."""

    def __init__(self, sums: npt.NDArray[Any], replays: Ints) -> None:
        order = np.argsort(sums, kind="stable")
        self._replays = replays[order]
        self._sums, self._first, self._count = np.unique(sums[order], return_index=True, return_counts=True)
        self._used = np.zeros(len(self._sums), np.int64)

    def taken(self, sums: npt.NDArray[Any]) -> Ints:
        """For each letter the replay it was taken by; each is given once. _NONE: by no replay."""
        by = np.full(len(sums), _NONE)
        if not len(self._sums):
            return by
        at = np.minimum(np.searchsorted(self._sums, sums), len(self._sums) - 1)
        same = (self._sums[at] == sums).nonzero()[0]
        same = same[np.argsort(at[same], kind="stable")]
        groups, starts, counts = np.unique(at[same], return_index=True, return_counts=True)
        place = self._used[at[same]] + np.arange(len(same)) - np.repeat(starts, counts)
        there = place < self._count[at[same]]
        by[same[there]] = self._replays[(self._first[at[same]] + place)[there]]
        self._used[groups] += counts
        return by


def _index(store: ObjectStore, task: RereadTask, replayed: Sequence[Replayed]) -> tuple[list[pa.Field], _Index]:
    """The fields by which letters are compared, and the letters that were replayed."""
    for replay in replayed:
        check(store, replay.letters)
    schemas = [_schema(store, replay.letters) for replay in replayed]
    fields = [
        field
        for field in decoded_schema(task.collection)
        if field.name != ROW and all(_is_in(schema, field) for schema in schemas)
    ]
    found_sums = [_replayed_sums(store, replay, fields) for replay in replayed]
    numbers = [np.full(len(sums), at) for at, sums in enumerate(found_sums)]
    none = np.empty(0, _SUM), np.empty(0, np.int64)
    return fields, _Index(np.concatenate([none[0], *found_sums]), np.concatenate([none[1], *numbers]))


def _replayed_sums(store: ObjectStore, replay: Replayed, fields: Sequence[pa.Field]) -> npt.NDArray[Any]:
    left = np.empty(0, np.int64)
    if replay.left is not None:
        check(store, replay.left)
        left = np.concatenate([left, *(integers(some, ROW) for some in dead_letters(store, replay.left))])
    sums = [np.empty(0, _SUM)]
    for letters in dead_letters(store, replay.letters):
        applied: Bools = ~np.isin(integers(letters, ROW), left)
        sums.append(_sums(letters.filter(pa.array(applied)), fields))
    return np.concatenate(sums)


def _schema(store: ObjectStore, ref: ObjectRef) -> pa.Schema:
    try:
        with store.open_input(ref.key) as native:
            return pq.read_schema(native)
    except pa.ArrowException as error:
        raise Corruption(f"{ref.key} contains late rows and cannot be read: {str(error).splitlines()[0]}") from None


def _is_in(schema: pa.Schema, field: pa.Field) -> bool:
    """Whether letters have a column, of its type or a narrower one."""
    try:
        ((_, source),) = found(schema, pa.schema([field]))
    except KeyError:
        return False
    return source is not None


def _sums(letters: pa.RecordBatch, fields: Sequence[pa.Field]) -> npt.NDArray[Any]:
    """Of each letter the sum of the fields and of the coordinate it was judged by."""
    pairs = found(letters.schema, pa.schema(fields))
    sums: list[bytes] = []
    while len(sums) < letters.num_rows:
        some = letters.slice(len(sums))
        some = some.slice(0, rows_within(some, _SUMMED_BYTES, least=1))
        rows = as_wanted(some, pairs, some.num_rows)
        cells = zip(integers(some, ORIGINAL).tolist(), *map(_plain, rows.columns), strict=True)
        sums += [hashlib.blake2b(repr(row).encode(), digest_size=16).digest() for row in cells]
    return np.array(sums, _SUM)


def _plain(column: pa.Array) -> list[Any]:
    """Values whose texts are equal if and only if they are."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return list(column.to_pylist())
