"""Answers: the collection as of a time, and what changed between two. Read through Arrow, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.options import instant
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.api.answer import Answer

PANEL = "Answers"
SHOWN_ROWS = 50
"""Rows of a table for people unless they ask for more; JSON and CSV are for programs, give all, and stream it."""


class Shape(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Shape, typer.Option("--format", help="How rows are printed.")]
KnownOption = Annotated[
    int | None, typer.Option("--time", parser=instant, metavar="TIME", help="As known at this time. Default: now.")
]
CommittedOption = Annotated[
    int | None,
    typer.Option(
        "--committed", parser=instant, metavar="TIME", help="As was known at this time of the wall clock. Not --time."
    ),
]
HappenedOption = Annotated[
    int | None,
    typer.Option("--event-time", parser=instant, metavar="TIME", help="What had happened by then. Default: all."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=0, help=f"Most rows; 0 is all. Default: {SHOWN_ROWS} in a table, else all.")
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Say what the read opens and why not more, instead of the rows.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="COLUMN=VALUE",
        help="Only rows with this value, or that meet a condition such as \"delay_min > 30 AND status != 'arrived'\"; "
        "repeatable.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Make the reads commands of `app`."""
    register(app, "as-of", panel=PANEL)(as_of)
    register(app, "range", panel=PANEL)(in_range)
    register(app, "changes", panel=PANEL)(changes)


def as_of(
    call: Call,
    collection: CollectionArgument,
    time: KnownOption = None,
    event_time: HappenedOption = None,
    committed: CommittedOption = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
    explain: ExplainOption = False,
) -> None:
    """Show the rows of a collection, as known at a time and as of an event time.

    Example: tidemark as-of flights --time 2013-01-03T12:00:00Z --where carrier=UA --limit 5
    """
    check_shape(call, shape)
    opened = call.opened(collection)
    answer = opened.as_of(time, event_time, where=where, committed=committed)
    if explain:
        return show_explanation(call, answer)
    about = {
        "collection": collection,
        "version": opened.version,
        "time": answer.time,
        "time_text": format_instant(answer.time),
        "event_time": event_time,
        "event_time_text": None if event_time is None else format_instant(event_time),
        **about_committed(committed),
    }
    happened = "" if event_time is None else f", as of {format_instant(event_time)}"
    said = f"{known_at(answer.time, committed)}{happened}, version {opened.version}"
    show(call, answer, limit, shape, about, said)


def in_range(
    call: Call,
    collection: CollectionArgument,
    timeline: Annotated[
        str, typer.Option("--on", metavar="COLUMN", help="The timeline: a column of whole numbers, dates or times.")
    ],
    lower: Annotated[
        str | None, typer.Option("--from", metavar="VALUE", help="The first value, included. Default: no end.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option("--to", metavar="VALUE", help="The last value, included. Default: no end.")
    ] = None,
    time: KnownOption = None,
    event_time: HappenedOption = None,
    committed: CommittedOption = None,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Sort by the timeline, not by key. Keeps the whole answer in memory.")
    ] = False,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
    explain: ExplainOption = False,
) -> None:
    """Show the rows with a value of a column between two: a range of a timeline.

    Example: tidemark range flights --on scheduled_at --from 2013-01-02T06:00:00Z --to 2013-01-02T06:59:59Z --explain
    """
    check_shape(call, shape)
    opened = call.opened(collection)
    answer = opened.range(
        timeline, lower, upper, where, in_order=in_order, time=time, event_time=event_time, committed=committed
    )
    if explain:
        return show_explanation(call, answer)
    about = {
        "collection": collection,
        "version": opened.version,
        "on": timeline,
        "from": lower,
        "to": upper,
        "time": answer.time,
        "time_text": format_instant(answer.time),
        "event_time": event_time,
        "event_time_text": None if event_time is None else format_instant(event_time),
        **about_committed(committed),
    }
    ends = "".join(f" {word} {end}" for word, end in (("from", lower), ("to", upper)) if end is not None)
    said = f"with {timeline}{ends or ' of any value'}, {known_at(answer.time, committed)}, version {opened.version}"
    show(call, answer, limit, shape, about, said)


def changes(
    call: Call,
    collection: CollectionArgument,
    after: Annotated[
        int | None,
        typer.Option("--after", parser=instant, metavar="TIME", help="Learned after this. Default: the beginning."),
    ] = None,
    upto: Annotated[
        int | None,
        typer.Option("--upto", parser=instant, metavar="TIME", help="Learned up to this. Default: now."),
    ] = None,
    committed_after: Annotated[
        int | None,
        typer.Option(
            "--committed-after", parser=instant, metavar="TIME", help="Learned after this time of the wall clock."
        ),
    ] = None,
    committed_upto: Annotated[
        int | None,
        typer.Option(
            "--committed-upto", parser=instant, metavar="TIME", help="Learned up to this time of the wall clock."
        ),
    ] = None,
    net: Annotated[bool, typer.Option("--net", help="The difference of both ends, not each change between.")] = False,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
    explain: ExplainOption = False,
) -> None:
    """Show what a collection learned between two times, in the columns of Spark's CHANGES.

    Example: tidemark changes flights --after 2013-01-01T23:59:59.999999Z --upto 2013-01-02T23:59:59.999999Z
    """
    check_shape(call, shape)
    opened = call.opened(collection)
    answer = opened.changes(
        after, upto, net, where=where, committed_after=committed_after, committed_upto=committed_upto
    )
    after = answer.after
    if explain:
        return show_explanation(call, answer)
    about = {
        "collection": collection,
        "version": opened.version,
        "after": -1 if after is None else after,
        "after_text": None if after is None else format_instant(after),
        "upto": answer.upto,
        "upto_text": format_instant(answer.upto),
        "net": net,
    }
    since = "the beginning" if after is None else format_instant(after)
    said = f"learned after {since} up to {format_instant(answer.upto)}, version {opened.version}"
    show(call, answer, limit, shape, about, said)


def about_committed(committed: int | None) -> dict[str, Any]:
    """The option --committed, for a document."""
    return {"committed": committed, "committed_text": None if committed is None else format_instant(committed)}


def known_at(time: int, committed: int | None) -> str:
    """As known when, for people."""
    clock = "" if committed is None else f", the newest at {format_instant(committed)} by the clock"
    return f"as known at {format_instant(time)}{clock}"


def show_explanation(call: Call, answer: Answer) -> None:
    """What an answer opens, for people or as JSON."""
    explanation = answer.explain()
    call.emit(asdict(explanation), str(explanation))


def check_shape(call: Call, shape: Shape) -> None:
    """Raise UsageError where rows are asked for in two shapes."""
    if call.settings.as_json and shape is Shape.CSV:
        raise UsageError("--json and --format csv are two shapes; give one of them")


class Shown(Protocol):
    """What is shown: batches of rows, and their columns."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[Any]: ...


def show(
    call: Call,
    answer: Shown,
    limit: int | None,
    shape: Shape,
    about: dict[str, Any],
    said: str,
    *,
    of: str = "row",
) -> None:
    """The rows of an answer, in the shape asked for; `about` and `said` say which answer it is, `of` what rows are."""
    from tidemark.jobs.queries.rows import Rows

    names = answer.schema.names
    as_json = call.settings.as_json or shape is Shape.JSON
    as_csv = shape is Shape.CSV and not as_json
    most = limit if limit is not None else 0 if as_json or as_csv else SHOWN_ROWS
    found = Rows(answer, most)
    if as_csv:
        rows = islice(found, most or None)
        first = list(islice(rows, 1))  # what is refused is refused before anything is printed
        output.print_csv(chain([names], first, rows), call.out)
        return
    if as_json:
        named = (dict(zip(names, row, strict=True)) for row in found)
        output.print_json_rows(about, named, lambda: found.count, call.out)
        return
    shown = [tuple(map(output.shortened, row)) for row in found]
    left = found.count - len(shown)
    more = f"; {left:,} more, --limit 0 shows all" if left else ""
    call.emit({}, output.table(names, shown), f"{output.counted(found.count, of)} {said}{more}")
