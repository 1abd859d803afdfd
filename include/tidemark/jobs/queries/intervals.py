"""What came of intervals, one by one: read from the ledger and the state, without a look at data."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import Any

from tidemark.config.environment import ready_within
from tidemark.jobs.queries.blocked import found_wrong, reached
from tidemark.model.arrangement import Arrangement, LedgerRun, Stopped
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.model.wording import counted
from tidemark.plan.day import Day, DayState, Seen, day_of
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.store import ObjectStore

Rows = Mapping[Interval, "IntervalReport"]
_READ = OrderedDict[str, tuple[tuple[LedgerRun, ...], Rows]]()
"""What the newest ledger of each store says of intervals, which never changes for the same runs of it. Of a store one
is kept: a year of hours takes 3 MB, and each ingest makes another ledger."""
FILES_OF_PAGE = "files cannot be taken, which its page in Airflow names"
_MOST_READ = 20
"""Stores of which it is kept."""
_LOCK = Lock()


@dataclass(frozen=True)
class IntervalReport:
    """What came of one interval: how far it is, its files, and their rows as they were first read. Of these `late` came
    too late and were applied, `dead` too late and were not. `refused` files could not be taken. `corrected` files were
    read again because they had changed; `written` are the rows by which they differed. `taken_out` are batches of it
    in quarantine, `accepted` how often somebody accepted one. `left_out` are rows of its files, as these are now, that
    `only` does not take. `passed_over` are names of files that lay beside its own when it was last read,
    `files_passed_over` in all. `duplicates` are files with the bytes of another of them, which counted."""

    interval: Interval
    day: Day
    files: int = 0
    rows: int = 0
    late: int = 0
    dead: int = 0
    refused: int = 0
    corrected: int = 0
    written: int = 0
    taken_out: int = 0
    left_out: int = 0
    passed_over: tuple[str, ...] = ()
    files_passed_over: int = 0
    duplicates: int = 0
    accepted: int = 0

    @property
    def status(self) -> DayState:
        """How far it is."""
        return self.day.state

    def as_dict(self) -> dict[str, Any]:
        """JSON values, times in ISO 8601."""
        counts = {name: value for name, value in asdict(self).items() if name not in ("interval", "day")}
        counts["passed_over"] = list(self.passed_over)
        bounds = {"lower": format_instant(self.interval.lower), "upper": format_instant(self.interval.upper)}
        return {**bounds, "status": str(self.status), "words": self.day.words, **counts}


def interval_reports(
    store: ObjectStore, state: Arrangement, intervals: Sequence[Interval], now: int
) -> Iterator[IntervalReport]:
    """The report of each interval of the collection's schedule as of `now` (µs), in their order.

    Reads the results of gates, as no state remembers what these found wrong, and the ledger, whole, unless it did so
    before and nothing was ingested since.
    """
    readable = min(state.complete_below, state.trace_upper) + state.collection.landed.grace
    wrong = found_wrong(store, state)
    failed = {each.interval for each in state.uncertified if each.id in wrong}
    taken_out = Counter(each.interval for each in state.taken_out)
    accepted = Counter(each.interval for each in state.accepted)
    rows = _rows_of_ledger(store, state)
    beside = {each.interval: each for each in state.passed_over}
    stopped = {each.interval: each for each in state.stopped}
    expected_within, read_to = ready_within(), reached(state)
    for interval in intervals:
        report = rows.get(interval) or IntervalReport(interval, Day(interval, DayState.MISSING))
        if not state.collection.landed.source.adds_up:
            report = replace(report, duplicates=0)
        if seen := beside.get(interval):
            report = replace(report, passed_over=seen.names, files_passed_over=seen.files)
        why = stopped.get(interval)
        if why is None and report.refused:  # by a version that did not remember why
            why = Stopped(interval, FILES_OF_PAGE, files=report.refused)
        is_complete = interval.upper <= readable
        seen_day = Seen(
            interval,
            is_complete=is_complete,
            is_ingested=state.ingested.covers(interval),
            waits=interval.lower > state.complete,
            is_hole=interval.lower < read_to,
            has_failed=interval in failed,
            stopped=why,
            has_rows=bool(report.rows + report.written) if is_complete else None,
        )
        day = day_of(seen_day, now, expected_within)
        yield replace(report, day=day, taken_out=taken_out[interval], accepted=accepted[interval])


def summed_up(reports: Sequence[IntervalReport], waits_for: Day | None) -> str:
    """How many intervals of a range are complete, and what the collection waits for (`blocked_by`), in one line."""
    complete = sum(report.status.is_complete for report in reports)
    waits = f"; waits for {waits_for.sentence}" if waits_for else ""
    return f"{complete:,} of {counted(len(reports), 'interval')} complete{waits}"


def entries_of(store: ObjectStore, state: Arrangement, interval: Interval) -> list[LedgerEntry]:
    """What the ledger knows of the files of one interval, by path; of files whose batch was taken out nothing."""
    return sorted(
        (entry for entry in ledger.entries(store, state.ledger) if entry.interval == interval and _counts(entry)),
        key=lambda entry: entry.path,
    )


def _counts(entry: LedgerEntry) -> bool:
    return entry.replay_of is None and entry.status is not Status.FREED and not entry.is_silent


def _rows_of_ledger(store: ObjectStore, state: Arrangement) -> Rows:
    runs = tuple(state.ledger)
    with _LOCK:
        before, rows = _READ.get(store.url, ((), {}))
        if before == runs:
            return rows
    found: dict[Interval, list[LedgerEntry]] = defaultdict(list)
    for entry in ledger.entries(store, state.ledger):
        if _counts(entry):
            found[entry.interval].append(entry)
    rows = {interval: _report(interval, entries) for interval, entries in found.items()}
    with _LOCK:
        _READ[store.url] = runs, rows
        _READ.move_to_end(store.url)
        while len(_READ) > _MOST_READ:
            _READ.popitem(last=False)
    return rows


def _report(interval: Interval, entries: Sequence[LedgerEntry]) -> IntervalReport:
    counted = [entry for entry in entries if entry.status is Status.INGESTED]
    first = [_as_first_read(entry) for entry in counted]
    with_rows = [entry.sha256 for entry in counted if entry.rows + entry.rows_late_discarded]
    return IntervalReport(
        interval,
        Day(interval, DayState.INGESTED),
        files=sum(bool(entry.sha256) for entry in counted),
        rows=sum(entry.rows + entry.rows_late_discarded for entry in first),
        late=sum(entry.rows_late_applied for entry in first),
        dead=sum(entry.rows_late_discarded for entry in first),
        refused=len(entries) - len(counted),
        corrected=sum(entry.is_corrected for entry in counted),
        written=sum(entry.rows for entry in counted if entry.is_corrected),
        left_out=sum(entry.rows_left_out for entry in counted),
        duplicates=len(with_rows) - len(set(with_rows)),
    )


def _as_first_read(entry: LedgerEntry) -> LedgerEntry:
    while entry.replaced is not None:
        entry = entry.replaced
    return entry
