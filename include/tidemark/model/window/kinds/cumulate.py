"""Cumulating windows: from each n * size + offset on, windows of `step`, 2 * `step`, … up to `size`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration
from tidemark.model.window.kinds.fields import Distance, Length, Offset, check_positive
from tidemark.model.window.kinds.kind import AlignedKind, Window, grid


@dataclass(frozen=True)
class Cumulate(AlignedKind):
    """Windows that begin together every `size` and end `step` after each other: the total of the day by each hour."""

    size: Length
    """How long the longest window is, and the distance between the beginnings of windows."""
    step: Distance
    """By how much a window is longer than the one before; a divisor of the size."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo the size."""
    kind: Literal["cumulate"] = "cumulate"

    summary: ClassVar[str] = "Windows that grow: `{size: 1d, step: 1h}`."
    overlap = True

    def __post_init__(self) -> None:
        check_positive("the size of a cumulating window", self.size)
        check_positive("the step of a cumulating window", self.step)
        if self.size % self.step:
            raise InvalidUsage(f"a cumulating window of {self._lengths}: the size must be a multiple of the step")

    def windows_at(self, at: int) -> tuple[Window, ...]:
        start, first = self.earliest_after(at)
        return tuple(Window(start, end) for end in range(first, start + self.size + 1, self.step))

    def earliest_after(self, at: int) -> Window:
        return Window(grid(at, self.size, self.offset), grid(at, self.step, self.offset) + self.step)

    def earliest_from(self, window: Window) -> int:
        return window.end - self.step

    @property
    def most_windows(self) -> int:
        return self.size // self.step

    @property
    def crowd(self) -> tuple[int, str]:
        return self.most_windows, f"windows of up to {self._lengths}"

    @property
    def reach(self) -> int:
        return self.size

    @property
    def called(self) -> str:
        return f"cumulating windows of {self._lengths}"

    @property
    def _lengths(self) -> str:
        return f"{format_duration(self.size)} in steps of {format_duration(self.step)}"
