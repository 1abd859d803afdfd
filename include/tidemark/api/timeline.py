"""A timeline and times upon it, as callers name them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tidemark.api.conditions import check_columns
from tidemark.api.times import lasting
from tidemark.api.values import value_of
from tidemark.arrow.rows.schema import arrow_type, plain_scalars
from tidemark.errors import InvalidUsage, listed
from tidemark.model.collection import TIMELINE_TYPES, Collection, Column, ColumnType

_LEAST = -(2**63)
_DAY = timedelta(days=1)


def timeline_of(collection: Collection, name: Any) -> Column:
    """The value column of that name, which is a timeline. Raises InvalidUsage for what is none, with the nearest."""
    timelines = [column for column in collection.value if column.type in TIMELINE_TYPES]
    known = f"; timelines are {listed(column.name for column in timelines)}" if timelines else "; it has no timeline"
    found = next((column for column in timelines if column.name == name), None)
    if found is not None:
        return found
    if any(column.name == name for column in collection.key):
        raise InvalidUsage(
            f"timeline {name} of collection {collection.name} is a column of the key, and each key is asked for its "
            f"latest row; name a column of the value{known}"
        )
    check_columns(collection, [name], "timeline")
    of = next(column.type for column in collection.value if column.name == name)
    raise InvalidUsage(
        f"timeline {name} of collection {collection.name} is of type {of}; a timeline is a timestamp, a date or an int"
        f"{known}"
    )


def ordered_column(collection: Collection, name: str) -> Column:
    """The column of a key or value by whose values a stretch is asked for. Raises InvalidUsage, with the nearest name,
    for one that there is not, and for one whose type has no order in whole steps."""
    check_columns(collection, [name], "timeline")
    column = next(column for column in collection.columns if column.name == name)
    if column.type not in TIMELINE_TYPES:
        raise InvalidUsage(
            f"column {name} of {collection.name} is of type {column.type}; a timeline is of type int, date or timestamp"
        )
    return column


def time_on(timeline: Column, time: Any) -> int:
    """A time on a timeline as a whole number: microseconds, days, or what an int column counts. InvalidUsage for what
    is none."""
    if time is None:
        raise InvalidUsage(f"no time is given; say at which time on {timeline.name}, or give a table of times as at=")
    (plain,) = plain_scalars(pa.repeat(value_of(timeline.name, time, arrow_type(timeline.type)), 1))
    assert isinstance(plain, int)
    return plain


def span_on(timeline: Column, within: Any) -> int | None:
    """How far back to look, in what the timeline counts; None for all. InvalidUsage for what is no such span."""
    if within is None:
        return None
    whole = isinstance(within, int) and not isinstance(within, bool)
    if whole and within < 0:
        raise InvalidUsage(f"within is {within}; it must not be negative")
    if timeline.type is ColumnType.TIMESTAMP:
        return lasting(within, "within")
    if whole:
        return int(within)
    counted = "whole days" if timeline.type is ColumnType.DATE else "whole numbers"
    if timeline.type is ColumnType.DATE and isinstance(within, str | timedelta):
        days, rest = divmod(timedelta(microseconds=lasting(within, "within")), _DAY)
        if not rest:
            return days
    raise InvalidUsage(f"within is {within!r}, and timeline {timeline.name} is {timeline.type}: it counts {counted}")


def lower_bound(upper: int, within: int | None) -> int | None:
    """The first time of a span that ends at `upper`."""
    return None if within is None else max(_LEAST, upper - within)


def ties_of(collection: Collection, ties: Any) -> tuple[str, ...]:
    """The columns that decide between rows of one time. InvalidUsage for what are none."""
    if not isinstance(ties, str | list | tuple):
        raise InvalidUsage(f"ties is {ties!r} ({type(ties).__name__}); write a list of names of columns")
    named: Sequence[str] = (ties,) if isinstance(ties, str) else tuple(ties)
    check_columns(collection, named, "ties")
    for column in collection.columns:
        if column.name in named and column.type is ColumnType.JSON:
            raise InvalidUsage(f"ties: column {column.name} is json, whose values are in no order")
    return tuple(named)
