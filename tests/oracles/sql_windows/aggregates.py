"""The aggregates of windows as Spark SQL over rows that have their windows: AT, START and END, in microseconds."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from tidemark.definition.dated import dated
from tidemark.definition.dialect import text_of
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape
from tidemark.definition.resolve import resolved, spelled_alike
from tidemark.definition.sizes import within_sizes
from tidemark.definition.sums import exact
from tidemark.model.collection import Column, ColumnType
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding
from tidemark.model.window.quantile import DIGITS
from tidemark.model.window.windows import WINDOW_END, WINDOW_START, Windows

AT, START, END = "_at", "_start", "_end"
PLACES = (AT, START, END)
_LEAST_EXPONENT = -1074


def grouped(windows: Windows, shape: InputShape, on: Column, wide: Collection[str] = ()) -> str:
    """A query over rows with AT, START and END, under the input's name: a row for each window. Sums are exact. Those in
    `wide`, of whole numbers, raise only where the sum itself has no room; others raise, as Spark's do, where that of
    some of the rows has none, so that it depends on their order."""
    name = shape.name
    keys = [*(f"`{name}`.`{by}`" for by in windows.by), f"`{name}`.{START}", f"`{name}`.{END}"]
    bounds = [key if on.type is ColumnType.INT else f"timestamp_micros({key})" for key in keys[-2:]]
    shown = [f"{key} AS `{by}`" for key, by in zip(keys, windows.by, strict=False)]
    shown += [f"{bounds[0]} AS {WINDOW_START}", f"{bounds[1]} AS {WINDOW_END}"]
    exactly = isinstance(windows.kind, (Sliding, Session))
    shown += [f"{aggregate_sql(one, exactly, one.name in wide)} AS `{one.name}`" for one in windows.aggregates]
    placed = shape.with_columns(*(Column(place, ColumnType.INT) for place in PLACES))
    return text_of(read(f"SELECT {', '.join(shown)} FROM `{name}` GROUP BY {', '.join(keys)}", placed))


def happening(windows: Windows, shape: InputShape, on: Column) -> str:
    """A query over the rows of an input, under its name: those that are in windows, with AT."""
    name = shape.name
    column = f"`{name}`.`{on.name}`"
    at = column if on.type is ColumnType.INT else f"unix_micros(CAST({column} AS timestamp))"
    where = f"{column} IS NOT NULL"
    if windows.where:
        condition = read(f"SELECT ({windows.where}) AS kept FROM `{name}`", shape)
        where += f" AND ({text_of(condition.selects[0].unalias())})"
    return f"SELECT *, {at} AS {AT} FROM `{name}` WHERE {where}"


def read(query: str, shape: InputShape) -> exp.Query:
    """A query as Spark is to run it: its names resolved, its sums exact, as the analysis of any select has them."""
    shapes = spelled_alike([shape])
    return exact(dated(within_sizes(resolved(parsed(query), shapes).query, shapes), shapes), shapes)


def aggregate_sql(aggregate: Aggregate, exactly: bool, wide: bool) -> str:
    """An aggregate over rows that have AT, which is of values of the rows that it is for: others may raise. Of sliding
    windows and sessions `approx_distinct` is `exactly` what it estimates of others (docs/decisions/0044-windows.md)."""
    conditions = [f"({aggregate.where})"] if aggregate.where else []
    value = f"({aggregate.of})" if aggregate.of else "*"
    if aggregate.of and aggregate.where:
        value = f"(CASE WHEN {aggregate.where} THEN {aggregate.of} END)"
    timed = f"named_struct('at', {AT}, 'value', {value})"
    if aggregate.function is Function.COLLECT:  # of what SQL takes for equal, -0.0 comes before 0.0
        timed = f"named_struct('at', {AT}, 'value', {value}, 'text', CAST({value} AS string))"
    calls = {
        Function.COUNT: "count(*)" if value == "*" else f"count({value})",
        Function.FIRST: f"min({timed})",
        Function.LAST: f"max({timed})",
        Function.COLLECT: f"collect_list({timed})",
        Function.COUNT_DISTINCT: f"count(DISTINCT {value})",
        Function.APPROX_DISTINCT: f"count(DISTINCT {value})" if exactly else f"approx_count_distinct({value})",
        Function.APPROX_QUANTILE: f"percentile_disc({aggregate.at}) WITHIN GROUP (ORDER BY {on_a_grid(value)})",
    }
    call = calls.get(aggregate.function, f"{aggregate.function}({value})")
    if aggregate.function in (Function.FIRST, Function.LAST, Function.COLLECT):
        conditions.append(f"{value} IS NOT NULL")
    if wide:
        call = f"sum(CAST({value} AS decimal(20, 0)))"
    filtered = f"{call} FILTER (WHERE {' AND '.join(conditions)})" if conditions else call
    if aggregate.function in (Function.FIRST, Function.LAST):
        return f"({filtered}).value"
    if aggregate.function is Function.COLLECT:
        return f"to_json(sort_array({filtered}).value)"
    return f"CAST({filtered} AS bigint)" if wide else filtered


def on_a_grid(value: str) -> str:
    """A number as a multiple of the power of two that its eighth binary digit is worth (model/window/quantile.py)."""
    number = f"CAST({value} AS double)"
    worth = f"power(2D, greatest(floor(log2(abs({number}))) - {DIGITS - 1}, {_LEAST_EXPONENT}))"
    plain = f"{number} = 0 OR NOT abs({number}) < CAST('Infinity' AS double)"
    return f"CASE WHEN {plain} THEN {number} + 0D ELSE rint({number} / {worth}) * {worth} END"
