"""Late rows: source rows that came below the seal, applied or discarded, with the reason and how late they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.storage import ObjectStore, ledger
from tidemark.storage.codec import check
from tidemark.storage.store import Missing

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class FileCount:
    """How many rows of one source file came late, and what became of them."""

    path: str
    interval: str
    batch: str | None
    applied: int
    discarded: int


@dataclass(frozen=True)
class LateRows:
    """Counts by file, and some of the rows, as they came, under today's names; beside them `_reason`, `_lateness` (µs)
    and `_applied`."""

    applied: int
    discarded: int
    files: tuple[FileCount, ...]
    rows: tuple[dict[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def late_rows(
    store: ObjectStore,
    state: Arrangement,
    *,
    intervals: Sequence[Interval] = (),
    path: str | None = None,
    batch: str | None = None,
    limit: int = 0,
) -> LateRows:
    """The late rows of the files counted now: of some intervals (none: all), of paths that hold `path`, of the batch
    whose id starts with `batch`; at most `limit` of the rows. Arrow is imported only if rows are asked for."""
    entries = [
        entry
        for entry in ledger.entries(store, state.ledger)
        if entry.status is Status.INGESTED
        and entry.rows_late_applied + entry.rows_late_discarded
        and (not intervals or any(_overlap(entry.interval, interval) for interval in intervals))
        and (path is None or path in entry.path)
        and (batch is None or (entry.batch or "").startswith(batch))
    ]
    return LateRows(
        sum(entry.rows_late_applied for entry in entries),
        sum(entry.rows_late_discarded for entry in entries),
        tuple(_count(entry) for entry in entries),
        tuple(_rows(store, state.collection, entries, limit)),
    )


def _count(entry: LedgerEntry) -> FileCount:
    counts = (entry.rows_late_applied, entry.rows_late_discarded)
    return FileCount(entry.path, str(entry.interval), entry.batch, *counts)


def _overlap(one: Interval, other: Interval) -> bool:
    return one.lower < other.upper and other.lower < one.upper


def _rows(
    store: ObjectStore, collection: Collection, entries: Sequence[LedgerEntry], limit: int
) -> Iterator[dict[str, Any]]:
    left = limit
    for entry in entries:
        if not left:
            return
        if entry.late is not None:
            from tidemark.arrow.fields import todays_names
            from tidemark.jobs.rows import plain_rows

            table = todays_names(_table(store, entry.late), collection).slice(0, left)
            left -= table.num_rows
            yield from (dict(zip(table.column_names, row, strict=True)) for row in plain_rows(table))


def _table(store: ObjectStore, ref: ObjectRef) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(pa.BufferReader(check(ref, store.read(ref.key))))
    except Missing:
        raise Corruption(f"{ref.key} holds late rows the ledger names, and does not exist") from None
