"""Backfill: a range of days through all steps and gates; what it would read before, and what came of it after."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.cli.options import DateOption, FromOption, LowerOption, ToOption, UpperOption, chosen
from tidemark.cli.steps import PANEL
from tidemark.errors import TidemarkError
from tidemark.jobs.steps.declared import COLUMNS
from tidemark.model.interval import INTERVALS_OF_RUN, MOST_INTERVALS_OF_RUN, Interval

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidemark.jobs.job import Job
    from tidemark.jobs.queries.backfill_preview import Preview

NOTHING = {"outcome": "nothing to do", "steps": 0, "waits_for": None, "not_over": 0}
"""What a backfill came to whose intervals were all complete before: `--again` reads those whose files changed."""
UNREAD = {"left": "cannot be taken as declared today", "gone": "gone from the landing"}
"""What is said of files that were to be read again for columns."""
PreviewOption = Annotated[bool, typer.Option("--preview", help="Say what it would read, and do nothing.")]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Also run intervals that are complete: their files may have changed.")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(COLUMNS.option, metavar=COLUMNS.metavar, help="With --again: read all files again for these."),
]
NotOverOption = Annotated[
    bool, typer.Option("--not-over", help="Also take intervals that are not over: what has landed is all of them.")
]
IntervalsOption = Annotated[
    int,
    typer.Option(
        "--intervals",
        min=1,
        max=MOST_INTERVALS_OF_RUN,
        help="How many intervals are ingested before they are sealed together.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "backfill", landing=True, panel=PANEL)(backfill)


def backfill(
    call: Call,
    collection: CollectionArgument,
    first: FromOption = None,
    last: ToOption = None,
    date: DateOption = None,
    lower: LowerOption = None,
    upper: UpperOption = None,
    preview: PreviewOption = False,
    again: AgainOption = False,
    columns: ColumnsOption = None,
    not_over: NotOverOption = False,
    intervals: IntervalsOption = INTERVALS_OF_RUN,
    spark: SparkOption = None,
) -> None:
    """Run a range of days through all steps and gates, one commit per day, and report the result of each.

    A bad day stops no other: the report names it, and the same command continues once its files are corrected. For a
    column that was declared after days were read, --again --columns reads their files again, changed or not.

    Example: tidemark backfill flights --from 2013-01-01 --to 2013-12-31 --preview
    """
    from tidemark.plan.ingest import check_within, numbers_of

    if columns is not None and not again:
        raise UsageError("--columns reads days that are complete again; say --again, too")
    job = call.job(collection, spark=spark, step="advance")
    state = job.log.load().state
    _ = state.collection.landed  # InvalidUsage of a derived one, which says what to do instead
    asked = chosen(state.collection, lower, upper, date, first, last)
    if not asked:
        raise UsageError("which days? give --from 2013-01-01 --to 2013-12-31, or --lower and --upper")
    check_within(state.collection, Interval(asked[0].lower, asked[-1].upper))
    wanted = COLUMNS.value(columns)
    numbers_of(state.collection, wanted or ())
    # What was ingested and is not complete is looked at again: its batch may have been taken out, and waits for a file.
    complete = state.complete_below + state.collection.landed.grace
    some = asked if again else [one for one in asked if one.upper > complete]
    if preview:
        return _show_preview(call, job, asked, some, intervals)
    failed: TidemarkError | None = None
    result: dict[str, Any] = {"outcome": "failed"}
    try:
        result = _backfilled(call, job, some, intervals, wanted, not_over=not_over) if some else NOTHING
    except TidemarkError as error:
        failed = error
    _show_report(call, job, asked, result, failed)


def _backfilled(
    call: Call, job: Job, some: list[Interval], most: int, columns: tuple[str, ...] | None, *, not_over: bool
) -> dict[str, Any]:
    from tidemark.jobs.backfill import backfill as job_of

    with output.working(f"backfill {call.collection}", len(some)) as advance:
        return job_of(
            job,
            some,
            call.landing,
            most=most,
            columns=columns,
            not_over=not_over,
            begin=lambda done: advance(f"backfill {call.collection} {some[done]}", done, len(some)),
        )


def _show_preview(call: Call, job: Job, asked: list[Interval], some: list[Interval], most: int) -> None:
    from tidemark.jobs.queries.backfill_preview import preview as question

    with output.working(f"looking for the files of {call.collection}"):
        state = job.log.load().state
        found = question(state.collection.landed, state.ingested, some, call.landing, most=most)
    document = {
        **{"collection": call.collection, "asked": len(asked), "complete_before": len(asked) - len(some)},
        **{"runs": found.runs, "seconds": round(found.seconds)},
        **{"seconds_in_airflow": round(found.seconds_in_airflow), "rows": found.rows},
        "intervals": [one.as_dict() for one in found.intervals],
    }
    call.emit(document, *_preview_lines(found, len(asked) - len(some)))


def _preview_lines(found: Preview, before: int) -> list[RenderableType]:
    days = output.table(
        ("interval", "landed", "files", "bytes", "rows", "problem"),
        [
            (str(one.interval), one.landed, one.files, one.bytes, "" if one.rows is None else one.rows, one.problem)
            for one in found.intervals
        ],
    )
    counts = {
        "landed": found.count("landed"),
        "without files": found.count("empty"),
        "not landed": found.count("not landed"),
    }
    counts |= {"that cannot be looked at": found.count("unreadable"), "complete and left out": before}
    said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "none"
    rows = "rows unknown" if found.rows is None else output.counted(found.rows, "row")
    here, there = (max(1, round(seconds / 60)) for seconds in (found.seconds, found.seconds_in_airflow))
    return [
        days,
        f"{output.counted(len(found.intervals), 'interval')} in {output.counted(found.runs, 'run')}: {said}",
        f"{rows}; about {output.counted(here, 'minute')} here, {there:,} as runs of Airflow",
    ]


def _show_report(
    call: Call, job: Job, asked: list[Interval], result: dict[str, Any], failed: TidemarkError | None
) -> None:
    from tidemark.jobs.queries.blocked import blocked_by, found_wrong
    from tidemark.jobs.queries.intervals import interval_reports, summed_up
    from tidemark.model.change import passed_over_words
    from tidemark.model.instant import format_instant

    state = job.log.load().state
    reports = list(interval_reports(job.store, state, asked, time.time_ns() // 1000))
    call.done.extend(one.as_dict() for one in reports)
    names = ("files", "rows", "late", "dead", "left_out", "refused", "corrected", "written")
    table = output.table(
        ("interval", "status", *(name.replace("_", " ") for name in names)),
        [(str(one.interval), one.status, *(getattr(one, name) for name in names)) for one in reports],
    )
    beside = [
        f"{report.interval} {passed_over_words(report.passed_over, report.files_passed_over)}"
        for report in reports
        if report.passed_over
    ]
    beside += [
        f"{report.interval}: {output.counted(report.duplicates, 'file')} with the bytes of another"
        for report in reports
        if report.duplicates
    ]
    if failed is not None:
        if not call.settings.as_json:
            call.emit({}, table, *beside)
        raise failed
    now, wrong = time.time_ns() // 1000, found_wrong(job.store, state)
    waits = f"; {output.counted(result['not_over'], 'interval')} not over" if result["not_over"] else ""
    complete = format_instant(state.complete_below)
    document = {"collection": call.collection, **result, "version": job.log.newest_version()}
    document |= {"complete_below": state.complete_below, "complete_below_text": complete, "intervals": call.done}
    unread = [f"{output.counted(count, 'file')} {said}" for name, said in UNREAD.items() if (count := result.get(name))]
    stays = [f"{' and '.join(unread)}: rows of these stay as they are"] if unread else []
    said = f"{summed_up(reports, blocked_by(state, now, wrong))}; complete below {complete}{waits}"
    call.emit(document, table, *beside, said, *stays)
