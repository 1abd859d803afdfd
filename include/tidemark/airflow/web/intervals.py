"""What the pages of intervals are made of: the state and the ledger of a collection, and Airflow's runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice

from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from tidemark.airflow.timetable import moment
from tidemark.airflow.web.calendar import (
    LEGEND,
    LEGEND_OF_DERIVED,
    About,
    Run,
    Shown,
    calendar_page,
    cell_of,
    cell_of_day,
    day_page,
    interval_page,
    shown,
)
from tidemark.airflow.web.late import late_section
from tidemark.airflow.web.page import Page
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import Pinned
from tidemark.config.schedule import Schedule
from tidemark.errors import InvalidUsage
from tidemark.jobs.queries.derived_days import DAYS, DayReport, day_reports
from tidemark.jobs.queries.intervals import entries_of, interval_reports
from tidemark.model.batching.rate import SECOND
from tidemark.model.change import CUT, LEFT_OUT, Change, Corrected, Ingested, Quarantined, Released, words_in
from tidemark.model.instant import MAX_TIME, format_duration, format_instant, from_datetime
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.model.local_time import format_local
from tidemark.model.wording import counted
from tidemark.plan.day import interval_in_words
from tidemark.storage.documents.codec import VersionRecord

LOOKED_THROUGH = 200
"""Newest versions among which those that an interval brought are looked for."""
MOST_FILES, MOST_RUNS = 200, 10


def calendar_of(pinned: Pinned, now: int, upto: int | None) -> Page:
    """The calendar of a collection at a version, as of `now` (µs): of the intervals of its schedule, or of a derived
    one of the days that its newest versions report."""
    state, name = pinned.state, pinned.name
    if state.collection.is_derived:
        days = _days(pinned)
        some = Shown([day.interval for day in days], older=False, newer=False)
        return calendar_page(name, some, [cell_of_day(day) for day in days], LEGEND_OF_DERIVED)
    some = shown(state.collection.landed, now, upto)
    reports = interval_reports(pinned.store, state, some.intervals, now)
    return calendar_page(name, some, [cell_of(one) for one in reports], LEGEND)


def interval_of(pinned: Pinned, lower: int, *, logs: bool, rows: bool) -> Page:
    """The page of the interval that begins at `lower`; with `logs` also what tasks' logs show, with `rows` what shows
    rows. InvalidUsage where no interval begins there."""
    state, interval = pinned.state, interval_at(pinned, lower)
    records = list(islice(OpenCollection(pinned).log.history(pinned.head.version), LOOKED_THROUGH))
    about = About(_changes(records, interval), _runs(pinned.name, interval), rows, cuts_in_words(records, interval))
    if state.collection.is_derived:
        report = next((day for day in _days(pinned) if day.interval == interval), DayReport(interval, complete=False))
        return day_page(pinned.name, report, about)
    entries = entries_of(pinned.store, state, interval)
    (found,) = interval_reports(pinned.store, state, [interval], time.time_ns() // 1000)
    files = [_file(entry) for entry in entries[:MOST_FILES]] if logs else None
    late = late_section(pinned.store, state, interval, entries) if rows else ()
    return interval_page(pinned.name, found, about, files=files, late=late)


def rows_of(pinned: Pinned, lower: int) -> Page:
    """The page of rows of the interval that begins at `lower`. InvalidUsage where none begins there."""
    from tidemark.airflow.web.day_rows import rows_page  # with Arrow, which other pages do without

    interval = interval_at(pinned, lower)
    return rows_page(OpenCollection(pinned), interval, interval_in_words(interval))


def interval_at(pinned: Pinned, lower: int) -> Interval:
    """The interval that begins at `lower`: of the collection's schedule, or of a derived one the UTC day. InvalidUsage
    where none does."""
    of = pinned.state.collection
    schedule = DAYS if of.is_derived else Schedule.of(of.landed)
    start, end = (0, None) if of.is_derived else (of.landed.start, of.landed.end)
    within = start <= lower < (MAX_TIME if end is None else end)
    if not within or schedule.latest(lower) != lower:
        raise InvalidUsage(f"no interval of {of.name} begins at {lower}")
    return schedule.interval_from(lower)


def _days(pinned: Pinned) -> list[DayReport]:
    return day_reports(pinned.log, pinned.state, pinned.version)


def _file(entry: LedgerEntry) -> tuple[str, str, int, int, str]:
    late = entry.rows_late_applied + entry.rows_late_discarded
    became = "refused" if entry.status is Status.QUARANTINED else "corrected" if entry.is_corrected else "counted"
    left_out = f"{entry.rows_left_out:,} {LEFT_OUT}" if entry.rows_left_out else ""
    return entry.path, became, entry.rows, late, entry.reason or left_out


def cuts_in_words(records: Sequence[VersionRecord], interval: Interval) -> str:
    """How many batches of an interval were cut before its end, by which reasons, and their means; empty if none was."""
    changes = [record.change for record in records if isinstance(record.change, Ingested)]
    cuts = [change for change in changes if change.fence.step == CUT and change.fence.interval == interval]
    reasons = Counter(change.cut.reason for change in cuts if change.cut)
    batches = [change.batch for change in cuts if change.batch]
    if not batches:
        return ""
    times = [change.figures["open_seconds"] for change in cuts if "open_seconds" in change.figures]
    why = ", ".join(f"{count:,} by {reason.replace('_', ' ')}" for reason, count in reasons.most_common())
    sizes = (sum(batch.rows for batch in batches), sum(batch.bytes for batch in batches))
    means = [f"{size // len(batches):,} {what}" for size, what in zip(sizes, ("rows", "bytes"), strict=True)]
    means += [f"open for {format_duration(sum(times) // len(times) * SECOND)}"] if times else []
    return f"{counted(len(batches), 'batch', 'batches')}: {why}; on average {', '.join(means)}"


def _changes(records: Sequence[VersionRecord], interval: Interval) -> list[tuple[str, str, str]]:
    """The versions, newest first, that read the interval or were corrected by it, or took a batch of it out or back."""
    read = {batch for record in records if (batch := _batch_of(record.change, interval))}
    found = []
    for record in records:
        change = record.change
        if _is_of(change, interval) or (isinstance(change, Quarantined | Released) and change.batch in read):
            when = format_instant(record.written_at // 1_000_000 * 1_000_000)
            found.append((str(record.version), when, words_in(change, interval.zone)))
    return found


def _is_of(change: Change, interval: Interval) -> bool:
    if isinstance(change, Corrected):
        return interval.lower <= change.consumption.upper - 1 < interval.upper
    return isinstance(change, Ingested) and change.fence.interval == interval


def _batch_of(change: Change, interval: Interval) -> str | None:
    batch = change.batch if isinstance(change, Ingested | Corrected) and _is_of(change, interval) else None
    return batch.id if batch else None


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
        Run(run_id, str(state), " to ".join(format_local(from_datetime(date), interval.zone) for date in bounds))
        for run_id, state, *bounds in found
    ]
