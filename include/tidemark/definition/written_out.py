"""Common table expressions, written out as subqueries where a query names them.

A text of some kilobytes can stand for a query of any size, as each common table expression may name those before it
many times. So a query is measured first: how many nodes it would have, and how deep its SELECTs would be nested, are
sums over the text as it is. Nothing is copied before the whole is known to be within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemark.definition.refusal import refused

MAX_NODES = 50_000
"""Nodes of a query with its common table expressions written out: each may use those before it twice."""
MAX_NESTED = 50
"""SELECTs within each other, written out. What resolves names takes a time that grows with the square of these."""
_AROUND = 1
"""Nodes that a table becomes more by where it is written out as a subquery with an alias, besides those in that."""
_CTE = "tidemark_cte"
"""What the meta of a table says that names a common table expression: which one."""


@dataclass(frozen=True)
class Extent:
    """How many nodes a query has once it is written out, and how many SELECTs are nested in each other."""

    nodes: int
    nested: int


def without_ctes(query: exp.Query) -> exp.Query:
    """The query with its common table expressions where they are named; names are looked up as Spark does: one that
    a WITH defines, in those after it and in its query; else that of the query around it; else an input.

    Raises InvalidUsage, before anything is copied, for a query that would be too large or nested too deeply.
    """
    measuring = Measuring()
    measuring.extent(query, {})
    stack: list[exp.Expr] = [query]
    while stack:
        node = stack.pop()
        if (at := node.meta.get(_CTE)) is not None:
            assert isinstance(node, exp.Table)  # only these are marked
            subquery = _in_place(measuring.ctes[at], node)
            node.replace(subquery)
            node = subquery
        stack.extend(node.iter_expressions())
    return query


class Measuring:
    """Takes WITH out of queries, marks each table that names a common table expression, and counts, once for each node
    of the text, what writing them out amounts to: `visited` is how many nodes were looked at for that."""

    def __init__(self) -> None:
        self.ctes: list[exp.CTE] = []
        self.visited = 0
        self._extents: list[Extent] = []

    def extent(self, query: exp.Expr, outer: dict[str, int]) -> Extent:
        """The extent of a query, in which the names of `outer` are known. InvalidUsage if it is beyond bounds."""
        known = dict(outer)
        if isinstance(with_ := query.args.get("with_"), exp.With):
            query.set("with_", None)
            for cte in with_.expressions:
                self._extents.append(self.extent(cte.this, known))
                self.ctes.append(cte)
                known[cte.alias.lower()] = len(self.ctes) - 1
        nodes = nested = 0
        stack: list[tuple[exp.Expr, int]] = [(query, 0)]
        while stack:
            node, depth = stack.pop()
            self.visited += 1
            if node is not query and _has_with(node):
                inner = self.extent(node, known)
                nodes, nested = nodes + inner.nodes, max(nested, depth + inner.nested)
                continue
            depth += isinstance(node, exp.Select)
            nodes, nested = nodes + 1, max(nested, depth)
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and node.name.lower() in known:
                at = node.meta[_CTE] = known[node.name.lower()]
                nodes += self._extents[at].nodes + _AROUND
                nested = max(nested, depth + self._extents[at].nested)
            stack.extend((child, depth) for child in node.iter_expressions())
        if nodes > MAX_NODES:
            raise refused("is too large once its WITH is written out; make a derived collection of a part of it")
        if nested > MAX_NESTED:
            raise refused(
                f"has {nested:,} SELECTs nested in each other once its WITH is written out, and {MAX_NESTED} are "
                "allowed: it is nested too deeply; make a derived collection of a part of it"
            )
        return Extent(nodes, nested)


def _has_with(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query) and isinstance(node.args.get("with_"), exp.With)


def _in_place(cte: exp.CTE, table: exp.Table) -> exp.Subquery:
    """A common table expression as a subquery that is called as the table was, or as itself."""
    named = cte.args["alias"]
    inner: exp.Query = cte.this.copy()
    called = table.args.get("alias")
    if named.args.get("columns") and called is not None and called.args.get("columns"):
        inner = exp.select("*").from_(exp.Subquery(this=inner, alias=named.copy()))
        named = called
    elif called is not None:
        columns = called.args.get("columns") or named.args.get("columns")
        named = exp.TableAlias(this=called.this, columns=[column.copy() for column in columns or []])
    joins, laterals = table.args.get("joins"), table.args.get("laterals")
    return exp.Subquery(this=inner, alias=named.copy(), joins=joins, laterals=laterals)
