"""How an interval of a collection is: one state, and one sentence, for all that show it.

An interval has the first state that fits, in this order:

state      what is the case                                                     blocks
failed     it was read, and did not pass its gate                               yes
complete   all of it can be read                                                no
empty      so, and it has no rows                                               no
waiting    it was read, and an earlier one was not                              no
ingested   it was read, and is sealed by its run                                no
refused    it could not be read: a file, or what is beside its files            yes
not over   it goes on                                                           no
landed     its files are there, and were not read                               a hole does
expected   it is over, and its files may still come                             a hole does
missing    it is over, and its files should have come                           a hole does

What blocks keeps the collection from being complete until somebody does something. A hole is to be read while later
intervals were, or are asked for; what is behind all that was read is only what comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from tidemark.model.arrangement import Stopped
from tidemark.model.instant import parse_duration
from tidemark.model.interval import Interval
from tidemark.model.local_time import clock, first_instant, format_local

READY_WITHIN = parse_duration("12h")
"""Microseconds after an interval's end within which its files are expected, unless somebody says otherwise."""


class DayState(StrEnum):
    """How an interval is."""

    COMPLETE = "complete"
    EMPTY = "empty"
    FAILED = "failed"
    INGESTED = "ingested"
    WAITING = "waiting"
    REFUSED = "refused"
    NOT_OVER = "not over"
    LANDED = "landed"
    EXPECTED = "expected"
    MISSING = "missing"

    @property
    def is_complete(self) -> bool:
        """Whether all of it can be read, rows or none."""
        return self in (DayState.COMPLETE, DayState.EMPTY)

    @property
    def is_read(self) -> bool:
        """Whether all that landed of it was taken."""
        return self.is_complete or self in (DayState.FAILED, DayState.INGESTED, DayState.WAITING)


WORDS = {
    DayState.COMPLETE: "complete",
    DayState.EMPTY: "complete, without rows",
    DayState.FAILED: "ingested, and did not pass its gate",
    DayState.INGESTED: "ingested, not sealed yet",
    DayState.WAITING: "ingested, waits for an earlier one",
    DayState.REFUSED: "refused",
    DayState.NOT_OVER: "not over yet",
    DayState.LANDED: "landed, not ingested",
    DayState.EXPECTED: "not ingested, expected",
    DayState.MISSING: "not ingested",
}
"""What is said of each, before what is known beside."""


@dataclass(frozen=True)
class Seen:
    """What is known of an interval.

    Attributes:
        interval: Which one.
        is_complete: Whether all of it can be read.
        is_ingested: Whether it was read to its end.
        waits: Whether an earlier one was not.
        is_hole: Whether it is to be read while later ones were, or are asked for.
        has_failed: Whether a gate found a batch of it wrong.
        stopped: Why it could not be read.
        has_rows: Whether it has any; None: nobody looked.
        has_landed: Whether its files are there; None: nobody looked.
    """

    interval: Interval
    is_complete: bool = False
    is_ingested: bool = False
    waits: bool = False
    is_hole: bool = False
    has_failed: bool = False
    stopped: Stopped | None = None
    has_rows: bool | None = None
    has_landed: bool | None = None


@dataclass(frozen=True)
class Day:
    """An interval and its state.

    Attributes:
        interval: Which one.
        state: How it is.
        why: What made it so, or when it is due.
        detail: Which file it was, and what is wrong with it, for who may see logs: it may quote a row.
        blocks: Whether the collection waits for it.
    """

    interval: Interval
    state: DayState
    why: str = ""
    detail: str = ""
    blocks: bool = False

    @property
    def in_full(self) -> str:
        """Which one it is, its state, and the detail, in one line."""
        return f"{self.sentence}: {self.detail}" if self.detail else self.sentence

    @property
    def name(self) -> str:
        """The interval as people name it."""
        return interval_in_words(self.interval)

    @property
    def sentence(self) -> str:
        """Which one it is, and its state, in one line."""
        return f"{self.name}: {self.words}"

    @property
    def words(self) -> str:
        """Its state in one line, without its bounds."""
        said = WORDS[self.state]
        separator = " " if self.state is DayState.EXPECTED else ": "
        return f"{said}{separator}{self.why}" if self.why else said


def interval_in_words(interval: Interval) -> str:
    """An interval as people name it: a day by its date, where it is a day in its zone."""
    day = clock(interval.lower, interval.zone).date()
    if [first_instant(each, interval.zone) for each in (day, day + timedelta(1))] == [interval.lower, interval.upper]:
        return f"{day:%Y-%m-%d}"
    return f"{format_local(interval.lower, interval.zone)} to {format_local(interval.upper, interval.zone)}"


def day_of(seen: Seen, now: int, ready_within: int = READY_WITHIN) -> Day:
    """The state of an interval as of a time.

    Args:
        seen: What is known of it.
        now: The time, in microseconds.
        ready_within: How long after its end its files are expected, in microseconds.
    """
    interval, due = seen.interval, seen.interval.upper + ready_within
    if seen.has_failed:
        return Day(interval, DayState.FAILED, blocks=True)
    if seen.is_complete:
        return Day(interval, DayState.EMPTY if seen.has_rows is False else DayState.COMPLETE)
    if seen.is_ingested:
        return Day(interval, DayState.WAITING if seen.waits else DayState.INGESTED)
    if seen.stopped:
        return Day(interval, DayState.REFUSED, seen.stopped.words, seen.stopped.detail, blocks=True)
    if not interval.is_over(now):
        return Day(interval, DayState.NOT_OVER)
    if seen.has_landed:
        return Day(interval, DayState.LANDED, blocks=seen.is_hole)
    if now < due:
        return Day(interval, DayState.EXPECTED, f"by {format_local(due, interval.zone)}", blocks=seen.is_hole)
    return Day(interval, DayState.MISSING, blocks=seen.is_hole)
