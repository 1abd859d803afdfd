"""Options by type: times, days, data intervals."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemark.errors import InvalidUsage
from tidemark.model.instant import parse_duration, parse_instant
from tidemark.model.interval import Interval
from tidemark.model.local_time import format_local, parse_local

if TYPE_CHECKING:
    from tidemark.model.collection import Collection


def instant(text: str) -> int:
    """A time as people write it, in microseconds."""
    try:
        return parse_instant(text)
    except InvalidUsage as error:
        raise typer.BadParameter(str(error)) from None


def boundary(text: str) -> str:
    """As `instant`, but as it was written: a date without a time is local where a collection declares a timezone."""
    instant(text)
    return text


def duration(text: str) -> int:
    """How long, as people write it, in microseconds."""
    try:
        return parse_duration(text)
    except InvalidUsage as error:
        raise typer.BadParameter(str(error)) from None


def day(text: str) -> str:
    """A day as people write it."""
    try:
        return datetime.strptime(f"{text} +0000", "%Y-%m-%d %z").strftime("%Y-%m-%d")
    except ValueError:
        raise typer.BadParameter(f"not a day: {text!r}; write 2013-01-02") from None


LowerOption = Annotated[
    str | None, typer.Option("--lower", parser=boundary, metavar="TIME", help="Start of the data interval.")
]
UpperOption = Annotated[
    str | None, typer.Option("--upper", parser=boundary, metavar="TIME", help="End of the data interval, exclusive.")
]
DateOption = Annotated[
    str | None,
    typer.Option("--date", parser=day, metavar="DAY", help="The intervals of the schedule that start on this day."),
]
FromOption = Annotated[
    str | None, typer.Option("--from", parser=day, metavar="DAY", help="First day of a range, with --to.")
]
ToOption = Annotated[
    str | None, typer.Option("--to", parser=day, metavar="DAY", help="Last day of a range, included, with --from.")
]


def chosen(
    collection: Collection, lower: str | None, upper: str | None, date: str | None, first: str | None, last: str | None
) -> list[Interval]:
    """The intervals of the collection's schedule that the options name, in order; none if no option was given.

    UsageError if the options do not fit together, InvalidUsage if --lower or --upper is between two intervals.
    """
    from tidemark.config.schedule import Schedule

    some = within(collection, lower, upper, date, first, last)
    return Schedule.of(collection.landed).split(some[0]) if lower is not None else some


def within(
    collection: Collection, lower: str | None, upper: str | None, date: str | None, first: str | None, last: str | None
) -> list[Interval]:
    """The times the options name, to choose by: --lower and --upper may be any. Otherwise as `chosen`."""
    from tidemark.cli.command import UsageError
    from tidemark.cli.schedule import intervals

    ways = {"--lower/--upper": (lower, upper), "--from/--to": (first, last), "--date": (date,)}
    given = [way for way, values in ways.items() if any(value is not None for value in values)]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both name intervals; give one of them")
    if not given:
        return []
    if None in ways[given[0]]:
        raise UsageError(f"{given[0].replace('/', ' and ')} belong together; give both")
    if collection.is_derived:
        raise UsageError(f"{collection.name} is derived and has no intervals of files; leave {given[0]} out")
    landed = collection.landed
    if lower is not None and upper is not None:
        bounds = [parse_local(text, landed.timezone) for text in (lower, upper)]
        if bounds[0] >= bounds[1]:
            written = [format_local(time, landed.timezone) for time in bounds]
            raise UsageError(f"--lower {written[0]} is not before --upper {written[1]}")
        return [Interval(*bounds).in_zone(landed.timezone)]
    if date is not None:
        return intervals(landed.schedule, date, date, landed.timezone)
    if str(first) > str(last):
        raise UsageError(f"--from {first} is later than --to {last}; swap them")
    return intervals(landed.schedule, str(first), str(last), landed.timezone)
