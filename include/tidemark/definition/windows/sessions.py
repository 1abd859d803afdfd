"""Sessions, compiled: once it is known at which instant the session of each row begins, they are groups as any."""

from __future__ import annotations

from sqlglot import exp

from tidemark.definition.dialect import text_of
from tidemark.definition.parse import parsed
from tidemark.definition.recipe import InputShape, InSessions
from tidemark.definition.resolve import resolved, spelled_alike
from tidemark.definition.sums import exact
from tidemark.definition.windows.aggregates import aggregate_sql
from tidemark.definition.windows.assigned import AT, START, happening, typed
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.sliding import with_micros
from tidemark.model.window.kind import Session
from tidemark.model.window.windows import WINDOW_END, WINDOW_START


def in_sessions(told: Checked, shape: InputShape) -> InSessions:
    """How sessions of the rows of an input of this shape are computed."""
    windows, name = told.windows, told.input
    assert isinstance(windows.kind, Session)
    shapes = spelled_alike([with_micros(shape, AT, START)])
    begins, end = f"`{name}`.`{START}`", f"max(`{name}`.`{AT}`) + {windows.kind.gap}L"
    if windows.kind.max_length is not None:
        end = f"least({end}, {begins} + {windows.kind.max_length}L)"
    shown = [f"`{name}`.`{column}` AS `{column}`" for column in windows.by]
    shown += [f"{typed(begins, told.on)} AS {WINDOW_START}", f"{typed(end, told.on)} AS {WINDOW_END}"]
    shown += [f"{aggregate_sql(one, of, where)} AS `{one.name}`" for one, of, where in told.aggregates]
    keys = [*(f"`{name}`.`{column}`" for column in windows.by), begins]
    query = resolved(parsed(f"SELECT {', '.join(shown)} FROM `{name}` GROUP BY {', '.join(keys)}"), shapes).query
    rows = happening(name, windows.on, told.on, windows.by, told.where.sql if told.where else "").sql
    used = {column.name for column in query.find_all(exp.Column)} - {AT, START}
    columns = tuple(column.name for column in shape.columns if column.name in used)
    return InSessions(name, windows.by, windows.kind, rows, columns, text_of(exact(query, shapes)))
