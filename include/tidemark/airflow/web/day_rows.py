"""Rows of one interval: what the collection learned by it, and what it learned about it afterwards."""

from __future__ import annotations

from tidemark.airflow.web.markup import Markup, tag
from tidemark.airflow.web.page import Page, document
from tidemark.airflow.web.sample import rows_within
from tidemark.api.opened import OpenCollection
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval


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
    none that came later."""
    if opened.state.seal <= interval.lower:
        return tag("p", "It is not sealed yet: no answer has its rows.", class_="quiet")
    after, upto = interval.lower - 1, min(interval.upper, opened.state.seal) - 1
    command = _command(opened.name, after, upto)
    try:
        answer = opened.changes(after=max(after, opened.state.since - 1), upto=upto)
        return rows_within(answer, opened.state.collection.unshown, command)
    except InvalidUsage as error:
        return tag("p", str(error), class_="quiet")


def _learned_since(opened: OpenCollection, interval: Interval) -> Markup:
    """The changes of what happened in the interval that were learned after it: late rows, and corrections."""
    if opened.state.seal <= interval.upper:
        return tag("p", "Nothing was sealed since.", class_="quiet")
    within = [f"_event_time >= '{format_instant(interval.lower)}'", f"_event_time < '{format_instant(interval.upper)}'"]
    after, upto = interval.upper - 1, opened.state.seal - 1
    command = _command(opened.name, after, upto, " AND ".join(within))
    try:
        answer = opened.changes(after=max(after, opened.state.since - 1), upto=upto, where=within)
        return rows_within(answer, opened.state.collection.unshown, command)
    except InvalidUsage as error:
        return tag("p", str(error), class_="quiet")


def _command(name: str, after: int, upto: int, where: str = "") -> str:
    asked = f"tidemark changes {name} --after {format_instant(after)} --upto {format_instant(upto)}"
    return f'{asked} --where "{where}"' if where else asked
