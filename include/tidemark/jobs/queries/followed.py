"""What a derived collection retracted and added within a span of what it learned: read from the log, without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidemark.model.change import NOTHING_CHANGED, Corrected, Quarantined
from tidemark.model.frontier import EMPTY
from tidemark.model.instant import format_instant
from tidemark.model.wording import counted
from tidemark.storage.log.log import StateLog


@dataclass(frozen=True)
class FollowedRows:
    """How many runs of `correct` found something to write, the rows these retracted and added, with their
    multiplicities, and when these happened first and last, in microseconds (None: no row says when)."""

    runs: int = 0
    retracted: int = 0
    added: int = 0
    event_times: tuple[int, int] | None = None

    def with_more(self, change: Corrected) -> FollowedRows:
        """With what one more run wrote."""
        bounds = self.event_times or ()
        if change.batch is not None and change.event_times_from < EMPTY:
            bounds = (*bounds, change.batch.first_event_time, change.batch.last_event_time)
        return FollowedRows(
            self.runs + 1,
            self.retracted + change.rows_retracted,
            self.added + change.rows_added,
            (min(bounds), max(bounds)) if bounds else None,
        )

    @property
    def words(self) -> str:
        if not self.runs:
            return NOTHING_CHANGED
        rows = f"{counted(self.retracted, 'row')} retracted and {self.added:,} added"
        if self.event_times is None:
            return rows
        first, last = map(format_instant, self.event_times)
        return f"{rows}, happened {first}" + ("" if first == last else f" to {last}")

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601, and the words under `changed`."""
        times = list(map(format_instant, self.event_times)) if self.event_times else None
        counts = {"runs": self.runs, "retracted": self.retracted, "added": self.added}
        return {**counts, "event_times": times, "changed": self.words}


def followed_between(log: StateLog, lower: int, upper: int) -> FollowedRows:
    """What runs of `correct` wrote with frontiers in `(lower, upper]`, without batches that were quarantined since.

    Reads versions down to the newest run with a frontier at or below `lower`: those before it had lower ones. Seals say
    nothing of that: one that was planned before a run may be committed after it.
    """
    found, taken_out = FollowedRows(), set[str]()
    for record in log.history():
        change = record.change
        if isinstance(change, Quarantined):
            taken_out.add(change.batch)
        elif isinstance(change, Corrected):
            if change.consumption.upper <= lower:
                break
            wrote = change.batch is not None and change.batch.id not in taken_out
            found = found.with_more(change) if wrote and change.consumption.upper <= upper else found
    return found
