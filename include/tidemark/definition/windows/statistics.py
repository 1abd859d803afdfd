"""What is in each window besides what its definition says: how many rows, of how many bytes, from when to when.

The statistics are aggregates of the same windows: so they are computed as the windows are, of whatever kind these are,
and of the same rows. Where windows take late rows for a while only, which rows these are differs from window to window,
so rows are placed in their windows (sliding ones: in the bands of these), and counted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidemark.definition.recipe import HAPPENED, InputShape, Recipe
from tidemark.definition.windows.analysed import analysed_windows
from tidemark.model.collection import Column, ColumnType, DecimalType, ValueType
from tidemark.model.derived import Refresh
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session
from tidemark.model.window.statistics import BYTES, FIRST, FIRST_ARRIVAL, KEYS, LAST, LAST_ARRIVAL, NET, ROWS
from tidemark.model.window.windows import Windows

COUNT, ARRIVED, GREW, SIZE, KEY = "_count", "_arrived", "_grew", "_size", "_key"
"""Columns that rows of the input have besides their own: how often a row is there; since when; when it last came to be
there more often (both microseconds); its bytes; its key as text."""
_BYTES = {
    ColumnType.BOOL: 1,
    ColumnType.DATE: 4,
    ColumnType.INT: 8,
    ColumnType.FLOAT: 8,
    ColumnType.TIMESTAMP: 8,
}
_DECIMAL_BYTES = 16


@dataclass(frozen=True)
class Statistics:
    """How statistics are computed. `recipe` gives them over a view of the input that has the columns COUNT, ARRIVED,
    GREW, SIZE and KEY too, each different row once, in columns called as `called` says; of those of the input `size`
    and `key` are SQL over its row. Where windows are on event times the view has HAPPENED, too, and rows that happened
    at different times are different.

    Where windows take late rows for a while only, a row is in the view once for each place that it counts in, by what
    counts of it: for each window, with START and END, or, of sliding ones, for each band, with BAND."""

    input: str
    by: tuple[str, ...]
    recipe: Recipe
    called: Mapping[str, str]
    size: str
    key: str


def statistics_of(windows: Windows, shape: InputShape) -> Statistics:
    """How the statistics of windows over an input of this shape are computed. InvalidUsage as `analysed_windows`."""
    types = {column.name: column.type for column in shape.columns}
    happened = windows.is_on_event_time(types)
    seen = (*shape.columns, *([Column(HAPPENED, ColumnType.TIMESTAMP)] if happened else []))
    on = HAPPENED if happened else windows.on
    more = [Column(name, ColumnType.INT) for name in (COUNT, ARRIVED, GREW, SIZE)]
    # What is retracted stays in a frozen session, and what takes its place may be in one of the same bounds.
    lasting = isinstance(windows.kind, Session) and windows.counts_late_for is not None
    one_value = shape.one_value and not happened and not lasting
    given = InputShape(shape.name, (*seen, *more, Column(KEY, ColumnType.STRING)), shape.key, one_value)
    # Where a key has one value there are as many keys as rows, and no need to hold them.
    aggregates = [one for one in _aggregates(on) if one.name != KEYS or not one_value]
    # No column of a definition may be called as ours are, and none of ours as one of `by`.
    own = "s" * (1 + max((len(name) for name in windows.by), default=0))
    called = {one.name: f"{own}{at}" for at, one in enumerate(aggregates)}
    named = tuple(replace(one, name=called[one.name]) for one in aggregates)
    asked = replace(windows, on=on, aggregates=named, early=True)
    recipe = analysed_windows(asked, given, Refresh.WHOLE)
    size = " + ".join(_size(f"`{name}`", of) for name, of in types.items())
    key = ", ".join(_text(f"`{name}`", types[name]) for name in shape.key)
    called.setdefault(KEYS, called[ROWS])
    return Statistics(shape.name, windows.by, recipe, called, size, f"to_json(array({key}))")


def _aggregates(on: str) -> tuple[Aggregate, ...]:
    return (
        Aggregate(ROWS, Function.COUNT),
        Aggregate(KEYS, Function.COUNT_DISTINCT, KEY),
        Aggregate(NET, Function.SUM, COUNT),
        Aggregate(BYTES, Function.SUM, SIZE),
        Aggregate(FIRST, Function.MIN, f"`{on}`"),
        Aggregate(LAST, Function.MAX, f"`{on}`"),
        Aggregate(FIRST_ARRIVAL, Function.MIN, ARRIVED),
        Aggregate(LAST_ARRIVAL, Function.MAX, GREW),
    )


def _size(column: str, of: ValueType) -> str:
    """The bytes of a value: of numbers and times always the same, of texts and bytes as many as they have; a null has
    none."""
    fixed = _DECIMAL_BYTES if isinstance(of, DecimalType) else _BYTES.get(of)
    if fixed is None:
        return f"coalesce(octet_length({column}), 0)"
    return f"IF({column} IS NULL, 0, {fixed})"


def _text(column: str, of: ValueType) -> str:
    """A value as text, another one for another value."""
    return f"hex({column})" if of is ColumnType.BYTES else f"CAST({column} AS string)"
