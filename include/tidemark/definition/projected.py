"""Groups of one input's rows as groups of projected rows: what a select says of single rows, its WHERE, what it groups
by, the arguments of aggregates and their FILTER, becomes columns of these, and what is left may need no query.

    SELECT date(at) AS day, sum(a + b) FILTER (WHERE ok) AS s FROM t WHERE a > 0 GROUP BY date(at)
    SELECT _x0      AS day, sum(_x2)                     AS s FROM t              GROUP BY _x0

    _x0 = date(at), _x1 = a + b, _x2 = _x1 if ok, else null; where a > 0
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemark.definition.delta import distinct_as_groups
from tidemark.definition.dialect import text_of
from tidemark.definition.functions import name_of, own_aggregates, with_filter
from tidemark.definition.literals import LeftToSpark, shown
from tidemark.definition.recipe import InputShape
from tidemark.definition.steps import Steps
from tidemark.model.collection import Column
from tidemark.model.expression import ALL, Projection

_SAID = frozenset({"expressions", "from_", "group", "where"})


def over_projected_rows(
    query: exp.Query, shapes: Mapping[str, InputShape]
) -> tuple[exp.Select, InputShape, Projection | None]:
    """A resolved query over projected rows of its one input, the shape of these, and how rows become them (None: they
    are as they are). Raises LeftToSpark, or NoDelta, where it is no such query, and for an expression that only Spark
    evaluates."""
    select, shape = _checked(query, shapes)
    steps = Steps({column.name: column.type for column in shape.columns})
    where = select.args.get("where")
    condition = ALL if where is None else steps.condition(where.this)
    select.set("where", None)
    _write_keys(select, steps)
    for one in select.selects:
        for node in own_aggregates(one):
            _write_aggregate(node, steps, select.args["from_"].this.alias_or_name)
    own = {column.name for column in shape.columns}
    used = {column.name for column in select.find_all(exp.Column)}
    names = {name: steps.type_of(name) for name in steps.named if name in used and name not in own}
    projection = None if where is None and not names else Projection(steps.named, names, condition)
    return select, shape.with_columns(*(Column(name, of) for name, of in names.items())), projection


def _checked(query: exp.Query, shapes: Mapping[str, InputShape]) -> tuple[exp.Select, InputShape]:
    if not isinstance(query, exp.Select):
        raise LeftToSpark(f"it is a {type(query).__name__.upper()}")
    select = distinct_as_groups(query.copy())
    if select.args.get("joins"):
        raise LeftToSpark("it joins its inputs")
    if said := {part.rstrip("_").upper() for part, clause in select.args.items() if clause and part not in _SAID}:
        raise LeftToSpark(f"it says {min(said)}")
    source = select.args["from_"].this if select.args.get("from_") else None
    if not isinstance(source, exp.Table) or source.name not in shapes:
        raise LeftToSpark("it reads a subquery")
    group = select.args.get("group")
    if group is None or {part for part, clause in group.args.items() if clause} != {"expressions"}:
        raise LeftToSpark("it has no plain GROUP BY")
    if any(one.find(exp.Window) for one in select.selects):
        raise LeftToSpark("it has window functions")
    return select, shapes[source.name]


def _write_keys(select: exp.Select, steps: Steps) -> None:
    """Put columns in the place of what it groups by, wherever that is shown."""
    group, table = select.args["group"], select.args["from_"].this.alias_or_name
    named = {
        text_of(key): exp.column(steps.column(key), table)
        for key in group.expressions
        if not isinstance(key, exp.Column)
    }
    for root in (group, *select.selects):
        for node in list(root.walk(prune=lambda part: text_of(part) in named)):
            if (column := named.get(text_of(node))) is not None and node is not root:
                node.replace(column.copy())


def _write_aggregate(node: exp.Expr, steps: Steps, table: str) -> None:
    """Let an aggregate be of a column, without a FILTER."""
    name, around = name_of(node), with_filter(node)
    if not isinstance(node, exp.Anonymous | exp.AggFunc) or len(node.expressions) != 1:
        raise LeftToSpark(f"{shown(node)} takes several values")
    where = around.expression.this if isinstance(around, exp.Filter) else None
    if around is not node and where is None:
        raise LeftToSpark(f"{shown(around)} orders its values")
    (of,) = node.expressions
    distinct = isinstance(of, exp.Distinct)
    if distinct and len(of.expressions) != 1:
        raise LeftToSpark(f"{shown(node)} takes several values")
    inner = of.expressions[0] if distinct else of
    if name == "count_if":
        column = steps.only(exp.and_(where.copy(), inner.copy()) if where else inner, None)
        around.replace(exp.Anonymous(this="COUNT", expressions=[exp.column(column, table)]))
        return
    rows = isinstance(inner, exp.Star) or (name == "count" and isinstance(inner, exp.Literal))
    if where is not None:
        column = steps.only(where, None if rows else inner)
    elif rows or isinstance(inner, exp.Column):
        return
    else:
        column = steps.column(inner)
    written = exp.column(column, table)
    new = exp.Anonymous(this=name, expressions=[exp.Distinct(expressions=[written]) if distinct else written])
    around.replace(new)
