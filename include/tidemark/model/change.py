"""Changes: what a commit records. The state at version N is the fold of the changes up to N (transition/).

Each is declared here with its fields, the `kind` it is stored under and its `words`, one line for the log. What it does
is its transition's. docs/how-to/add-a-change-kind.md goes through one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tidemark.errors import listed
from tidemark.model.acceptance import Acceptance
from tidemark.model.arrangement import Arrangement, Fence, Hold, LedgerRun, Stopped
from tidemark.model.batch import PartsTable, TraceBatch, UnsealedBatch
from tidemark.model.batching.rate import SECOND
from tidemark.model.batching.reason import Cut
from tidemark.model.collection import Collection, Gate
from tidemark.model.commit_times import CommitRun
from tidemark.model.corrected import Corrected as Corrected
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.full_snapshot import Effect, FullSnapshot
from tidemark.model.instant import format_duration, format_instant
from tidemark.model.interval import Interval
from tidemark.model.publication import Published as Published
from tidemark.model.publication import Publishing as Publishing
from tidemark.model.publication import Unpublished as Unpublished
from tidemark.model.wording import SHORT_ID as SHORT_ID
from tidemark.model.wording import counted

MOST_PASSED_OVER = 100
"""Intervals with files that were passed over which a state remembers, the last ones."""
MOST_STOPPED = 100
"""Intervals that could not be read which a state remembers, the oldest ones: these are waited for."""
MOST_UNDECLARED = 100
"""Columns that nothing declares which a state remembers: of more nothing is said."""
NAMES_SHOWN = 10
NOTHING_CHANGED = "nothing changed"
"""What is said of an interval that was run again where that is so."""
LEFT_OUT = "left out by `only`"
"""The label of the count of such rows."""
UNFIT = "of messages that do not fit their columns"
UNMATCHED = "of messages that were not what was stored"
"""The labels of the counts of such before-images."""
REPLAY = "replay"
"""The step of an ingest that reads dead letters, not an interval."""
COLLECT = "collect"
"""The step that removes objects: of it nothing but the attempt is a change."""
CUT = "cut"
"""The step of an ingest that reads what has landed of an interval so far, and leaves it open."""


@dataclass(frozen=True)
class Created:
    """The first change of every collection. `incarnation` distinguishes it from others of its name, before or after."""

    collection: Collection
    incarnation: str = ""
    kind: Literal["created"] = "created"

    @property
    def words(self) -> str:
        return f"created collection {self.collection.name}"


@dataclass(frozen=True)
class Redefined:
    """The declaration changed, in a way that data at rest can follow (evolution.py)."""

    collection: Collection
    kind: Literal["redefined"] = "redefined"

    @property
    def words(self) -> str:
        return "changed the declaration"


@dataclass(frozen=True)
class Dropped:
    """There is no collection any more, as before it was created; what it was made of stays until a collector takes it.

    With a `token` a collector wrote it, of a collection that was dropped before: as that of an attempt at `collect`.
    """

    collection: str
    token: str = ""
    kind: Literal["dropped"] = "dropped"

    @property
    def words(self) -> str:
        went_on = "went on collecting the dropped" if self.token else "dropped"
        return f"{went_on} collection {self.collection}"


@dataclass(frozen=True)
class Restored:
    """A collection that was dropped is what it was at `version`, which is `state`."""

    version: int
    state: Arrangement
    kind: Literal["restored"] = "restored"

    @property
    def words(self) -> str:
        return f"brought collection {self.state.collection.name} back, as of version {self.version}"


@dataclass(frozen=True)
class Attempted:
    """An attempt has started and fences off older attempts at the same step of the same interval."""

    fence: Fence
    kind: Literal["attempted"] = "attempted"

    @property
    def words(self) -> str:
        if self.fence.step == COLLECT:
            return "began to remove objects that no version names"
        return f"started to {self.fence.step} {self.fence.interval}, attempt {self.fence.token[:SHORT_ID]}"


def passed_over_words(names: Sequence[str], files: int) -> str:
    """What is said of files that lay beside those of an interval; empty without any."""
    if not names:
        return ""
    others = f" and {files - len(names):,} more" if files > len(names) else ""
    return f"passed over: {', '.join(names)}{others}"


@dataclass(frozen=True)
class Ingested:
    """An interval was read. `batch` is None if nothing was left to apply; `run` is None if no file was new.

    `sources` are 64-bit hashes of the paths taken: two concurrent ingests that share one conflict. `first_on_time` is
    the smallest lateness coordinate among rows judged not late: completeness beyond it makes the judgement stale, and
    so does any beyond `judged_below`, by which they were judged, where late rows are applied (None: not recorded).
    `rows_late_moved` of the late rows applied count as if they had happened at the seal. A replay of dead letters is an
    ingest whose step is REPLAY and whose sources are late objects: it applies `rows_replayed`, and reads no interval.
    `snapshot` is what the files are together, where each interval brings a full snapshot, or what is learned of it
    afterwards; files that join one that was announced count as `corrected`, too.

    `cut` is why it was read then (None: not recorded). An ingest whose step is CUT took files of an interval that goes
    on: they are counted, and the interval is still to be read. `keys` is how many its rows have (None: not counted).

    Where an interval was read to its end and that brought no rows, `empty` is the id by which gates know that.

    Of the files taken, `corrected` were counted before: `rows_added` and `rows_retracted` are what they differ by now,
    and `merged_below` is below which history was merged when that was planned; what happened before was forwarded.
    Where any are, the counts of late, dead and replayed rows say by how many there are more, or fewer, than before.
    They were read again for the `columns` named, if any, whether or not their bytes had changed. `replaced` of them
    took the place of files of other names, which are among the sources, too.

    Of messages in the order of their connector `server` is whose they are, and `table` of which table they are, where
    that is looked at: the declaration has both from then on. `rows_left_out` are rows of which `only` is not true. Of
    `images_unfit` before-images, one for each that has a value which does not fit its column, only the key is taken.

    `undeclared` are columns that files have, nothing declares, and no ingest before has named; with how many of the
    files have each. `passed_over` are names of files beside those of the interval, `files_passed_over` in all.
    """

    fence: Fence
    batch: UnsealedBatch | None
    run: LedgerRun | None
    sources: tuple[int, ...] = ()
    first_on_time: int | None = None
    rows_late_applied: int = 0
    rows_late_discarded: int = 0
    bad_files: int = 0
    rows_late_moved: int = 0
    rows_replayed: int = 0
    snapshot: FullSnapshot | None = None
    judged_below: int | None = None
    corrected: int = 0
    rows_added: int = 0
    rows_retracted: int = 0
    merged_below: int = 0
    cut: Cut | None = None
    empty: str | None = None
    columns: tuple[str, ...] = ()
    undeclared: tuple[tuple[str, int], ...] = ()
    keys: int | None = None
    server: str = ""
    table: str = ""
    rows_left_out: int = 0
    images_unfit: int = 0
    passed_over: tuple[str, ...] = ()
    files_passed_over: int = 0
    replaced: int = 0
    kind: Literal["ingested"] = "ingested"

    @property
    def passed_over_words(self) -> str:
        """The files that were passed over, as text; empty without any."""
        return passed_over_words(self.passed_over, self.files_passed_over)

    @property
    def words(self) -> str:
        if self.fence.step == REPLAY:
            letters = counted(self.rows_replayed, "dead letter")
            moved = f", {self.rows_late_moved:,} of them moved to the seal" if self.rows_late_moved else ""
            return f"replayed {letters} as {self.batch.id[:SHORT_ID] if self.batch else 'nothing'}{moved}"
        counts = {
            "late applied": self.rows_late_applied,
            "late discarded": self.rows_late_discarded,
            LEFT_OUT: self.rows_left_out,
            "file set aside" if abs(self.bad_files) == 1 else "files set aside": self.bad_files,
        }
        more = "".join(
            f", {count:,} {what}" if count > 0 else f", {-count:,} fewer {what}"
            for what, count in counts.items()
            if count
        )
        more += f", {counted(self.images_unfit, 'before-image')} {UNFIT}" if self.images_unfit else ""
        if self.undeclared:
            names = listed([f"{name} in {counted(files, 'file')}" for name, files in self.undeclared], NAMES_SHOWN)
            more += f", columns that nothing declares: {names}"
        if self.passed_over:
            more += f", {self.passed_over_words}"
        if self.snapshot and self.snapshot.effect is Effect.WITHDRAWN:
            gone = f"{counted(self.rows_retracted, 'row')} of {counted(self.corrected, 'file')}"
            return f"withdrew the full snapshot of {self.fence.interval}, {gone}, as {self.snapshot.batch[:SHORT_ID]}"
        if self.corrected:
            as_batch = f" as {self.batch.id[:SHORT_ID]}" if self.batch else ""
            columns = f" for {', '.join(self.columns)}" if self.columns else ""
            return f"ingested {self.fence.interval} again{columns}{as_batch}: {self.differs}{more}"
        if self.batch is None and self.snapshot:
            return f"ingested {self.fence.interval}: a full snapshot without rows as {self.snapshot.batch[:SHORT_ID]}"
        so_far = " so far" if self.fence.step == CUT else ""
        why = f"; cut by {self.cut_words}" if so_far and self.cut else ""
        if self.batch is None:
            return f"ingested {self.fence.interval}{so_far}: no rows{more}{why}"
        rows, files = counted(self.batch.rows, "row"), counted(len(self.sources) - self.replaced, "file")
        return f"ingested {self.fence.interval}{so_far}: {rows} of {files} as {self.batch.id[:SHORT_ID]}{more}{why}"

    @property
    def figures(self) -> dict[str, int]:
        """How large what was cut is, and how long it was open, as far as that is known.

        Several parts may have rows of one key: of these `keys` is the most that there can be.
        """
        open_for = self.cut.open_for if self.cut else None
        sizes = {"keys": self.keys, "open_seconds": None if open_for is None else round(open_for / SECOND)}
        sizes |= {"bytes": self.batch.bytes, "row_bytes": self.batch.bytes // self.batch.rows} if self.batch else {}
        return {name: size for name, size in sizes.items() if size is not None}

    @property
    def cut_words(self) -> str:
        """Why it was cut, and its figures, in a line."""
        sizes, said = self.figures, [self.cut.words] if self.cut else []
        if self.keys and self.batch:
            most = "up to " if self.batch.part_count > 1 else ""
            said.append(f"{most}{counted(self.keys, 'key')}")
        if self.batch:
            said.append(f"{self.batch.bytes:,} bytes, {sizes['row_bytes']:,} a row")
        if "open_seconds" in sizes:
            said.append(f"open for {format_duration(sizes['open_seconds'] * SECOND)}")
        return "; ".join(said)

    @property
    def differs(self) -> str:
        """What it changed of an interval that had been read before: rows retracted and added, and when these happened,
        first and last."""
        # Of bad files those that were counted before are no sources.
        new = max(0, len(self.sources) - self.corrected - self.bad_files - self.replaced)
        phrases = [counted(new, "new file")] if new else []
        renamed = f", {self.replaced:,} of them under another name" if self.replaced else ""
        if self.rows_retracted or self.rows_added:
            phrases[:0] = [
                f"{counted(self.corrected, 'file')} corrected{renamed}",
                f"{counted(self.rows_retracted, 'row')} retracted and {self.rows_added:,} added",
            ]
        elif self.corrected:
            s = "s" if self.corrected == 1 else ""
            how = "" if self.columns else f"hold{s} other bytes and "
            how = f"{'has' if s else 'have'} another name and " if self.replaced else how
            phrases[:0] = [f"nothing changed, {counted(self.corrected, 'file')} {how}say{s} the same"]
        if self.batch is not None:
            first, last = (format_instant(t) for t in (self.batch.first_event_time, self.batch.last_event_time))
            phrases.append(f"happened {first}" + ("" if first == last else f" to {last}"))
        return ", ".join(phrases) or NOTHING_CHANGED


@dataclass(frozen=True)
class Refused:
    """An interval could not be read: files could not be taken, which `run` remembers, or something else was wrong.

    `fence` and `sources` as in Ingested: the last word on a file must not be an older attempt's. `reason` says why the
    interval was stopped, by the file at `path` where it is one (both are empty in versions before 0.7.0).
    """

    run: LedgerRun | None
    fence: Fence
    sources: tuple[int, ...] = ()
    path: str = ""
    reason: str = ""
    kind: Literal["refused"] = "refused"

    @property
    def stopped(self) -> Stopped:
        """What the state remembers of it."""
        return Stopped(self.fence.interval, self.reason, self.path, self.run.entries if self.run else 0)

    @property
    def words(self) -> str:
        if not self.reason:
            return f"refused {counted(self.run.entries if self.run else 0, 'source file')} that cannot be taken"
        what = f": {self.stopped.words}" if self.stopped.words else ""
        return f"could not read {self.fence.interval}{what}"


@dataclass(frozen=True)
class Certified:
    """A gate passed: it certifies batches, or the frontier up to `upper`. Some of the batches it certifies because a
    person `accepted` them, although expectations of the collection's owner failed."""

    gate: Gate
    suite: str
    batches: tuple[str, ...] = ()
    upper: int | None = None
    accepted: tuple[Acceptance, ...] = ()
    kind: Literal["certified"] = "certified"

    @property
    def words(self) -> str:
        what = _ids(self.batches) if self.upper is None else f"all below {format_instant(self.upper)}"
        return "; ".join([f"{self.gate} gate certified {what}", *(one.words for one in self.accepted)])


@dataclass(frozen=True)
class Sealed:
    """What was learned is final below `upper`, and intervals are complete below `complete_below`: the seal moved, by a
    tick where it is ahead of that. `requested_seal` is up to where a run asked for completeness and could not get it
    because of a hole. `at` is when it was committed, in wall-clock microseconds (0: not recorded)."""

    upper: int
    complete_below: int
    requested_seal: int
    at: int = 0
    kind: Literal["sealed"] = "sealed"

    @property
    def words(self) -> str:
        complete = self.complete_below
        waits = f", asked for {format_instant(self.requested_seal)}" if self.requested_seal > complete else ""
        if self.upper > complete:
            return f"known up to {format_instant(self.upper)}, complete below {format_instant(complete)}{waits}"
        return f"sealed to {format_instant(self.upper)}{waits}"


@dataclass(frozen=True)
class Drained:
    """`[batch.lower, batch.upper)` moved into the trace. The parts of a batch `taken_over` were written by ingests.

    Of the batches `opened`, by id, unsealed ones or such that were ahead, `ahead` is what is still to come, under the
    same ids; of those without any nothing is. `unmatched` before-images of messages were not what was stored.
    """

    fence: Fence
    batch: TraceBatch
    taken_over: bool = False
    opened: tuple[str, ...] = ()
    ahead: tuple[UnsealedBatch, ...] = ()
    unmatched: int = 0
    kind: Literal["drained"] = "drained"

    @property
    def words(self) -> str:
        more = f", {counted(self.unmatched, 'before-image')} {UNMATCHED}" if self.unmatched else ""
        rows = counted(self.batch.rows, "row")
        return f"drained {_interval(self.batch)}: {rows} as {self.batch.id[:SHORT_ID]}{more}"


@dataclass(frozen=True)
class Compacted:
    """Neighbouring trace batches, oldest first, replaced by one. Of its rows some were `kept` in parts of theirs."""

    fence: Fence
    inputs: tuple[str, ...]
    batch: TraceBatch
    kept_rows: int = 0
    kept_bytes: int = 0
    kind: Literal["compacted"] = "compacted"

    @property
    def words(self) -> str:
        batch, merged = self.batch, f"{len(self.inputs)} batches of {_interval(self.batch)}"
        return f"compacted {merged}: {counted(batch.rows, 'row')} at level {batch.level} as {batch.id[:SHORT_ID]}"


@dataclass(frozen=True)
class LedgerMerged:
    """Neighbouring runs of the ledger, oldest first (by object key), replaced by one."""

    inputs: tuple[str, ...]
    run: LedgerRun
    kind: Literal["ledger_merged"] = "ledger_merged"

    @property
    def words(self) -> str:
        return f"merged {len(self.inputs)} runs of the ledger: {counted(self.run.entries, 'source file')}"


@dataclass(frozen=True)
class CommitTimesStored:
    """Recent lines of commit times moved into a run, with those of the newest runs, `inputs` by object key."""

    inputs: tuple[str, ...]
    run: CommitRun
    kind: Literal["commit_times_stored"] = "commit_times_stored"

    @property
    def words(self) -> str:
        return f"stored {counted(self.run.commits, 'commit time')}"


@dataclass(frozen=True)
class Quarantined:
    """A batch taken out; `run` frees its source files so that mended ones can be ingested. What `correct` wrote has
    none (None): what it had consumed is consumed again. What is `judged_again` loses its certificates, as it was judged
    together with the batch."""

    batch: str
    run: LedgerRun | None
    judged_again: tuple[str, ...] = ()
    kind: Literal["quarantined"] = "quarantined"

    @property
    def words(self) -> str:
        if self.run is None:
            return f"quarantined {self.batch[:SHORT_ID]}, and what it had consumed"
        return f"quarantined {self.batch[:SHORT_ID]}, which frees {counted(self.run.entries, 'source file')}"


@dataclass(frozen=True)
class Released:
    """A quarantined batch put back; `run` claims its source files again, `sources` as in Ingested."""

    batch: str
    run: LedgerRun
    sources: tuple[int, ...] = ()
    kind: Literal["released"] = "released"

    @property
    def words(self) -> str:
        return f"released {self.batch[:SHORT_ID]} with {counted(self.run.entries, 'source file')}"


@dataclass(frozen=True)
class CompactionAllowed:
    """`since` moved: history below it may be merged, as far as `rungs` keep no instants of it. Permission, not work.

    Holds that expire at wall-clock `now` or before are gone with it."""

    since: int
    rungs: tuple[Rung, ...] = ()
    now: int = 0
    kind: Literal["compaction_allowed"] = "compaction_allowed"

    @property
    def words(self) -> str:
        return f"allowed compaction: readable are {CompactionFunction(self.since, self.rungs)}"


@dataclass(frozen=True)
class HoldPlaced:
    """A named hold on `since`; one of the same name is replaced."""

    hold: Hold
    kind: Literal["hold_placed"] = "hold_placed"

    @property
    def words(self) -> str:
        until = "" if self.hold.expires is None else f" until {format_instant(self.hold.expires)}"
        return f"placed hold {self.hold.name} at {format_instant(self.hold.since)}{until}"


@dataclass(frozen=True)
class HoldDropped:
    """A named hold let go."""

    name: str
    kind: Literal["hold_dropped"] = "hold_dropped"

    @property
    def words(self) -> str:
        return f"let hold {self.name} go"


@dataclass(frozen=True)
class Trimmed:
    """An unsealed batch rewritten without the rows nobody needs any more: `batch` has its id, `source` is the parts
    table that was read. Of a keyed collection facts that happened below `horizon` are forgotten with it."""

    fence: Fence
    batch: UnsealedBatch
    source: PartsTable
    horizon: int = 0
    kind: Literal["trimmed"] = "trimmed"

    @property
    def words(self) -> str:
        return f"trimmed {self.batch.id[:SHORT_ID]} to {counted(self.batch.rows, 'row')}"


@dataclass(frozen=True)
class Remembered:
    """Batches of drained facts that are remembered, replaced by one, `batch` (None: nothing of them is, any more).
    Facts that happened below `horizon` are forgotten with it. `bytes_written` of its parts were written for it."""

    fence: Fence
    inputs: tuple[str, ...]
    batch: UnsealedBatch | None
    horizon: int = 0
    bytes_written: int = 0
    kind: Literal["remembered"] = "remembered"

    @property
    def words(self) -> str:
        merged = f"merged {len(self.inputs)} batches of remembered facts"
        if self.batch is None:
            return f"{merged}: nothing is left"
        return f"{merged}: {counted(self.batch.rows, 'row')} at level {self.batch.level} as {self.batch.id[:SHORT_ID]}"


@dataclass(frozen=True)
class AheadMerged:
    """Batches of rows that are ahead, replaced by others, which hold the same rows sorted by time buckets; without
    those that were due by then, and without what cancelled out. `bytes_written` of their parts were written for it."""

    fence: Fence
    inputs: tuple[str, ...]
    batches: tuple[UnsealedBatch, ...]
    bytes_written: int = 0
    kind: Literal["ahead_merged"] = "ahead_merged"

    @property
    def words(self) -> str:
        rows = counted(sum(batch.rows for batch in self.batches), "row")
        return f"merged {counted(len(self.inputs), 'batch', 'batches')} ahead into {len(self.batches)}: {rows}"


def committed_at(change: Change, at: int) -> Change:
    """The change as it is committed at a time of the wall clock."""
    return replace(change, at=at) if isinstance(change, Sealed) else change


def words_in(change: Change, zone: str) -> str:
    """The words of a change, with the interval of files that it is about as clocks in a zone show it."""
    # An interval from 0 on only names a run.
    if isinstance(change, Attempted | Ingested) and zone != "UTC" and change.fence.interval.lower:
        change = replace(change, fence=replace(change.fence, interval=change.fence.interval.in_zone(zone)))
    return change.words


Change = (
    Created
    | Redefined
    | Dropped
    | Restored
    | Attempted
    | Ingested
    | Corrected
    | Refused
    | Certified
    | Sealed
    | Drained
    | Compacted
    | LedgerMerged
    | CommitTimesStored
    | Quarantined
    | Released
    | CompactionAllowed
    | HoldPlaced
    | HoldDropped
    | Trimmed
    | Remembered
    | AheadMerged
    | Publishing
    | Published
    | Unpublished
)


def _interval(batch: TraceBatch) -> Interval:
    return Interval(batch.description.lower, batch.description.upper)


def _ids(batches: tuple[str, ...]) -> str:
    return ", ".join(batch[:SHORT_ID] for batch in batches) or "nothing"
