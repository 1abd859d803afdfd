"""Rows of one interval: what the collection learned by it, and what it learned about it afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.airflow.web.markup import Markup, joined, tag
from tidemark.airflow.web.page import Page, document
from tidemark.airflow.web.sample import rows_within
from tidemark.api.opened import OpenCollection
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.read import history_begins


def rows_page(opened: OpenCollection, interval: Interval, name: str) -> Page:
    """The page of an interval that people call `name`. Raises what reading raises, but for history that is no longer
    there, which it says."""
    content = [
        tag("h1", f"{opened.name}, rows of {name}"),
        tag("p", tag("a", f"{opened.name}, {name}", href=f"../{interval.lower}"), class_="quiet"),
        _section("What it brought", _brought(opened, interval)),
        _section("What was learned about it since", _learned_since(opened, interval)),
    ]
    return document(f"{opened.name}, rows of {name}", *content, linked=True)


def _section(heading: str, content: Markup) -> Markup:
    return tag("section", tag("h2", heading), content)


def _brought(opened: OpenCollection, interval: Interval) -> Markup:
    """The changes that were learned within the interval, as far as it is sealed: late rows of earlier ones, too, and
    none that came later. Where history begins within it, the rows of that time, and the changes after it."""
    seal, since = opened.state.seal, opened.state.since
    if seal <= interval.lower:
        return tag("p", "It is not sealed yet: no answer has its rows.", class_="quiet")
    span = Interval(interval.lower, min(interval.upper, seal))
    after, upto = span.lower - 1, span.upper - 1
    content = [_changes(opened, after, upto)] if upto > since or not since else []
    if (begins := history_begins(opened.state, span)) is not None:
        content.insert(0, _rows_at(opened, begins))
    return joined(content) if content else _begins(since)


def _learned_since(opened: OpenCollection, interval: Interval) -> Markup:
    """The changes of what happened in the interval that were learned after it: late rows, and corrections."""
    seal = opened.state.seal
    if seal <= interval.upper:
        return tag("p", "Nothing was sealed since.", class_="quiet")
    within = [f"_event_time >= '{format_instant(interval.lower)}'", f"_event_time < '{format_instant(interval.upper)}'"]
    after, since = interval.upper - 1, opened.state.since
    changes = _changes(opened, after, seal - 1, within)
    return joined([_begins(since), changes]) if after < since else changes


def _begins(since: int) -> Markup:
    return tag("p", f"History begins at {format_instant(since)}: older changes are merged.", class_="quiet")


def _rows_at(opened: OpenCollection, time: int) -> Markup:
    """The rows as of the time at which history begins, with a line that says so."""
    said = tag("p", f"History begins at {format_instant(time)}, with these rows:", class_="quiet")
    command = f"tidemark as-of {opened.name} --time {format_instant(time)}"
    return joined([said, rows_within(opened.as_of(time=time), opened.state.collection.unshown, command)])


def _changes(opened: OpenCollection, after: int, upto: int, where: Sequence[str] = ()) -> Markup:
    """The changes after one time (-1: from the first on), or after the beginning of history, up to another."""
    after = max(after, opened.state.since or -1)
    command = _command(opened.name, after, upto, " AND ".join(where))
    try:
        answer = opened.changes(None if after < 0 else after, upto, where=list(where) or None)
        return rows_within(answer, opened.state.collection.unshown, command)
    except InvalidUsage as error:  # a time between those that are kept
        return tag("p", str(error), class_="quiet")


def _command(name: str, after: int, upto: int, where: str = "") -> str:
    begin = f" --after {format_instant(after)}" if after >= 0 else ""
    asked = f"tidemark changes {name}{begin} --upto {format_instant(upto)}"
    return f'{asked} --where "{where}"' if where else asked
