"""By row: a query each of whose rows comes of one row of one input, whatever the others are."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.functions import own_aggregates
from tidemark.definition.parse import tables_of
from tidemark.definition.recipe import DIFF, EVENT_TIME, TIME, ByRow, changes_of

STAMPS = (TIME, EVENT_TIME, DIFF)


def not_by_row(query: exp.Expr) -> str | None:
    """Why a query is not by row, for people; None if it is."""
    if isinstance(query, exp.Subquery):
        return not_by_row(query.this)
    if isinstance(query, exp.Union) and not query.args.get("distinct"):
        if query.args.get("limit") or query.args.get("offset"):
            return "LIMIT keeps rows by their order among all others"
        if len(inputs := {table.name for table in tables_of(query)}) > 1:
            return f"UNION ALL joins rows of {' and '.join(sorted(inputs))}"
        return not_by_row(query.this) or not_by_row(query.expression)
    if not isinstance(query, exp.Select):
        return f"{type(query).__name__.upper()} compares rows with all others"
    return next(_of_select(query), None)


def _of_select(select: exp.Select) -> Iterator[str]:
    args = select.args
    if args.get("limit") or args.get("offset"):
        yield "LIMIT keeps rows by their order among all others"
    if args.get("distinct"):
        yield "DISTINCT compares rows with all others"
    if args.get("group") or args.get("having"):
        yield "GROUP BY adds up rows of a group"
    expressions = [*select.selects, args.get("where")]
    for one in filter(None, expressions):
        if own_aggregates(one):
            yield "an aggregate adds up rows"
        if one.find(exp.Window):
            yield "a window function compares rows with others"
        if one.find(exp.Query):
            yield "a subquery in an expression reads other rows"
    for join in args.get("joins") or []:
        if not isinstance(join.this, exp.Lateral):
            yield "a join brings rows of two tables together"
        elif join.find(exp.Query):
            yield "a subquery in an expression reads other rows"
    from_ = args.get("from_")
    if from_ is None:
        yield "a SELECT without FROM gives a row of no input"
    elif isinstance(from_.this, exp.Subquery):
        if why := not_by_row(from_.this.this):
            yield why
    elif not isinstance(from_.this, exp.Table) or not isinstance(from_.this.this, exp.Identifier):
        yield "rows that are made (VALUES, range) come of no input"


def by_row(query: exp.Query) -> ByRow:
    """The query over changes of its one input, for one that is by row."""
    changed = query.copy()
    name = next(tables_of(changed)).name
    read_changes(changed, stamps=STAMPS)
    return ByRow(name, text_of(changed))


def read_changes(query: exp.Expr, stamps: tuple[str, ...]) -> None:
    """Let a query that is by row read its input's changes instead, and give these columns of each behind its own."""
    if isinstance(query, exp.Subquery):
        return read_changes(query.this, stamps)
    if isinstance(query, exp.SetOperation):
        read_changes(query.this, stamps)
        return read_changes(query.expression, stamps)
    assert isinstance(query, exp.Select)
    source = query.args["from_"].this
    source_of_changes(source, stamps)
    for name in stamps:
        query.select(exp.alias_(exp.column(name, source.alias_or_name), name), copy=False)
    for unordered in ("order", "sort", "cluster", "distribute"):
        query.set(unordered, None)


def source_of_changes(source: exp.Expr, stamps: tuple[str, ...]) -> None:
    """Let the source in FROM be its input's changes, with these columns of them."""
    if isinstance(source, exp.Table):
        called = source.alias_or_name
        source.set("this", exp.to_identifier(changes_of(source.name)))
        alias = source.args.get("alias")
        if alias is None:
            source.set("alias", exp.TableAlias(this=exp.to_identifier(called)))
        return
    assert isinstance(source, exp.Subquery)
    read_changes(source.this, stamps)
    if (alias := source.args.get("alias")) and (renamed := alias.args.get("columns")):
        alias.set("columns", [*renamed, *(exp.to_identifier(name) for name in stamps)])
