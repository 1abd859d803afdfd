"""The log in words: what each version of a collection changed, when, and who wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from tidemark.model.batch import TraceBatch
from tidemark.model.change import (
    REPLAY,
    Attempted,
    Certified,
    Change,
    Compacted,
    CompactionAllowed,
    Created,
    Drained,
    HoldDropped,
    HoldPlaced,
    Ingested,
    LedgerMerged,
    Quarantined,
    Redefined,
    Refused,
    Released,
    Sealed,
    Trimmed,
)
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.storage.log import StateLog

SHORT_ID = 12
"""Characters of a batch's id shown to people; commands take any unambiguous beginning."""


@dataclass(frozen=True)
class Entry:
    """One version: its number, wall-clock microseconds and writer (for people only), kind and words of its change."""

    version: int
    written_at: int
    writer: str
    kind: str
    change: str

    def as_dict(self) -> dict[str, Any]:
        """JSON values; the wall-clock time also as ISO 8601."""
        return {**asdict(self), "written_at_text": format_instant(self.written_at)}


def history(log: StateLog, *, limit: int | None = None) -> Iterator[Entry]:
    """The versions, newest first; at most `limit`."""
    for record in islice(log.history(), limit):
        words = in_words(record.change)
        yield Entry(record.version, record.written_at, record.writer, record.change.kind, words)


def in_words(change: Change) -> str:
    """A change in one line."""
    match change:
        case Created(collection):
            return f"created collection {collection.name}"
        case Redefined():
            return "changed the declaration"
        case Attempted(fence) if fence.step == "collect":
            return "began to remove objects that no version names"
        case Attempted(fence):
            return f"started to {fence.step} {fence.interval}, attempt {fence.token[:SHORT_ID]}"
        case Ingested():
            return _ingested(change)
        case Refused(run):
            return f"refused {_counted(run.entries, 'source file')} that cannot be taken"
        case Certified(gate, _, batches, upper):
            return f"{gate} gate vouched for " + (_ids(batches) if upper is None else f"[0, {format_instant(upper)})")
        case Sealed(upper, wanted):
            waits = f", asked for {format_instant(wanted)}" if wanted > upper else ""
            return f"sealed to {format_instant(upper)}{waits}"
        case Drained(_, batch):
            return f"drained {_interval(batch)}: {_counted(batch.rows, 'row')} as {batch.id[:SHORT_ID]}"
        case Compacted(_, inputs, batch):
            merged = f"{len(inputs)} batches of {_interval(batch)}"
            return f"compacted {merged}: {_counted(batch.rows, 'row')} at level {batch.level} as {batch.id[:SHORT_ID]}"
        case LedgerMerged(inputs, run):
            return f"merged {len(inputs)} runs of the ledger: {_counted(run.entries, 'source file')}"
        case Quarantined(name, run):
            return f"quarantined {name[:SHORT_ID]}, which frees {_counted(run.entries, 'source file')}"
        case Released(name, run):
            return f"released {name[:SHORT_ID]} with {_counted(run.entries, 'source file')}"
        case CompactionAllowed():
            return f"allowed compaction: readable are {CompactionFunction(change.since, change.rungs)}"
        case HoldPlaced(hold):
            until = "" if hold.expires is None else f" until {format_instant(hold.expires)}"
            return f"placed hold {hold.name} at {format_instant(hold.since)}{until}"
        case HoldDropped(name):
            return f"let hold {name} go"
        case Trimmed(_, batch):
            return f"trimmed {batch.id[:SHORT_ID]} to {_counted(batch.rows, 'row')}"


def _ingested(change: Ingested) -> str:
    if change.fence.step == REPLAY:
        letters = _counted(change.rows_replayed, "dead letter")
        moved = f", {change.rows_late_moved:,} of them moved to the seal" if change.rows_late_moved else ""
        return f"replayed {letters} as {change.batch.id[:SHORT_ID] if change.batch else 'nothing'}{moved}"
    counts = {
        "late applied": change.rows_late_applied,
        "late discarded": change.rows_late_discarded,
        "files set aside": change.bad_files,
    }
    more = "".join(f", {count:,} {what}" for what, count in counts.items() if count)
    if change.batch is None and change.dump:
        return f"ingested {change.fence.interval}: a dump without rows as {change.dump.batch[:SHORT_ID]}"
    if change.batch is None:
        return f"ingested {change.fence.interval}: no rows{more}"
    rows, files = _counted(change.batch.rows, "row"), _counted(len(change.sources), "file")
    return f"ingested {change.fence.interval}: {rows} of {files} as {change.batch.id[:SHORT_ID]}{more}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _interval(batch: TraceBatch) -> str:
    return str(Interval(batch.description.lower, batch.description.upper))


def _ids(batches: tuple[str, ...]) -> str:
    return ", ".join(batch[:SHORT_ID] for batch in batches) or "nothing"
