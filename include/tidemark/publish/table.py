"""What a published table must offer, whatever its format.

    head(recorded)                 what it is now, and who changed it since the snapshot that was recorded
    commit(head, mark, content)    the next snapshot, if `head` is still the newest: whole, or not at all
    tidy()                         remove the table's own files that only expired snapshots named
    drop()                         forget the table

A commit that may have happened is CommitUnknown, one that lost to another is Contention, a catalog or store that does
not answer is Unavailable; whoever runs the step again finds out from `head` what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.model.collection import Collection
from tidemark.plan.publish import Mark, TableHead, Way


@dataclass(frozen=True)
class NamedFile:
    """A part that a table is to name: where it is, its size, and its footer."""

    path: str
    bytes: int
    footer: pq.FileMetaData


Rows = Callable[[], Iterator[pa.RecordBatch]]
"""Rows in the columns of the collection, each as often as its multiplicity says; may be called again."""


@dataclass(frozen=True)
class Content:
    """What a commit brings: parts that are named, and rows that are copied. By the `way` it replaces what is there or
    is added to it; MERGE replaces the rows of the keys in `rows`, where a last column `_gone` is true of those that
    have none any more. Files in `names` are to be named, and those in `kept` are already."""

    way: Way
    names: tuple[NamedFile, ...] = ()
    kept: frozenset[str] = frozenset()
    rows: Rows | None = None


class PublishedTable(Protocol):
    """One table. Nothing is asked of it before the first call."""

    @property
    def where(self) -> str:
        """What it is called in the log, and recorded as."""
        ...

    def head(self, recorded: str) -> TableHead | None:
        """The table as it is; None if there is none. `recorded` is the snapshot that was committed last, by what is
        recorded ("" if none is)."""
        ...

    def named(self) -> frozenset[str]:
        """The paths of all files that the newest snapshot names."""
        ...

    def commit(self, collection: Collection, head: TableHead | None, mark: Mark, content: Content) -> TableHead:
        """Make the table hold `content` beside or in place of what it had at `head`, and say `mark` of itself."""
        ...

    def tidy(self) -> int:
        """Remove files that commits of this object let go; how many."""
        ...

    def drop(self) -> None:
        """Take the table out of its catalog, if that names it; no file is removed."""
        ...
