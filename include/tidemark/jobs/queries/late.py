"""Late rows: source rows that happened before their interval or in what was complete, applied or discarded, with the
reason and how late they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tidemark.errors import Corruption, InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef
from tidemark.model.collection import Collection
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status, late_identity
from tidemark.storage import ObjectStore
from tidemark.storage.documents.codec import check
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    import pyarrow as pa


JUDGED_BY_1 = {"_seal": "_complete_below"}
MOVED = "moved to the seal"
"""The reason of a row that was applied as if it had happened at the seal."""


@dataclass(frozen=True)
class LateFile:
    """A source file with late rows, and the replays of those that were discarded, each of what the one before left."""

    entry: LedgerEntry
    replays: tuple[LedgerEntry, ...]

    @property
    def last(self) -> LedgerEntry:
        """The entry whose late object holds the dead letters that nobody has replayed, if there are any."""
        return self.replays[-1] if self.replays else self.entry


@dataclass(frozen=True)
class Happened:
    """When rows happened, by the event time they came with: in `[lower, upper)`, in microseconds; None is unbounded."""

    lower: int | None = None
    upper: int | None = None

    def __post_init__(self) -> None:
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise InvalidUsage(
                f"no row happened from {format_instant(self.lower)} on and before {format_instant(self.upper)}: "
                "the first must be earlier"
            )


@dataclass(frozen=True)
class FileCount:
    """How many rows of one source file came late, and what became of them: `moved` of those applied lost their event
    time to the seal, `replayed` of those discarded were applied after all, by the batches named."""

    path: str
    interval: str
    batch: str | None
    applied: int
    moved: int
    discarded: int
    replayed: int
    replayed_by: tuple[str, ...]


@dataclass(frozen=True)
class LateRows:
    """Counts by file, and some of the rows, as they came, under today's names; beside them `_reason`, `_lateness` (µs),
    `_applied`, `_original_event_time` (µs), `_complete_below` (µs), by which it was judged, and `_replayed_by`, a
    batch."""

    applied: int
    moved: int
    discarded: int
    replayed: int
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
    happened: Happened | None = None,
    limit: int = 0,
) -> LateRows:
    """The late rows of the files counted now: of some intervals (none: all), of paths that hold `path`, of the batch
    whose id starts with `batch`; at most `limit` of the rows. Arrow is imported only if rows are asked for.

    With `happened` only rows that happened then are counted, which reads the late rows of all these files."""
    files = late_files(store, state, intervals=intervals, path=path, batch=batch)
    if happened is None:
        return _late_rows([_count(file) for file in files], _rows(store, state.collection, files, limit))
    counts: list[FileCount] = []
    rows: list[dict[str, Any]] = []
    for file in files:
        if found := _rows_of(store, state.collection, file, happened):
            counts.append(_count_of(file, found))
            rows += found[: limit - len(rows)]
    return _late_rows(counts, rows)


def _late_rows(counts: Sequence[FileCount], rows: Iterable[dict[str, Any]]) -> LateRows:
    return LateRows(
        sum(count.applied for count in counts),
        sum(count.moved for count in counts),
        sum(count.discarded for count in counts),
        sum(count.replayed for count in counts),
        tuple(counts),
        tuple(rows),
    )


def late_files(
    store: ObjectStore,
    state: Arrangement,
    *,
    intervals: Sequence[Interval] = (),
    path: str | None = None,
    batch: str | None = None,
) -> list[LateFile]:
    """The files counted now that brought late rows, chosen as in `late_rows`; `batch` may also be one that replayed."""
    files, replays = [], {}
    for entry in ledger.entries(store, state.ledger):
        if entry.status is not Status.INGESTED:
            continue
        if entry.replay_of is not None:
            replays[entry.path] = entry
        elif entry.rows_late_applied + entry.rows_late_discarded and _is_asked(entry, intervals, path):
            files.append(entry)
    found = [LateFile(entry, tuple(_replays(entry, replays))) for entry in files]
    return [file for file in found if batch is None or _belongs_to(file, batch)]


def check_named(store: ObjectStore, state: Arrangement, path: str | None, batch: str | None) -> None:
    """Raise InvalidUsage where no file that was ingested has a path that contains `path`, or belongs to a batch whose
    id starts with `batch`: to a slip no late rows would be the answer that is hoped for."""
    entries = [entry for entry in ledger.entries(store, state.ledger) if entry.status is Status.INGESTED]
    if path is not None and not any(path in entry.path for entry in entries):
        raise InvalidUsage(f"no file that was ingested has {path!r} in its path")
    if batch is not None and not any((entry.batch or "").startswith(batch) for entry in entries):
        raise InvalidUsage(f"no file was ingested by a batch {batch}…")


def _is_asked(entry: LedgerEntry, intervals: Sequence[Interval], path: str | None) -> bool:
    within = not intervals or any(_overlap(entry.interval, interval) for interval in intervals)
    return within and (path is None or path in entry.path)


def _belongs_to(file: LateFile, batch: str) -> bool:
    return any((entry.batch or "").startswith(batch) for entry in (file.entry, *file.replays))


def _replays(entry: LedgerEntry, replays: Mapping[str, LedgerEntry]) -> Iterator[LedgerEntry]:
    """The replay of an entry's late object, that of what it left, and so on."""
    named: LedgerEntry | None = entry
    while named is not None and named.late is not None:
        named = replays.get(late_identity(named.late))
        if named is not None:
            yield named


def _count(file: LateFile) -> FileCount:
    entry = file.entry
    return FileCount(
        entry.path,
        str(entry.interval),
        entry.batch,
        entry.rows_late_applied,
        entry.rows_late_moved,
        entry.rows_late_discarded,
        entry.rows_late_discarded - file.last.rows_late_discarded if file.replays else 0,
        tuple(replay.batch for replay in file.replays if replay.batch),
    )


def _count_of(file: LateFile, rows: Sequence[dict[str, Any]]) -> FileCount:
    """The same of some of the file's late rows."""
    applied = [row for row in rows if row["_applied"]]
    batches = {row["_replayed_by"] for row in rows}
    return FileCount(
        file.entry.path,
        str(file.entry.interval),
        file.entry.batch,
        len(applied),
        sum(row["_reason"] == MOVED for row in applied),
        len(rows) - len(applied),
        sum(row["_replayed_by"] is not None for row in rows),
        tuple(replay.batch for replay in file.replays if replay.batch in batches and replay.batch),
    )


def _overlap(one: Interval, other: Interval) -> bool:
    return one.lower < other.upper and other.lower < one.upper


def _rows(
    store: ObjectStore, collection: Collection, files: Sequence[LateFile], limit: int
) -> Iterator[dict[str, Any]]:
    left = limit
    for file in files:
        if not left:
            return
        found = _rows_of(store, collection, file, Happened(), left)
        left -= len(found)
        yield from found


def _rows_of(
    store: ObjectStore, collection: Collection, file: LateFile, happened: Happened, most: int | None = None
) -> list[dict[str, Any]]:
    """The late rows of a file that happened in a time; at most so many (None: all)."""
    if file.entry.late is None:
        return []
    from tidemark.arrow.rows.fields import todays_names
    from tidemark.arrow.rows.plain import plain_rows

    table = _of_time(todays_names(_table(store, file.entry.late), collection), happened).slice(0, most)
    # Format 1 said it so; then the seal was all there was to be judged by.
    table = table.rename_columns([JUDGED_BY_1.get(name, name) for name in table.column_names])
    steps = list(_steps(store, file))
    rows = (dict(zip(table.column_names, values, strict=True)) for values in plain_rows(table))
    return [row | {"_replayed_by": _replayed_by(row, steps)} for row in rows]


def _of_time(table: pa.Table, happened: Happened) -> pa.Table:
    import pyarrow.compute as pc

    for bound, compared in ((happened.lower, pc.greater_equal), (happened.upper, pc.less)):
        if bound is not None:
            table = table.filter(compared(table.column("_original_event_time"), bound))
    return table


def _steps(store: ObjectStore, file: LateFile) -> Iterator[tuple[str | None, frozenset[int]]]:
    """The batches that replayed a file's dead letters, each with the rows it left."""
    for replay in file.replays:
        left = _table(store, replay.late).column("_row").to_pylist() if replay.late is not None else ()
        yield replay.batch, frozenset(left)


def _replayed_by(row: dict[str, Any], steps: Sequence[tuple[str | None, frozenset[int]]]) -> str | None:
    if row["_applied"]:
        return None
    return next((batch for batch, left in steps if row["_row"] not in left), None)


def _table(store: ObjectStore, ref: ObjectRef) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(pa.BufferReader(check(ref, store.read(ref.key))))
    except Missing:
        raise Corruption(f"{ref.key} contains late rows that the ledger names, and does not exist") from None
