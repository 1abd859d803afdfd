"""What a state records beside its batches: certificates, fences, runs of the ledger, holds, counters."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.model.batch import ObjectRef
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry
from tidemark.model.wording import counted


@dataclass(frozen=True)
class Certificate:
    """A gate has passed the batch of this id under this suite. Trimming keeps the id, and so the certificate."""

    batch: str
    suite: str


@dataclass(frozen=True)
class EmptyReading:
    """An interval was read to its end, and that brought no rows: what a gate judges where there is no batch.

    `id` is that of the ingest, by which certificates, acceptances and commands know it. While it is `quarantined` no
    gate looks at it, and the interval counts as read.
    """

    id: str
    interval: Interval
    quarantined: bool = False


@dataclass(frozen=True)
class PassedOver:
    """Files beside those of an interval that its pattern does not match, though it was perhaps meant to.

    Attributes:
        interval: Whose reading passed them over.
        names: Some of their names, below the pattern's folder.
        files: How many there are.
    """

    interval: Interval
    names: tuple[str, ...]
    files: int


@dataclass(frozen=True)
class Stopped:
    """An interval could not be read, and is not ingested since.

    Attributes:
        interval: Which one.
        reason: Why, with the way out.
        path: The file that could not be taken, the first of them; empty where it is no matter of one.
        files: How many there are.
    """

    interval: Interval
    reason: str
    path: str = ""
    files: int = 0

    @property
    def words(self) -> str:
        """What it was, for all who may know of the collection: no name of a file, nor what may quote a row."""
        return f"{counted(self.files, 'file')} cannot be taken" if self.files else ""

    @property
    def detail(self) -> str:
        """Which file is meant, and what is wrong with it; or what else is wrong."""
        return f"{self.path}: {self.reason}" if self.path else self.reason


@dataclass(frozen=True)
class FrontierCertificate:
    """The frontier gate has passed: up to `upper` no interval is missing and every unsealed batch is certified."""

    upper: int
    suite: str


@dataclass(frozen=True)
class Fence:
    """Of the attempts at one step of one interval only the newest, `token`, may commit.

    An attempt announces itself by a change (Attempted), and the state then holds its fence. The first attempt of a run
    has nobody to fence off and saves that change: only what it commits carries its fence, marked `unannounced`, and it
    gives way to any attempt that was announced.
    """

    step: str
    interval: Interval
    token: str
    unannounced: bool = False


@dataclass(frozen=True)
class SmallLeaf:
    """A leaf of the ledger so small that its entries are `held` in the state. `key` is the name its object would have:
    it identifies the leaf, but there is no such object."""

    key: str
    held: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class LedgerRun:
    """A sorted run of the ledger of source files: an immutable object, the paths it spans, how often it was merged."""

    object: ObjectRef | SmallLeaf
    entries: int
    first_path: str
    last_path: str
    level: int = 0


@dataclass(frozen=True)
class Hold:
    """Somebody reads at `since` and later: times from there on are not merged until the hold is dropped, or until it
    `expires` (wall-clock microseconds; None: never)."""

    name: str
    since: int
    expires: int | None = None


@dataclass(frozen=True)
class Totals:
    """Counters over the life of the collection; bytes and rows are those of data files written.

    Attributes:
        images_unmatched: Before-images of messages that were not what was stored, or do not fit their columns.
    """

    rows_ingested: int = 0
    rows_late_applied: int = 0
    rows_late_discarded: int = 0
    rows_late_moved: int = 0
    rows_replayed: int = 0
    bytes_ingested: int = 0
    bytes_drained: int = 0
    bytes_compacted: int = 0
    drains: int = 0
    rows_drained: int = 0
    rows_compacted: int = 0
    rows_left_out: int = 0
    images_unmatched: int = 0
