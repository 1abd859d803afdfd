"""Windows of aligned kinds, as a select over rows that have their windows: it goes through the analysis of any other.

tumbling 1 h, count       rows of flights      with AT, START and END, once for each window
                          a query of them      SELECT …, START AS window_start, …, count(*) … GROUP BY …, START, END

Rows get their windows by a kernel (arrow/kernels/windows/placed.py), at hand or on executors.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemark.definition.aggregated import IN_ORDER
from tidemark.definition.analysed import analysed
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import ByKey, GroupPlan, InputShape, Recipe, WindowAssignment, WindowedRows
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.checked import Checked, checked
from tidemark.definition.windows.projected import at_hand
from tidemark.definition.windows.rows import AT, END, START, happening
from tidemark.definition.windows.select import bound_of, in_windows, select_of
from tidemark.definition.windows.valued import over_values, valued_of
from tidemark.model.derived import Refresh
from tidemark.model.window.aggregate import Function
from tidemark.model.window.close import closes_at
from tidemark.model.window.kinds import AlignedKind
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Late, Windows


def analysed_windows(windows: Windows, shape: InputShape, refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for windows of an aligned kind over an input of this shape.

    Raises InvalidUsage for columns that are none of the input's or have a wrong type, and for expressions that a select
    may not hold either."""
    assert isinstance(windows.kind, AlignedKind)  # the others are computed otherwise
    declared = checked(windows, shape)
    rows = windowed_rows(declared)
    recipe = analysed(select_of(declared), [in_windows(declared, rows.columns)], refresh)
    by_key = recipe.by_key and replace(recipe.by_key, delta_plan=None, columns={}, grouped=None)
    looked_at = _columns_in(rows.rows, declared.shape) | {*rows.columns}
    used = {shape.name: tuple(one.name for one in declared.shape.columns if one.name in looked_at)}
    recipe = replace(recipe, by_key=by_key, in_windows=rows, projection=None, left_to_spark="", used=used)
    recipe = _without_queries(declared, recipe)
    key = (*recipe.columns[: len(windows.by)], WINDOW_START, WINDOW_END)
    return replace(recipe, key=key, happened=declared.happened)


def windowed_rows(declared: Checked) -> WindowedRows:
    """Which rows of the input are in which windows."""
    windows, kind = declared.windows, declared.windows.kind
    assert isinstance(kind, AlignedKind)
    late, frozen = windows.counts_late_for, None
    if late is not None:
        frozen = closes_at(kind, 0, windows.grace) + late
    grace = windows.grace if late is not None and windows.late is Late.NEXT_WINDOW else None
    assignment = WindowAssignment(kind, AT, windows.by, bound_of(declared), frozen, grace)
    used = _columns_in(select_of(declared), declared.shape)  # conditions of rows are in the other query
    columns = tuple(column.name for column in declared.shape.columns if column.name in used)
    where = declared.where.sql if declared.where else ""
    rows = happening(declared.input, windows.on, declared.on, where, _within(kind))
    return WindowedRows(declared.input, columns, rows, assignment)


def _within(kind: AlignedKind) -> str:
    """At which instants rows are in a window, as a condition; empty where all are."""
    if kind.sampled is None:
        return ""
    advance, offset, size = kind.sampled
    return f"pmod(pmod({{at}}, {advance}) - {offset % advance}, {advance}) < {size}"


def _columns_in(query: str, shape: InputShape) -> set[str]:
    """Columns of the input that a query looks at, each of which it says is the input's."""
    named = (one for one in parsed(query).find_all(exp.Column) if one.table == shape.name)
    return {column.name for column in named}


def _without_queries(declared: Checked, recipe: Recipe) -> Recipe:
    """The recipe, which also says what it amounts to for rows at hand: a select over rows in windows is as plain as one
    over any others."""
    try:
        return _over_placed_rows(declared, recipe)
    except LeftToSpark as why:
        recipe = replace(recipe, left_to_spark=str(why))
    try:
        return _over_values(declared, recipe)
    except LeftToSpark:  # and it says why not without Spark
        return recipe


def _over_placed_rows(declared: Checked, recipe: Recipe) -> Recipe:
    rows = recipe.in_windows
    assert rows is not None
    projected, projection = at_hand(declared, bounded=True)
    rule = _grouped(projected, recipe, declared.windows.on)
    placed = replace(rows.assignment, on=declared.windows.on)
    return replace(recipe, by_key=rule, placed=placed, projection=projection, left_to_spark="")


def _over_values(declared: Checked, recipe: Recipe) -> Recipe:
    """The recipe, which also says how executors group values of rows that Spark gives."""
    rows, (valued, select) = recipe.in_windows, valued_of(declared, (AT,))
    assert rows is not None
    if rows.assignment.frozen_after is not None:
        raise LeftToSpark("late rows count for a limited time")  # rows are added up before values are taken of them
    of_values = over_values(declared, valued)
    grouped = _grouped(of_values, recipe, AT).grouped
    assert grouped is not None
    texts = {one.name: one.texts for one in valued}
    aggregates = tuple(replace(one, texts=texts.get(one.name)) for one in grouped.aggregates)
    found = replace(rows, valued=select, aggregates=valued, grouped=replace(grouped, aggregates=aggregates))
    return replace(recipe, in_windows=found)


def _grouped(projected: Checked, recipe: Recipe, on: str) -> ByKey:
    """How the recipe is computed by key, and by kernels of projected rows, which are in windows `on` a column. Raises
    LeftToSpark where these need queries."""
    found, rule = analysed(select_of(projected), [in_windows(projected)]), recipe.by_key
    same = found.by_key
    if rule is None or same is None or (same.key_columns, same.sums) != (rule.key_columns, rule.sums):
        raise LeftToSpark("projected rows need other hidden columns")
    grouped = same.grouped
    if grouped is None and same.delta is None:
        if any(one.function is Function.APPROX_DISTINCT for one, _, _ in projected.aggregates):
            raise LeftToSpark("approx_distinct is a sketch of Spark's")  # which was stored so far
        aggregates = aggregates_of(projected)
        in_order = any(one.function in IN_ORDER for one in aggregates)
        grouped = GroupPlan((*projected.windows.by, START, END), aggregates, on if in_order else None)
    if grouped is None:
        raise LeftToSpark(found.left_to_spark)
    return replace(rule, delta_plan=same.delta_plan, grouped=grouped, columns=same.columns)
