"""The cut law: where a sequence of rows is cut into chunks, and why.

A chunk ends *before* a row that does not fit it, *after* a row that fills it, or *from outside*: by age, on request, or
at the end. The rules are checked in the order of `CutReason`; the first that holds is the reason, and all others that
hold at the same place are kept beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidemark.errors import InvalidUsage

ROW_GROUP_ROWS = 16_384
"""Most rows of a row group: what a point read decodes, and the grain of the sparse index."""
ROW_GROUP_BYTES = 8 * 2**20
"""Most bytes of a row group's rows in memory, but for a single row: what a reader must hold at least of every part it
has open. Rows of up to 512 bytes make full row groups."""


class CutReason(StrEnum):
    """Why a chunk ends, in the order in which the rules are checked."""

    DATATYPE = "datatype"
    """Before a row with another datatype in a column that the chunk has."""
    TIMELINE_SET = "timeline_set"
    """Before a row with another set of timelines."""
    BUCKET = "bucket"
    """Before a row of another bucket of the layout, if the chunk is large enough to be one by itself."""
    ROOM = "room"
    """Before the row with which the chunk would have too many bytes."""
    UNSORTED_ROWS = "unsorted_rows"
    """Before the row after N or more rows of which some timeline is unsorted."""
    WOULD_UNSORT = "would_unsort"
    """Before a row that would unsort a large sorted chunk."""
    ROWS = "rows"
    """After the row that fills the chunk by its number of rows."""
    BYTES = "bytes"
    """After the row that fills the chunk by its bytes."""
    AGE = "age"
    """From outside: its first row arrived long enough ago."""
    FLUSH = "flush"
    """From outside: somebody asked for it."""
    END = "end"
    """From outside: no row follows."""


@dataclass(frozen=True, slots=True)
class CutRules:
    """The limits of chunks; None is no limit. All but `most_bytes` are at-least tests, so 0 rows or bytes means one
    chunk per row. A chunk has more than `most_bytes` only if it is one row.

    `unsorted_rows` is N: an unsorted chunk ends once it has so many rows. `large_rows` is from how many rows on a
    sorted chunk ends before a row that would unsort it (None: N). `bucket_rows` is from how many rows on a chunk
    ends with its bucket: of buckets with fewer rows several are in one. `age` is in the unit of the clock that is
    passed in.
    """

    rows: int | None = None
    bytes: int | None = None
    unsorted_rows: int | None = None
    large_rows: int | None = None
    age: int | None = None
    most_bytes: int | None = None
    bucket_rows: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if (limit := getattr(self, name)) is not None and limit < 0:
                raise InvalidUsage(f"{name} is {limit}; it must be 0 or more")


@dataclass(frozen=True, slots=True)
class Arrival:
    """What the law sees of a row: its times by timeline, the datatypes of its columns, its size, and which bucket it
    is in where rows are laid out by buckets.

    The keys of `times` are the row's set of timelines. A time of None is a null cell: it is on the timeline's column
    and is skipped when the order of times is judged (rows at rest; a row that arrives lacks the timeline instead).
    """

    times: Mapping[str, int | None] = field(default_factory=dict)
    datatypes: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class OpenChunk:
    """What the law keeps of the chunk that is being filled. `opened` is when its first row arrived.

    `times` has the chunk's timelines, with the last time that is not null; `bucket` is that of the last row;
    `unsorted` names those that have a time below the one before (equal neighbours are sorted).
    """

    opened: int
    rows: int
    bytes: int
    times: Mapping[str, int | None]
    unsorted: frozenset[str]
    datatypes: Mapping[str, str]
    bucket: int | None = None

    @classmethod
    def of(cls, row: Arrival, now: int) -> OpenChunk:
        """A chunk of one row."""
        return cls(now, 1, row.bytes, row.times, frozenset(), row.datatypes, row.bucket)

    def added(self, row: Arrival) -> OpenChunk:
        """With one more row, which fits."""
        unsorted = self.unsorted_by(row)
        return OpenChunk(
            self.opened,
            self.rows + 1,
            self.bytes + row.bytes,
            {name: self.times[name] if time is None else time for name, time in row.times.items()},
            self.unsorted | unsorted if unsorted else self.unsorted,
            self.datatypes if row.datatypes is self.datatypes else {**self.datatypes, **row.datatypes},
            row.bucket,
        )

    def unsorted_by(self, row: Arrival) -> frozenset[str]:
        """The timelines on which a row is below the last time."""
        return frozenset(
            name
            for name, time in row.times.items()
            if time is not None and (last := self.times[name]) is not None and time < last
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """A chunk that has ended: `reason` by the order of the rules, `also` what else applied at the same place."""

    chunk: OpenChunk
    reason: CutReason
    also: tuple[CutReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Appender:
    """The rules, and the chunk that is being filled."""

    rules: CutRules
    chunk: OpenChunk | None = None

    def appended(self, row: Arrival, now: int = 0) -> tuple[Appender, tuple[Cut, ...]]:
        """With one more row. At most two chunks end: the one before the row, and the one that ends with it."""
        chunk, cuts = self.chunk, []
        if chunk is not None and (reasons := reasons_before(self.rules, chunk, row)):
            cuts.append(Cut(chunk, reasons[0], reasons[1:]))
            chunk = None
        chunk = OpenChunk.of(row, now) if chunk is None else chunk.added(row)
        if reasons := reasons_after(self.rules, chunk):
            cuts.append(Cut(chunk, reasons[0], reasons[1:]))
            chunk = None
        return replace(self, chunk=chunk), tuple(cuts)

    def is_due(self, now: int) -> bool:
        """Whether the open chunk has been open as long as it may."""
        return self.chunk is not None and self.rules.age is not None and now - self.chunk.opened >= self.rules.age

    def closed(self, reason: CutReason | str) -> tuple[Appender, Cut | None]:
        """With the open chunk ended from outside; None if no row is in it."""
        cut = None if self.chunk is None else Cut(self.chunk, CutReason(reason))
        return replace(self, chunk=None), cut


def reasons_before(rules: CutRules, chunk: OpenChunk, row: Arrival) -> tuple[CutReason, ...]:
    """Why a chunk ends before a row; empty if the row belongs to it."""
    reasons = []
    datatypes = () if row.datatypes is chunk.datatypes else row.datatypes.items()  # one object says the same
    if any(chunk.datatypes.get(name, datatype) != datatype for name, datatype in datatypes):
        reasons.append(CutReason.DATATYPE)
    if row.times.keys() != chunk.times.keys():
        reasons.append(CutReason.TIMELINE_SET)
    if row.bucket != chunk.bucket and chunk.rows >= rules.bucket_rows:
        reasons.append(CutReason.BUCKET)
    if rules.most_bytes is not None and chunk.bytes + row.bytes > rules.most_bytes:
        reasons.append(CutReason.ROOM)
    if CutReason.TIMELINE_SET in reasons:
        return tuple(reasons)  # times of different timelines are in no order
    if chunk.unsorted:
        if rules.unsorted_rows is not None and chunk.rows >= rules.unsorted_rows:
            reasons.append(CutReason.UNSORTED_ROWS)
        return tuple(reasons)
    large = rules.unsorted_rows if rules.large_rows is None else rules.large_rows
    if large is not None and chunk.rows >= large and chunk.unsorted_by(row):
        reasons.append(CutReason.WOULD_UNSORT)
    return tuple(reasons)


def reasons_after(rules: CutRules, chunk: OpenChunk) -> tuple[CutReason, ...]:
    """Why a chunk ends with the row it got last; empty if more may follow."""
    reasons = []
    if rules.rows is not None and chunk.rows >= rules.rows:
        reasons.append(CutReason.ROWS)
    if rules.bytes is not None and chunk.bytes >= rules.bytes:
        reasons.append(CutReason.BYTES)
    return tuple(reasons)


def cut(rules: CutRules, rows: Iterable[Arrival]) -> Iterator[Cut]:
    """The chunks of a sequence that ends, in order; joined they are the sequence."""
    appender = Appender(rules)
    for row in rows:
        appender, cuts = appender.appended(row)
        yield from cuts
    _, last = appender.closed(CutReason.END)
    if last is not None:
        yield last
