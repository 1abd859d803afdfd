"""Batches: immutable sets of updates (or facts) known to a state, and what describes them."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import Corruption
from tidemark.model.interval import Interval
from tidemark.model.update import Row

DIGEST_MODULUS = 2**64


@dataclass(frozen=True)
class ObjectRef:
    """An immutable object: its key below the collection's root, its size in bytes, its SHA-256 in hex."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """One Parquet file of a batch, sorted by key.

    `groups` holds (first key, rows) of each row group, in order: the sparse index by which readers skip. `digest` is
    the sum of the row hashes times diff, modulo 2^64 (docs/format.md).
    """

    file: ObjectRef
    rows: int
    digest: int
    groups: tuple[tuple[Row, int], ...]
    last_key: Row
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int

    @property
    def first_key(self) -> Row:
        return self.groups[0][0]


@dataclass(frozen=True)
class Description:
    """What a trace batch promises: `[lower, upper)` and `since`.

    For every time t >= since, summing the batch's diffs at times <= t gives what summing the original updates of
    `[lower, upper)` at times <= t gives. Below since it promises nothing. So every time of the batch is >= lower, and
    < upper, or <= since where since has passed the upper.
    """

    lower: int
    upper: int
    since: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.lower < self.upper:
            raise Corruption(f"batch interval [{self.lower}, {self.upper}) must satisfy 0 <= lower < upper")

    def __str__(self) -> str:
        return f"[{self.lower}][{self.upper}][{self.since}]"


@dataclass(frozen=True)
class UnsealedBatch:
    """What one ingest committed, as it arrived. Bounds are closed and present in the data.

    `id` identifies the batch for ever; the sequence interval orders batches and may be reused. `parts` refers to the
    table of the batch's parts.
    """

    id: str
    interval: Interval
    parts: ObjectRef
    part_count: int
    rows: int
    bytes: int
    digest: int
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int
    sequence: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        if self.sequence[0] >= self.sequence[1]:
            raise Corruption(f"unsealed batch {self.id} has an empty sequence interval {self.sequence}")
        if self.first_time > self.last_time or self.first_event_time > self.last_event_time:
            raise Corruption(f"unsealed batch {self.id} has its time bounds reversed")
        if self.rows < 1:
            raise Corruption(f"unsealed batch {self.id} has {self.rows} rows; an empty one is never recorded")


@dataclass(frozen=True)
class TraceBatch:
    """Consolidated updates of `[lower, upper)`, sorted by (key, value, time, event_time). May be empty (no parts)."""

    id: str
    description: Description
    level: int
    rows: int
    bytes: int
    digest: int
    parts: ObjectRef | None = None
    part_count: int = 0

    def __post_init__(self) -> None:
        if (self.rows == 0) != (self.parts is None):
            raise Corruption(f"trace batch {self.id} has {self.rows} rows and parts {self.parts}")

    def __str__(self) -> str:
        return f"{self.description} {self.rows} level={self.level}"
