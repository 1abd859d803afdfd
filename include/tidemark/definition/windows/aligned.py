"""Windows of kinds whose windows lie where they lie, as a select: it goes through the analysis of any other."""

from __future__ import annotations

from dataclasses import replace

from tidemark.definition.aggregated import IN_ORDER
from tidemark.definition.analysed import analysed
from tidemark.definition.literals import LeftToSpark
from tidemark.definition.recipe import GroupPlan, InputShape, Recipe, WindowAssignment
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.aggregates import aggregate_sql
from tidemark.definition.windows.assigned import AT, END, START, Source, assigned, happening
from tidemark.definition.windows.checked import Checked, checked
from tidemark.definition.windows.lateness import in_time
from tidemark.definition.windows.projected import at_hand
from tidemark.model.collection import Column, ColumnType
from tidemark.model.derived import Refresh
from tidemark.model.window.aggregate import Function
from tidemark.model.window.close import closes_at
from tidemark.model.window.kind import Aligned
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows


def analysed_windows(windows: Windows, shape: InputShape, refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for windows of an aligned kind over an input of this shape.

    Raises InvalidUsage for columns that are none of the input's or have a wrong type, and for expressions that a select
    may not hold either."""
    assert isinstance(windows.kind, Aligned)  # the others are computed otherwise
    declared = checked(windows, shape)
    if windows.counts_late_for is None:
        rows = assigned(windows.kind, _happened(declared), declared.on).rows
        recipe = _without_queries(declared, analysed(select_of(declared, rows), [declared.shape], refresh))
    else:
        query = select_of(declared, f"`{shape.name}`")
        rule, placed = in_time(declared, declared.shape, query, _happened(declared))
        recipe = analysed(query, [placed], refresh)
        by_key = recipe.by_key and replace(recipe.by_key, delta_plan=None, columns={}, grouped=None)
        recipe = replace(recipe, by_key=by_key, in_time=rule, used=None, projection=None, left_to_spark="")
        recipe = _without_queries(declared, recipe)
    key = (*recipe.columns[: len(windows.by)], WINDOW_START, WINDOW_END)
    return replace(recipe, key=key, happened=declared.happened)


def _without_queries(declared: Checked, recipe: Recipe) -> Recipe:
    """The recipe, which also says what it comes to for rows that have their windows already: a select over a table of
    such rows is as plain as one of any other."""
    try:
        return _over_placed_rows(declared, recipe)
    except LeftToSpark as why:
        return replace(recipe, left_to_spark=str(why))


def _over_placed_rows(declared: Checked, recipe: Recipe) -> Recipe:
    kind, rule = declared.windows.kind, recipe.by_key
    assert isinstance(kind, Aligned)
    if recipe.in_time is not None and recipe.in_time.moves:
        raise LeftToSpark("late rows count in the next window")
    projected, projection = at_hand(declared, bounded=True)
    bound = ColumnType.INT if declared.on is ColumnType.INT else ColumnType.TIMESTAMP
    shape = projected.shape.with_columns(Column(AT, ColumnType.INT), Column(START, bound), Column(END, bound))
    found = analysed(select_of(projected, f"`{shape.name}`"), [shape])
    same = found.by_key
    if rule is None or same is None or (same.held, same.sums) != (rule.held, rule.sums):
        raise LeftToSpark("projected rows need other hidden columns")
    grouped = same.grouped
    if grouped is None and same.delta is None:
        if any(one.function is Function.APPROX_DISTINCT for one, _, _ in projected.aggregates):
            raise LeftToSpark("approx_distinct is a sketch of Spark's")  # which was stored so far
        aggregates = aggregates_of(projected)
        on = declared.windows.on if any(one.function in IN_ORDER for one in aggregates) else None
        grouped = GroupPlan((*declared.windows.by, START, END), aggregates, on)
    if grouped is None:
        raise LeftToSpark(found.left_to_spark)
    rule = replace(rule, delta_plan=same.delta_plan, grouped=grouped, columns=(found.by_key or rule).columns)
    windows = declared.windows
    late = windows.counts_late_for
    frozen = None if late is None else closes_at(kind, 0, windows.grace) + late
    placed = WindowAssignment(kind, windows.on, windows.by, bound, frozen)
    return replace(recipe, by_key=rule, placed=placed, projection=projection, left_to_spark="")


def _happened(declared: Checked) -> Source:
    windows = declared.windows
    return happening(declared.input, windows.on, declared.on, declared.where.sql if declared.where else "")


def select_of(declared: Checked, rows: str) -> str:
    """The windows as a query over rows that have their windows: a row for each value of `by` and each window in which
    there are rows."""
    windows, name = declared.windows, declared.input
    keys = [f"`{name}`.`{column}`" for column in windows.by] + [START, END]
    shown = [f"`{name}`.`{column}` AS `{column}`" for column in windows.by]
    shown += [f"{START} AS {WINDOW_START}", f"{END} AS {WINDOW_END}"]
    shown += [f"{aggregate_sql(one, of, where)} AS `{one.name}`" for one, of, where in declared.aggregates]
    return f"SELECT {', '.join(shown)} FROM {rows} GROUP BY {', '.join(keys)}"
