"""The latest row of each key at a time on a timeline, and for each row of a file: the point-in-time join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.read import (
    PANEL,
    CommittedOption,
    ExplainOption,
    FormatOption,
    HappenedOption,
    KnownOption,
    LimitOption,
    Shape,
    WhereOption,
    about_committed,
    check_shape,
    show,
    show_explanation,
)
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    from tidemark.api.opened import OpenCollection


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "latest-at", panel=PANEL)(latest_at)


def latest_at(
    call: Call,
    collection: CollectionArgument,
    on: Annotated[
        str,
        typer.Option("--on", metavar="TIMELINE", help="The timeline: a timestamp, date or int column of the value."),
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="The time on the timeline: the latest row up to it.")
    ] = None,
    at_file: Annotated[
        str | None,
        typer.Option(
            "--at-file",
            metavar="FILE",
            help="Answer each row of this file instead, .csv or .parquet: it has the key's columns, and the time.",
        ),
    ] = None,
    at_column: Annotated[
        str | None,
        typer.Option("--at-column", metavar="COLUMN", help="The file's column of times. Default: TIMELINE."),
    ] = None,
    known_at: Annotated[
        str | None,
        typer.Option(
            "--known-at", metavar="COLUMN", help="Answer each row with what was known at the time in this column."
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="DURATION", help="Look back no further: 30m, 7d, or a whole number."),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="For each column the latest value that is not null, with its time.")
    ] = False,
    ties: Annotated[
        list[str] | None,
        typer.Option(
            "--ties", metavar="COLUMN", help="Of rows at the same time take the greatest by this column; repeatable."
        ),
    ] = None,
    where: WhereOption = None,
    time: KnownOption = None,
    event_time: HappenedOption = None,
    committed: CommittedOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
    explain: ExplainOption = False,
) -> None:
    """The latest row of each key at a time on a timeline, or of each row of a file.

    Example: tidemark latest-at flights --on scheduled_at --at 2013-01-02T12:00:00Z --within 6h --limit 5
    """
    check_shape(call, shape)
    if (at is None) == (at_file is None):
        raise UsageError("give a time by --at, or a file of keys and times by --at-file")
    if at_file is None and (at_column or known_at):
        raise UsageError("--at-column and --known-at are columns of a file; give it by --at-file")
    opened = call.opened(collection)
    table = None if at_file is None else _table(opened, at_file, on, at_column, known_at)
    answer: Any = opened.latest_at(
        on,
        at,
        where,
        int(within) if within is not None and within.isdecimal() else within,
        each=each,
        ties=ties or (),
        time=time,
        event_time=event_time,
        at=table,
        at_column=at_column,
        known_at=known_at,
        committed=committed,
    )
    if explain:
        return show_explanation(call, answer)
    known = None if known_at else answer.time
    about = {
        "collection": collection,
        "version": opened.version,
        "on": on,
        "at": None if at is None else answer.at,
        "at_file": at_file,
        "time": known,
        "time_text": None if known is None else format_instant(known),
        **about_committed(committed),
    }
    asked = f"by {on} at {answer.at}" if at_file is None else f"of {at_file}, each with the latest by {on}"
    as_known = f"as known at {known_at if known is None else format_instant(known)}"
    show(call, answer, limit, shape, about, f"{asked}, {as_known}, version {opened.version}")


def _table(opened: OpenCollection, path: str, on: str, at_column: str | None, known_at: str | None) -> Any:
    """The table of keys and times in a file. What is in columns of CSV is read as what they are asked for."""
    from tidemark.api.timeline import timeline_of
    from tidemark.cli.table_file import read_table
    from tidemark.model.collection import ColumnType

    state = opened.state
    types = {column.name: column.type for column in state.collection.key}
    types[at_column or on] = timeline_of(state.collection, on).type
    if known_at is not None:
        types[known_at] = ColumnType.TIMESTAMP
    return read_table(path, types)
