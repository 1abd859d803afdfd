"""Batches: immutable sets of updates (or facts) known to a state, and what describes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemark.model.chunk.bounds import Bounds, TimelineBounds, timeline_bounds
from tidemark.model.frontier import EMPTY, CompactionFunction, Rung
from tidemark.model.interval import Interval
from tidemark.model.invariants import Invariant, Violation, broken, check, not_empty, of_interval
from tidemark.model.key import Key

DIGEST_MODULUS = 2**64


@dataclass(frozen=True)
class ObjectRef:
    """An immutable object: its key below the collection's root, its size in bytes, its SHA-256 in hex."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Tail:
    """The end of a part's file: the checksums of its bytes, and Parquet's footer (arrow/parts/checksums.py).

    Attributes:
        bytes: Its size.
        crc32: Its CRC-32, as zlib has it.
    """

    bytes: int
    crc32: int

    def __str__(self) -> str:
        return f"{self.bytes} bytes with the CRC-32 {self.crc32:08x}"


@dataclass(frozen=True)
class Part:
    """One Parquet file of a batch, sorted by key.

    `groups` holds (first key, rows) of each row group, in order: the sparse index by which readers skip. `digest` is
    the sum of the row hashes times diff, modulo 2^64 (docs/format.md). `retractions` counts rows with a negative diff;
    of a part of facts either none is retracted or all are. `schema` is the collection's when it was written: by it one
    knows whether the columns are today's. `consolidated` is known of parts that an ingest wrote: of its updates no two
    are equal but for their diffs, and no diff is 0. `cancels` is known of parts of the trace that a compaction wrote
    separately: the diffs of every (key, value) in it add up to 0, so who sums over all its times may leave it out.
    `timelines` has the bounds of each column that was a timeline when the part was written, and of no other. `tail`
    makes the file's bytes verifiable; a part of a release before 0.6.0 has none, and damage to it may go unseen.
    """

    file: ObjectRef
    rows: int
    digest: int
    groups: tuple[tuple[Key, int], ...]
    last_key: Key
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int
    retractions: int = 0
    schema: int = 0
    consolidated: bool = False
    cancels: bool = False
    timelines: tuple[TimelineBounds, ...] = ()
    tail: Tail | None = None

    @property
    def first_key(self) -> Key:
        return self.groups[0][0]

    def bounds_of(self, column_id: int) -> Bounds | None:
        """The bounds of a timeline among the part's rows, by the id of its column; None if they are not known."""
        return timeline_bounds(self.timelines, column_id)


def verified(parts: Iterable[Part]) -> int:
    """How many parts have bytes that every read verifies."""
    return sum(part.tail is not None for part in parts)


PartsTable = ObjectRef | tuple[Part, ...]
"""Where a batch's parts are listed: in an object of their own, or, where that would be a small one, here."""


@dataclass(frozen=True)
class Description:
    """What a trace batch promises: `[lower, upper)`, and the compaction function f of `since` and `rungs`.

    For every time t that f keeps, summing the batch's diffs at times <= t gives what summing the original updates of
    `[lower, upper)` at times <= t gives. Of other times it promises nothing. So every time of the batch is within
    `first_possible` and `last_possible`: f of the first and the last time of the interval.
    """

    lower: int
    upper: int
    since: int = 0
    rungs: tuple[Rung, ...] = ()

    def __post_init__(self) -> None:
        check(of_interval("batch interval", self.lower, self.upper))

    @property
    def function(self) -> CompactionFunction:
        """By which times were forwarded."""
        return CompactionFunction(self.since, self.rungs)

    @property
    def first_possible(self) -> int:
        return self.function(self.lower)

    @property
    def last_possible(self) -> int:
        # Once since is empty nothing is forwarded; what was before may be anywhere.
        return EMPTY if self.since == EMPTY else self.function(self.upper - 1)

    @property
    def is_one_instant(self) -> bool:
        """Whether all times were forwarded to one."""
        return self.upper <= self.function.floor and not self.function.changes_nothing

    def __str__(self) -> str:
        return f"[{self.lower}][{self.upper}][{self.since}]"


@dataclass(frozen=True)
class UnsealedBatch:
    """What one ingest committed, as it arrived. Bounds are closed and present in the data.

    `id` identifies the batch for ever; the sequence interval orders batches and may be reused. `parts` is the table of
    the batch's parts, or where it is. A `trimmed` batch has lost rows that were drained. `learned_at` is when
    its late and replayed rows were learned: the seal of then, or the turn of its interval (None: it brought none).
    A `difference` holds by what files differ from what they said before, or dead letters that were replayed: never the
    content of its interval. Where files were read again for columns, `fills` are their numbers: that rows differ in
    these is no surprise.

    What is remembered of several batches (plan/remember.py) has the same fields: the hull of their intervals, 0 for
    the times its facts were learned, and the `level`, how often they were merged; of what an ingest committed it is 0.
    So has what is ahead (plan/undue.py): what a drain left of a batch keeps its id, and has level 0; what was sorted
    by time buckets has level 1, and the interval of the youngest batch it came with.
    `verified_parts` is how many of the parts have a `tail`.
    """

    id: str
    interval: Interval
    parts: PartsTable
    part_count: int
    rows: int
    bytes: int
    digest: int
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int
    sequence: tuple[int, int] = (0, 1)
    trimmed: bool = False
    learned_at: int | None = None
    level: int = 0
    verified_parts: int = 0
    difference: bool = False
    fills: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check(self.violations())

    def violations(self) -> Iterator[Violation]:
        """What is broken of the batch as recorded."""
        yield from of_interval(f"sequence interval of unsealed batch {self.id}", *self.sequence)
        bounds = ((self.first_time, self.last_time), (self.first_event_time, self.last_event_time))
        for first, last in bounds:
            if first > last:
                message = f"unsealed batch {self.id} has its time bounds reversed: {first} to {last}"
                yield broken(Invariant.TIME_BOUNDS, message, first=first, last=last)
        if self.rows < 1:
            yield not_empty(f"unsealed batch {self.id} has {self.rows} rows; an empty one is never recorded")


@dataclass(frozen=True)
class TraceBatch:
    """Consolidated updates of `[lower, upper)`, sorted by (key, value, time, event_time); of parts that cancel each by
    itself. May be empty (no parts). `verified_parts` is how many of the parts have a `tail`."""

    id: str
    description: Description
    level: int
    rows: int
    bytes: int
    digest: int
    parts: PartsTable | None = None
    part_count: int = 0
    retractions: int = 0
    verified_parts: int = 0

    def __post_init__(self) -> None:
        check(self.violations())

    def violations(self) -> Iterator[Violation]:
        """What is broken of the batch as recorded; its description has checked itself."""
        if (self.rows == 0) != (self.parts is None):
            message = f"trace batch {self.id} has {self.rows} rows and parts {self.parts}"
            yield broken(Invariant.PARTS_FOR_ROWS, message, rows=self.rows, parts=str(self.parts))

    def __str__(self) -> str:
        return f"{self.description} {self.rows} level={self.level}"
