"""A backfill from the page: what it would read, before, and a button that starts it; what came of it, after.

The server only shows; the button is one of start.py.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemark.airflow import settings
from tidemark.airflow.timetable import moment
from tidemark.airflow.web.markup import Markup, joined, tag
from tidemark.airflow.web.page import Page, document, table, way_to_status
from tidemark.airflow.web.permissions import Ask
from tidemark.airflow.web.range import Range, range_form
from tidemark.airflow.web.start import Start, script, unpause
from tidemark.api.pinned import Pinned, find
from tidemark.errors import TidemarkError
from tidemark.jobs.queries.backfill_preview import Preview, preview
from tidemark.jobs.queries.blocked import blocked_by, found_wrong
from tidemark.jobs.queries.intervals import IntervalReport, interval_reports, summed_up
from tidemark.model.collection import Landed, Origin
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.wording import counted
from tidemark.plan.correct import HOLD
from tidemark.plan.day import interval_in_words

MOST_LINES = 120
"""Intervals that a page lists one by one."""
MOST_LOOKED = 400
"""Intervals whose landing is looked at for a page: on S3 each is a request."""
MOST_FOOTERS = 200
"""Files that are asked for their count of rows."""
_CALENDAR = tag("a", "by interval", href="calendar")


@dataclass(frozen=True)
class Subject:
    """What is to be backfilled: a collection, or one that only its file declares, which its first run creates."""

    name: str
    origin: Origin
    ingested: IntervalSet = field(default_factory=IntervalSet)
    there: bool = True


@dataclass(frozen=True)
class Runs:
    """How Airflow would run it: at most so many intervals a run, and so many runs at a time; none before its DAG is
    unpaused, where that is `paused`."""

    intervals: int
    at_a_time: int
    paused: bool = False


def backfill_page(subject: Subject, chosen: Range | None, now: int, runs: Runs, *, may_start: bool) -> Page:
    """The page that shows what a backfill of some days would read, as of `now` (µs), with a button that starts it for
    who `may_start` one. Writes nothing. InvalidUsage for more days than a run could name."""
    title, content = _heading(subject, chosen)
    if chosen is None:
        return document(title, *content, linked=True, forms=True)
    intervals = chosen.intervals(subject.origin, now)
    if not intervals:
        nothing = tag("p", f"No interval of {subject.name} that is over begins from {chosen.first} to {chosen.last}.")
        return document(title, *content, nothing, linked=True, forms=True)
    summary, days = _preview(subject, intervals, runs)
    button = _start(subject, intervals, runs, chosen) if may_start else _not_you()
    page = [*content, summary, button, days]
    return document(title, *page, linked=True, forms=True, script=script() if may_start else "")


def report_page(pinned: Pinned, chosen: Range, now: int, may_read: Ask) -> Page:
    """The page of what came of some days: a line for each, and how far what is computed from them has followed. It
    reloads itself until all are complete."""
    name = pinned.name
    content = [
        tag("h1", name, " ", tag("span", f"from {chosen.first} to {chosen.last}", class_="quiet")),
        way_to_status(name, _CALENDAR),
    ]
    reports = _reports(pinned, chosen, now)
    all_complete = all(report.status.is_complete for report in reports)
    said = summed_up(reports, blocked_by(pinned.state, now, found_wrong(pinned.store, pinned.state)))
    content.append(tag("section", tag("h2", said), *_totals(reports), *_followers(pinned, may_read)))
    lines = [_line(report) for report in reports[:MOST_LINES]]
    more = [f"{len(reports) - MOST_LINES:,} more are in the file. "] if len(reports) > MOST_LINES else []
    file = tag("a", "All of it as a file", href=f"report.csv{chosen.address}", download=f"{name}.csv")
    days = tag("section", table(("interval", "", *HEADINGS), lines), tag("p", *more, file)) if reports else ""
    return document(f"{name}, report", *content, days, refresh=not all_complete, linked=True, downloads=True)


def refused_page(subject: Subject, why: str) -> Page:
    """The page of a range that is none, or too long: it says `why`, and asks again."""
    title, content = _heading(subject, None)
    return document(title, *content, tag("p", why, class_="bad"), linked=True, forms=True)


def _heading(subject: Subject, chosen: Range | None) -> tuple[str, list[Markup]]:
    """The title, and what is above the days."""
    title = f"Backfill {subject.name}"
    content = [
        tag("h1", title),
        way_to_status(subject.name, *([_CALENDAR] if subject.there else [])),
        tag("section", range_form("backfill", chosen, "Look at it first")),
    ]
    return title, content


def nothing_yet_page(name: str) -> Page:
    """The report of a collection that its file declares and no run has created yet."""
    said = tag("p", "No run of it has begun yet. This page reloads by itself.", class_="quiet")
    return document(f"{name}, report", tag("h1", name), said, way_to_status(name), refresh=True, linked=True)


def report_file(pinned: Pinned, chosen: Range, now: int) -> str:
    """The same as CSV: a line for each interval."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(("lower", "upper", "status", *HEADINGS))
    for report in _reports(pinned, chosen, now):
        bounds = (format_instant(report.interval.lower), format_instant(report.interval.upper))
        out.writerow((*bounds, report.status, *_figures(report)))
    return text.getvalue()


HEADINGS = ("files", "rows", "late", "dead", "refused", "corrected", "written")


def _figures(report: IntervalReport) -> tuple[int, ...]:
    return report.files, report.rows, report.late, report.dead, report.refused, report.corrected, report.written


def _line(report: IntervalReport) -> tuple[object, ...]:
    return (
        tag("a", interval_in_words(report.interval), href=f"intervals/{report.interval.lower}"),
        report.status,
        *_figures(report),
    )


def _reports(pinned: Pinned, chosen: Range, now: int) -> list[IntervalReport]:
    intervals = chosen.intervals(pinned.state.collection.origin, now)
    _ = pinned.state.collection.landed  # InvalidUsage of a derived one: its days are on its calendar
    return list(interval_reports(pinned.store, pinned.state, intervals, now))


def _totals(reports: Sequence[IntervalReport]) -> Iterator[Markup]:
    sums = [sum(values) for values in zip(*map(_figures, reports), strict=True)]
    if sums:
        yield table(HEADINGS, [sums])


def _followers(pinned: Pinned, may_read: Ask) -> Iterator[Markup]:
    """How far the collections that are computed from this one, and `may_read` admits, have followed it. Each has a hold
    on it."""
    lines = []
    for hold in pinned.state.holds:
        follower = hold.name.removeprefix(HOLD) if hold.name.startswith(HOLD) else ""
        if follower and may_read(follower) and (line := _follower(pinned, follower)):
            lines.append(line)
    if lines:
        yield tag("h3", "Computed from it")
        yield table(("collection", "has followed up to", ""), lines)


def _follower(pinned: Pinned, name: str) -> tuple[object, ...] | None:
    try:
        follower = find(pinned.root, name)
    except TidemarkError:
        return None
    consumed = follower.state.consumed.of(pinned.name) if follower and follower.state.consumed else None
    if consumed is None:
        return None
    behind = consumed.upper < pinned.state.certified_trace_upper
    left = tag("span", "has more to read", class_="quiet") if behind else tag("span", "all of it", class_="good")
    return name, tag("code", format_instant(consumed.upper)), left


def _preview(subject: Subject, intervals: Sequence[Interval], runs: Runs) -> tuple[Markup, Markup]:
    """What is said of the intervals together, and a line for each where their files are looked at."""
    how_many = counted(-(-len(intervals) // runs.intervals), "run")
    heading = tag("h2", f"{counted(len(intervals), 'interval')} in about {how_many}")
    if not isinstance(subject.origin, Landed):
        said = "Each run computes what its inputs have learned by the end of its last day. What is computed stays."
        return tag("section", heading, tag("p", said)), joined([])
    if len(intervals) > MOST_LOOKED:
        said = f"Their files are not looked at: a page looks at {MOST_LOOKED} intervals at most."
        return tag("section", heading, tag("p", said, class_="quiet")), joined([])
    root, most = settings.landing(), runs.intervals
    expected = preview(subject.origin, subject.ingested, intervals, root, most=most, footers=MOST_FOOTERS)
    lines = [_expected(interval) for interval in expected.intervals[:MOST_LINES]]
    left = len(expected.intervals) - len(lines)
    more = [tag("p", f"and {left:,} more", class_="quiet")] if left else []
    days = tag("section", table(("interval", "landed", "files", "rows", ""), lines), *more)
    return tag("section", heading, tag("p", _in_words(expected))), days


def _expected(expected: Any) -> tuple[object, ...]:
    rows = "unknown" if expected.rows is None else f"{expected.rows:,}"
    return (
        interval_in_words(expected.interval),
        expected.landed,
        expected.files,
        rows,
        expected.problem or ("ingested" if expected.ingested else ""),
    )


def _in_words(expected: Preview) -> str:
    landed = {"landed": "have landed", "empty": "are empty", "not landed": "have not landed"}
    counts = [f"{count:,} {said}" for kind, said in landed.items() if (count := expected.count(kind))]  # type: ignore[arg-type]
    if unreadable := expected.count("unreadable"):
        counts.append(f"of {unreadable:,} the landing cannot be looked at from here")
    if before := sum(interval.ingested for interval in expected.intervals):
        counts.append(f"{before:,} were ingested before, and are read again only for files that changed")
    rows = "an unknown number of rows" if expected.rows is None else counted(expected.rows, "row")
    minutes = max(1, round(expected.seconds_in_airflow / 60))
    return f"{'; '.join(counts)}. {rows.capitalize()}, about {counted(minutes, 'minute')}."


def _start(subject: Subject, intervals: Sequence[Interval], runs: Runs, chosen: Range) -> Markup:
    """The button, with the request that its script sends; days that have a run already keep it."""
    bounds = [moment(interval.lower).isoformat() for interval in (intervals[0], intervals[-1])]
    request = {"dag_id": subject.name, "from_date": bounds[0], "to_date": bounds[1], "max_active_runs": runs.at_a_time}
    request |= {"run_backwards": False, "reprocess_behavior": "none", "dag_run_conf": {}}
    button = Start("Backfill", "id", "backfills", subject.name, up="../../..").button("Start the backfill", request)
    note = "Days that have a run keep it: clear that run to read them again."
    way = f"report{chosen.address}" if isinstance(subject.origin, Landed) else "calendar"
    report = tag("a", "What comes of it", href=way, id="report", hidden="hidden")
    line = tag("p", button, " ", report)
    return tag("section", line, *(unpause("") if runs.paused else []), tag("p", note, class_="quiet"))


def _not_you() -> Markup:
    return tag("p", "You may look at it, and not start it: that takes the permission to run the DAG.", class_="quiet")
