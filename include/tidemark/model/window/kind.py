"""The kinds of windows: how instants of one key fall into windows. All lengths and instants are microseconds.

kind        windows of a row at t                                      bounds
tumbling    the one of `size` that holds t                             [start, end)
hopping     those of `size`, one every `advance`, that hold t          [start, end)
cumulate    of the row's `size` those from its start that end after t  [start, end), ends `step` apart
calendar    the day, week, month, quarter or year of `zone`            [start, end)
sliding     one for each set of rows at most `size` apart (KIP-450)    [start, start + size], both ends belong to it
session     rows of which each follows another within `gap`            [first, last + gap), at most max_length
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration
from tidemark.model.window.zone import zone_named


def _positive(what: str, length: int) -> None:
    if length < 1:
        raise InvalidUsage(f"{what} is {length} µs; it must be 1 or more")


@dataclass(frozen=True)
class Tumbling:
    """[n * size + offset, + size) for every n. An `offset` is taken modulo the size."""

    size: int
    offset: int = 0
    kind: Literal["tumbling"] = "tumbling"
    inclusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _positive("the size of a tumbling window", self.size)


@dataclass(frozen=True)
class Hopping:
    """[n * advance + offset, + size) for every n. With `sampling` the advance may be larger than the size: then rows
    between windows are in none."""

    size: int
    advance: int
    offset: int = 0
    sampling: bool = False
    kind: Literal["hopping"] = "hopping"
    inclusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _positive("the size of a hopping window", self.size)
        _positive("the advance of a hopping window", self.advance)
        if self.advance > self.size and not self.sampling:
            raise InvalidUsage(
                f"windows of {format_duration(self.size)} every {format_duration(self.advance)} leave out the rows "
                "between them; write sampling: true if that is meant"
            )


@dataclass(frozen=True)
class Cumulate:
    """Starts every `size`; from each start windows of `step`, 2 * `step`, … up to `size`."""

    size: int
    step: int
    offset: int = 0
    kind: Literal["cumulate"] = "cumulate"
    inclusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _positive("the size of a cumulating window", self.size)
        _positive("the step of a cumulating window", self.step)
        if self.size % self.step:
            raise InvalidUsage(
                f"a cumulating window of {format_duration(self.size)} in steps of {format_duration(self.step)}: the "
                "size must be a multiple of the step"
            )


class Unit(StrEnum):
    """Units of the calendar. Weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True)
class Calendar:
    """The units of a calendar as clocks in `zone` (a name of the tz database) show them: a day of 23 or 25 hours is one
    day. Each unit begins at the first instant of its first day."""

    unit: Unit
    zone: str = "UTC"
    kind: Literal["calendar"] = "calendar"
    inclusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        zone_named(self.zone)


@dataclass(frozen=True)
class Sliding:
    """One window for each set of rows that a closed interval of length `size` can hold: for each instant t with rows
    the window that ends with it, [t - size, t], and the one just after it, [t + 1, t + 1 + size], if it holds a row.
    With `clamp_start_at_zero` no window starts below 0, as Kafka has it, and rows below 0 are in none."""

    size: int
    clamp_start_at_zero: bool = False
    kind: Literal["sliding"] = "sliding"
    inclusive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 0:
            raise InvalidUsage(f"the size of a sliding window is {self.size} µs; it must be 0 or more")


@dataclass(frozen=True)
class Session:
    """Rows of which each follows another within `gap`; exactly the gap apart is together, unless `exact_gap_merges` is
    false. With `max_length` a session's rows lie within less than that of its first: the next row begins a new one, and
    none is longer."""

    gap: int
    exact_gap_merges: bool = True
    max_length: int | None = None
    kind: Literal["session"] = "session"
    inclusive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _positive("the gap of a session", self.gap)
        if self.max_length is not None:
            _positive("the max_length of a session", self.max_length)


WindowKind = Tumbling | Hopping | Cumulate | Calendar | Sliding | Session
Aligned = Tumbling | Hopping | Cumulate | Calendar
"""Kinds whose windows lie where they lie, whatever rows there are."""
