"""Windows of kinds whose windows lie where they lie, as a select: it goes through the analysis of any other."""

from __future__ import annotations

from dataclasses import replace

from tidemark.definition.analysed import analysed
from tidemark.definition.recipe import InputShape, Recipe
from tidemark.definition.windows.aggregates import aggregate_sql
from tidemark.definition.windows.assigned import END, START, assigned, happening
from tidemark.definition.windows.checked import Checked, checked
from tidemark.model.derived import Refresh
from tidemark.model.window.kind import Aligned
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows


def analysed_windows(windows: Windows, shape: InputShape, refresh: Refresh = Refresh.AUTO) -> Recipe:
    """What to compute for windows of an aligned kind over an input of this shape.

    Raises InvalidUsage for columns that are none of the input's or have a wrong type, and for expressions that a select
    may not hold either."""
    recipe = analysed(select_of(checked(windows, shape)), [shape], refresh)
    return replace(recipe, key=(*recipe.columns[: len(windows.by)], WINDOW_START, WINDOW_END))


def select_of(told: Checked) -> str:
    """The windows as a query: a row for each value of `by` and each window in which there are rows."""
    windows, name = told.windows, told.input
    assert isinstance(windows.kind, Aligned)  # the others are computed otherwise
    rows = happening(name, windows.on, told.on, windows.by, told.where.sql if told.where else "")
    rows = assigned(windows.kind, rows, told.on)
    keys = [f"`{name}`.`{column}`" for column in windows.by] + [START, END]
    shown = [f"`{name}`.`{column}` AS `{column}`" for column in windows.by]
    shown += [f"{START} AS {WINDOW_START}", f"{END} AS {WINDOW_END}"]
    shown += [f"{aggregate_sql(one, of, where)} AS `{one.name}`" for one, of, where in told.aggregates]
    return f"SELECT {', '.join(shown)} FROM {rows.rows} GROUP BY {', '.join(keys)}"
