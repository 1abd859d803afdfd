"""The ledger of source files: which content of which file was counted, by which batch. It makes ingest exactly-once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

from tidemark.model.batch import ObjectRef
from tidemark.model.collection import Collection, Late
from tidemark.model.interval import Interval

RULES = 1
"""Raised when files that were refused may be taken by now, or the other way round, so that they are read again."""


class Status(StrEnum):
    """What became of a source file: counted; set aside as unreadable or wrong; or freed with its batch."""

    INGESTED = "ingested"
    QUARANTINED = "quarantined"
    FREED = "freed"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A delta file as listed: its path, size, and the store's change token (ETag, or mtime and inode).

    `name` is its path below the landing: who the file is, also after the landing was moved or mounted elsewhere.
    `landed_at` is when it was last changed there, or moved there, in microseconds since the epoch by the store's clock.
    """

    path: str
    bytes: int
    token: str
    sha256: str | None = None
    name: str = ""
    landed_at: int = 0

    @property
    def identity(self) -> str:
        """The name the ledger knows the file by: below the landing, or the whole path outside of it."""
        return self.name or self.path


@dataclass(frozen=True)
class Contribution:
    """Where rows are kept that a source file contributed: a table of parts, and the file's number in these."""

    parts: ObjectRef
    number: int


@dataclass(frozen=True)
class Correctable:
    """What correcting a file needs: what was `complete_below`, the `seal` and `since`, by which its rows were judged
    when it was first read, and are for ever; what it has `contributed`, oldest first; the entry `replaced`, which holds
    again should the correction be taken out. `late` is the policy they were judged by, whatever the collection says by
    now (None, of a replay: by none). `columns` are the numbers of those that the file was read again for, and need not
    be once more."""

    complete_below: int
    seal: int
    since: int
    contributed: tuple[Contribution, ...] = ()
    replaced: LedgerEntry | None = None
    late: Late | None = None
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One source file's fate; `path` is its identity.

    `late` refers to the Parquet object of its late rows, applied and discarded alike. `rows_late_moved` are those
    applied that lost their event time to the seal. `rows_left_out` are none of these: the source's `only` is not true
    of them. Where the source is itself a late object, whose dead letters were
    replayed, `replay_of` is the path of the entry that names it, and `rows_late_discarded` are those left in `late`.
    Of a file that was set aside, the verdict holds for this content, `sha256`, under this declaration, `judged_by`
    (`rules_of`).

    `correctable` is there where the collection lets files be corrected; of a correction `rows` are what it wrote.
    """

    path: str
    bytes: int
    sha256: str
    token: str
    interval: Interval
    status: Status
    batch: str | None = None
    rows: int = 0
    rows_late_applied: int = 0
    rows_late_discarded: int = 0
    late: ObjectRef | None = None
    reason: str | None = None
    rows_late_moved: int = 0
    replay_of: str | None = None
    judged_by: str | None = None
    correctable: Correctable | None = None
    rows_left_out: int = 0

    @property
    def replaced(self) -> LedgerEntry | None:
        """Of a correction the entry that holds again should it be taken out."""
        return self.correctable.replaced if self.correctable else None

    @property
    def is_corrected(self) -> bool:
        """Whether the file was read again and said something else than before: `rows` are what that wrote."""
        return self.replaced is not None

    @property
    def is_silent(self) -> bool:
        """Whether nothing is counted under this name: the file that was has another name."""
        return self.status is Status.INGESTED and not self.sha256 and self.batch is None

    @property
    def contributed(self) -> tuple[Contribution, ...]:
        """Where what the file contributed is kept."""
        return self.correctable.contributed if self.correctable else ()


def rules_of(collection: Collection) -> str:
    """A fingerprint of all that decides whether a source file can be taken: another one, another verdict perhaps."""
    landed, source = collection.landed, collection.landed.source
    columns = [(column.name, str(column.type)) for column in (*collection.key, *collection.value, *landed.inputs)]
    how: list[object] = [source.format, source.envelope, source.order_by, source.diff, source.delete_when, source.units]
    # Where nothing is declared the fingerprint is that of releases without it: their verdicts hold.
    said: list[object] = [source.only, source.decimals, source.column_decimals, source.beyond, source.from_fields]
    said += [source.from_paths, source.optional, source.timezones, source.ambiguous, source.formats]
    how += [each for each in said if each]
    text = json.dumps([RULES, how, source.bad_files, landed.time, landed.event_time, columns])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def set_aside(collection: Collection, interval: Interval, file: SourceFile, sha256: str, reason: str) -> LedgerEntry:
    """What the ledger remembers of a file that cannot be taken."""
    return LedgerEntry(
        file.identity,
        file.bytes,
        sha256,
        file.token,
        interval,
        Status.QUARANTINED,
        reason=reason,
        judged_by=rules_of(collection),
    )


def verdict_applies(entry: LedgerEntry, file: SourceFile, collection: Collection) -> bool:
    """Whether the verdict on a file that was set aside still applies: the same content under the same declaration. One
    that was given without a look at the content, or by what its entry does not record, never does."""
    alike = bool(entry.sha256) and entry.sha256 == file.sha256
    return alike and entry.judged_by == rules_of(collection)


def late_identity(late: ObjectRef) -> str:
    """The name the ledger knows a late object by, as the source of a replay."""
    return f"late/{late.key}"


def path_hash(path: str) -> int:
    """A 64-bit hash of a source path, by which concurrent ingests notice that they share a file."""
    return int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big")
