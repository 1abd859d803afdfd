"""Units of the calendar, against clocks that are looked at every half minute."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pure.model.window import brute
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant, parse_duration, parse_instant
from tidemark.model.window.calendar import Unit, Weekday, unit_of
from tidemark.model.window.kinds import Calendar, Tumbling

SECOND = 1_000_000
HOUR, DAY, NEW_YORK = 3600 * SECOND, 86_400 * SECOND, "America/New_York"
ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "America/St_Johns", "Africa/Monrovia")
ODD_MIDNIGHTS = {
    "put forward at midnight": ("America/Sao_Paulo", date(2018, 11, 4)),
    "put back at midnight": ("America/Sao_Paulo", date(2018, 2, 18)),
    "midnight shown twice": ("America/Havana", date(2013, 11, 3)),
    "put forward over midnight": ("America/Toronto", date(1919, 3, 31)),
    "put back over midnight": ("America/St_Johns", date(2000, 10, 29)),
    "a day left out": ("Pacific/Apia", date(2011, 12, 30)),
    "an offset of seconds": ("Africa/Monrovia", date(1972, 1, 7)),
}


def micros(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()) * SECOND


def bounds_of(unit: Unit, zone: str, at: int) -> tuple[str, str]:
    start, end = unit_of(unit, zone, at)
    return format_instant(start), format_instant(end)


@pytest.mark.parametrize("name", ODD_MIDNIGHTS)
def test_a_day_begins_when_a_clock_first_shows_it(name: str):
    zone, day = ODD_MIDNIGHTS[name]
    noon = int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())
    after = noon - 30 * 3600  # what the clock shows first may be a day and an offset before noon in UTC
    begins = brute.first_shown([day], zone, after, noon + 20 * 3600)[day] * SECOND
    start, end = unit_of(Unit.DAY, zone, begins)
    assert start == begins
    assert unit_of(Unit.DAY, zone, begins - 1)[1] == begins
    assert end > begins


@given(st.sampled_from(Unit), st.sampled_from(ZONES), st.integers(-(10**15), 4 * 10**15))
def test_every_instant_is_in_one_unit_and_units_touch(unit: Unit, zone: str, at: int):
    start, end = unit_of(unit, zone, at)
    assert start <= at < end
    assert unit_of(unit, zone, start) == unit_of(unit, zone, end - 1) == (start, end)
    assert unit_of(unit, zone, end)[0] == end
    assert unit_of(unit, zone, start - 1)[1] == start
    first = brute.shows(start, zone)
    if unit is Unit.WEEK and zone != "Pacific/Apia":
        assert first.weekday() == 0
    if unit in (Unit.MONTH, Unit.QUARTER, Unit.YEAR):
        assert first.day == 1


@given(st.integers(-(10**15), 4 * 10**15))
def test_days_of_utc_are_tumbling_windows(at: int):
    day = parse_duration("1d")
    assert Calendar(Unit.DAY).windows_at(at) == Tumbling(day).windows_at(at)
    assert Calendar(Unit.WEEK).windows_at(at) == Tumbling(7 * day, -3 * day).windows_at(at)


def test_units_of_new_york():
    zone, at = "America/New_York", micros(2013, 3, 10, 12)
    assert bounds_of(Unit.DAY, zone, at) == ("2013-03-10T05:00:00Z", "2013-03-11T04:00:00Z")  # 23 hours
    assert bounds_of(Unit.DAY, zone, micros(2013, 11, 3, 12)) == ("2013-11-03T04:00:00Z", "2013-11-04T05:00:00Z")  # 25
    assert bounds_of(Unit.WEEK, zone, at) == ("2013-03-04T05:00:00Z", "2013-03-11T04:00:00Z")
    assert bounds_of(Unit.MONTH, zone, at) == ("2013-03-01T05:00:00Z", "2013-04-01T04:00:00Z")
    assert bounds_of(Unit.QUARTER, zone, at) == ("2013-01-01T05:00:00Z", "2013-04-01T04:00:00Z")
    assert bounds_of(Unit.YEAR, zone, at) == ("2013-01-01T05:00:00Z", "2014-01-01T05:00:00Z")
    assert bounds_of(Unit.YEAR, "UTC", micros(1969, 12, 31, 23)) == ("1969-01-01T00:00:00Z", "1970-01-01T00:00:00Z")
    assert bounds_of(Unit.MONTH, "UTC", micros(2024, 2, 29)) == ("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")


def test_a_day_that_a_zone_left_out_holds_nothing():
    before, after = micros(2011, 12, 30, 9, 59), micros(2011, 12, 30, 10)
    assert unit_of(Unit.DAY, "Pacific/Apia", before)[1] == after == unit_of(Unit.DAY, "Pacific/Apia", after)[0]


@pytest.mark.parametrize(
    "name",
    [
        *("America/NewYork", "", "../etc/passwd", "/etc/passwd", "America"),
        # What Python finds on some machines, and no JVM knows: its own, no zone, with and without leap seconds.
        *("localtime", "posixrules", "Factory", "posix/Europe/Berlin", "right/Europe/Berlin"),
    ],
)
def test_an_unknown_zone_is_refused(name: str):
    with pytest.raises(InvalidUsage, match="is not known; write one of the tz database") as refused:
        Calendar(Unit.DAY, name)
    assert repr(name) in str(refused.value)
    assert name != "America/NewYork" or "like America/New_York" in str(refused.value)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo"])
@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("cycles", [-700, -30, 1, 20, 730])
def test_outside_the_years_of_dates_the_calendar_repeats(unit, zone, cycles):
    cycle, at = 146_097 * 86_400_000_000, 13_000 * 86_400_000_000 + 7
    later = at + 19 * cycle if cycles > 0 else at - 4 * cycle
    first, end = unit_of(unit, zone, later)
    assert first <= later < end
    assert unit_of(unit, zone, later + cycles * cycle) == (first + cycles * cycle, end + cycles * cycle)


def test_units_follow_each_other_where_the_years_of_dates_end():
    last = 253_402_300_799_999_999
    for unit in Unit:
        _, end = unit_of(unit, "America/New_York", last)
        assert unit_of(unit, "America/New_York", end)[0] == end > last


def day(offset: int) -> Calendar:
    return Calendar(Unit.DAY, NEW_YORK, clock_offset=offset)


def week(starts: Weekday, offset: int = 0) -> Calendar:
    return Calendar(Unit.WEEK, NEW_YORK, starts, offset)


@pytest.mark.parametrize(
    ("kind", "at", "begins", "ends"),
    [
        # 2024-03-10 has 23 hours in New York and 2024-11-03 25: 06:00 on the clock stays 06:00.
        (day(6 * HOUR), "2024-03-10T09:59", "2024-03-09T11:00", "2024-03-10T10:00"),
        (day(6 * HOUR), "2024-11-03T10:59", "2024-11-02T10:00", "2024-11-03T11:00"),
        (day(-6 * HOUR), "2024-03-10T05:00", "2024-03-09T23:00", "2024-03-10T22:00"),
        # 02:30 is left out: the day begins when clocks show 03:00.
        (day(5 * HOUR // 2), "2024-03-10T07:00", "2024-03-10T07:00", "2024-03-11T06:30"),
        # 01:30 is shown twice: it begins the first time.
        (day(3 * HOUR // 2), "2024-11-03T06:30", "2024-11-03T05:30", "2024-11-04T06:30"),
        (week(Weekday.SUNDAY), "2024-01-02T03:00", "2023-12-31T05:00", "2024-01-07T05:00"),
        (week(Weekday.SATURDAY, DAY), "2024-01-02T03:00", "2023-12-31T05:00", "2024-01-07T05:00"),
        (Calendar(Unit.MONTH, "UTC", clock_offset=-DAY), "2024-01-31T03:00", "2024-01-31T00:00", "2024-02-29T00:00"),
    ],
)  # fmt: skip
def test_weeks_begin_on_their_day_and_offsets_go_by_the_clock(kind: Calendar, at: str, begins: str, ends: str) -> None:
    bounds = kind.bounds_at(parse_instant(at))
    assert tuple(map(format_instant, bounds)) == (f"{begins}:00Z", f"{ends}:00Z")


@pytest.mark.parametrize(
    ("unit", "starts", "offset", "message"),
    [
        (Unit.DAY, Weekday.SUNDAY, 0, "starts: sunday is for weeks, and the unit is day; leave it out"),
        (Unit.DAY, Weekday.MONDAY, -DAY, "the offset of a day is 1d; it must be less than 1d"),
    ],
)
def test_what_no_unit_has_is_refused(unit: Unit, starts: Weekday, offset: int, message: str) -> None:
    with pytest.raises(InvalidUsage, match=message):
        Calendar(unit, "UTC", starts, offset)
