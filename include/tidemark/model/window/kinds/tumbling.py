"""Tumbling windows: [n * size + offset, + size) for every n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.model.instant import format_duration
from tidemark.model.window.kinds.fields import Length, Offset, check_positive
from tidemark.model.window.kinds.kind import SideBySide, Window, grid


@dataclass(frozen=True)
class Tumbling(SideBySide):
    """Windows of one size side by side: a row is in one of them. `tumbling: 1h` is short for `{size: 1h}`."""

    size: Length
    """How long a window is; of an `on` that holds whole numbers, how many."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo the size: `15m`, or `-15m`."""
    kind: Literal["tumbling"] = "tumbling"

    summary: ClassVar[str] = "Windows side by side: `1h`."

    def __post_init__(self) -> None:
        check_positive("the size of a tumbling window", self.size)

    def earliest_after(self, at: int) -> Window:
        start = grid(at, self.size, self.offset)
        return Window(start, start + self.size)

    @property
    def reach(self) -> int:
        return self.size

    @property
    def called(self) -> str:
        return f"tumbling windows of {format_duration(self.size)}"
