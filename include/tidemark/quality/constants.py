"""Constants that a collection file compares columns with, as the columns hold them.

Dates are days and timestamps are microseconds since the epoch, as they are stored: so every value of a column can be
judged, also those that no calendar of Python reaches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, ColumnType
from tidemark.model.instant import from_datetime
from tidemark.quality.refusal import shown

Constant = bool | int | float | str

MOST = 2**63 - 1
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_EPOCH_DAY = date(1970, 1, 1)


def number(value: Any) -> bool:
    """Whether it is a number that a column could hold; a truth is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -MOST - 1 <= value <= MOST if isinstance(value, int) else math.isfinite(value)


def constant(value: Any, of_column: ColumnType) -> Constant:
    """The value as a column of this type holds it. Raises InvalidUsage if it holds none such."""
    fits, what = _KINDS[of_column]
    if not fits(value):
        raise InvalidUsage(f"{shown(value)} is no {what}, which the column holds")
    if of_column is ColumnType.TIMESTAMP:
        return _micros(value)
    return _days(value) if of_column is ColumnType.DATE else value


def constant_of(collection: Collection, column: str, value: Any) -> Constant:
    """The value as that column of the collection holds it."""
    return constant(value, next(held.type for held in collection.columns if held.name == column))


def _micros(value: int | str) -> int:
    """A moment in microseconds; one without an offset is UTC."""
    if not isinstance(value, str):
        return value
    try:
        micros = int(value) if _WHOLE.fullmatch(value) else from_datetime(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        raise InvalidUsage(
            f"not a time: {shown(value)}; write 2013-01-02, 2013-01-02T03:04:05Z or microseconds"
        ) from None
    if not number(micros):
        raise InvalidUsage(f"time {shown(value)} is outside of what 64 bits of microseconds hold")
    return micros


def _days(value: int | str) -> int:
    if not isinstance(value, str):
        return value
    try:
        return int(value) if _WHOLE.fullmatch(value) else (date.fromisoformat(value) - _EPOCH_DAY).days
    except ValueError:
        raise InvalidUsage(f"not a date: {shown(value)}; write 2013-01-02") from None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and number(value))


_KINDS: dict[ColumnType, tuple[Callable[[Any], bool], str]] = {
    ColumnType.BOOL: (lambda value: isinstance(value, bool), "truth (true or false)"),
    ColumnType.INT: (number, "number"),
    ColumnType.FLOAT: (number, "number"),
    ColumnType.STRING: (_is_text, "text (quote it)"),
    ColumnType.DATE: (_is_moment, "date"),
    ColumnType.TIMESTAMP: (_is_moment, "time"),
}
