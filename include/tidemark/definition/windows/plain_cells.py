"""Sliding windows so plain that rows at hand need no query: told by the columns themselves, as counts, sums of whole
numbers and decimals, means of whole numbers, extremes, first and last values.

It is a second way to compute the same, so it is kept that narrow, and taken from the queries that it stands for: what
is not one of these few forms has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from tidemark.definition.functions import name_of
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import PlainCells, Taken
from tidemark.definition.state import Op, State
from tidemark.definition.sums import is_big
from tidemark.definition.windows.checked import Checked
from tidemark.model.collection import ColumnType, DecimalType, ValueType

_FIXED = (ColumnType.INT, ColumnType.BOOL, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types whose values are all as wide, besides decimals: however many windows show one, what they take is known."""
_EXTREMES = {Op.MIN: "min", Op.MAX: "max", Op.FIRST: "min", Op.LAST: "max"}


def plain_cells(told: Checked, states: Sequence[State], cells: str, finals: Sequence[str]) -> PlainCells:
    """What the query of `cells` gives for the states of rows that were projected, and what is told of a window's
    (`finals`). Raises LeftToSpark where one is not plain."""
    query = parsed(cells)
    assert isinstance(query, exp.Select)
    nodes = {one.alias_or_name: one.unalias() for one in query.selects}
    types = {column.name: column.type for column in told.shape.columns}
    found = {state.name: _taken(state, nodes[state.name], types) for state in states}
    shown = [_shown(final) for final in finals]
    named = []
    for (one, _, _), of_states in zip(told.aggregates, shown, strict=True):
        if not of_states or any(found[state] is None for state in of_states):
            of = f" of {types[one.of]}" if one.of in types else ""
            raise LeftToSpark(f"{one.name}: {one.function}{of} of sliding windows")
        named.append((one.name, *of_states))
    return PlainCells(
        tuple(one for one in found.values() if one is not None),
        tuple((name, state) for name, state, *count in named if not count),
        tuple((name, total, count[0]) for name, total, *count in named if count),
    )


def _shown(final: str) -> tuple[str, ...]:
    """The state that a column of windows shows as it is, or the two of which it is a mean; () for anything else."""
    query = parsed(f"SELECT {final} FROM w")
    assert isinstance(query, exp.Select)
    node = query.selects[0].unalias().unnest()
    if isinstance(node, exp.Column):
        return (node.name,)
    states = [one.name for one in node.find_all(exp.Column, bfs=False)]
    if len(states) != 2 or node != _mean(*states):
        return ()
    return tuple(states)


def _mean(total: str, count: str) -> exp.Expr:
    """How a mean of whole numbers is written (definition/sums.py)."""
    query = parsed(f"SELECT CAST(`{total}` AS double) / NULLIF(`{count}`, 0) FROM w")
    assert isinstance(query, exp.Select)
    return query.selects[0].unalias()


def _taken(state: State, node: exp.Expr, types: Mapping[str, ValueType]) -> Taken | None:
    if isinstance(node, exp.Filter):
        if state.op not in (Op.FIRST, Op.LAST) or not _leaves_out_nulls(node):
            return None
        node = node.this
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    name, of = name_of(node), node.expressions[0]
    if name == "count" and state.op is Op.ADD and isinstance(of, exp.Star):
        return Taken(state, None, count=True)
    if name == "sum" and is_big(of):
        of = of.this  # as the sum behind a mean: what is shown by itself is of another type
        if not isinstance(of, exp.Column) or types[of.name] is not ColumnType.INT:
            return None
    if not isinstance(of, exp.Column):
        return None
    if name == "count" and state.op is Op.ADD:
        return Taken(state, of.name, count=True)
    decimal = isinstance(types[of.name], DecimalType)
    if name == "sum" and state.op is Op.ADD:
        return Taken(state, of.name) if decimal or types[of.name] is ColumnType.INT else None
    fixed = decimal or types[of.name] in _FIXED
    return Taken(state, of.name) if fixed and _EXTREMES.get(state.op) == name else None


def _leaves_out_nulls(node: exp.Filter) -> bool:
    """Whether nulls of what an aggregate is of are all that its filter leaves out: it does so of itself."""
    condition = node.expression.this
    is_null = condition.this.unnest() if isinstance(condition, exp.Not) else None
    of: list[exp.Expr] = node.this.expressions
    return isinstance(is_null, exp.Is) and isinstance(is_null.expression, exp.Null) and [is_null.this.unnest()] == of
