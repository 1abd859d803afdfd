"""The calendar of a collection: a cell for each interval of its schedule, and the page of one interval.

A row of cells is a month of days or longer intervals, or a day of shorter ones. Both pages are made of the state and
the ledger; no row of data is read, and what one chooses is a link (docs/decisions/0059).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import urlencode

from tidemark.airflow.web.markup import Markup, joined, tag, with_commands
from tidemark.airflow.web.page import Page, document, table, way_to_status
from tidemark.airflow.web.range import Range
from tidemark.config.schedule import Schedule
from tidemark.errors import listed
from tidemark.jobs.queries.derived_days import DayReport
from tidemark.jobs.queries.intervals import IntervalReport
from tidemark.model.change import LEFT_OUT, passed_over_words
from tidemark.model.collection import Landed
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.model.local_time import clock, format_local
from tidemark.model.wording import counted
from tidemark.plan.day import WORDS, DayState, interval_in_words

MOST_CELLS = 750
"""Cells of one page: two years of days, a month of hours."""
DAY = 86_400_000_000
_MEASURED = 8
"""Intervals whose lengths decide how long a page is."""


@dataclass(frozen=True)
class Shown:
    """The stretch of intervals that a page shows, oldest first, and whether there are older and newer ones."""

    intervals: Sequence[Interval]
    older: bool
    newer: bool


def shown(landed: Landed, now: int, upto: int | None = None) -> Shown:
    """The last intervals of a collection that begin before `upto` (µs; None: before `now`), MOST_CELLS at most, and are
    not to come."""
    schedule = Schedule.of(landed)
    end = min(now, MAX_TIME if landed.end is None else landed.end)
    upper = end if upto is None else min(upto, end)
    if upper <= landed.start:
        return Shown([], older=False, newer=upper < end)
    earlier = last = schedule.latest(upper)
    for _ in range(_MEASURED):
        earlier = schedule.latest(earlier - 1)
    # Intervals may differ in length: these few decide how far back a page reaches, and a page may have fewer cells.
    lower = max(landed.start, schedule.latest(max(0, last - (last - earlier) * MOST_CELLS // _MEASURED)))
    intervals = schedule.beginning(lower, upper)[-MOST_CELLS:]
    return Shown(intervals, older=intervals[0].lower > landed.start, newer=upper < end)


@dataclass(frozen=True)
class Cell:
    """An interval as the calendar shows it: the classes of its cell, and its state in one line."""

    interval: Interval
    marks: Sequence[str]
    words: str


def cell_of(report: IntervalReport) -> Cell:
    """The cell of an interval of a collection that lands."""
    return Cell(report.interval, list(_marks(report)), in_words(report))


def cell_of_day(report: DayReport) -> Cell:
    """The cell of a day of a derived collection."""
    mark = "complete" if report.complete else "ingested" if report.runs else "missing"
    return Cell(report.interval, [mark], day_in_words(report))


def calendar_page(name: str, extent: Shown, cells: Sequence[Cell], legend: Mapping[str, str]) -> Page:
    """The page of some intervals, with a cell for each; the `legend` says what their classes mean."""
    ways = way_to_status(name, tag("a", "backfill", href="backfill"), *_ways(extent))
    rows = [part for label, cells in _rows(cells) for part in (tag("span", label, class_="quiet"), cells)]
    nothing = tag("p", "No interval of it is over yet.")
    body = tag("div", *rows, class_="calendar") if rows else nothing
    heading = tag("h1", name, " ", tag("span", "by interval", class_="quiet"))
    return document(f"{name}, by interval", heading, ways, tag("section", _legend(legend), body), linked=True)


def _ways(extent: Shown) -> Iterator[Markup]:
    if extent.older:
        yield tag("a", "earlier", href="?" + urlencode({"upto": extent.intervals[0].lower}))
    if extent.newer:
        yield tag("a", "the latest", href="?")


def _rows(cells: Sequence[Cell]) -> Iterator[tuple[str, Markup]]:
    """Labels, and the cells beside them."""
    if not cells:
        return
    shortest = min(cell.interval.upper - cell.interval.lower for cell in cells)
    # A day on which clocks change may have an hour or two less.
    row, label = ("%Y-%m", "%d") if shortest * 2 > DAY else ("%Y-%m-%d", "%H:%M")
    for said, group in groupby(cells, key=lambda cell: _clock(cell.interval).strftime(row)):
        yield said, tag("div", *(_link(cell, label) for cell in group), class_="cells")


def _link(cell: Cell, label: str) -> Markup:
    said = _clock(cell.interval).strftime(label)
    return tag(
        "a", said, href=f"intervals/{cell.interval.lower}", class_=" ".join(["cell", *cell.marks]), title=cell.words
    )


def _marks(report: IntervalReport) -> Iterator[str]:
    yield "-".join(report.status.split())
    if report.day.blocks and report.status not in (DayState.FAILED, DayState.REFUSED):
        yield "hole"
    if report.refused and report.status.is_read:
        yield "refused"
    if report.late or report.dead:
        yield "late"
    if report.corrected:
        yield "corrected"
    if report.passed_over:
        yield "beside"


def in_words(report: IntervalReport) -> str:
    """The state of an interval, in one line."""
    said = [report.day.words]
    if report.files:
        said.append(f"{counted(report.rows, 'row')} of {counted(report.files, 'file')}")
    counts = {"late, applied": report.late, "late, kept as dead letters": report.dead, LEFT_OUT: report.left_out}
    said += [f"{count:,} {what}" for what, count in counts.items() if count]
    if report.refused and report.status is not DayState.REFUSED:
        said.append(f"{counted(report.refused, 'file')} refused")
    if report.accepted:
        said.append("accepted although expectations failed")
    if report.duplicates:
        said.append(f"{counted(report.duplicates, 'file')} with the bytes of another")
    if report.passed_over:
        said.append(passed_over_words(report.passed_over, report.files_passed_over))
    if report.corrected:
        said.append(f"{counted(report.corrected, 'file')} corrected by {counted(report.written, 'row')}")
    if report.taken_out:
        said.append(f"{counted(report.taken_out, 'batch', 'batches')} in quarantine")
    return f"{report.day.name}: {', '.join(said)}"


def _clock(interval: Interval) -> datetime:
    """What clocks show where an interval begins."""
    return clock(interval.lower, interval.zone)


def day_in_words(report: DayReport) -> str:
    """What a derived collection learned on a day, in one line."""
    how_far = "complete" if report.complete else "begun" if report.runs else "nothing of it is there"
    changed = f"{report.added:,} rows added and {report.retracted:,} retracted by {counted(report.runs, 'run')}"
    return f"{interval_in_words(report.interval)}: {how_far}, {changed if report.runs else 'nothing changed'}"


LEGEND = {
    **{"-".join(state.split()): WORDS[state] for state in DayState if state is not DayState.LANDED},
    "missing hole": "later ones wait for it",
    "complete refused": "files refused",
    "complete late": "has late rows",
    "complete corrected": "corrected since",
    "complete beside": "files passed over",
}
LEGEND_OF_DERIVED = {
    "complete": "complete",
    "ingested": "begun: some of it, or a correction alone",
    "missing": "nothing of it is there",
}


def _legend(kinds: Mapping[str, str]) -> Markup:
    cells = (tag("span", tag("span", "1", class_=f"cell {kind}"), " ", said) for kind, said in kinds.items())
    return tag("div", *cells, class_="legend")


@dataclass(frozen=True)
class Run:
    """A run of Airflow about an interval: its id, its state, and what it is about."""

    run_id: str
    state: str
    about: str


@dataclass(frozen=True)
class About:
    """What is known of an interval beside its own figures: the versions it brought, newest first, and the runs about
    it. `rows`: whether who looks may see rows. `cuts` is what is said of all that was read before its end."""

    changes: Sequence[tuple[str, str, str]]
    runs: Sequence[Run]
    rows: bool
    cuts: str = ""


def interval_page(
    name: str,
    report: IntervalReport,
    about: About,
    *,
    files: Sequence[tuple[str, str, int, int, str]] | None,
    late: Sequence[Markup] = (),
) -> Page:
    """The page of one interval: its state and what to do, its files (None: not for who may not read logs), and what is
    said of its late rows."""
    bounds = [format_local(time, report.interval.zone) for time in (report.interval.lower, report.interval.upper)]
    figures: list[tuple[str, object]] = [("files", report.files), ("rows", report.rows), ("late, applied", report.late)]
    figures += [
        ("late, dead letters", report.dead),
        (with_commands(LEFT_OUT), report.left_out),
        ("files refused", report.refused),
        ("files passed over", report.files_passed_over),
        ("files with the bytes of another", report.duplicates),
        ("files corrected", report.corrected),
    ]
    figures += [("rows written by corrections", report.written)]
    figures += [("read before its end", about.cuts)] if about.cuts else []
    content = [
        tag("section", tag("h2", in_words(report)), *map(_advice, _to_do(name, report, bounds))),
        tag("section", tag("h2", "What came"), table(("", ""), figures)),
    ]
    if files is None:
        content.append(
            tag("p", "Files and reasons are shown to who may read the logs of the DAG's tasks.", class_="quiet")
        )
    elif files:
        content.append(tag("section", tag("h2", "Files"), table(("file", "", "rows", "late", "why"), files)))
    return _page(name, report.interval, [*content, *late], about)


def day_page(name: str, report: DayReport, about: About) -> Page:
    """The page of one day of a derived collection."""
    figures = [("runs", report.runs), ("rows added", report.added), ("rows retracted", report.retracted)]
    content = [
        tag("section", tag("h2", day_in_words(report))),
        tag("section", tag("h2", "What changed"), table(("", ""), figures)),
    ]
    return _page(name, report.interval, content, about)


def _page(name: str, interval: Interval, content: Sequence[Markup], about: About) -> Page:
    said = interval_in_words(interval)
    ways: list[object] = [tag("a", "all intervals", href="../calendar")]
    ways += [" ", tag("a", "rows", href=f"{interval.lower}/rows")] if about.rows else []
    day = _clock(interval).date()
    ways += [" ", tag("a", "backfill", href=f"../backfill{Range(day, day).address}")]
    page = [tag("h1", name, " ", tag("span", said, class_="quiet")), tag("p", *ways, class_="quiet"), *content]
    if about.changes:
        page.append(tag("section", tag("h2", "What it brought"), table(("version", "when", "what"), about.changes)))
    lines = [(tag("code", run.run_id), run.state, run.about) for run in about.runs]
    nothing = tag("p", "No run of Airflow is about it.", class_="quiet")
    page.append(tag("section", tag("h2", "Runs"), table(("run", "state", "about"), lines) if lines else nothing))
    return document(f"{name}, {said}", joined(page), linked=True)


def _advice(said: str) -> Markup:
    return tag("p", with_commands(said))


def _to_do(name: str, report: IntervalReport, bounds: Sequence[str]) -> Iterator[str]:
    """What may be done about an interval, most pressing first; commands between backticks."""
    span = f"--lower {bounds[0]} --upper {bounds[1]}"
    if report.status is DayState.REFUSED or report.refused:
        yield f"Mend what was refused, then clear its run, or say `tidemark backfill {name} {span} --again`."
    elif report.status in (DayState.MISSING, DayState.EXPECTED, DayState.LANDED):
        yield f"Backfill it: Trigger, Backfill in Airflow, or `tidemark backfill {name} {span}`."
    if report.status is DayState.FAILED:
        yield (
            "The gate asks what to do, on the tab Required Actions of the DAG; where nobody answered, its run is red, "
            f"and the Details of that show the rows. `tidemark gate {name} unsealed` judges it again."
        )
    if report.status is DayState.WAITING:
        yield (
            "An earlier interval is missing: backfill that, and its run seals this one, too. "
            f"`tidemark status {name}` names it."
        )
    if report.status is DayState.INGESTED:
        yield (
            "Its run seals it, once what comes before it is complete: clear the run if that is red. "
            f"`tidemark status {name}` says what it waits for."
        )
    if report.passed_over:
        names = listed(report.passed_over)
        yield f"Files beside its own that `source.path` does not match: {names}. Rename them, or move them away."
    if report.late or report.dead:
        yield f"`tidemark late {name} {span}` lists its late rows, each with why."
    if report.dead:
        yield f"`tidemark late replay {name} {span}` applies its dead letters after all."
