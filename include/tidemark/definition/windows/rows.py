"""The rows of an input that are in windows, as SQL. Which windows they are in is for kernels to say
(arrow/kernels/windows)."""

from __future__ import annotations

from tidemark.model.collection import ColumnType, ValueType

AT, START, END = "_at", "_start", "_end"
"""When a row happened, in microseconds; and when its window begins and ends."""
TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.INT)
"""Types of a column that windows may be on; a whole number is taken for microseconds."""


def happening(name: str, on: str, of: ValueType, where: str) -> str:
    """The rows of an input that are in windows, with AT, as a query: those that say when they happened."""
    column = f"`{name}`.`{on}`"
    at = column if of is ColumnType.INT else f"unix_micros(CAST({column} AS timestamp))"
    condition = f"{column} IS NOT NULL{f' AND ({where})' if where else ''}"
    return f"SELECT *, {at} AS `{AT}` FROM `{name}` WHERE {condition}"
