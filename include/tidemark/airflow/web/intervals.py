"""What the pages of intervals are made of: the state and the ledger of a collection, and Airflow's runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from tidemark.airflow.timetable import moment
from tidemark.airflow.web.calendar import Run, calendar_page, interval_page, shown
from tidemark.airflow.web.late import late_section
from tidemark.airflow.web.page import Page
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.questions.intervals import entries_of, interval_reports
from tidemark.model.change import Ingested, Quarantined, Released
from tidemark.model.collection import Gate
from tidemark.model.instant import MAX_TIME, format_instant, from_datetime
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.quality.results import results_of, wrong_batches
from tidemark.storage.stores.store import Indeterminate
from tidemark.storage.stores.store import Unavailable as StoreAway

LOOKED_THROUGH = 200
"""Newest versions among which those that an interval brought are looked for."""
MOST_FILES, MOST_RUNS, MOST_RESULTS = 200, 10, 10


def calendar_of(pinned: Pinned, now: int, upto: int | None) -> Page:
    """The calendar of a landed collection at a version, as of `now` (µs). InvalidUsage for a derived one."""
    state, store = pinned.state, pinned.store
    some = shown(state.collection.landed, now, upto)
    return calendar_page(
        state.collection.name, some, list(interval_reports(store, state, some.intervals, _wrong(pinned)))
    )


def interval_of(pinned: Pinned, lower: int, *, rows: bool) -> Page:
    """The page of the interval that begins at `lower`; with `rows` also what shows values of files. InvalidUsage where
    none begins there, and for a derived collection."""
    state, landed = pinned.state, pinned.state.collection.landed
    interval = Schedule(landed.schedule).interval_from(lower)
    within = landed.start <= lower < (MAX_TIME if landed.end is None else landed.end)
    if not within or Schedule(landed.schedule).latest(lower) != lower:
        raise InvalidUsage(f"no interval of {state.collection.name} begins at {lower}")
    entries = entries_of(pinned.store, state, interval)
    (report,) = interval_reports(pinned.store, state, [interval], _wrong(pinned))
    return interval_page(
        state.collection.name,
        report,
        files=[_file(entry) for entry in entries[:MOST_FILES]] if rows else None,
        late=late_section(pinned.store, state, interval, entries) if rows else (),
        changes=_changes(pinned, interval),
        runs=_runs(state.collection.name, interval),
    )


def _wrong(pinned: Pinned) -> set[str]:
    """The batches that the unsealed gate found wrong, as its newest failures say; none where these cannot be read."""
    try:
        results = results_of(pinned.root)
        if results is None or all(pinned.state.is_certified(batch) for batch in pinned.state.pending):
            return set()
        failures = (kept for kept in results.names(pinned.name, Gate.UNSEALED) if kept.outcome == "failed")
        newest = [results.load(pinned.name, Gate.UNSEALED, kept) or {} for kept in islice(failures, MOST_RESULTS)]
    except (TidemarkError, StoreAway, Indeterminate):
        return set()
    return {batch for found in newest for batch in wrong_batches(found)}


def _file(entry: LedgerEntry) -> tuple[str, str, int, int, str]:
    late = entry.rows_late_applied + entry.rows_late_discarded
    became = "refused" if entry.status is Status.QUARANTINED else "corrected" if entry.is_corrected else "counted"
    return entry.path, became, entry.rows, late, entry.reason or ""


def _changes(pinned: Pinned, interval: Interval) -> list[tuple[str, str, str]]:
    """The versions, newest first, that read the interval, or took a batch of it out or back."""
    records = list(islice(OpenCollection(pinned).log.history(pinned.head.version), LOOKED_THROUGH))
    read = {
        record.change.batch.id
        for record in records
        if isinstance(record.change, Ingested) and record.change.batch and record.change.fence.interval == interval
    }
    found = []
    for record in records:
        change = record.change
        own = isinstance(change, Ingested) and change.fence.interval == interval
        if own or (isinstance(change, Quarantined | Released) and change.batch in read):
            when = format_instant(record.written_at // 1_000_000 * 1_000_000)
            found.append((str(record.version), when, change.words))
    return found


def _runs(dag_id: str, interval: Interval) -> Sequence[Run]:
    """The newest runs of a DAG whose data interval holds an interval."""
    asked = (
        select(DagRun.run_id, DagRun.state, DagRun.data_interval_start, DagRun.data_interval_end)
        .where(DagRun.dag_id == dag_id)
        .where(DagRun.data_interval_start <= moment(interval.lower), DagRun.data_interval_end >= moment(interval.upper))
        .order_by(DagRun.id.desc())
        .limit(MOST_RUNS)
    )
    with create_session() as session:
        found = session.execute(asked).all()
    return [
        Run(run_id, str(state), f"{format_instant(from_datetime(start))} to {format_instant(from_datetime(end))}")
        for run_id, state, start, end in found
    ]
