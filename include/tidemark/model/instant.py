"""Times as people write them: int64 microseconds since the epoch, UTC, to and from ISO 8601."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime, timedelta

from tidemark.errors import InvalidUsage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_TIME = 2**63 - 1
_MOST_DIGITS = 20

_UNITS = {
    "us": MICROSECOND,
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def from_datetime(moment: datetime) -> int:
    """Microseconds since the epoch; a naive `moment` is taken as UTC.

    Computed from integers: instances of subclasses (Airflow's are pendulum's) have differences of other types, and with
    an offset the ends of the years 1 to 9999 are beyond them in UTC, where there is no datetime.
    """
    offset = moment.utcoffset() or timedelta(0)
    seconds = timegm(moment.timetuple()) - offset.days * 86_400 - offset.seconds
    return seconds * 1_000_000 + moment.microsecond - offset.microseconds


def parse_instant(text: str) -> int:
    """Microseconds from an integer (`us` behind it or not) or an ISO 8601 date or time (UTC unless it has an offset).

    Raises InvalidUsage for anything else, for times before the epoch, and for digits alone that could be a date,
    like 20240101: they may be meant as either.
    """
    number = re.fullmatch(r"([+-]?\d+)(\s*(?:us|µs))?", text, re.ASCII)
    try:
        micros = int(number[1]) if number else from_datetime(datetime.fromisoformat(text))
    except ValueError:
        raise InvalidUsage(f"not a time: {text!r}; write 2013-01-02, 2013-01-02T03:04:05Z or microseconds") from None
    if number and not number[2] and (date := digits_of_a_date(text)):
        raise InvalidUsage(f"{text!r} is a date or microseconds: write {date} for the date, {text}us for microseconds")
    if not 0 <= micros <= MAX_TIME:
        raise InvalidUsage(f"time {text!r} is outside [1970-01-01, {MAX_TIME} µs]")
    return micros


def digits_of_a_date(text: str) -> str | None:
    """`20240101`, `202401010930` or `20240101093000` as ISO 8601; None for digits that are no date of 1970 to 2199."""
    if len(text) not in (8, 12, 14) or not "1970" <= text[:4] < "2200":
        return None
    try:
        moment = datetime.fromisoformat(f"{text[:8]}T{text[8:] or '00'}")
    except ValueError:
        return None
    return moment.date().isoformat() if len(text) == 8 else f"{moment.isoformat()}Z"


def format_instant(micros: int) -> str:
    """ISO 8601 in UTC with `Z`; microseconds only where they are not zero. Beyond the years 1 to 9999 the integer."""
    try:
        moment = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return str(micros)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def format_duration(micros: int) -> str:
    """A duration as `parse_duration` reads it: `1d`, `1h30m`, `250ms`."""
    pieces, left = [], micros
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, left = divmod(left, _UNITS[unit] // MICROSECOND)
        pieces += [f"{count}{unit}"] if count else []
    return "".join(pieces) or "0s"


def roughly(micros: int) -> str:
    """A duration for people, in its largest unit of which there are two or more: `3 days`, `30 hours`."""
    for name, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if (count := micros // (length * 1_000_000)) > 1:
            return f"{count:,} {name}"
    return "a minute"


def parse_duration(text: str | int) -> int:
    """Microseconds from `90s`, `2h`, `3d`, `1h30m` or an integer of microseconds. Raises InvalidUsage otherwise."""
    if isinstance(text, int) and not isinstance(text, bool):
        micros = text
    else:
        if str(text).lstrip().startswith("-"):
            raise InvalidUsage(f"duration {text!r} is negative; write how long, as 30m, 2h, 3d or 1h30m")
        pieces = re.findall(r"(\d+)\s*(us|ms|s|m|h|d|w)", str(text))
        if not pieces or re.sub(r"(\d+)\s*(us|ms|s|m|h|d|w)|\s", "", str(text)):
            raise InvalidUsage(f"not a duration: {text!r}; write 30m, 2h, 3d or 1h30m")
        # More digits than any time has are not read: Python refuses some thousands of them.
        micros = sum(_UNITS[unit] // MICROSECOND * int(count.lstrip("0")[:_MOST_DIGITS] or 0) for count, unit in pieces)
    if not 0 <= micros <= MAX_TIME:
        raise InvalidUsage(f"duration {text!r} is outside [0, {MAX_TIME} µs]")
    return micros
