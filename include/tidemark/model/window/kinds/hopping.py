"""Hopping windows: [n * advance + offset, + size) for every n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration
from tidemark.model.window.kinds.fields import Distance, Length, Offset, check_positive
from tidemark.model.window.kinds.kind import AlignedKind, Window, grid


@dataclass(frozen=True)
class Hopping(AlignedKind):
    """Windows of one size that begin at regular distances: a row is in all that hold it."""

    size: Length
    """How long a window is."""
    advance: Distance
    """The distance between the beginnings of windows."""
    offset: Offset = 0
    """By how much windows begin after midnight UTC of 1970-01-01, modulo `every`."""
    sampling: bool = False
    """Whether windows may leave gaps between them: rows in a gap are in no window."""
    kind: Literal["hopping"] = "hopping"

    summary: ClassVar[str] = "Windows that overlap: `{size: 1h, every: 10m}`."
    written_as: ClassVar[Mapping[str, str]] = {"advance": "every"}
    overlap = True

    def __post_init__(self) -> None:
        check_positive("the size of a hopping window", self.size)
        check_positive("the advance of a hopping window", self.advance)
        if self.advance > self.size and not self.sampling:
            raise InvalidUsage(
                f"windows of {self._lengths} leave out the rows between them; write sampling: true if that is meant"
            )

    def windows_at(self, at: int) -> tuple[Window, ...]:
        starts = range(self.earliest_after(at).start, grid(at, self.advance, self.offset) + 1, self.advance)
        return tuple(Window(start, start + self.size) for start in starts)

    def earliest_after(self, at: int) -> Window:
        start = grid(at - self.size, self.advance, self.offset) + self.advance
        return Window(start, start + self.size)

    def earliest_from(self, window: Window) -> int:
        return window.end - self.advance

    @property
    def most_windows(self) -> int:
        return -(-self.size // self.advance)

    @property
    def sampled(self) -> tuple[int, int, int] | None:
        return (self.advance, self.offset, self.size) if self.advance > self.size else None

    @property
    def crowd(self) -> tuple[int, str]:
        return self.size // self.advance, f"windows of {self._lengths}"

    @property
    def reach(self) -> int:
        return self.size

    @property
    def called(self) -> str:
        return f"hopping windows of {self._lengths}"

    @property
    def _lengths(self) -> str:
        return f"{format_duration(self.size)} every {format_duration(self.advance)}"
