"""Sliding windows (KIP-450): which there are, the rows of a key say (model/window/sliding.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration
from tidemark.model.window.kinds.fields import Length
from tidemark.model.window.kinds.kind import Kind


@dataclass(frozen=True)
class Sliding(Kind):
    """A window for each set of rows within `size` of each other, both ends included. `sliding: 30m` is short for
    `{size: 30m}`."""

    # One window for each set of rows that a closed interval of length `size` can hold: for each instant t with rows the
    # window that ends with it, [t - size, t], and the one just after it, [t + 1, t + 1 + size], if it holds a row. With
    # `clamp_start_at_zero` no window starts below 0, as Kafka has it, and rows below 0 are in none.

    size: Length
    """The largest distance between rows of a window."""
    clamp_start_at_zero: bool = False
    """Whether no window begins before 1970, as Kafka Streams has it."""
    kind: Literal["sliding"] = "sliding"

    summary: ClassVar[str] = "A window for each set of rows that are so close together: `30m`."
    inclusive = True
    overlap = True
    no_next_window = "sliding windows: without rows there is no next window that a late row could count in"

    def __post_init__(self) -> None:
        if self.size < 0:
            raise InvalidUsage(f"the size of a sliding window is {self.size} µs; it must be 0 or more")

    @property
    def most_windows(self) -> None:
        return None

    @property
    def windows_per_row(self) -> int:
        return 2  # the one that ends with it, and the one just after it

    @property
    def reach(self) -> int:
        """How far behind its start a window ends."""
        return self.size

    @property
    def changes(self) -> str:
        return f"2 windows of its own, and one for each instant with rows within {format_duration(self.size)} of it"

    @property
    def called(self) -> str:
        return f"sliding windows of {format_duration(self.size)}"
