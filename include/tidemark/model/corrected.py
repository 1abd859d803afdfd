"""The change by which a derived collection follows its inputs: what one run of `correct` commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidemark.model.batch import UnsealedBatch
from tidemark.model.derived import Consumption, Mode
from tidemark.model.frontier import CompactionFunction
from tidemark.model.instant import format_instant
from tidemark.model.records import Fence
from tidemark.model.window.lateness import Lateness
from tidemark.model.wording import SHORT_ID, counted

CORRECT = "correct"
"""The step that commits it."""


@dataclass(frozen=True)
class Corrected:
    """A derived collection says what its definition does of its inputs as `consumption` has them: what differed came in
    `batch` (None: nothing did). `fence.interval` reaches from the frontier before to this one.

    It was planned from the consumption `previous` (None: there was none). `event_times_from` is from which event time
    on the rows can be distinguished by it: the greatest `since` of the inputs where the definition goes by row, else
    EMPTY, as the rows have none. Of the rows added and retracted, `repaired` were not as an earlier run had left them;
    `why` says why all was computed where it was. Of the first one `readable` is what can be read of the collection
    (None, as of later ones: from its frontier on).
    """

    fence: Fence
    consumption: Consumption
    batch: UnsealedBatch | None
    previous: Consumption | None
    mode: Mode
    event_times_from: int
    rows_read: int = 0
    rows_added: int = 0
    rows_retracted: int = 0
    repaired: int = 0
    why: str = ""
    readable: CompactionFunction | None = None
    kind: Literal["corrected"] = "corrected"

    @property
    def late(self) -> Lateness:
        """What came too late for windows, of what this run consumed."""
        same = self.previous is not None and self.previous.definition == self.consumption.definition
        return self.consumption.late - self.previous.late if self.previous and same else self.consumption.late

    @property
    def words(self) -> str:
        upper, how = format_instant(self.consumption.upper), str(self.mode).replace("_", " ")
        phrases = [f"{counted(self.rows_read, 'row')} read"]
        if self.batch is None:
            phrases.append("nothing differs")
        else:
            rows = f"{counted(self.rows_retracted, 'row')} retracted and {self.rows_added:,} added"
            phrases.append(f"{rows} as {self.batch.id[:SHORT_ID]}")
        if self.repaired:
            phrases.append(f"{counted(self.repaired, 'row')} repaired")
        if late := self.late:
            phrases.append(late.words)
        return f"corrected to {upper}, {how}{f' ({self.why})' if self.why else ''}: {', '.join(phrases)}"
