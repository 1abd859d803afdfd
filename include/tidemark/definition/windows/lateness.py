"""Which rows count in windows that take late ones for a while only, as SQL over an input's updates.

A row is placed in all its windows, as where late rows count for ever, and each place says whether the window was frozen
when the row came. Those that are not are the rows that the aggregates are of. By `next_window` a row that came late for
all of its windows has one place more, in the first window that was open when it came: there the last of its own stood.
A row that came late for some only is in that window anyway, as its own windows end one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from sqlglot import exp

from tidemark.definition.parse import parsed
from tidemark.definition.recipe import (
    DIFF,
    FROZEN,
    LATE_FOR_ALL,
    LATE_FOR_SOME,
    LATE_UPDATES,
    LEARNED,
    InputShape,
    LatenessFilter,
)
from tidemark.definition.resolve import resolved, spelled_alike
from tidemark.definition.windows.assigned import AT, END, START, Source, assigned, earliest_after, is_last, typed
from tidemark.definition.windows.checked import Checked
from tidemark.model.collection import Column, ColumnType, ValueType
from tidemark.model.window.close import closes_at
from tidemark.model.window.kind import Aligned
from tidemark.model.window.windows import Late

_ROWS, _MISSED, _HELD = "_rows", "_missed", "_held"
_MOVES, _BEGINS, _ENDS = "_moves", "_begins", "_ends"


def in_time(declared: Checked, shape: InputShape, query: str, happened: Source) -> tuple[LatenessFilter, InputShape]:
    """Which of the rows of an input of this shape that `happened` count, for a `query` over these; and their shape."""
    kind = declared.windows.kind
    assert isinstance(kind, Aligned)
    bound = ColumnType.INT if declared.on is ColumnType.INT else ColumnType.TIMESTAMP
    own = (Column(AT, ColumnType.INT), Column(START, bound), Column(END, bound))
    asked = resolved(parsed(query), spelled_alike([InputShape(shape.name, (*shape.columns, *own), shape.key)])).query
    used = {column.name for column in asked.find_all(exp.Column)}
    columns = tuple(column for column in shape.columns if column.name in used)
    rule = LatenessFilter(
        shape.name,
        declared.windows.by,
        tuple(column.name for column in columns),
        rows_in_windows(declared, happened, [*(one.name for one in columns), AT, DIFF]),
        _late(declared, kind, happened),
        declared.windows.late is Late.NEXT_WINDOW,
    )
    return rule, InputShape(shape.name, (*columns, *own), tuple(takewhile(used.__contains__, shape.key)))


def rows_in_windows(declared: Checked, happened: Source, columns: Sequence[str]) -> str:
    """A query that gives `columns` of the rows that `happened`, with START and END of each window, and FROZEN."""
    kind = declared.windows.kind
    assert isinstance(kind, Aligned)
    placed = assigned(kind, happened, declared.on).adding(**{FROZEN: frozen(declared)})
    window = {START: START, END: END, FROZEN: FROZEN}
    if declared.windows.late is Late.NEXT_WINDOW:
        placed, window = _moving(declared, kind, placed)
    shown = [f"`{name}`" for name in columns] + [f"{sql} AS `{name}`" for name, sql in window.items()]
    return f"SELECT {', '.join(shown)} FROM {placed.rows}"


def frozen(declared: Checked) -> str:
    """Whether a window took no more rows up to where the input was complete when a row came; false where that is null,
    as it is of rows that came before whatever is judged."""
    windows = declared.windows
    assert windows.counts_late_for is not None
    after = closes_at(windows.kind, 0, windows.grace) + windows.counts_late_for
    return f"coalesce({_micros(END, declared.on)} <= {LEARNED} - {after}L, false)"


def _moving(declared: Checked, kind: Aligned, placed: Source) -> tuple[Source, dict[str, str]]:
    """Rows with their windows, and as SQL over them the window of each, where the row that came late for its last one,
    and so for all, is in the first that was open then."""
    found, begins, ends = earliest_after(kind, placed, f"({LEARNED} - {declared.windows.grace}L)")
    moving = {
        _MOVES: f"{FROZEN} AND {is_last(kind)}",
        _BEGINS: typed(begins, declared.on),
        _ENDS: typed(ends, declared.on),
    }
    window = {START: f"IF({_MOVES}, {_BEGINS}, {START})", END: f"IF({_MOVES}, {_ENDS}, {END})"}
    return found.adding(**moving), window | {FROZEN: f"{FROZEN} AND NOT {_MOVES}"}


def _micros(name: str, on: ValueType) -> str:
    return name if on is ColumnType.INT else f"unix_micros({name})"


def _late(declared: Checked, kind: Aligned, happened: Source) -> str:
    """How many rows were late, and for how many windows. Only a row that happened below where the input was complete
    when it came can be; those of one instant that came at one time are in the same windows."""
    together = Source(
        f"SELECT {AT}, {LEARNED}, sum(abs({DIFF})) AS {_ROWS} FROM {happened.rows} WHERE {LEARNED} > {AT} "
        f"GROUP BY {AT}, {LEARNED}",
        happened.name,
    )
    placed = assigned(kind, together, declared.on).adding(**{FROZEN: frozen(declared)})
    each = (
        f"SELECT max({_ROWS}) AS {_ROWS}, count_if({FROZEN}) AS {_MISSED}, count(*) AS {_HELD} "
        f"FROM {placed.rows} GROUP BY {AT}, {LEARNED}"
    )
    numbers = {
        LATE_FOR_ALL: f"CASE WHEN {_MISSED} = {_HELD} THEN {_ROWS} END",
        LATE_FOR_SOME: f"CASE WHEN {_MISSED} BETWEEN 1 AND {_HELD} - 1 THEN {_ROWS} END",
        LATE_UPDATES: f"{_ROWS} * {_MISSED}",
    }
    return f"SELECT {', '.join(f'coalesce(sum({one}), 0) AS {name}' for name, one in numbers.items())} FROM ({each})"
