"""The log in words: what each version of a collection changed, when, and who wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from tidemark.model.change import COLLECT, Attempted, Change, HoldDropped, HoldPlaced, Refused, words_in
from tidemark.model.change import SHORT_ID as SHORT_ID
from tidemark.model.instant import format_instant
from tidemark.plan.correct import HOLD
from tidemark.storage.log.log import StateLog


@dataclass(frozen=True)
class Entry:
    """One version: its number, wall-clock microseconds and writer (for people only), kind and words of its change.

    `detail` names a file that was refused, and why, for who may see logs.
    """

    version: int
    written_at: int
    writer: str
    kind: str
    change: str
    detail: str = ""

    @property
    def in_full(self) -> str:
        """What it changed, and the detail."""
        return f"{self.change}: {self.detail}" if self.detail else self.change

    def as_dict(self) -> dict[str, Any]:
        """JSON values; the wall-clock time also as ISO 8601."""
        return {**asdict(self), "written_at_text": format_instant(self.written_at)}


def is_outcome(change: Change) -> bool:
    """Whether a change came of a run: not that an attempt started, nor a derived collection's hold, which moves."""
    if isinstance(change, HoldPlaced | HoldDropped):
        name = change.hold.name if isinstance(change, HoldPlaced) else change.name
        return not name.startswith(HOLD)
    return not isinstance(change, Attempted) or change.fence.step == COLLECT


def history(
    log: StateLog,
    *,
    limit: int | None = None,
    upto: int | None = None,
    is_shown: Callable[[Change], bool] = lambda _: True,
    zone: str = "UTC",
) -> Iterator[Entry]:
    """The versions, down from `upto` (None: the newest), whose change fulfils `is_shown`; looked at are at most
    `limit`. Intervals are shown as clocks in `zone` show them."""
    for record in islice(log.history(upto), limit):
        change = record.change
        if not is_shown(change):
            continue
        detail = change.stopped.detail if isinstance(change, Refused) else ""
        yield Entry(record.version, record.written_at, record.writer, change.kind, words_in(change, zone), detail)
