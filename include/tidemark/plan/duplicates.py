"""Files of one interval with equal bytes: where rows add up, those of the second count twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, SourceFile, Status

REFUSE, COUNT, SKIP = "refuse", "count", "skip"


def repeated(
    interval: Interval,
    in_ledger: Mapping[str, LedgerEntry],
    entries: Iterable[LedgerEntry],
    corrected: Sequence[LedgerEntry] = (),
) -> list[tuple[LedgerEntry, str]]:
    """Files that were just read, have rows, and have the bytes of another file of their interval.

    Args:
        interval: What was read.
        in_ledger: What the ledger has of files that are listed, by path.
        entries: The files that were read.
        corrected: Files that were counted before, and have other bytes or another name by now.

    Returns:
        Each file, and the path of that other one.
    """
    counted = {path: entry for path, entry in in_ledger.items() if entry.interval == interval and _has_rows(entry)}
    for entry in corrected:
        counted.pop(entry.path, None)
    first = {entry.sha256: entry.path for entry in counted.values()}
    # Of a corrected file the rows are those that were written; with the bytes of one that has rows it has rows.
    again = [entry for entry in corrected if entry.sha256 and (_has_rows(entry) or entry.sha256 in first)]
    new = sorted([*(entry for entry in entries if _has_rows(entry)), *again], key=lambda entry: entry.path)
    others = ((entry, first.setdefault(entry.sha256, entry.path)) for entry in new)
    return [(entry, other) for entry, other in others if other != entry.path]


def without_repeated(
    files: Sequence[SourceFile], in_ledger: Mapping[str, LedgerEntry], sha256_of: Callable[[str], str]
) -> tuple[list[SourceFile], list[tuple[SourceFile, str]]]:
    """The listed files, and those that have the bytes of one of them, each with that one's path.

    Only files of equal size are read for it. One that was counted goes before one that was not.
    """
    sizes = Counter(file.bytes for file in files)
    counting, left, first = list[SourceFile](), list[tuple[SourceFile, str]](), dict[str, str]()
    for file in sorted(files, key=lambda file: (not _is_counted(in_ledger.get(file.identity)), file.path)):
        if sizes[file.bytes] > 1:
            file = replace(file, sha256=file.sha256 or sha256_of(file.path))
            other = first.setdefault(file.sha256 or "", file.identity)
            if other != file.identity and not _is_counted(in_ledger.get(file.identity)):
                left.append((file, other))
                continue
        counting.append(file)
    return sorted(counting, key=lambda file: file.path), left


def skipped(
    interval: Interval, left: Iterable[tuple[SourceFile, str]], in_ledger: Mapping[str, LedgerEntry]
) -> Iterator[LedgerEntry]:
    """What the ledger is to remember of files that are skipped, but for those that it remembers so."""
    for file, other in left:
        entry = as_duplicate(interval, file, other)
        before = in_ledger.get(file.identity)
        if before is None or (before.sha256, before.reason, before.status) != (
            entry.sha256,
            entry.reason,
            entry.status,
        ):
            yield entry


def as_duplicate(interval: Interval, file: SourceFile, other: str) -> LedgerEntry:
    """What is remembered of a file that has the bytes of another one, and does not count.

    No rules judged it: it is read like a new one as soon as the other is not there.
    """
    reason = f"has the bytes of {other}"
    return LedgerEntry(
        file.identity, file.bytes, file.sha256 or "", file.token, interval, Status.QUARANTINED, reason=reason
    )


def _has_rows(entry: LedgerEntry) -> bool:
    return entry.status is Status.INGESTED and entry.replay_of is None and entry.rows + entry.rows_late_discarded > 0


def _is_counted(entry: LedgerEntry | None) -> bool:
    return entry is not None and entry.status is Status.INGESTED
