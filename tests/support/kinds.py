"""Samples of every kind of windows, and of the aligned ones the windows by hand. Tests of what holds of any kind take
their kinds from here, so that a new one is in all of them once it is in FAMILIES.

    drawn      any of the kind whose windows show within some 60 µs, with offsets of both signs
    samples    some of the kind, with what is said of them
    by_hand    the windows of an aligned kind that hold an instant of [first, last], in order: every start is tried,
               and no code of the law is shared
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from tidemark.model.window.calendar import Unit, Weekday
from tidemark.model.window.kinds import (
    AlignedKind,
    Calendar,
    Cumulate,
    Hopping,
    Session,
    Sliding,
    Tumbling,
    WindowKind,
)

HOUR = 3_600_000_000
DAY = 24 * HOUR
Bounds = tuple[int, int]
ByHand = Callable[[Any, int, int], Iterator[Bounds]]


@dataclass(frozen=True)
class Sample:
    """A kind, what it is in words, and how many windows a row changes at most. Of instants that are whole multiples of
    `unit`, from -20 to 160, some are in one window and some are not."""

    kind: WindowKind
    called: str
    most: int | None
    unit: int = 1


@dataclass(frozen=True)
class Family:
    """Samples of one kind."""

    of: type[WindowKind]
    samples: tuple[Sample, ...]
    drawn: st.SearchStrategy[Any]
    by_hand: ByHand | None = None


def _tumbling(kind: Tumbling, first: int, last: int) -> Iterator[Bounds]:
    yield from ((at, at + kind.size) for at in _starts(kind.size, kind.offset, first - kind.size, last))


def _hopping(kind: Hopping, first: int, last: int) -> Iterator[Bounds]:
    yield from ((at, at + kind.size) for at in _starts(kind.advance, kind.offset, first - kind.size, last))


def _cumulate(kind: Cumulate, first: int, last: int) -> Iterator[Bounds]:
    for at in _starts(kind.size, kind.offset, first - kind.size, last):
        yield from ((at, at + length) for length in range(kind.step, kind.size + 1, kind.step))


def _starts(every: int, offset: int, first: int, last: int) -> Iterator[int]:
    """Instants of [first, last] that are a multiple of a length away from an offset: each is tried, or, of long ones,
    each that is a multiple of a quarter of an hour."""
    step = HOUR // 4 if every % (HOUR // 4) == offset % (HOUR // 4) == 0 else 1
    yield from (at for at in range(first // step * step, last + 1, step) if (at - offset) % every == 0)


def _calendar(kind: Calendar, first: int, last: int) -> Iterator[Bounds]:
    begins = _first_days(kind, (first // DAY - 400) * DAY, (last // DAY + 400) * DAY)
    yield from pairwise(begins)


@lru_cache
def _first_days(kind: Calendar, first: int, last: int) -> list[int]:
    """When a clock that is looked at every quarter of an hour first shows the first day of a unit, or a later one."""
    clock, found, latest = ZoneInfo(kind.zone), list[int](), date.min
    for at in range(first, last, HOUR // 4):
        wall = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(clock).replace(tzinfo=None)
        today = (wall - timedelta(microseconds=kind.clock_offset)).date()
        if today > latest:
            days = [latest + timedelta(n) for n in range(1, (today - latest).days + 1)] if found else [today]
            if any(_begins(kind, day) for day in days):
                found.append(at)
            latest = today
    return found


def _begins(kind: Calendar, day: date) -> bool:
    """Whether a day is the first one of a unit."""
    unit = kind.unit
    if unit is Unit.WEEK:
        return f"{day:%A}".lower() == kind.starts
    first_of_month = {Unit.MONTH: range(1, 13), Unit.QUARTER: (1, 4, 7, 10), Unit.YEAR: (1,)}
    return unit is Unit.DAY or (day.day == 1 and day.month in first_of_month[unit])


_sizes, _offsets = st.integers(1, 12), st.integers(-30, 30)
FAMILIES = (
    Family(
        Tumbling,
        (
            Sample(Tumbling(7, 2), "tumbling windows of 7us", 1),
            Sample(Tumbling(10, -13), "tumbling windows of 10us", 1),
            Sample(Tumbling(HOUR, HOUR // 2), "tumbling windows of 1h", 1, HOUR // 10),
        ),
        st.builds(Tumbling, _sizes, _offsets),
        _tumbling,
    ),
    Family(
        Hopping,
        (
            Sample(Hopping(10, 4, 1), "hopping windows of 10us every 4us", 3),
            Sample(Hopping(9, 4), "hopping windows of 9us every 4us", 3),
            Sample(Hopping(3, 5, -7, sampling=True), "hopping windows of 3us every 5us", 1),
            Sample(Hopping(2 * DAY, DAY, -HOUR), "hopping windows of 2d every 1d", 2, 6 * HOUR),
        ),
        st.builds(Hopping, _sizes, _sizes, _offsets, st.just(True)),
        _hopping,
    ),
    Family(
        Cumulate,
        (
            Sample(Cumulate(12, 4), "cumulating windows of 12us in steps of 4us", 3),
            Sample(Cumulate(12, 3, -5), "cumulating windows of 12us in steps of 3us", 4),
            Sample(Cumulate(DAY, HOUR, HOUR), "cumulating windows of 1d in steps of 1h", 24, HOUR),
        ),
        st.builds(lambda step, n, offset: Cumulate(step * n, step, offset), st.integers(1, 4), _sizes, _offsets),
        _cumulate,
    ),
    Family(
        Calendar,
        (
            Sample(Calendar(Unit.DAY, "America/Lima"), "calendar windows of a day in America/Lima", 1, 6 * HOUR),
            Sample(Calendar(Unit.WEEK), "calendar windows of a week in UTC", 1, DAY),
            Sample(
                Calendar(Unit.WEEK, "America/New_York", Weekday.SUNDAY),
                *("calendar windows of a week from Sunday in America/New_York", 1, DAY),
            ),
            Sample(
                Calendar(Unit.DAY, "America/New_York", clock_offset=6 * HOUR),
                *("calendar windows of a day in America/New_York, 6h after midnight", 1, 6 * HOUR),
            ),
            Sample(Calendar(Unit.MONTH, "Europe/Amsterdam"), "calendar windows of a month in Europe/Amsterdam", 1, DAY),
            Sample(Calendar(Unit.QUARTER, "Asia/Tokyo"), "calendar windows of a quarter in Asia/Tokyo", 1, 2 * DAY),
            Sample(Calendar(Unit.YEAR), "calendar windows of a year in UTC", 1, 5 * DAY),
        ),
        st.nothing(),
        _calendar,
    ),
    Family(
        Sliding,
        (
            Sample(Sliding(9), "sliding windows of 9us", None),
            Sample(Sliding(0), "sliding windows of 0s", None),
            Sample(Sliding(9, clamp_start_at_zero=True), "sliding windows of 9us", None),
        ),
        st.builds(Sliding, st.integers(0, 12), st.booleans()),
    ),
    Family(
        Session,
        (
            Sample(Session(5), "sessions with a gap of 5us", 2),
            Sample(Session(5, exact_gap_merges=False), "sessions with a gap of 5us", 2),
            Sample(Session(5, max_length=9), "sessions with a gap of 5us", None),
            Sample(Session(5, exact_gap_merges=False, max_length=4), "sessions with a gap of 5us", None),
        ),
        st.builds(Session, _sizes, st.booleans(), st.none() | _sizes),
    ),
)
SAMPLES = tuple(sample for family in FAMILIES for sample in family.samples)
ALIGNED = tuple(sample for sample in SAMPLES if isinstance(sample.kind, AlignedKind))
kinds = st.one_of(*(family.drawn for family in FAMILIES))
aligned = st.one_of(*(family.drawn for family in FAMILIES if family.by_hand))


def name(value: object) -> str | None:
    """What a test is called by that takes a sample."""
    return str(value.kind) if isinstance(value, Sample) else None


def by_hand(kind: AlignedKind, first: int, last: int) -> list[Bounds]:
    """The windows that hold an instant of [first, last], in order of start and end."""
    (find,) = (family.by_hand for family in FAMILIES if isinstance(kind, family.of) and family.by_hand)
    return sorted((start, end) for start, end in find(kind, first, last) if start <= last and end > first)
