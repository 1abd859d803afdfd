"""What an ingest of an interval has to read, given what was read before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Protocol, TypeVar

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Collection
from tidemark.model.full_snapshot import Effect
from tidemark.model.instant import format_duration, format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status, verdict_applies
from tidemark.model.local_time import format_local
from tidemark.model.nearest import nearest
from tidemark.plan.full_snapshots import judged_below, whole_interval
from tidemark.plan.kinds import plan_of
from tidemark.plan.replaced import Replaced
from tidemark.plan.tasks import IngestTask

TASK_BYTES = 256 * 2**20
"""Files are grouped into tasks of about this size: large enough to hide a task's fixed cost, small enough to spread."""
FILE_BYTES = 32 * 2**10
"""What a file counts beside its own bytes: so many are decoded in the millisecond that opening and reporting it takes.
So a task has at most some 8,000 files, and its answer, an entry of the ledger for each, some 3 MB."""


_LEAVE = "its rows stay as they are: name later days"
"""What can be done about a file that cannot be read again for a column."""


class HasBytes(Protocol):
    """Anything with a size."""

    @property
    def bytes(self) -> int: ...


_Sized = TypeVar("_Sized", bound=HasBytes)


@dataclass(frozen=True)
class IngestRequest:
    """Read these files of the interval, judging by `complete_below` which rows are late; what is late, and what else
    would be learned below the `seal`, is learned at it. No files: record that it was read.

    The two are what they are when the interval's turn comes in a daily run, or the collection's own where those are
    later. So it does not matter when, beside what and in how many pieces an interval is read before it is complete: its
    rows are late, and learned, alike (docs/decisions/0048).

    Late rows that happened below `since` are discarded: their history was merged, or its facts are forgotten.
    `corrected` are files counted before that hold something else now, or are withdrawn (None), each with its entry in
    the ledger; below `merged_below` history is merged. Where all files of an interval are one, `effect` is what is
    learned of it, at the seal `learned_at` (None: when it is true). Among the corrected are files of other bytes, and
    all that were not read again yet for the `columns` of some numbers, and those that were `replaced`.
    """

    interval: Interval
    files: tuple[SourceFile, ...]
    complete_below: int
    seal: int
    since: int
    corrected: tuple[tuple[SourceFile | None, LedgerEntry], ...] = ()
    merged_below: int = 0
    effect: Effect = Effect.ANNOUNCED
    learned_at: int | None = None
    columns: frozenset[int] = frozenset()
    replaced: Replaced = field(default_factory=Replaced)


def check_within(collection: Collection, interval: Interval) -> None:
    """Raise InvalidUsage for an interval outside the collection's start and end: there is no run of it."""
    landed = collection.landed
    if interval.lower < landed.start or (landed.end is not None and interval.upper > landed.end):
        zone = landed.timezone
        ends = "never" if landed.end is None else format_local(landed.end, zone)
        raise InvalidUsage(
            f"interval {interval.in_zone(zone)} is outside collection {collection.name}: "
            f"it starts {format_local(landed.start, zone)} and ends {ends}"
        )


def plan_ingest(
    state: Arrangement,
    interval: Interval,
    files: Sequence[SourceFile],
    known: Mapping[str, LedgerEntry],
    gone: Sequence[LedgerEntry] = (),
    *,
    turn: int,
    columns: frozenset[int] = frozenset(),
    replaced: Replaced | None = None,
) -> IngestRequest | None:
    """The files of an interval not counted yet, or with another content; None if there are none and the interval was
    read before. With `columns`, their numbers, also files as they were that were not read again for these yet.

    `turn` is up to where the collection is complete when the interval's turn comes (`Landed.complete_before`), or 0
    where neighbouring intervals list the same files, so that whichever is read first takes them all.

    A file set aside is read again once its content or the declaration has changed (`verdict_applies`). A file known by
    path must come with its `sha256`. `gone` are entries of files whose rows are to be retracted. Of files that were
    `replaced` none is new. Raises InvalidUsage
    for a file that changed, or is gone, and cannot be corrected, for an interval outside the collection's start and
    end, and for a full snapshot that comes too late or is not all the files of its interval.
    """
    collection = state.collection
    check_within(collection, interval)
    replaced = replaced or Replaced()
    files = [file for file in files if file not in replaced.files]
    new = tuple(file for file in files if is_new(file, known.get(file.identity), collection))
    corrected = (*_corrected(state, interval, files, known, columns), *_withdrawn(state, interval, gone))
    corrected = (*corrected, *replaced.corrected)
    if not new and not corrected and not replaced.moved and state.ingested.covers(interval):
        return None
    since = max(state.since, state.forgotten_below, state.settled + 1 if state.retracts_facts else 0)
    judged_by = (state.complete_below, state.seal)
    if collection.kind.whole_intervals:
        request = IngestRequest(interval, new, *judged_by, since, corrected, state.merged_below, columns=columns)
        return _of_whole(state, request, files, known)
    judged_by = (max(state.complete_below, turn), max(state.seal, turn))
    return IngestRequest(
        interval, new, *judged_by, since, corrected, state.merged_below, columns=columns, replaced=replaced
    )


def left_to_cut(
    files: Sequence[SourceFile], known: Mapping[str, LedgerEntry], *, settled_by: int
) -> tuple[SourceFile, ...]:
    """The files of an interval that goes on which may be taken before its end: left alone since `settled_by`
    (microseconds), and not counted yet. One that changed since it was counted, or could not be taken and is as it was,
    is left to the ingest of the whole interval, which says so."""
    return tuple(
        file for file in files if file.landed_at <= settled_by and _is_untouched(file, known.get(file.identity))
    )


def _is_untouched(file: SourceFile, entry: LedgerEntry | None) -> bool:
    if entry is None or entry.status is Status.FREED:
        return True
    return entry.status is Status.QUARANTINED and (file.bytes, file.token) != (entry.bytes, entry.token)


def _of_whole(
    state: Arrangement, request: IngestRequest, files: Sequence[SourceFile], known: Mapping[str, LedgerEntry]
) -> IngestRequest | None:
    """The request where all files of the interval are one full snapshot."""
    interval = request.interval
    whole = whole_interval(state, interval, files, known, request.files, request.corrected)
    if not whole.new and not whole.corrected and state.ingested.covers(interval):
        return None
    return replace(
        request,
        files=whole.new,
        corrected=whole.corrected,
        complete_below=judged_below(state, interval),
        effect=whole.effect,
        learned_at=whole.learned_at,
    )


def is_new(file: SourceFile, entry: LedgerEntry | None, collection: Collection) -> bool:
    """Whether a file is to be read that does not count."""
    if entry is None or entry.status is Status.FREED:
        return True
    if entry.status is Status.QUARANTINED:
        return collection.landed.source.bad_files == "stop" or not verdict_applies(entry, file, collection)
    return False


def numbers_of(collection: Collection, names: Sequence[str]) -> frozenset[int]:
    """The numbers of the columns that files are to be read again for.

    Raises:
        InvalidUsage: One is no value column, or no file can be read again.
    """
    values = {column.name: column.id for column in collection.value}
    for name in names:
        if name not in values:
            of_key = name in {column.name for column in collection.key}
            what = "a column of the key" if of_key else "no column"
            hint = nearest(name, list(values))
            raise InvalidUsage(f"{name} is {what} of {collection.name}; files are read again for value columns{hint}")
    if names and not collection.landed.reprocess_for:
        raise InvalidUsage(
            f"{collection.name} keeps nothing by which its files could be read again for {', '.join(names)}: declare "
            "reprocess_for, for files that are read from then on, or ingest the files into a collection of another name"
        )
    return frozenset(values[name] for name in names)


def _corrected(
    state: Arrangement,
    interval: Interval,
    files: Sequence[SourceFile],
    known: Mapping[str, LedgerEntry],
    columns: Set[int],
) -> tuple[tuple[SourceFile, LedgerEntry], ...]:
    """The files that changed since they were ingested, or were not read again for some columns, with their entries."""
    found = []
    for file in files:
        entry = known.get(file.identity)
        if entry is None or entry.status is not Status.INGESTED:
            continue
        is_changed = file.sha256 != entry.sha256
        if not is_changed and (not columns or (entry.correctable and columns <= set(entry.correctable.columns))):
            continue
        if not is_changed and (why := why_not_corrected(state, interval, entry, _LEAVE)):
            raise InvalidUsage(f"{file.identity} cannot be read again; {why}")
        if why := why_not_corrected(state, interval, entry):
            raise InvalidUsage(
                f"{file.identity} changed after it was ingested: was {entry.bytes} bytes sha256 {entry.sha256[:12]}, "
                f"is {file.bytes} bytes sha256 {(file.sha256 or '?')[:12]}; {why}"
            )
        found.append((file, entry))
    return tuple(found)


def _withdrawn(
    state: Arrangement, interval: Interval, gone: Sequence[LedgerEntry]
) -> Iterator[tuple[None, LedgerEntry]]:
    """The entries of files that are gone, and are to say nothing any more; those that do so already are left out."""
    for entry in gone:
        if entry.status is not Status.INGESTED or not entry.sha256:
            continue
        if why := why_not_corrected(state, interval, entry):
            raise InvalidUsage(f"{entry.path} is gone, and what it said cannot be retracted; {why}")
        yield None, entry


def why_not_corrected(state: Arrangement, interval: Interval, entry: LedgerEntry, way: str = "") -> str | None:
    """Why what a file said cannot be replaced, and a `way` out (empty: that of the envelope); None if it can be."""
    reach, way = state.collection.landed.reprocess_for, way or plan_of(state.collection.kind).correction
    if not reach:
        return f"{way}, or quarantine batch {entry.batch} before it is drained"
    if entry.interval != interval:
        own = entry.interval.in_zone(interval.zone)
        return f"it was counted with {own}, not with {interval}: run that interval again"
    if interval.lower < state.correctable_from:
        return (
            f"reprocess_for {format_duration(reach)} lets intervals be corrected that begin at "
            f"{format_instant(state.correctable_from)} or later, {interval} begins before; {way}"
        )
    if entry.correctable is None:
        return f"it was ingested when nothing was kept to correct it by; {way}"
    return None


def ingest_tasks(
    collection: Collection,
    request: IngestRequest,
    files: Sequence[SourceFile],
    *,
    batch: str,
    parallelism: int,
    counts_keys: bool = False,
) -> list[IngestTask]:
    """The tasks that read those `files` of a request that can be read, into parts of `batch`."""
    judged_by = (request.complete_below, request.seal, request.since)
    return [
        IngestTask(collection, request.interval, group, *judged_by, batch, f"data/{batch}", first, counts_keys)
        for first, group in numbered(group_files(files, parallelism))
    ]


def group_files(files: Sequence[_Sized], tasks: int) -> list[tuple[_Sized, ...]]:
    """Files in order, in at least `tasks` groups (as far as there are files) of at most about TASK_BYTES each, every
    file counted with FILE_BYTES more."""
    total = sum(file.bytes + FILE_BYTES for file in files)
    target = min(TASK_BYTES, -(-total // max(1, tasks)))
    groups: list[list[_Sized]] = []
    size = 0
    for file in files:
        cost = file.bytes + FILE_BYTES
        if not groups or size + cost > target:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += cost
    return [tuple(group) for group in groups]


def numbered(groups: Sequence[tuple[_Sized, ...]]) -> list[tuple[int, tuple[_Sized, ...]]]:
    """Groups of files with the number of their first file among all."""
    firsts = accumulate((len(group) for group in groups[:-1]), initial=0)
    return list(zip(firsts, groups, strict=False))
