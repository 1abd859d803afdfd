"""Numbers that count since the epoch: what they count, as declared or as the name ends; and which times are usual."""

from __future__ import annotations

import re
from collections.abc import Iterable

UNITS = ("days", "s", "ms", "us", "ns")
"""What a number in a column declared timestamp may count, or date (days only)."""
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days: the times that most systems have, and that ISO 8601 writes in four digits."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FAR = re.compile(r"([+-]?)([0-9]{4,12})(-[0-9]{2}-[0-9]{2}(?:[T ].*)?)", re.DOTALL)


def unit_of(name: str, declared: Iterable[tuple[str, str]]) -> str | None:
    """The unit declared for a column, else the one its name ends with (`ts_ms`, `source.ts_us`); None if neither."""
    for column, unit in declared:
        if column == name:
            return unit
    return next((unit for unit in UNITS if name.endswith(f"_{unit}")), None)


def first_and_last(unit: str) -> tuple[int, int]:
    """The first and the last number of the years 1 to 9999, counted in a unit."""
    if unit == "days":
        return FIRST_DAY, LAST_DAY
    day = 86_400 * _PER_SECOND[unit]
    return FIRST_DAY * day, (LAST_DAY + 1) * day - 1


def far_text(text: str) -> tuple[int, str] | None:
    """What a text says of a time that is not in the years 1 to 9999.

    Returns:
        1 for a later time and -1 for an earlier one, and the text with a year that every calendar has in place of its
        own, which shows whether it is a time at all (empty for infinity). None for any other text.
    """
    bare = text.strip()
    if bare.lstrip("+-").lower() == "infinity" and len(bare) < 10:
        return (-1 if bare.startswith("-") else 1), ""
    before_christ = bare.endswith(" BC")
    match = _FAR.fullmatch(bare.removesuffix(" BC"))
    if match is None:
        return None
    sign, year, rest = match[1], int(match[2]), match[3]
    if before_christ or sign == "-" or not year:
        return -1, f"2000{rest}"
    return (1, f"2000{rest}") if year > 9999 else None
