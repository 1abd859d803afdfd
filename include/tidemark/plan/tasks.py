"""What one executor task is asked and what it answers: plain values that travel as JSON.

A task reads immutable objects and writes new ones under its own names; its answer reaches the driver once, with the
attempt that won, so retried and speculative attempts leave orphans only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemark.model.batch import ObjectRef, Part
from tidemark.model.chunk.law import Span
from tidemark.model.collection import Collection, Late
from tidemark.model.frontier import CompactionFunction
from tidemark.model.full_snapshot import StandsFor
from tidemark.model.interval import Interval
from tidemark.model.key import Bound, Key
from tidemark.model.ledger import LedgerEntry, SourceFile


@dataclass(frozen=True)
class KeyRange:
    """`[lower, upper)` of keys; None is unbounded (a null of a key is NULL)."""

    lower: Bound | None = None
    upper: Bound | None = None


ALL_KEYS = KeyRange()


@dataclass(frozen=True)
class IngestTask:
    """Read `files`, judge lateness against `complete_below` and `since`, learn nothing below the `seal`, write parts
    sorted by key under `prefix`. The files are the batch's from number `first` on; `counts_keys`: keys are counted."""

    collection: Collection
    interval: Interval
    files: tuple[SourceFile, ...]
    complete_below: int
    seal: int
    since: int
    batch: str
    prefix: str
    first: int = 0
    counts_keys: bool = False


@dataclass(frozen=True)
class IngestAnswer:
    """Parts written and one ledger entry per file; the others as in the change Ingested.

    Attributes:
        first_unfit: Which of the `images_unfit` is the first, and why.
    """

    parts: tuple[Part, ...]
    entries: tuple[LedgerEntry, ...]
    first_on_time: int | None
    undeclared: tuple[tuple[str, int], ...] = ()
    keys: int = 0
    servers: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    images_unfit: int = 0
    first_unfit: str = ""


@dataclass(frozen=True)
class DeadLetters:
    """A late object to replay: its name in the ledger, the entry that names it, the interval its file came with."""

    path: str
    of: str
    interval: Interval
    object: ObjectRef

    @property
    def bytes(self) -> int:
        return self.object.bytes


@dataclass(frozen=True)
class ReplayTask:
    """Apply dead letters at `seal`: with their event times if these are at `since` or later, else, if `as_now`, as if
    they happened at the seal. Write parts sorted by key under `prefix`, and what is left as late objects. The sources
    are the batch's from number `first` on."""

    collection: Collection
    sources: tuple[DeadLetters, ...]
    seal: int
    since: int
    as_now: bool
    batch: str
    prefix: str
    first: int = 0


@dataclass(frozen=True)
class Left:
    """Dead letters of one late object that were not applied: how many, and when the last of them happened."""

    path: str
    rows: int
    last_event_time: int


@dataclass(frozen=True)
class ReplayAnswer:
    """Parts written, an entry for each late object of which anything was applied, and what was left of each."""

    parts: tuple[Part, ...]
    entries: tuple[LedgerEntry, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class Replayed:
    """Dead letters that a replay applied: those in `letters` that are not in what it `left`. They were learned at the
    `seal`, with their event times if these are at `since` or later, else as if they had happened at the seal."""

    letters: ObjectRef
    left: ObjectRef | None
    seal: int
    since: int


@dataclass(frozen=True)
class Reread:
    """A source file that is read again, by the name the ledger knows it by: its rows are judged against what was
    `complete_below`, the `seal` and `since` when it was first read, by the `late` policy of then. Its dead letters that
    were `replayed`, by one replay after the other, count still if the file has them still. No `file`: it is withdrawn,
    and says nothing any more."""

    path: str
    file: SourceFile | None
    complete_below: int
    seal: int
    since: int
    late: Late | None = None
    replayed: tuple[Replayed, ...] = ()


@dataclass(frozen=True)
class Contributed:
    """Parts that hold what files contributed, and whose rows count: pairs of a file's number in these parts and of the
    number it has among those that are read again."""

    parts: tuple[Part, ...]
    numbers: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RereadTask:
    """Write by what the updates of `files` differ from what they have `contributed`, as of `seal`
    (model/reread.py), in parts sorted by key under `prefix`; event times are forwarded by `function`. The files are
    the batch's from number `first` on. One that does not write only counts."""

    collection: Collection
    interval: Interval
    files: tuple[Reread, ...]
    contributed: tuple[Contributed, ...]
    seal: int
    function: CompactionFunction
    batch: str
    prefix: str
    first: int = 0
    writes: bool = True


@dataclass(frozen=True)
class RereadAnswer:
    """Parts written; of each file, in order, an entry, whose `rows` are those written (of one that is withdrawn, of no
    bytes and without a checksum); entries of those of their late objects whose dead letters `stay_replayed`; how many
    rows the files newly say, and how many they said and do not say any more, with their multiplicities (a row of diff
    -2 counts as two); when these happened, first and last (None: none did)."""

    parts: tuple[Part, ...]
    entries: tuple[LedgerEntry, ...]
    stay_replayed: tuple[LedgerEntry, ...] = ()
    added: int = 0
    retracted: int = 0
    event_times: tuple[int, int] | None = None


@dataclass(frozen=True)
class NotContributedTask:
    """Hold what corrections of the files of some `paths` retracted within a key range, up to the key `last`, against
    what these have `contributed`, the corrections among it, as of `seal`; updates are forwarded by `function`."""

    collection: Collection
    paths: tuple[str, ...]
    contributed: tuple[Contributed, ...]
    keys: KeyRange
    last: Key
    seal: int
    function: CompactionFunction

    @property
    def rows(self) -> int:
        """Rows it may read."""
        return sum(part.rows for some in self.contributed for part in some.parts)


@dataclass(frozen=True)
class NotContributedAnswer:
    """How many rows, with their multiplicities, were retracted without having been contributed."""

    not_contributed: int


@dataclass(frozen=True)
class RetractedShareTask:
    """Compare what files had `contributed` within a key range with what a correction has `written` of them, as of
    `seal`; updates are forwarded by `function`. Value columns of the numbers in `without` are not compared. Where no
    file says that there is less of a row, what was written suffices."""

    collection: Collection
    contributed: tuple[Contributed, ...]
    written: tuple[Contributed, ...]
    keys: KeyRange
    seal: int
    function: CompactionFunction
    without: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Rows it may read."""
        return sum(part.rows for some in (*self.contributed, *self.written) for part in some.parts)


@dataclass(frozen=True)
class RetractedShareAnswer:
    """How many rows were contributed, and how many of them were retracted, both with their multiplicities: a row of
    diff -2 counts as two."""

    contributed: int
    retracted: int


@dataclass(frozen=True)
class MergeTask:
    """Merge sorted parts within a key range: keep times in `[lower, upper)`, forward by `function`, consolidate. Of
    what happened at `separate_upto` or before, rows of a (key, value) whose diffs add up to 0 go into parts of their
    own, all that take it away among them (-1: none do)."""

    collection: Collection
    parts: tuple[Part, ...]
    keys: KeyRange
    lower: int
    upper: int
    function: CompactionFunction
    prefix: str = ""
    separate_upto: int = -1
    kernel: ClassVar[str] = "merge"


@dataclass(frozen=True)
class TrimTask:
    """Rewrite one part of an unsealed batch, in its order, without the rows nobody needs any more: those below `lower`,
    of facts only if they happened below `horizon` too. What is left is cut for drains that take `width` (ahead.py)."""

    collection: Collection
    part: Part
    facts: bool
    lower: int
    horizon: int
    prefix: str
    width: int


@dataclass(frozen=True)
class RememberTask:
    """Merge the facts of `parts`, all drained, within a key range: those that happened at `horizon` or later, without
    the times they were learned at, and without what is said and retracted."""

    collection: Collection
    parts: tuple[Part, ...]
    keys: KeyRange
    horizon: int
    prefix: str


@dataclass(frozen=True)
class ResolveTask:
    """Resolve facts within a key range: the new ones have times in `[lower, upper)`, those below `lower` are known.

    `facts` are parts of unsealed batches; `trace` are parts of the trace, of which only rows of touched keys that
    happened at `horizon` or below matter: they give the value each key had before its oldest remembered fact.
    """

    collection: Collection
    facts: tuple[Part, ...]
    trace: tuple[Part, ...]
    keys: KeyRange
    lower: int
    upper: int
    horizon: int
    prefix: str = ""
    kernel: ClassVar[str] = "resolve"


@dataclass(frozen=True)
class SnapshotRows:
    """The parts with the rows of a full snapshot, or of a correction, none if there are none; and the updates that each
    row stands for."""

    parts: tuple[Part, ...]
    stands_for: tuple[StandsFor, ...]


@dataclass(frozen=True)
class DifferenceTask:
    """Find within a key range by which updates the `snapshots`, and what is learned of them, change what the `trace`
    holds (model/full_snapshot.py): a row of it that happened after the first n of `bounds`, and not after the next,
    stands for the updates `of_trace[n]`. What is stored as known and as of `checked`, two times, is to be summed (None:
    no full snapshot was announced)."""

    collection: Collection
    trace: tuple[Part, ...]
    bounds: tuple[int, ...]
    of_trace: tuple[tuple[StandsFor, ...], ...]
    snapshots: tuple[SnapshotRows, ...]
    checked: tuple[int, int] | None
    keys: KeyRange
    prefix: str = ""
    kernel: ClassVar[str] = "difference"


UnsealedTask = MergeTask | ResolveTask | DifferenceTask
"""The updates that unsealed rows of a key range stand for: a drain writes them under the task's `prefix`, by its
`kernel`; a read takes them as they come, and writes nothing (arrow/kernels/updates.py)."""


@dataclass(frozen=True)
class AtRest:
    """Parts whose rows are updates as they are, and after which time they count."""

    parts: tuple[Part, ...]
    after: int


@dataclass(frozen=True)
class ReadTask:
    """The updates of a read within a key range: `after < time <= upto` and `event_time <= event_upto`, their times
    as `function` forwards them.

    They are what is `at_rest`, and what is computed from unsealed rows that are no updates yet (None: there are none).
    No two tasks of a read share a key, so each can be answered alone, where its parts are near. With `ranges`,
    ascending and disjoint, only their keys are asked for; with `spans` only rows with a value in each of these
    (model/chunk/law.py).
    """

    collection: Collection
    keys: KeyRange
    after: int
    upto: int
    event_upto: int
    function: CompactionFunction
    at_rest: tuple[AtRest, ...]
    unsealed: UnsealedTask | None = None
    ranges: tuple[KeyRange, ...] = ()
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class WriteAnswer:
    """Parts written, and what was read to write them.

    `rows_read` and `digest_read` count the input rows within the time bounds, hashed under the output's forwarding; for
    a merge the written parts' digests must add up to `digest_read`. `bytes_read` is what was fetched from storage.
    For a RememberTask `digest_checked` is that of what stays, less that of what is retracted, without times: it must
    be what the written parts add up to in the same way.
    For a DifferenceTask `digest_checked` is that of what was stored and what was written together as known and as of
    `checked`, every row hashed at those two times: it must be that of the full snapshot announced then. Parts
    `taken_over` were there before: nothing was read, nothing written. `unmatched` before-images of messages were not
    what is stored (model/transaction.py).
    """

    parts: tuple[Part, ...]
    rows_read: int
    digest_read: int
    bytes_read: int
    digest_checked: int = 0
    taken_over: bool = False
    unmatched: int = 0


@dataclass(frozen=True)
class InspectTask:
    """Read one part in full and report what is really in it; `facts` says which schema it has."""

    collection: Collection
    part: Part
    facts: bool

    @property
    def rows(self) -> int:
        """Rows it may read."""
        return self.part.rows


@dataclass(frozen=True)
class InspectAnswer:
    """What a part holds, found by reading every row: the evidence gates and `verify --data` judge by.

    `unsorted` counts rows before their predecessor in the order of their schema, `repeated` rows that share their
    predecessor's place (in the trace there are none; unsealed rows may repeat). `first_key` and `last_key` are None
    for an empty part. `columns` are those of today's declaration if the part has what it should have of them, since it
    was written under that or an earlier one; else those found, and only `rows` are counted. `misplaced` counts row
    groups that do not begin at the key recorded. `added` and `retracted` are rows with their multiplicities. Of a part
    that is recorded to cancel `uncancelled` counts the values of keys whose diffs do not add up to 0. `misbounded` says
    which bounds of timelines are not those of the rows, in the part's record or of a chunk in its footer, and whether
    rows are in another bucket of the layout than they should be.
    """

    file: ObjectRef
    sha256: str
    rows: int
    digest: int
    null_keys: int
    zero_diffs: int
    unsorted: int
    first_time: int
    last_time: int
    first_event_time: int
    last_event_time: int
    first_key: Key | None
    last_key: Key | None
    columns: tuple[str, ...]
    repeated: int = 0
    misplaced: int = 0
    added: int = 0
    retracted: int = 0
    uncancelled: int = 0
    misbounded: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditAnswer:
    """What a part holds, or why it cannot be read: one that cannot must not hide what is wrong with others."""

    answer: InspectAnswer | None
    error: str = ""


@dataclass(frozen=True)
class ChecksumTask:
    """Read some objects in full."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class ChecksumAnswer:
    """The SHA-256 of each object, in order; empty for one that is missing."""

    sha256: tuple[str, ...]
