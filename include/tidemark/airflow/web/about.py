"""What a collection is: its columns, its key, where its rows come from or how they are computed, and some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidemark.airflow.collection_files import collection_named
from tidemark.airflow.documentation import facts_of, facts_of_derived
from tidemark.airflow.web.markup import Markup, tag, with_commands
from tidemark.airflow.web.page import Page, document, table, way_to_status
from tidemark.airflow.web.sample import first_rows
from tidemark.api.opened import OpenCollection
from tidemark.config.collection_file import parse
from tidemark.errors import InvalidUsage, plain_line
from tidemark.model.collection import Collection
from tidemark.model.instant import format_instant

MOST_COLUMNS = 200
"""Columns that the page lists."""


def about_page(opened: OpenCollection, *, rows: bool) -> Page:
    """The page, with a sample of the newest rows for who may see `rows`. Raises what reading them raises."""
    of = opened.state.collection
    content = [
        tag("h1", opened.name, " ", tag("span", "what it is", class_="quiet")),
        way_to_status(opened.name),
        tag("section", tag("h2", "Columns"), _columns(of, descriptions_of(opened.name))),
        tag("section", tag("h2", "Definition"), *_definition(of)),
    ]
    if rows:
        content.append(_sample(opened))
    return document(f"What {opened.name} is", *content, linked=True)


def descriptions_of(name: str) -> Mapping[str, str]:
    """What the collection's file says of its columns; nothing where this process has no file of it, or a wrong one."""
    location = collection_named(name)
    if location is None or location.file is None:
        return {}
    try:
        columns = parse(location.file).declaration.columns
    except InvalidUsage:
        return {}
    return {column: said.description for column, said in columns.items() if said.description}


def _columns(of: Collection, described: Mapping[str, str]) -> Markup:
    lines = list(_lines(of, described))
    more = [tag("p", f"and {len(lines) - MOST_COLUMNS:,} more", class_="quiet")] if len(lines) > MOST_COLUMNS else []
    header = ("column", "type", "role", "", "description") if described else ("column", "type", "role", "")
    shown = [line[: len(header)] for line in lines[:MOST_COLUMNS]]
    return tag("div", table(header, shown), *more)


def _lines(of: Collection, described: Mapping[str, str]) -> Iterator[tuple[object, ...]]:
    for part, columns in (("key", of.key), ("value", of.value)):
        for column in columns:
            marks = ["timeline"] if column.name in of.timelines else []
            marks += ["masked"] if column.name in of.masked else []
            said = plain_line(described.get(column.name, ""))
            yield tag("code", column.name), str(column.type), part, ", ".join(marks), said


def _definition(of: Collection) -> list[Markup]:
    if not of.is_derived:
        return [_facts(facts_of(of))]
    derived = of.derived
    query = [tag("pre", derived.definition.select)] if derived.definition.select else []
    return [_facts(facts_of_derived(of.name, derived, of)), *query]


def _facts(facts: Iterable[tuple[str, str]]) -> Markup:
    return table(("", ""), [(with_commands(what), with_commands(said)) for what, said in facts])


def _sample(opened: OpenCollection) -> Markup:
    heading = tag("h2", "Some rows")
    if not opened.state.seal:
        return tag("section", heading, tag("p", "Nothing is sealed yet.", class_="quiet"))
    known = f"as known at {format_instant(opened.state.seal)}, version {opened.version}"
    return tag(
        "section", heading, tag("p", known, class_="quiet"), first_rows(opened.as_of(), opened.state.collection.unshown)
    )
