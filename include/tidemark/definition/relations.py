"""What a resolved SELECT reads: its tables by the names it has for them, their columns and the types of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from tidemark.definition.recipe import InputShape
from tidemark.definition.resolve import names_of, sql_type
from tidemark.definition.types import UNKNOWN, type_of


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """The tables and subqueries of FROM and its joins, in order; the generators of LATERAL VIEW, too."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
    yield from (join.this for join in select.args.get("joins") or [])
    yield from select.args.get("laterals") or []


def types_of(select: exp.Select, shapes: Mapping[str, InputShape]) -> dict[tuple[str, str], str]:
    """The types of the columns that a select's expressions may name; UNKNOWN where one is not sure."""
    found: dict[tuple[str, str], str] = {}
    for source in sources_of(select):
        called = source.alias_or_name
        for name, of in _columns(source, shapes):
            found[called, name] = of
    return found


def output_types(query: exp.Expr, shapes: Mapping[str, InputShape]) -> list[str]:
    """The types of a query's columns, in order."""
    if isinstance(query, exp.SetOperation):
        left, right = output_types(query.this, shapes), output_types(query.expression, shapes)
        return [one if one == other else UNKNOWN for one, other in zip(left, right, strict=False)]
    if isinstance(query, exp.Subquery):
        return output_types(query.this, shapes)
    assert isinstance(query, exp.Select)
    columns = types_of(query, shapes)
    types: list[str] = []
    for one in query.selects:
        types.extend([UNKNOWN] * len(one.aliases) if isinstance(one, exp.Aliases) else [type_of(one, columns)])
    return types


def output_names(source: exp.Subquery) -> list[str]:
    """What the columns of a subquery are called outside of it."""
    alias = source.args.get("alias")
    renamed = [column.name for column in (alias.args.get("columns") if alias else None) or []]
    return renamed or names_of(source.this)


def _columns(source: exp.Expr, shapes: Mapping[str, InputShape]) -> Iterator[tuple[str, str]]:
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
        yield from zip(output_names(source), output_types(source.this, shapes), strict=False)
    elif isinstance(source, exp.Table) and source.name in shapes:
        yield from ((column.name, sql_type(column.type)) for column in shapes[source.name].columns)
    elif isinstance(source, exp.Lateral):
        alias = source.args.get("alias")
        yield from ((column.name, UNKNOWN) for column in (alias.args.get("columns") if alias else None) or [])
