"""Windows as a select over rows that have AT, START and END: by it their columns and types are known before there is a
row, and Spark groups rows where no kernel does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from tidemark.definition.recipe import InputShape
from tidemark.definition.windows.aggregates import aggregate_sql
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.rows import AT, END, START
from tidemark.model.collection import Column, ColumnType
from tidemark.model.window.windows import WINDOW_END, WINDOW_START


def select_of(declared: Checked) -> str:
    """The windows as a query over rows that have AT, START and END: a row for each value of `by` and each window in
    which there are rows."""
    windows, name = declared.windows, declared.input
    keys = [f"`{name}`.`{column}`" for column in windows.by] + [START, END]
    shown = [f"`{name}`.`{column}` AS `{column}`" for column in windows.by]
    shown += [f"{START} AS {WINDOW_START}", f"{END} AS {WINDOW_END}"]
    shown += [f"{aggregate_sql(one, of, where)} AS `{one.name}`" for one, of, where in declared.aggregates]
    return f"SELECT {', '.join(shown)} FROM `{name}` GROUP BY {', '.join(keys)}"


def in_windows(declared: Checked, columns: Sequence[str] | None = None) -> InputShape:
    """The input as that query sees it: with these columns of its own (None: all)."""
    shape, bound = declared.shape, bound_of(declared)
    if columns is not None:
        own = tuple(column for column in shape.columns if column.name in columns)
        shape = replace(shape, columns=own, key=tuple(takewhile(columns.__contains__, shape.key)))
    return shape.with_columns(Column(AT, ColumnType.INT), Column(START, bound), Column(END, bound))


def bound_of(declared: Checked) -> ColumnType:
    """The type of the bounds of windows."""
    return ColumnType.INT if declared.on is ColumnType.INT else ColumnType.TIMESTAMP
