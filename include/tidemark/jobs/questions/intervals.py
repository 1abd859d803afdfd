"""What came of intervals, one by one: read from the ledger and the state, without a look at data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tidemark.model.arrangement import Arrangement
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.store import ObjectStore

Standing = Literal["missing", "ingested", "complete"]


@dataclass(frozen=True)
class IntervalReport:
    """What came of one interval: how far it is, its files, and their rows as they were first read. Of these `late` came
    too late and were applied, `dead` too late and were not. `refused` files could not be taken. `corrected` files were
    read again because they had changed; `written` are the rows by which they differed."""

    interval: Interval
    standing: Standing
    files: int = 0
    rows: int = 0
    late: int = 0
    dead: int = 0
    refused: int = 0
    corrected: int = 0
    written: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601."""
        counts = {name: value for name, value in asdict(self).items() if name != "interval"}
        return {"lower": format_instant(self.interval.lower), "upper": format_instant(self.interval.upper), **counts}


def interval_reports(store: ObjectStore, state: Arrangement, intervals: Sequence[Interval]) -> Iterator[IntervalReport]:
    """The report of each interval of the collection's schedule, in the order given. Reads the whole ledger, once."""
    wanted = set(intervals)
    found: dict[Interval, list[LedgerEntry]] = defaultdict(list)
    for entry in ledger.entries(store, state.ledger):
        if entry.interval in wanted and entry.replay_of is None and entry.status is not Status.FREED:
            found[entry.interval].append(entry)
    readable = min(state.complete_below, state.trace_upper) + state.collection.landed.grace
    for interval in intervals:
        yield _report(interval, _standing(state, interval, readable), found.get(interval, []))


def _standing(state: Arrangement, interval: Interval, readable: int) -> Standing:
    if interval.upper <= readable:
        return "complete"
    return "ingested" if state.ingested.covers(interval) else "missing"


def _report(interval: Interval, standing: Standing, entries: Sequence[LedgerEntry]) -> IntervalReport:
    counted = [entry for entry in entries if entry.status is Status.INGESTED]
    first = [_as_first_read(entry) for entry in counted]
    return IntervalReport(
        interval,
        standing,
        files=len(counted),
        rows=sum(entry.rows + entry.rows_late_discarded for entry in first),
        late=sum(entry.rows_late_applied for entry in first),
        dead=sum(entry.rows_late_discarded for entry in first),
        refused=len(entries) - len(counted),
        corrected=sum(entry.is_corrected for entry in counted),
        written=sum(entry.rows for entry in counted if entry.is_corrected),
    )


def _as_first_read(entry: LedgerEntry) -> LedgerEntry:
    while entry.replaced is not None:
        entry = entry.replaced
    return entry
