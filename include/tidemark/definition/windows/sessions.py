"""Sessions, compiled: once it is known at which instant the session of each row begins, they are groups as any."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InSessions, MergedCells
from tidemark.definition.resolve import resolved, spelled_alike
from tidemark.definition.state import Op
from tidemark.definition.sums import exact
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.aggregates import aggregate_sql
from tidemark.definition.windows.assigned import AT, END, START, happening, typed
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.stated import stated, windows_sql, with_micros
from tidemark.errors import InvalidUsage
from tidemark.model.window.close import closes_at
from tidemark.model.window.kind import Session
from tidemark.model.window.windows import WINDOW_END, WINDOW_START

BUCKET, FIRST, LAST = "_bucket", "_first", "_last"
"""Which stretch of time a cell is, and its first and last instant."""
MERGED = (Op.ADD, Op.MIN, Op.MAX, Op.BIT_OR)
"""States of cells that an aggregate of SQL puts together."""


def in_sessions(told: Checked) -> InSessions:
    """How sessions of the rows of an input are computed."""
    windows, name = told.windows, told.input
    assert isinstance(windows.kind, Session)
    shapes = spelled_alike([with_micros(told.shape, AT, START, END)])
    begins, end = f"`{name}`.`{START}`", f"max(`{name}`.`{AT}`) + {windows.kind.gap}L"
    if windows.kind.max_length is not None:
        end = f"least({end}, {begins} + {windows.kind.max_length}L)"
    bounds = [begins]
    if windows.counts_late_for is not None:  # two may begin at one instant, an open one beside a frozen one
        end = f"`{name}`.`{END}`"
        bounds.append(end)
    shown = [f"`{name}`.`{column}` AS `{column}`" for column in windows.by]
    shown += [f"{typed(begins, told.on)} AS {WINDOW_START}", f"{typed(end, told.on)} AS {WINDOW_END}"]
    shown += [f"{aggregate_sql(one, of, where)} AS `{one.name}`" for one, of, where in told.aggregates]
    keys = [*(f"`{name}`.`{column}`" for column in windows.by), *bounds]
    query = resolved(parsed(f"SELECT {', '.join(shown)} FROM `{name}` GROUP BY {', '.join(keys)}"), shapes).query
    rows = happening(name, windows.on, told.on, told.where.sql if told.where else "").sql
    used = {column.name for column in query.find_all(exp.Column)} - {AT, START, END}
    columns = tuple(column.name for column in told.shape.columns if column.name in used)
    text = text_of(exact(query, shapes))
    found = InSessions(name, windows.by, windows.on, windows.kind, rows, columns, text)
    if windows.counts_late_for is not None:
        return replace(found, after=closes_at(windows.kind, 0, windows.grace) + windows.counts_late_for)
    try:
        states, finals, cells = stated(told, (BUCKET,), {FIRST: "min({})", LAST: "max({})"})
    except InvalidUsage:  # an average that rows tell, and states do not
        return found
    if any(state.op not in MERGED for state in states):
        return found
    return replace(found, merged=MergedCells(cells, states, windows_sql(told, finals)))


def sessions_without_queries(rule: InSessions, projected: Checked) -> InSessions:
    """The same over projected rows, where these need no query. Raises LeftToSpark where they do."""
    return replace(rule, plain=aggregates_of(projected))
