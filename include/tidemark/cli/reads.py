"""Answers: the collection as of a time, and what changed between two. Read through Arrow, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.options import instant
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.model.arrangement import Arrangement

PANEL = "Answers"
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp", "_event_time", "diff")
NET_COLUMNS = ("_change_type", "diff")
"""Spark's columns of CHANGES, after those of the collection; `tidemark.arrow.read` says what they hold."""
SHOWN_ROWS = 50
"""Rows of a table for people unless they ask for more; JSON and CSV are for programs, give all, and stream it."""


class Shape(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True)
class _Asked:
    """Which rows, how many of them, and how they are printed."""

    conditions: dict[str, str]
    json: frozenset[str]
    limit: int | None
    shape: Shape


FormatOption = Annotated[Shape, typer.Option("--format", help="How rows are printed.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=0, help=f"Most rows; 0 is all. Default: {SHOWN_ROWS} in a table, else all.")
]
WhereOption = Annotated[
    list[str] | None, typer.Option("--where", metavar="COLUMN=VALUE", help="Only rows with this value; repeatable.")
]


def add_to(app: typer.Typer) -> None:
    """Make the reads commands of `app`."""
    register(app, "as-of", panel=PANEL)(as_of)
    register(app, "changes", panel=PANEL)(changes)


def as_of(
    call: Call,
    collection: CollectionArgument,
    time: Annotated[
        int | None,
        typer.Option("--time", parser=instant, metavar="TIME", help="As known at this time. Default: latest complete."),
    ] = None,
    event_time: Annotated[
        int | None,
        typer.Option("--event-time", parser=instant, metavar="TIME", help="What had happened by then. Default: all."),
    ] = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
) -> None:
    """What the collection held: as known at a time, as of an event time.

    Example: tidemark as-of flights --time 2013-01-03T12:00:00Z --where carrier=UA --limit 5
    """
    from tidemark.arrow import read
    from tidemark.jobs.rows import keys_within

    job = call.job(collection)
    head = job.log.load()
    asked = _asked(head.state, where, limit, shape)
    keys = keys_within(head.state.collection, asked.conditions)
    batches = read.as_of_batches(job.store, head.state, time=time, event_time=event_time, keys=keys)
    upto = head.state.seal - 1 if time is None else time
    about = {
        "collection": collection,
        "version": head.version,
        "time": upto,
        "time_text": format_instant(upto),
        "event_time": event_time,
        "event_time_text": None if event_time is None else format_instant(event_time),
    }
    happened = "" if event_time is None else f", as of {format_instant(event_time)}"
    names = [*(column.name for column in head.state.collection.columns), read.MULTIPLICITY]
    _show(call, asked, batches, names, about, f"as known at {format_instant(upto)}{happened}, version {head.version}")


def changes(
    call: Call,
    collection: CollectionArgument,
    after: Annotated[
        int | None,
        typer.Option("--after", parser=instant, metavar="TIME", help="Learned after this. Default: the beginning."),
    ] = None,
    upto: Annotated[
        int | None,
        typer.Option("--upto", parser=instant, metavar="TIME", help="Learned up to this. Default: latest complete."),
    ] = None,
    net: Annotated[bool, typer.Option("--net", help="The difference of both ends, not each change between.")] = False,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
) -> None:
    """What the collection learned between two times, in the columns of Spark's CHANGES.

    Example: tidemark changes flights --after 2013-01-01T23:59:59.999999Z --upto 2013-01-02T23:59:59.999999Z
    """
    from tidemark.arrow import read

    job = call.job(collection)
    head = job.log.load()
    asked = _asked(head.state, where, limit, shape)
    start = -1 if after is None else after
    end = head.state.seal - 1 if upto is None else upto
    batches = read.changes_batches(job.store, head.state, after=start, upto=upto, net=net)
    about = {
        "collection": collection,
        "version": head.version,
        "after": start,
        "after_text": None if after is None else format_instant(after),
        "upto": end,
        "upto_text": format_instant(end),
        "net": net,
    }
    since = "the beginning" if after is None else format_instant(after)
    said = f"learned after {since} up to {format_instant(end)}, version {head.version}"
    columns = [column.name for column in head.state.collection.columns]
    _show(call, asked, batches, [*columns, *(NET_COLUMNS if net else CHANGE_COLUMNS)], about, said)


def _asked(state: Arrangement, where: Sequence[str] | None, limit: int | None, shape: Shape) -> _Asked:
    from tidemark.jobs.rows import json_columns

    return _Asked(_conditions(state, where), json_columns(state.collection), limit, shape)


def _conditions(state: Arrangement, where: Sequence[str] | None) -> dict[str, str]:
    """COLUMN=VALUE pairs by column. UsageError for a column the collection does not have."""
    conditions = {}
    names = [column.name for column in state.collection.columns]
    for condition in where or ():
        name, separator, value = condition.partition("=")
        if not separator:
            raise UsageError(f"--where {condition!r}: write COLUMN=VALUE")
        if name not in names:
            raise UsageError(f"--where {condition!r}: there is no column {name}; there are {', '.join(names)}")
        conditions[name] = value
    return conditions


def _show(
    call: Call, asked: _Asked, batches: Iterable[pa.RecordBatch], names: list[str], about: dict[str, Any], said: str
) -> None:
    from tidemark.jobs.rows import Matching

    as_json = call.settings.as_json or asked.shape is Shape.JSON
    as_csv = asked.shape is Shape.CSV and not as_json
    most = asked.limit if asked.limit is not None else 0 if as_json or as_csv else SHOWN_ROWS
    found = Matching(batches, asked.conditions, most, asked.json)
    if as_csv:
        rows = islice(found, most or None)
        first = list(islice(rows, 1))  # what is refused is refused before anything is printed
        output.print_csv(chain([names], first, rows), call.out)
        return
    if as_json:
        named = (dict(zip(names, row, strict=True)) for row in found)
        output.print_json_rows(about, named, lambda: found.count, call.out)
        return
    held = [tuple(map(output.shortened, row)) for row in found]
    left = found.count - len(held)
    more = f"; {left:,} more, --limit 0 shows all" if left else ""
    call.emit({}, output.table(names, held), f"{output.counted(found.count, 'row')} {said}{more}")
