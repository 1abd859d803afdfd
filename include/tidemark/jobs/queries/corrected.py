"""What was corrected within a span of what was learned: read from the log, without a look at data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.change import NOTHING_CHANGED, Ingested, Quarantined, Released, Sealed
from tidemark.model.instant import format_instant
from tidemark.storage.log.log import StateLog


@dataclass(frozen=True)
class CorrectedRows:
    """How many files were corrected, the rows retracted and added by that, with their multiplicities, and when these
    happened first and last, in microseconds (None: none were)."""

    files: int = 0
    retracted: int = 0
    added: int = 0
    event_times: tuple[int, int] | None = None

    def with_more(self, change: Ingested) -> CorrectedRows:
        """With what one more ingest corrected."""
        bounds = self.event_times or ()
        if change.rows_retracted + change.rows_added:
            bounds = (*bounds, *_happened(change))
        return CorrectedRows(
            self.files + change.corrected,
            self.retracted + change.rows_retracted,
            self.added + change.rows_added,
            (min(bounds), max(bounds)) if bounds else None,
        )

    @property
    def words(self) -> str:
        if self.event_times is None:
            return NOTHING_CHANGED
        first, last = map(format_instant, self.event_times)
        files = f"{self.files:,} file{'s' * (self.files != 1)} corrected"
        rows = f"{self.retracted:,} row{'s' * (self.retracted != 1)} retracted and {self.added:,} added"
        return f"{files}, {rows}, happened {first}" + ("" if first == last else f" to {last}")

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601, and the words under `changed`."""
        times = list(map(format_instant, self.event_times)) if self.event_times else None
        counts = {"files": self.files, "retracted": self.retracted, "added": self.added}
        return {**counts, "event_times": times, "changed": self.words}


def corrected_between(log: StateLog, lower: int, upper: int) -> CorrectedRows:
    """What was corrected and learned in `[lower, upper)`, without batches that were quarantined since.

    Reads versions down to the one that moved the seal to `lower`: what was committed before was learned before. A seal
    may also be recorded that asked for more than it got, and moved nothing: that is known from the state before it. Of
    a span from the beginning nothing is reported; nobody had seen what was corrected there.
    """
    found, taken_out, back = CorrectedRows(), set[str](), set[str]()
    for record in log.history() if lower else ():
        change = record.change
        if isinstance(change, Sealed) and change.upper <= lower and _sealed_before(log, record.version) < lower:
            break
        if isinstance(change, Released) and change.batch not in taken_out:
            back.add(change.batch)
        elif isinstance(change, Quarantined) and change.batch not in back:
            taken_out.add(change.batch)
        elif isinstance(change, Ingested) and change.corrected and _learned(change, lower, upper, taken_out):
            found = found.with_more(change)
    return found


def _sealed_before(log: StateLog, version: int) -> int:
    """The seal before a version; 0 if that was collected, as all before it."""
    try:
        return log.load(version - 1).state.seal
    except InvalidUsage:
        return 0


def _learned(change: Ingested, lower: int, upper: int, taken_out: set[str]) -> bool:
    batch = change.batch.id if change.batch else change.snapshot.batch if change.snapshot else None
    brought = change.batch or change.snapshot
    if brought is None or brought.learned_at is None:  # nothing differed
        return False
    return lower <= brought.learned_at < upper and batch not in taken_out


def _happened(change: Ingested) -> tuple[int, ...]:
    """When the rows of a correction happened, first and last; of a full snapshot that is withdrawn, when it was
    true."""
    if change.batch is not None:
        return change.batch.first_event_time, change.batch.last_event_time
    return () if change.snapshot is None else (change.snapshot.time,)
