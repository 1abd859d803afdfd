"""A day written again under other names: which new file takes the place of which one that was counted and is gone."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tidemark.model.interval import Interval
from tidemark.model.ledger import Correctable, LedgerEntry, SourceFile, Status


@dataclass(frozen=True)
class Replaced:
    """What becomes of the files of an interval, where some that were counted are gone and others are there.

    Attributes:
        corrected: Files to read, each with the entry from which they differ; no file: what the entry has is retracted.
        moved: Entries under the names that files have now, and those of names that no file has any more.
        files: The new files, all of them.
        names: How many names have given way to others.
        same: How many files of these have equal bytes, and are not read.
        withdrawn: How many of the `corrected` are names that have given way.
    """

    corrected: tuple[tuple[SourceFile | None, LedgerEntry], ...] = ()
    moved: tuple[LedgerEntry, ...] = ()
    files: tuple[SourceFile, ...] = ()
    names: int = 0
    same: int = 0
    withdrawn: int = 0


@dataclass(frozen=True)
class Before:
    """What is known of an interval before its files are replaced.

    Attributes:
        judged: By what its rows were judged first, and are for ever.
        replays: Of each file that is gone what was replayed of its dead letters.
        withdrawn: What the ledger has of the new files, where something was counted under their names once.
        unsealed: Batches that may still be taken out.
    """

    judged: Correctable
    replays: Mapping[str, Sequence[LedgerEntry]]
    withdrawn: Mapping[str, LedgerEntry]
    unsealed: Set[str]


def has_said(entry: LedgerEntry | None) -> bool:
    """Whether a file was counted under this name, and is still meant to have bytes."""
    return entry is not None and entry.status is Status.INGESTED and entry.replay_of is None and bool(entry.sha256)


def replace_files(
    interval: Interval, new: Sequence[SourceFile], gone: Sequence[LedgerEntry], before: Before, *, facts: bool
) -> Replaced:
    """Let new files take the place of those that are gone.

    Files of equal bytes are one file under another name. Of the others the first new one is compared with the first
    that is gone, and so on. The name of a file is part of its facts, so these are all retracted and stated again. So
    are rows where a batch that may be taken out would bring back some of them only.

    Args:
        interval: The interval of all files.
        new: Files that are there and not counted; those as large as one that is gone have a checksum.
        gone: Entries of files that were counted and are not there any more.
        before: What else is known of the interval.
        facts: Whether the rows are facts.
    """
    judged = replace(before.judged, contributed=(), replaced=None, columns=())
    same, others, left = _of_equal_bytes(new, gone)
    if left and not others:  # some new file is the successor of those that are left over
        (file, entry), same = same[-1], same[:-1]
        others, left = [file], [entry, *left]
    pairs = list(zip(others, left, strict=False))
    joined = left[len(pairs) :]
    is_bound = any(entry.batch in before.unsealed or before.replays.get(entry.path) for entry in joined)
    if facts or is_bound or any(not entry.is_silent for entry in before.withdrawn.values()):
        stated = (
            (file, before.withdrawn.get(file.identity) or _silent(file.identity, interval, judged)) for file in new
        )
        names = min(len(new), len(gone))
        both = (*((None, entry) for entry in gone), *stated)
        return Replaced(both, files=tuple(new), names=names, withdrawn=names)
    corrected = [(file, _renamed(entry, file.identity, judged)) for file, entry in pairs]
    if joined:
        corrected[-1] = corrected[-1][0], _together(corrected[-1][1], joined)
    corrected += [(file, _silent(file.identity, interval, judged)) for file in others[len(pairs) :]]
    moved = [replace(_renamed(entry, file.identity), token=file.token) for file, entry in same]
    moved += [_silent(entry.path, interval, judged) for entry in joined]
    for file, entry in (*same, *pairs):
        moved.append(_silent(entry.path, interval, judged))
        moved += [
            replace(replay, replay_of=file.identity)
            for replay in before.replays.get(entry.path, ())
            if replay.replay_of == entry.path
        ]
    names = len(same) + len(pairs) + len(joined)
    return Replaced(tuple(corrected), tuple(moved), tuple(new), names, len(same))


def first_judgement(entries: Iterable[LedgerEntry]) -> Correctable:
    """By what the rows of an interval were judged when the first of its files were read."""
    judged = (entry.correctable for entry in entries if entry.correctable is not None)
    return min(judged, key=lambda each: (each.complete_below, each.seal, each.since))


def _of_equal_bytes(
    new: Sequence[SourceFile], gone: Sequence[LedgerEntry]
) -> tuple[list[tuple[SourceFile, LedgerEntry]], list[SourceFile], list[LedgerEntry]]:
    """New files with the entry of one that had their bytes; and the other files, and the other entries, by name."""
    by_bytes: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in sorted(gone, key=lambda entry: entry.path, reverse=True):
        by_bytes[entry.sha256].append(entry)
    same, others = list[tuple[SourceFile, LedgerEntry]](), list[SourceFile]()
    for file in sorted(new, key=lambda file: file.identity):
        if entries := by_bytes.get(file.sha256 or ""):
            same.append((file, entries.pop()))
        else:
            others.append(file)
    left = (entry for entries in by_bytes.values() for entry in entries)
    return same, others, sorted(left, key=lambda entry: entry.path)


def _renamed(entry: LedgerEntry, name: str, judged: Correctable | None = None) -> LedgerEntry:
    """An entry under another name, and so are those that it replaced; `judged` from now on as others are."""
    correctable = entry.correctable
    assert correctable is not None  # others are not replaced
    before = correctable.replaced and _renamed(correctable.replaced, name, judged)
    by = judged or correctable
    correctable = replace(
        correctable,
        complete_below=by.complete_below,
        seal=by.seal,
        since=by.since,
        late=by.late,
        replaced=before,
    )
    return replace(entry, path=name, correctable=correctable)


def _together(entry: LedgerEntry, others: Sequence[LedgerEntry]) -> LedgerEntry:
    """What several files said, as if one had said it. No file has the bytes that the entry names."""
    every = [entry, *others]
    correctable = entry.correctable
    assert correctable is not None  # others are not replaced
    contributed = tuple(contribution for each in every for contribution in each.contributed)
    return replace(
        entry,
        bytes=sum(each.bytes for each in every),
        sha256=hashlib.sha256("".join(each.sha256 for each in every).encode()).hexdigest(),
        token="",
        rows=sum(each.rows for each in every),
        rows_late_applied=sum(each.rows_late_applied for each in every),
        rows_late_discarded=sum(each.rows_late_discarded for each in every),
        rows_late_moved=sum(each.rows_late_moved for each in every),
        rows_left_out=sum(each.rows_left_out for each in every),
        correctable=replace(correctable, contributed=contributed),
    )


def _silent(name: str, interval: Interval, judged: Correctable) -> LedgerEntry:
    """What the ledger says of a name under which nothing is counted: a file of that name is judged as its interval."""
    return LedgerEntry(name, 0, "", "", interval, Status.INGESTED, correctable=judged)
