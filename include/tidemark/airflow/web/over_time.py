"""A collection over time: how far behind it was, its rows and late rows by interval, and its history by pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import urlencode

from tidemark.airflow.web.calendar import shown
from tidemark.airflow.web.chart import Bar, bars
from tidemark.airflow.web.markup import Markup, tag
from tidemark.airflow.web.page import Page, document, table, way_to_status
from tidemark.api.pinned import Pinned
from tidemark.jobs.queries.intervals import interval_reports
from tidemark.model.change import Corrected, Sealed
from tidemark.model.instant import format_instant, roughly
from tidemark.model.wording import counted
from tidemark.plan.day import interval_in_words
from tidemark.storage.documents.codec import VersionRecord

LINES = 100
"""Versions on one page."""
LOOKED_THROUGH = 300
"""Newest versions of which the pictures are made: about a month of days."""
MOST_BARS = 90


def history_page(pinned: Pinned, now: int, upto: int | None) -> Page:
    """The versions down from `upto` (None: the newest), and with the newest ones the pictures, as of `now` (µs)."""
    name, newest = pinned.name, upto is None or upto >= pinned.version
    start = pinned.version if newest else upto
    records = list(islice(pinned.log.history(start), LOOKED_THROUGH if newest else LINES + 1))
    content = [
        tag("h1", name, " ", tag("span", "over time", class_="quiet")),
        way_to_status(name),
    ]
    if newest and (pictures := [*_rows(pinned, now), *_changed(records), *_lags(records)]):
        content.append(tag("section", *pictures))
    content.append(tag("section", tag("h2", "Versions"), _versions(records[:LINES]), *_ways(records, newest)))
    return document(f"{name} over time", *content, linked=True)


def _versions(records: Sequence[VersionRecord]) -> Markup:
    if not records:
        return tag("p", "No version of these is kept.", class_="quiet")
    lines = [
        (str(record.version), _second(record.written_at), record.writer, record.change.words) for record in records
    ]
    return table(("version", "when", "by", "what"), lines)


def _ways(records: Sequence[VersionRecord], newest: bool) -> list[Markup]:
    ways: list[object] = [] if newest else [tag("a", "the newest", href="?"), " "]
    if len(records) > LINES:
        ways.append(tag("a", "earlier versions", href="?" + urlencode({"upto": records[LINES].version})))
    return [tag("p", *ways)] if ways else []


def _rows(pinned: Pinned, now: int) -> Iterator[Markup]:
    """Rows and late rows of the newest intervals, of a collection that lands."""
    state = pinned.state
    if state.collection.is_derived:
        return
    intervals = shown(state.collection.landed, now).intervals[-MOST_BARS:]
    reports = [one for one in interval_reports(pinned.store, state, intervals, now) if one.status.is_read]
    if not reports:
        return
    first, last = (interval_in_words(one.interval) for one in (reports[0], reports[-1]))
    for title, kind, values in (
        ("Rows of each interval", "", [one.rows for one in reports]),
        ("Late rows of each interval", "late", [one.late + one.dead for one in reports]),
    ):
        found = [
            Bar(value, f"{interval_in_words(one.interval)}: {counted(value, 'row')}")
            for one, value in zip(reports, values, strict=True)
        ]
        yield bars(title, found, first, last, counted(max(values), "row"), kind)


def _changed(records: Sequence[VersionRecord]) -> Iterator[Markup]:
    """The rows by which a derived collection changed, by run."""
    runs = [(record, record.change) for record in records if isinstance(record.change, Corrected)][:MOST_BARS][::-1]
    if not runs:
        return
    found = [
        Bar(
            change.rows_added + change.rows_retracted,
            f"to {format_instant(change.consumption.upper)}: "
            f"{change.rows_added:,} rows added, {change.rows_retracted:,} retracted",
        )
        for _, change in runs
    ]
    first, last = (format_instant(change.consumption.upper) for _, change in (runs[0], runs[-1]))
    most = counted(int(max(bar.value for bar in found)), "row")
    yield bars("Rows added and retracted by each run", found, first, last, most)


def _lags(records: Sequence[VersionRecord]) -> Iterator[Markup]:
    """How long after the end of what it completed each seal was."""
    seals = [(record, record.change) for record in records if isinstance(record.change, Sealed)][:MOST_BARS][::-1]
    lags = [(record, change, max(0, record.written_at - change.complete_below)) for record, change in seals]
    if not lags:
        return
    found = [
        Bar(lag, f"complete below {format_instant(change.complete_below)}: {roughly(lag)} behind")
        for _, change, lag in lags
    ]
    first, last = (_second(record.written_at) for record, _, _ in (lags[0], lags[-1]))
    yield bars("Behind, at each seal", found, first, last, roughly(max(lag for _, _, lag in lags)), "lag")


def _second(time: int) -> str:
    return format_instant(time // 1_000_000 * 1_000_000)
