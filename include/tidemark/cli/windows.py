"""Windows: what a collection that is defined by windows says of each, and a picture of them."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemark.cli.command import Call, CollectionArgument, UsageError, register
from tidemark.cli.read import PANEL, FormatOption, KnownOption, LimitOption, Shape, WhereOption, conditions, show
from tidemark.model.instant import format_instant


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "windows", panel=PANEL)(windows)


def windows(
    call: Call,
    collection: CollectionArgument,
    time: KnownOption = None,
    open_too: Annotated[
        bool, typer.Option("--open", help="Also windows that have rows and are not there before they close.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw them into this file instead: .svg, .png or .pdf."),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", metavar="COLUMN", help="Draw each as high as this. Default: its first number."),
    ] = None,
    where: WhereOption = None,
    limit: LimitOption = None,
    shape: FormatOption = Shape.TABLE,
) -> None:
    """The windows of a collection that is defined by them: their rows, whether each is closed and final, how often its
    row was corrected, since when it is there.

    Example: tidemark windows departures_by_hour --where origin=EWR --plot ewr.svg
    """
    opened = call.opened(collection)
    answer = opened.windows(time, open_too, where=conditions(opened.state, where))
    known = f"as known at {format_instant(answer.time)}, version {opened.version}"
    if plot is None:
        if value is not None:
            raise UsageError("--value says how high windows are drawn; give --plot FILE too")
        about = {"collection": collection, "version": opened.version, "time": answer.time}
        about["time_text"] = format_instant(answer.time)
        show(call, answer, limit, shape, about, known, of="window")
        return
    count = answer.draw(plot, value)
    call.emit({"collection": collection, "plot": plot, "windows": count}, f"{plot}: {count:,} windows {known}")
