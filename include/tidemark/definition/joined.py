"""Inner joins, computed for what changed by what changed: as a join is linear in each of its sides.

Let A and B be what two inputs hold now, dA and dB what changed of them, as rows with a diff each, and A - dA what was
held before. Then

    A JOIN B  -  (A - dA) JOIN (B - dB)   =   dA JOIN (B - dB)  +  A JOIN dB

and the diff of a joined row is the product of those of its sides. With more inputs there is a term for each that
changed: those before it as they are now, those behind it as they were. Nothing is read of the collection itself.

An example: 336,776 flights joined with 16 carriers. A day's 900 changed flights touch all carriers, so that computing
what these touch anew is computing all. By the changes it is 900 rows joined with 16.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.functions import own_aggregates
from tidemark.definition.recipe import DIFF, InputShape

_INNER = ("", "INNER", "CROSS")
_SAID = frozenset({"expressions", "from_", "joins", "where"})


def joined_changes(query: exp.Query, shapes: Mapping[str, InputShape]) -> str | None:
    """A query over views of the inputs of a resolved query, which have DIFF, that gives its columns and DIFF of each
    row; None where it is no inner join of inputs that stand in it once."""
    if not isinstance(query, exp.Select) or {part for part, said in query.args.items() if said} - _SAID:
        return None
    joins = query.args.get("joins") or []
    sources = [query.args["from_"].this, *(join.this for join in joins)] if query.args.get("from_") else []
    inner = all(not join.args.get("side") and str(join.args.get("kind") or "") in _INNER for join in joins)
    tables = [source for source in sources if isinstance(source, exp.Table) and source.name in shapes]
    names = {table.name for table in tables}
    if not joins or not inner or len(tables) < len(sources) or len(names) < len(sources):
        return None
    parts = [*query.selects, query.args.get("where"), *(join.args.get("on") for join in joins)]
    for part in filter(None, parts):
        if own_aggregates(part) or part.find(exp.Window, exp.Query):
            return None
    diff: exp.Expr = exp.column(DIFF, tables[0].alias_or_name)
    for table in tables[1:]:
        diff = exp.Mul(this=diff, expression=exp.column(DIFF, table.alias_or_name))
    return text_of(query.select(exp.alias_(diff, DIFF), copy=True))
