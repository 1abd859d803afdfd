"""Columns, and the types of what they hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from tidemark.errors import InvalidUsage

COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,126}")
"""A column's name. Names that start with an underscore belong to Tidemark."""
FIELD_NAME = re.compile(rf"{COLUMN_NAME.pattern}(\.[A-Za-z_][A-Za-z0-9_]*)*")
"""What is read from a source and not kept may be a field within a message: `source.ts_ms`."""
HIDDEN_NAME = re.compile(r"_[a-z][a-z0-9_]{0,126}")
"""What Tidemark calls a column that it keeps for itself, such as the count behind a mean."""


MASKED = "masked"
"""What people are shown in place of a value that they are not."""


class ColumnType(StrEnum):
    """Column types without parameters. `int` is int64, `float` IEEE double, `timestamp` UTC microseconds, `date` days
    since the epoch, `json` a JSON value as its canonical text (model/canonical_json.py)."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BYTES = "bytes"
    JSON = "json"


TIMELINE_TYPES = (ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.INT)
"""What a timeline may be: columns whose values are whole numbers in order of time."""
MAX_PRECISION = 38
"""Digits of a decimal: as many as 128 bits hold, whatever the digits are."""


@dataclass(frozen=True)
class DecimalType:
    """Exact decimals: at most `precision` digits, `scale` of them behind the point. What has more is refused, never
    rounded."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_PRECISION:
            raise InvalidUsage(f"{self} has {self.precision} digits; a decimal has 1 to {MAX_PRECISION}")
        if not 0 <= self.scale <= self.precision:
            raise InvalidUsage(
                f"{self} has {self.scale} digits behind the point; it may have 0 to {self.precision}, as many as in all"
            )

    @property
    def whole_digits(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


ValueType = ColumnType | DecimalType
"""What a column holds."""
_DECIMAL = re.compile(r"decimal\(\s*(-?[0-9]{1,4})\s*,\s*(-?[0-9]{1,4})\s*\)")


def parse_type(text: str) -> ValueType:
    """The type of that name: `int`, `decimal(12, 2)`. Raises InvalidUsage for any other text."""
    if match := _DECIMAL.fullmatch(text):
        return DecimalType(int(match[1]), int(match[2]))
    if text.startswith(("decimal", "numeric")):
        raise InvalidUsage(
            f"{text[:40]!r} is no type; write 'decimal(12, 2)': digits in all, digits behind the point "
            "(in quotes within braces)"
        )
    if text not in set(ColumnType):
        raise InvalidUsage(f"{text[:40]!r} is no type; the types are {', '.join(ColumnType)} and decimal(12, 2)")
    return ColumnType(text)


@dataclass(frozen=True)
class Column:
    """A typed column of the key or the value. Key columns are never floats, and hold no nulls but in
    derived collections (model/key.py).

    `id` is its own for ever in its collection, whatever it is called; 0 until a collection numbers it.
    """

    name: str
    type: ValueType
    id: int = 0

    def __post_init__(self) -> None:
        if not (FIELD_NAME.fullmatch(self.name) or HIDDEN_NAME.fullmatch(self.name)):
            raise InvalidUsage(f"column name {self.name!r} must match {COLUMN_NAME.pattern}")
