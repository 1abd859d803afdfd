"""What an ingest finds in the landing for an interval, and what of it is to be read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from tidemark.config.neighbours import has_own_folder, ready_of, shares_files_with
from tidemark.config.template import pattern_of
from tidemark.errors import FileRefused, InvalidUsage, NotReady, listed
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement
from tidemark.model.batching.cutting import SETTLE
from tidemark.model.batching.reason import Cut
from tidemark.model.change import NAMES_SHOWN
from tidemark.model.collection import Collection
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status
from tidemark.model.wording import counted
from tidemark.plan import duplicates
from tidemark.plan.ingest import (
    IngestRequest,
    check_within,
    is_new,
    left_to_cut,
    numbers_of,
    plan_ingest,
    why_not_corrected,
)
from tidemark.plan.replaced import Before, Replaced, first_judgement, has_said, replace_files
from tidemark.storage import landing
from tidemark.storage.sidecars import ledger

ASKS = "replaced"
"""The name of the detail of a failure that asks whether files were replaced."""


@dataclass(frozen=True)
class Wanted:
    """What an ingest of a whole interval is to do beside taking what is new.

    Raises:
        InvalidUsage: Two of them exclude each other.
    """

    removed: bool
    yes: bool
    as_landed: bool
    waits: bool
    columns: tuple[str, ...]
    replaced: bool = False
    added: bool = False

    def __post_init__(self) -> None:
        if self.yes and not self.removed:
            raise InvalidUsage("--yes confirms --removed; say --removed, too, or leave it out")
        if self.added and (self.replaced or self.removed):
            other = "--replaced" if self.replaced else "--removed"
            raise InvalidUsage(f"--added leaves what gone files said, and {other} does not; leave one of them out")


@dataclass(frozen=True)
class Planned:
    """What an ingest is to do.

    Attributes:
        request: What is to be read, if anything.
        in_ledger: What the ledger has of the files that are listed.
        gone: Files that were to be read again for columns, and are not there.
        passed_over: Files beside those that match.
        skipped: Files that have the bytes of another one, each with that one's path, where these are skipped.
        replaced: Files that have taken the place of others.
        may_ask: Whether a person is asked where few rows of the replaced files come back.
    """

    request: IngestRequest | None
    in_ledger: Mapping[str, LedgerEntry] = field(default_factory=dict)
    gone: Sequence[str] = ()
    passed_over: Sequence[str] = ()
    skipped: Sequence[tuple[SourceFile, str]] = ()
    replaced: Replaced = field(default_factory=Replaced)
    may_ask: bool = False


def what_to_read(job: Job, state: Arrangement, interval: Interval, landing_root: str, wanted: Wanted) -> Planned:
    """What is to be read of a whole interval.

    Raises:
        NotReady: It has not landed.
        InvalidUsage: What is there is not what the interval's path is meant to name, or cannot be corrected.
        FileRefused: A person says whether new files are in the place of those that are gone.
    """
    columns = numbers_of(state.collection, wanted.columns)
    # Who reads again what was read may find that the landing has expired: that is reported, and waited for no more.
    as_landed = wanted.as_landed or not wanted.waits or (bool(columns) and state.ingested.covers(interval))
    check_within(state.collection, interval)
    pattern = pattern_of(state.collection.landed, interval, landing_root)
    within = landing_root if landing.below(pattern, landing_root) else None
    ready = ready_of(state.collection.landed, interval, landing_root)
    if not as_landed and not landing.is_ready(pattern, ready, within=within):
        missing = landing.awaited(pattern, ready)
        raise NotReady(f"{interval} of {state.collection.name} has not landed: {missing}")
    own_folder = has_own_folder(state.collection.landed, interval, landing_root)
    beside = landing.Beside(pattern, ready, own_folder=own_folder)
    matching = landing.list_named(pattern, landing_root, within=within, note=job.note, beside=beside)
    passed_over = beside.without(matching)
    _check_passed_over(state, interval, pattern, matching, passed_over, is_taken=wanted.as_landed)
    if not matching and beside.others:
        job.note(f"nothing matches {pattern}; its folder has {listed(beside.others, NAMES_SHOWN)}")
    in_ledger = ledger.known(job.store, state.ledger, [file.identity for file in matching])
    identified = [_identified(file, in_ledger.get(file.identity)) for file in matching]
    files, skipped = _without_duplicates(state, identified, in_ledger)
    absent = _gone(job, state, interval, {file.identity for file in matching}) if wanted.removed or columns else []
    gone = absent if wanted.removed else []
    if gone and not matching and not wanted.yes:
        raise InvalidUsage(
            f"nothing is left at {pattern}, and {len(gone)} files of {interval} are ingested: a landing may just have "
            "expired; say --yes too if their rows are to be retracted"
        )
    begins = landing.names_begin(pattern, landing_root) if own_folder else None
    replaced = _replaced(job, state, Look(interval, files, in_ledger, begins), wanted)
    if wanted.replaced and not replaced.files:
        job.note(
            f"no file of {interval} is replaced: that needs reprocess_for, a folder of its own, a file that is gone, "
            "and one that came"
        )
    taken = {entry.path for _, entry in replaced.corrected} | {entry.path for entry in replaced.moved}
    gone = [entry for entry in gone if entry.path not in taken]
    turn = _turn(job, state, interval, landing_root)
    request = plan_ingest(state, interval, files, in_ledger, gone, turn=turn, columns=columns, replaced=replaced)
    paths = [] if wanted.removed else [entry.path for entry in absent if entry.path not in taken]
    may_ask = bool(replaced.files) and not (wanted.replaced or wanted.removed)
    return Planned(request, in_ledger, paths, passed_over, skipped, replaced, may_ask)


@dataclass(frozen=True)
class Look:
    """What is there of an interval.

    Attributes:
        interval: The interval.
        files: The files that match its path.
        in_ledger: What the ledger has of them.
        begins: What all names begin with of files that match; None where other intervals have files beside them.
    """

    interval: Interval
    files: Sequence[SourceFile]
    in_ledger: Mapping[str, LedgerEntry]
    begins: str | None


def _replaced(job: Job, state: Arrangement, look: Look, wanted: Wanted) -> Replaced:
    """Which files have taken the place of others.

    Raises:
        FileRefused: Only some of the files are gone, so that a person says whether new ones are in their place.
    """
    collection, interval = state.collection, look.interval
    new = [file for file in look.files if _is_uncounted(file, look.in_ledger.get(file.identity), collection)]
    is_within = collection.landed.reprocess_for and interval.lower >= state.correctable_from
    if collection.kind.whole_intervals or not is_within or look.begins is None or not new or wanted.added:
        return Replaced()
    entries = [
        entry
        for entry in ledger.entries(job.store, state.ledger, below=look.begins)
        if entry.interval == interval and has_said(entry)
    ]
    gone = [entry for entry in entries if entry.path not in {file.identity for file in look.files}]
    if not gone:
        return Replaced()
    names = (listed([file.identity for file in new], NAMES_SHOWN), listed([entry.path for entry in gone], NAMES_SHOWN))
    for entry in gone:
        if why := why_not_corrected(state, interval, entry):
            raise InvalidUsage(
                f"{entry.path} is gone, and {names[0]} cannot take its place; {why}; --added counts both"
            )
    if len(gone) < len(entries) and not (wanted.replaced or wanted.removed):
        raise ask_whether_replaced(
            f"{interval}: {names[1]} {'is' if len(gone) == 1 else 'are'} gone, "
            f"{counted(len(entries) - len(gone), 'file')} stayed, and {names[0]} came"
        )
    sizes = {entry.bytes for entry in gone}
    new = [replace(file, sha256=landing.sha256_of(file.path)) if file.bytes in sizes else file for file in new]
    names_of_new = {file.identity for file in new}
    before = Before(
        first_judgement(entries),
        ledger.replays(job.store, state.ledger, gone),
        {
            path: entry
            for path, entry in look.in_ledger.items()
            if path in names_of_new and entry.status is Status.INGESTED
        },
        {batch.id for batch in state.unsealed},
    )
    done = replace_files(interval, new, gone, before, facts=collection.kind.facts)
    return replace(done, files=tuple(file for file in look.files if file.identity in names_of_new))


def ask_whether_replaced(what: str) -> FileRefused:
    """The question whether files that came take the place of those that are gone."""
    return FileRefused(
        f"{what}: say --replaced if the rows of the files that are gone are to be retracted, as far as the new ones "
        "do not have them, or --added if both count",
        {ASKS: what},
    )


def _is_uncounted(file: SourceFile, entry: LedgerEntry | None, collection: Collection) -> bool:
    """Whether a file is to be read, and nothing is counted under its name."""
    if entry is not None and entry.status is Status.INGESTED:
        return entry.replay_of is None and not entry.sha256
    return is_new(file, entry, collection)


def _turn(job: Job, state: Arrangement, interval: Interval, landing_root: str) -> int:
    """Up to where the collection is complete when the interval's turn comes; 0 where that says nothing of its files."""
    landed = state.collection.landed
    if state.collection.kind.whole_intervals:  # no row of a full snapshot is late
        return 0
    if neighbour := shares_files_with(landed, interval, landing_root):
        job.note(
            f"source.path names the same files for {interval} and {neighbour}: a row is late if it happened where the "
            "collection is complete when its file is read, so the order of runs decides; give each interval a "
            "path of its own"
        )
        return 0
    return landed.complete_before(interval)


def _check_passed_over(
    state: Arrangement,
    interval: Interval,
    pattern: str,
    files: Sequence[SourceFile],
    passed_over: Sequence[str],
    *,
    is_taken: bool,
) -> None:
    """Raise InvalidUsage where files that a pattern does not match may be what the interval is about.

    That is so where nothing matches, and where a full snapshot's rows would be deleted; unless the interval `is_taken`
    as it has landed.
    """
    is_whole = state.collection.kind.whole_intervals
    if is_taken or not passed_over or (files and not is_whole) or (not files and state.ingested.covers(interval)):
        return
    names = listed(passed_over, NAMES_SHOWN)
    what = (
        f"{counted(len(files), 'file')} of a full snapshot match {pattern}" if files else f"nothing matches {pattern}"
    )
    are = "is" if len(passed_over) == 1 else "are"
    raise InvalidUsage(
        f"{what}, and {names} {are} there: names are read in their case, and files as source.compression says; write "
        "source.path so that it matches, move the file away, or take the interval without it (--as-landed)"
    )


def what_to_cut(job: Job, state: Arrangement, interval: Interval, landing_root: str, cut: Cut) -> Planned:
    """What may be taken of an interval that goes on; nothing where it was read to its end.

    Raises:
        InvalidUsage: An interval is one whole.
    """
    state.collection.landed.check_cuttable()
    if state.ingested.covers(interval):
        return Planned(None)
    pattern = pattern_of(state.collection.landed, interval, landing_root)
    within = landing_root if landing.below(pattern, landing_root) else None
    matching = landing.list_named(pattern, landing_root, within=within, note=job.note)
    in_ledger = ledger.known(job.store, state.ledger, [file.identity for file in matching])
    batching = state.collection.landed.batching
    settled_by = moment_of(cut) - (SETTLE if batching is None else batching.settle)
    identified = [_identified(file, in_ledger.get(file.identity)) for file in matching]
    files, skipped = _without_duplicates(state, identified, in_ledger)
    files = left_to_cut(files, in_ledger, settled_by=settled_by)
    turn = _turn(job, state, interval, landing_root)
    request = plan_ingest(state, interval, files, {}, turn=turn) if files else None
    return Planned(request, in_ledger, skipped=skipped)


def _without_duplicates(
    state: Arrangement, files: Sequence[SourceFile], in_ledger: Mapping[str, LedgerEntry]
) -> tuple[Sequence[SourceFile], Sequence[tuple[SourceFile, str]]]:
    """The files that count, and, where those are skipped, the ones that have the bytes of another."""
    if state.collection.landed.source.duplicate_files != duplicates.SKIP:
        return files, ()
    return duplicates.without_repeated(files, in_ledger, landing.sha256_of)


def _gone(job: Job, state: Arrangement, interval: Interval, listed: Set[str]) -> list[LedgerEntry]:
    """The files counted with the interval that are not listed; looks through the whole ledger."""
    return [
        entry
        for entry in ledger.entries(job.store, state.ledger)
        if entry.interval == interval
        and entry.status is Status.INGESTED
        and entry.replay_of is None
        and entry.sha256
        and entry.path not in listed
    ]


def _identified(file: SourceFile, entry: LedgerEntry | None) -> SourceFile:
    """A file known by path needs its checksum; an unchanged change token spares the reading."""
    if entry is None:
        return file
    unchanged = (file.bytes, file.token) == (entry.bytes, entry.token)
    return replace(file, sha256=(entry.sha256 or None) if unchanged else landing.sha256_of(file.path))


def moment_of(cut: Cut) -> int:
    """When a batch is cut: now, where the cut says nothing else."""
    return time.time_ns() // 1000 if cut.at is None else cut.at
