"""Windows: what a collection that is defined by windows says of each, and a picture of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tidemark.cli.command import Call, CollectionArgument, SparkOption, UsageError, register
from tidemark.cli.read import (
    PANEL,
    CommittedOption,
    ExplainOption,
    FormatOption,
    KnownOption,
    LimitOption,
    Shape,
    WhereOption,
    about_committed,
    check_shape,
    known_at,
    show,
    show_explanation,
)
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant
from tidemark.model.window.windows import Late

_COUNTED = ", and counted in the next window where late for all"


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "windows", panel=PANEL)(windows)


def windows(
    call: Call,
    collection: CollectionArgument,
    time: KnownOption = None,
    committed: CommittedOption = None,
    open_too: Annotated[bool, typer.Option("--open", help="Also open windows that have rows.")] = False,
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            help="Also figures of the input in each window: rows, bytes, arrivals, late rows. Starts Spark.",
        ),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw them into this file instead: .svg, .png or .pdf."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="COLUMN", help="The column that sets the height. Default: the first number."),
    ] = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
    spark: SparkOption = None,
    explain: ExplainOption = False,
) -> None:
    """Show the windows of a collection: their rows, whether each is closed and final, how often it was corrected, and
    since when it exists.

    Example: tidemark windows departures_by_hour --where origin=EWR --plot ewr.svg
    """
    from tidemark.api.windowed import late_by

    if statistics and plot is not None:
        raise UsageError("--plot does not draw statistics; leave --statistics out")
    if plot is not None and (limit is not None or shape is not Shape.TABLE):
        raise UsageError("--plot draws all of them; leave --limit and --format out, and draw some by --where")
    check_shape(call, shape)
    opened = call.opened(collection)
    answer = opened.windows(time, open_too, where=where, committed=committed)
    if explain:
        if plot is not None or statistics:
            raise UsageError("--explain says what is opened of the windows; leave --plot and --statistics out")
        return show_explanation(call, answer)
    known = f"{known_at(answer.time, committed)}, version {opened.version}"
    if plot is None:
        if value is not None:
            raise UsageError("--value says how high windows are drawn; give --plot FILE too")
        about = {"collection": collection, "version": opened.version, "time": answer.time}
        about |= {"time_text": format_instant(answer.time), **about_committed(committed)}
        if answer.windows.counts_late_for is not None and (late := late_by(opened.state, answer.time)):
            about["late"] = asdict(late)
            known = f"{known}; {late.words}{_COUNTED if answer.windows.late is Late.NEXT_WINDOW else ''}"
        chosen = answer.with_statistics(lambda: _session(call, collection, spark)) if statistics else answer
        show(call, chosen, limit, shape, about, known, of="window")
        return
    count = answer.draw(plot, value)
    call.emit({"collection": collection, "plot": plot, "windows": count}, f"{plot}: {count:,} windows {known}")


def _session(call: Call, collection: str, spark: str | None) -> Any:
    """The Spark session that reads inputs."""
    runner = call.job(collection, spark=spark, step="windows").runner()
    found = getattr(runner, "spark", None)
    if found is None:
        raise InvalidUsage("statistics of windows are read by Spark, and this run has none")
    return found
