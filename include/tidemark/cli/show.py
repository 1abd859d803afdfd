"""What a collection is, on one screen: columns, key, definition, frontiers, and some of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemark.cli import output
from tidemark.cli.command import Call, CollectionArgument, register
from tidemark.model.instant import format_instant

if TYPE_CHECKING:
    from tidemark.api.opened import OpenCollection
    from tidemark.model.collection import Collection

SHOWN_ROWS = 10


def add_to(app: typer.Typer) -> None:
    """Make the command of `app`."""
    register(app, "show", panel="Collections")(show)


def show(
    call: Call,
    collection: CollectionArgument,
    rows: Annotated[int, typer.Option("--rows", min=0, help="Most rows of the sample.")] = SHOWN_ROWS,
) -> None:
    """Show a collection: columns, key, definition, how far it is complete, and some rows.

    Example: tidemark show flights
    """
    opened = call.opened(collection)
    of, state = opened.state.collection, opened.state
    columns = list(_columns(of))
    definition = dict(_definition(of))
    names, sample = _sample(opened, rows)
    frontiers = {"complete_below": state.complete_below, "seal": state.seal, "since": state.since}
    document = {
        "collection": collection,
        "version": opened.version,
        "columns": [dict(zip(("name", "type", "of", "marks"), line, strict=True)) for line in columns],
        "definition": definition,
        **{name: value for name, time in frontiers.items() for name, value in _time(name, time)},
        "rows": [dict(zip(names, row, strict=True)) for row in sample],
    }
    shown: list[Any] = [
        f"{collection}, version {opened.version}",
        output.table(("column", "type", "of the", ""), columns),
        output.facts([*definition.items(), *_frontiers(frontiers)]),
    ]
    if sample:
        shown += ["", output.table(names, [tuple(map(output.shortened, row)) for row in sample])]
        shown.append(f"the first rows in order of the key; `tidemark as-of {collection}` has all")
    call.emit(document, *shown)


def _columns(of: Collection) -> Iterator[tuple[str, str, str, str]]:
    for part, columns in (("key", of.key), ("value", of.value)):
        for column in columns:
            marks = ["timeline"] if column.name in of.timelines else []
            marks += ["masked"] if column.name in of.masked else []
            yield column.name, str(column.type), part, ", ".join(marks)


def _definition(of: Collection) -> Iterator[tuple[str, str]]:
    if of.is_derived:
        derived = of.derived
        yield "computed from", ", ".join(derived.inputs)
        if derived.definition.select:
            yield "by", " ".join(derived.definition.select.split())
        if derived.definition.windows:
            windows = derived.definition.windows
            yield "by", f"windows on {windows.on}" + (f" for each {', '.join(windows.by)}" if windows.by else "")
        return
    source = of.landed.source
    yield "source", f"{source.path} ({source.format}, envelope {source.envelope})"
    yield "schedule", of.landed.schedule
    if of.landed.timezone != "UTC":
        yield "timezone", of.landed.timezone
    yield "time", of.landed.time or "arrival"
    if of.landed.event_time:
        yield "event time", of.landed.event_time


def _time(name: str, time: int) -> list[tuple[str, Any]]:
    return [(name, time), (f"{name}_text", format_instant(time))]


def _frontiers(times: dict[str, int]) -> Iterator[tuple[str, str]]:
    says = {
        "complete_below": "no row on time is missing",
        "seal": "what was learned is final",
        "since": "readable from",
    }
    for name, time in times.items():
        yield name.replace("_", " "), f"{format_instant(time)}  {says[name]}"


def _sample(opened: OpenCollection, rows: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Some rows as they are shown, without the values of masked columns."""
    from tidemark.arrow.rows.plain import plain_rows
    from tidemark.model.collection import MASKED

    if not opened.state.seal or not rows:
        return [], []
    found = opened.head(rows)
    hidden = opened.state.collection.unshown
    lines = [
        tuple(MASKED if name in hidden else value for name, value in zip(found.column_names, row, strict=True))
        for row in plain_rows(found)
    ]
    return found.column_names, lines
