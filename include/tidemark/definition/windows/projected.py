"""Windows over rows that were projected: their conditions and expressions are columns of these, so that what is left to
compute has neither, and may need no query."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.resolve import sql_type
from tidemark.definition.steps import Steps
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.expressions import RowExpression
from tidemark.model.collection import Column
from tidemark.model.expression import ALL, Projection
from tidemark.model.window.aggregate import Aggregate


def at_hand(declared: Checked, *, bounded: bool = False) -> tuple[Checked, Projection | None]:
    """The same windows over projected rows, and how rows become these (None: they are as they are). Raises LeftToSpark
    for an expression that only Spark evaluates, and where more of a row is seen than its columns, which without
    `bounded` is when it came, too."""
    if declared.happened:
        raise LeftToSpark("on: event_time, of which a row may have several")
    if declared.windows.counts_late_for is not None and not bounded:
        raise LeftToSpark("late rows count for a while only")
    return over_columns(declared)


def over_columns(declared: Checked) -> tuple[Checked, Projection | None]:
    """The same, whatever else of a row is seen. Raises LeftToSpark for an expression that only Spark evaluates."""
    types = {column.name: column.type for column in declared.shape.columns}
    steps = Steps(types)
    try:
        where = ALL if declared.where is None else steps.condition(_node(declared.where))
        aggregates = [_projected(declared, steps, one, of, only) for one, of, only in declared.aggregates]
    except RecursionError:
        raise LeftToSpark("an expression is nested too deeply") from None
    names = [one.of for one, of, _ in aggregates if of is not None]
    shown = {name: steps.type_of(name) for name in names if name not in types}
    columns = [Column(name, of) for name, of in shown.items()]
    windows = replace(declared.windows, where="", aggregates=tuple(one for one, _, _ in aggregates))
    plain = replace(
        declared, windows=windows, shape=declared.shape.with_columns(*columns), where=None, aggregates=tuple(aggregates)
    )
    return plain, None if declared.where is None and not shown else Projection(steps.named, shown, where)


def _projected(
    declared: Checked, steps: Steps, one: Aggregate, of: RowExpression | None, only: RowExpression | None
) -> tuple[Aggregate, RowExpression | None, RowExpression | None]:
    """An aggregate of a column of projected rows."""
    if only is not None:
        name = steps.only(_node(only), None if of is None else _node(of))
    elif of is not None:
        name = steps.column(_node(of))
    else:
        return one, None, None
    shown = RowExpression(f"`{declared.input}`.`{name}`", sql_type(steps.type_of(name)))
    return replace(one, of=name, where=""), shown, None


def _node(given: RowExpression) -> exp.Expr:
    query = parsed(f"SELECT {given.sql} FROM w")
    assert isinstance(query, exp.Select)
    return query.selects[0].unalias().unnest()
