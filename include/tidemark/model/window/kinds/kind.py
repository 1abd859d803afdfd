"""What is asked of every kind of windows, and what more of an aligned one. The rest of the product knows kinds by this.

A kind is a frozen dataclass. Its docstring, and the string below each of its fields, are texts of
docs/reference/collection-file.md; what a file writes is made of its fields (fields.py). All lengths and instants are
whole microseconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from tidemark.model.wording import counted


class Window(NamedTuple):
    """A window's bounds. The end belongs to the windows of kinds that are `inclusive`, and to no others."""

    start: int
    end: int


class Kind(ABC):
    """A kind of windows: which windows the rows of one key are in."""

    summary: ClassVar[str]
    """What it is, beside its name in docs/reference/collection-file.md, with an example."""
    written_as: ClassVar[Mapping[str, str]] = {}
    """What a collection file calls a field, where that is another name."""
    inclusive: ClassVar[bool] = False
    """Whether a window's end belongs to it."""
    overlap: ClassVar[bool] = False
    """Whether windows of one key may overlap. Bars of those that do not are filled in pictures."""
    noun: ClassVar[str] = "window"
    """What one of its windows is called."""
    late_is_counted: ClassVar[str] = "counted"
    """How a row that comes late for a window is counted as late, in words."""
    no_next_window: ClassVar[str] = ""
    """Why late rows cannot count in the next window, after "not available for"; empty where they can."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name, in a collection file and in a stored definition."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What its windows are, in words: `tumbling windows of 1h`."""

    @property
    @abstractmethod
    def most_windows(self) -> int | None:
        """How many windows a row can change at most: so many rows of windows it retracts, so many it adds. None where
        that depends on other rows."""

    @property
    @abstractmethod
    def windows_per_row(self) -> int:
        """How many windows there are for each row, at most."""

    @property
    def changes(self) -> str:
        """Which windows a row changes, in words."""
        assert self.most_windows is not None, "a kind whose rows change any number of windows says which"
        return f"at most {counted(self.most_windows, self.noun)}"

    @property
    def joins_at_end(self) -> bool:
        """Whether a row at the end of a window changes it."""
        return self.inclusive

    @property
    def wrong_of_dates(self) -> str:
        """Why it cannot be on a column of dates, after "a date, which"; empty where it can."""
        return ""


class AlignedKind(Kind):
    """A kind whose window bounds do not depend on the rows: which windows hold an instant is arithmetic, or the
    calendar. A window does not hold its end. Of two windows the one that starts later does not end earlier.

    The methods are the law, which judges what the kernel of the kind computes (arrow/kernels/windows/aligned/)."""

    @abstractmethod
    def windows_at(self, at: int) -> tuple[Window, ...]:
        """The windows that hold an instant, in order of start and end. Raises InvalidUsage for an instant that no
        calendar has."""

    @abstractmethod
    def earliest_after(self, at: int) -> Window:
        """The first window, by start and end, that ends after an instant."""

    @abstractmethod
    def earliest_from(self, window: Window) -> int:
        """The first instant for which a window is the `earliest_after`: the end of the one before it, by start and
        end."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How far behind its start a window ends at most."""

    @property
    @abstractmethod
    def most_windows(self) -> int:
        """How many windows a row is in at most, all of which it changes."""

    @property
    def windows_per_row(self) -> int:
        return self.most_windows

    @property
    def sampled(self) -> tuple[int, int, int] | None:
        """The advance, offset and size of windows between which there are gaps; None where each instant is in one."""
        return None

    @property
    def crowd(self) -> tuple[int, str]:
        """How many windows a row is in, and of which, in words: 10,000 are as many as may be."""
        return self.most_windows, self.called


class SideBySide(AlignedKind):
    """An aligned kind whose windows are side by side, without a gap: each instant is in exactly one."""

    def windows_at(self, at: int) -> tuple[Window, ...]:
        return (self.earliest_after(at),)

    def earliest_from(self, window: Window) -> int:
        return window.start

    @property
    def most_windows(self) -> int:
        return 1


def grid(at: int, step: int, offset: int) -> int:
    """The last of the instants n * step + offset that is not after `at`."""
    return (at - offset) // step * step + offset
