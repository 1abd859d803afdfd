"""Numbers that count since the epoch: what they count, as declared or as the name ends."""

from __future__ import annotations

from collections.abc import Iterable

UNITS = ("days", "s", "ms", "us", "ns")
"""What a number in a column declared timestamp may count, or date (days only)."""


def unit_of(name: str, declared: Iterable[tuple[str, str]]) -> str | None:
    """The unit declared for a column, else the one its name ends with (`ts_ms`, `source.ts_us`); None if neither."""
    for column, unit in declared:
        if column == name:
            return unit
    return next((unit for unit in UNITS if name.endswith(f"_{unit}")), None)
