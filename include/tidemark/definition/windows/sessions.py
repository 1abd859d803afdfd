"""Sessions, compiled: which rows are in any, and of which values of these the aggregates are."""

from __future__ import annotations

from dataclasses import replace

from tidemark.definition.recipe import SessionPlan
from tidemark.definition.windows.aggregated import aggregates_of
from tidemark.definition.windows.checked import Checked
from tidemark.definition.windows.rows import AT, END, START, happening
from tidemark.definition.windows.valued import needed, valued_of
from tidemark.model.collection import ColumnType
from tidemark.model.window.close import closes_at
from tidemark.model.window.kinds import Session


def in_sessions(declared: Checked) -> SessionPlan:
    """How sessions of the rows of an input are computed."""
    windows, name = declared.windows, declared.input
    assert isinstance(windows.kind, Session)
    bounded = windows.counts_late_for is not None
    aggregates, valued = valued_of(declared, (AT, START, END) if bounded else (AT,))
    rows = happening(name, windows.on, declared.on, declared.where.sql if declared.where else "")
    bound = ColumnType.INT if declared.on is ColumnType.INT else ColumnType.TIMESTAMP
    columns = needed(declared, valued)
    found = SessionPlan(name, windows.by, windows.on, windows.kind, rows, columns, valued, aggregates, bound)
    if windows.counts_late_for is None:
        return found
    return replace(found, after=closes_at(windows.kind, 0, windows.grace) + windows.counts_late_for)


def sessions_without_queries(rule: SessionPlan, projected: Checked) -> SessionPlan:
    """The same over projected rows, where these need no query. Raises LeftToSpark where they do."""
    return replace(rule, of_columns=aggregates_of(projected))
