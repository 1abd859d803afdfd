"""Layout by time: rows at rest are in order of a *bucket* of time first, then of their key.

The bucket of a row is the whole number of times that `every` fits into its value in the column `by`; a null is in the
least bucket of all. A chunk that is large enough ends with its bucket, so a question about a span of time opens the
chunks of few buckets, and one about a key those of many. An update and its retraction have the same value, hence the
same bucket: they meet.

    >>> layout = Layout("at", 6)
    >>> [layout.bucket(value) for value in (0, 5, 6, -1, None)]
    [0, 0, 1, -1, -9223372036854775808]
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.errors import InvalidUsage

NULL_BUCKET = -(2**63)
"""The bucket of rows without a value. One that has this bucket too, by the least value there is, may share it."""


@dataclass(frozen=True)
class Layout:
    """By which column, a timeline, rows are laid out, and in steps of what: microseconds of a timestamp, units of a
    whole number."""

    by: str
    every: int

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InvalidUsage(f"layout every {self.every}; it must be 1 microsecond or more")

    def bucket(self, value: int | None) -> int:
        """The bucket of a row that has the value in the column `by`."""
        return NULL_BUCKET if value is None else value // self.every
