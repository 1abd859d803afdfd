"""Schedules by the clock of a zone: their boundaries are those that a clock shows which is looked at every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule, interval_ends
from tidemark.config.template import pattern_of
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.evolution import check_begun
from tidemark.model.instant import format_instant, from_datetime, parse_instant

pytestmark = pytest.mark.pure

MINUTE = 60_000_000
DAY = 1440 * MINUTE
NEW_YORK = "America/New_York"
CHANGES = [
    (NEW_YORK, "2024-03-10"),
    (NEW_YORK, "2024-11-03"),
    ("Australia/Lord_Howe", "2024-04-06"),  # by half an hour
    ("Australia/Lord_Howe", "2024-10-05"),
    ("Africa/Cairo", "2024-04-25"),  # midnight is left out
    ("Africa/Cairo", "2024-10-31"),  # at midnight it is 23:00 again
    ("Asia/Kathmandu", "1985-12-31"),  # by a quarter of an hour, at midnight; it never changed again
    ("America/Santiago", "2024-09-08"),
    ("America/Santiago", "2024-04-06"),
    ("America/Havana", "2024-11-03"),  # midnight is shown twice
    ("Pacific/Apia", "2011-12-30"),  # a day is left out
]
MOMENTS = {"@daily": (0,), "30 1,2 * * *": (90, 150), "0 */6 * * *": (0, 360, 720, 1080)}
"""Minutes of the day, of schedules that have some."""


def clock(at: int, zone: str) -> datetime:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def by_looking(text: str, zone: str, lower: int, upper: int) -> list[int]:
    """The boundaries in `[lower, upper)`, by a look at the clock every minute."""
    bounds, latest = [], clock(lower - DAY, zone)
    for at in range(lower - DAY + MINUTE, upper, MINUTE):
        before, wall = clock(at - MINUTE, zone), clock(at, zone)
        if text == "@hourly":
            # Also where it is set: it shows a full hour, or would have if it had not been set.
            is_boundary = wall.minute == 0 or (before + timedelta(minutes=1)).minute == 0
        else:
            passed = (latest + timedelta(minutes=n) for n in range(1, (wall - latest) // timedelta(minutes=1) + 1))
            is_boundary = any(each.hour * 60 + each.minute in MOMENTS[text] for each in passed)
        latest = max(latest, wall)
        bounds += [at] if is_boundary and at >= lower else []
    return bounds


@pytest.mark.parametrize(("zone", "day"), CHANGES)
@pytest.mark.parametrize("text", ["@hourly", *MOMENTS])
def test_boundaries_are_what_a_clock_shows(text: str, zone: str, day: str) -> None:
    lower = parse_instant(day) - DAY
    schedule, expected = Schedule(text, zone), by_looking(text, zone, lower, lower + 3 * DAY)
    assert [interval.lower for interval in schedule.beginning(lower, lower + 3 * DAY)] == expected
    for begin, end in pairwise(expected):
        assert (schedule.latest(begin), schedule.latest(end - 1)) == (begin, begin)
        assert (schedule.following(begin), schedule.following(end - 1)) == (end, end)


@pytest.mark.parametrize(
    ("text", "zone", "after", "begins"),
    [
        ("@daily", NEW_YORK, "2024-03-10T00:00", ["10T00:00:00-05:00", "11T00:00:00-04:00"]),  # 23 hours
        ("@hourly", NEW_YORK, "2024-11-03T04:30", ["03T01:00:00-04:00", "03T01:00:00-05:00", "03T02:00:00-05:00"]),
        ("30 * * * *", NEW_YORK, "2024-11-03T05:00", ["03T01:30:00-04:00", "03T01:30:00-05:00"]),
        # What is only of some hours is not repeated: three hours.
        ("0 */2 * * *", NEW_YORK, "2024-11-03T03:30", ["03T00:00:00-04:00", "03T02:00:00-05:00"]),
        ("@daily", "Africa/Cairo", "2024-04-25T12:00", ["26T01:00:00+03:00", "27T00:00:00+03:00"]),
        ("@hourly", "Australia/Lord_Howe", "2024-04-06T13:30", ["07T01:00:00+11:00", "07T01:30:00+10:30"]),
        ("0 * * * 1", NEW_YORK, "2024-11-01T00:00", ["04T00:00:00-05:00", "04T01:00:00-05:00"]),
        ("@daily", "Asia/Kathmandu", "2024-03-10T00:00", ["11T00:00:00+05:45", "12T00:00:00+05:45"]),
    ],
)
def test_times_are_shown_as_the_clock_shows_them(text: str, zone: str, after: str, begins: list[str]) -> None:
    schedule = Schedule(text, zone)
    times = schedule.after(parse_instant(after))
    assert [schedule.text_of(next(times))[8:] for _ in begins] == begins


def test_inputs_of_different_zones_are_complete_by_their_own_boundaries() -> None:
    schedules = [Schedule("@daily", zone) for zone in (NEW_YORK, "Asia/Kathmandu")]
    ends = interval_ends(schedules, parse_instant("2024-03-10T05:00"), parse_instant("2024-03-12"))
    # Each time one of them ends an interval, both are complete to the end that the other one reached before.
    assert [format_instant(end)[5:16] for end in ends] == ["03-09T18:15", "03-10T05:00", "03-10T18:15", "03-11T04:00"]


DECLARED = """\
name: sales
key: [k]
columns: {k: int}
timezone: America/New_York
schedule: "@daily"
start: 2024-03-09
end: "2024-11-05"
time: arrival
source: {path: "{{ landing }}/{{ ds }}/*.csv", format: csv, envelope: append}
"""


def declared(folder: Path, *changes: tuple[str, str], text: str = DECLARED) -> Collection:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "sales.yaml"
    path.write_text(text)
    return load(path)


def test_dates_are_local_and_times_are_as_they_say(tmp_path: Path) -> None:
    landed = declared(tmp_path).landed
    assert (landed.start, landed.end) == tuple(map(parse_instant, ("2024-03-09T05:00", "2024-11-05T05:00")))
    again = declared(tmp_path, ("2024-03-09", "2024-03-09T05:00:00Z"), ('"2024-11-05"', "2024-11-05T00:00:00-05:00"))
    assert again.landed == landed
    assert declared(tmp_path, ("timezone: America/New_York\n", "")).landed.start == parse_instant("2024-03-09")


def test_completeness_stays_elapsed_time_behind_the_local_boundary(tmp_path: Path) -> None:
    landed = declared(tmp_path, ("time: arrival", "grace: 3h\ntime: arrival")).landed
    monday = Schedule.of(landed).interval_from(parse_instant("2024-03-11T04:00"))
    assert landed.complete_before(monday) == parse_instant("2024-03-11T01:00")  # 21:00 of a day of 23 hours


@pytest.mark.parametrize(
    ("template", "rendered"),
    [
        ("{{ ds }}-{{ ds_nodash }}-{{ hour }}", "2024-11-02-20241102-23"),
        ("{{ ts }}", "2024-11-02T23:00:00-04:00"),
        ("{{ data_interval_end.strftime('%d %H%z') }}", "03 00-0400"),
        ("{{ lower }}", str(from_datetime(datetime(2024, 11, 3, 3, tzinfo=UTC)))),
    ],
)
def test_paths_have_the_local_day(tmp_path: Path, template: str, rendered: str) -> None:
    path = "{{ data_interval_start.strftime('%d%H%z') }}" + template
    landed = declared(tmp_path, ("@daily", "@hourly"), ("{{ ds }}/*.csv", f"{path}/*.csv")).landed
    interval = Schedule("@hourly").interval_from(parse_instant("2024-11-03T03:00"))  # of no zone
    assert pattern_of(landed, interval, "/l") == f"/l/0223-0400{rendered}/*.csv"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("America/New_York", "New York")], ":4: timezone: time zone 'New York' is not known; .*America/New_York"),
        ([("America/New_York", "5")], ":4: timezone: a time zone is a name like Europe/Lisbon, and 5 is no text"),
        (
            [("2024-03-09", "2024-03-09T00:00:00Z")],
            ":6: .*at 2024-03-08T19:00:00-05:00, between .*@daily in America/New_York; write 2024-03-08T00:00:00-05:",
        ),
        ([("America/New_York", "Asia/Tokyo"), ("2024-03-09", "1970-01-01")], ":6: .*begins before 1970-01-01"),
        ([("@daily", "CRON_TZ=America/New_York 0 0 * * *")], ":5: .*; the zone .* is timezone: America/New_York"),
        (
            [("@daily", "@hourly"), ("{{ ds }}", "{{ ds }}/{{ hour }}")],
            r":9: .*T01:00:00-04:00.*T01:00:00-05:00.* both /landing/2024-11-03/01/\*.csv; write .*strftime\('%H%z'\)",
        ),
        ([("@daily", "*/15 * * * *"), ("{{ ds }}", "{{ data_interval_start | ts_nodash }}")], "two intervals of one"),
    ],
)  # fmt: skip
def test_what_a_clock_cannot_mean_is_refused(tmp_path: Path, changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(InvalidUsage, match=message):
        declared(tmp_path, *changes)


@pytest.mark.parametrize(
    "changes",
    [
        [("{{ ds }}", "{{ ds }}/{{ data_interval_start.strftime('%H%z') }}")],
        [("America/New_York", "Asia/Kathmandu"), ("{{ ds }}", "{{ ds }}/{{ hour }}")],  # it is not put back
        [("{{ ds }}", "{{ ds }}/{{ hour }}"), ("2024-11-05", "2024-11-03")],  # it ends before
    ],
)
def test_an_hour_with_a_name_of_its_own_is_no_problem(tmp_path: Path, changes: list[tuple[str, str]]) -> None:
    declared(tmp_path, ("@daily", "@hourly"), *changes)


def test_another_zone_is_refused_once_there_are_data(tmp_path: Path) -> None:
    changed = declared(tmp_path, ("America/New_York", "America/Toronto"))  # whose days begin at the same instants
    with pytest.raises(InvalidUsage, match=r"timezone.*America/New_York.*America/Toronto"):
        check_begun(declared(tmp_path), changed)
