"""How far files have been read, in lines for people: many small ones take minutes, and one task may have them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

SOON_S = 2.0
"""Nothing is said of work of less."""
PACE_S = 10.0
"""Between two lines."""


@dataclass
class Progress:
    """Files read so far, out of `total`, and their rows.

    Attributes:
        total: How many files there are.
        say: Gets a line when one is due.
        now: Seconds of a clock.
    """

    total: int
    say: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _files: int = 0
    _rows: int = 0
    _began: float = field(init=False)
    _due: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()
        self._due = self._began + SOON_S

    def count(self, rows: int) -> None:
        """Count one more file, and say how far the files are when that is due."""
        self._files += 1
        self._rows += rows
        if (now := self.now()) >= self._due and self._files < self.total:
            rate = self._files / (now - self._began)
            left = (self.total - self._files) / rate
            files = f"file {self._files:,} of {self.total:,}, {self._rows:,} rows"
            self.say(f"{files}, {rate:,.0f} files/s, about {left:,.0f} s to go")
            self._due = now + PACE_S


_PROGRESS: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def reporting(progress: Progress) -> Iterator[None]:
    """Count the files that are read in the block."""
    token = _PROGRESS.set(progress)
    try:
        yield
    finally:
        _PROGRESS.reset(token)


def count_file(rows: int) -> None:
    """Count a file that was read with its rows, if somebody reports progress."""
    if (progress := _PROGRESS.get()) is not None:
        progress.count(rows)
