"""The rows of an input that are in windows, as SQL. Which windows they are in is for kernels to say
(arrow/kernels/windows)."""

from __future__ import annotations

from tidemark.model.collection import ColumnType, ValueType

AT, START, END = "_at", "_start", "_end"
"""When a row happened, in microseconds; and when its window begins and ends."""
TIMES = (ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.INT)
"""Types of a column that windows may be on; a whole number is taken for microseconds."""


def happening(name: str, on: str, of: ValueType, where: str, within: str = "") -> str:
    """The rows of an input that are in windows, with AT, as a query: those that say when they happened, at an instant
    that some window contains. `within` is that condition, of `{at}`; empty where windows contain every instant. No
    other value of a row that is in no window is computed, as it might raise."""
    column = f"`{name}`.`{on}`"
    at = column if of is ColumnType.INT else f"unix_micros(CAST({column} AS timestamp))"
    conditions = [f"{column} IS NOT NULL", within.format(at=at), where and f"({where})"]
    condition = " AND ".join(one for one in conditions if one)
    return f"SELECT *, {at} AS `{AT}` FROM `{name}` WHERE {condition}"
