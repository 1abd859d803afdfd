"""An interval compared with a schedule: one of its intervals, several, or refused."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.config.schedule import MOST_INTERVALS, PRESETS, Schedule
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant, parse_instant
from tidemark.model.interval import Interval

pytestmark = pytest.mark.pure

HOUR = 3_600_000_000
SCHEDULES = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "30 6 * * *", "*/20 * * * *", "0 0 * * 1-5")


def between(lower: str, upper: str) -> Interval:
    return Interval(parse_instant(lower), parse_instant(upper))


@pytest.mark.parametrize(
    ("schedule", "lower", "upper", "count", "second"),
    [
        ("@daily", "2024-02-28", "2024-03-02", 3, "2024-02-29T00:00:00Z"),
        ("@hourly", "2024-01-01", "2024-01-02", 24, "2024-01-01T01:00:00Z"),
        ("@weekly", "2024-01-07", "2024-01-21", 2, "2024-01-14T00:00:00Z"),
        ("@monthly", "2024-01-01", "2025-01-01", 12, "2024-02-01T00:00:00Z"),
        ("@quarterly", "2024-01-01", "2025-01-01", 4, "2024-04-01T00:00:00Z"),
        # No interval for the week-end: Friday's reaches to Monday.
        ("0 0 * * 1-5", "2024-01-04", "2024-01-09", 3, "2024-01-05T00:00:00Z"),
        # Here clocks were put forward on March 31 in Europe; times are UTC, so each day has 24 hours.
        ("@hourly", "2024-03-31", "2024-04-01", 24, "2024-03-31T01:00:00Z"),
    ],
)
def test_an_interval_is_split_at_the_boundaries(schedule: str, lower: str, upper: str, count: int, second: str) -> None:
    found = Schedule(schedule).split(between(lower, upper))
    assert (len(found), format_instant(found[1].lower)) == (count, second)
    assert (found[0].lower, found[-1].upper) == (parse_instant(lower), parse_instant(upper))


@pytest.mark.parametrize(
    ("schedule", "lower", "upper", "said"),
    [
        (
            "@daily",
            "2024-01-01",
            "2024-01-02T12:00",
            "ends at 2024-01-02T12:00:00Z.*2024-01-02T00:00:00Z or 2024-01-03",
        ),
        ("@daily", "2024-01-01T00:00:00.000001", "2024-01-02", "begins at .*2024-01-01T00:00:00Z or 2024-01-02"),
        ("30 6 * * *", "2024-01-01", "2024-01-02", "2023-12-31T06:30:00Z or 2024-01-01T06:30:00Z"),
        ("@weekly", "2024-01-07", "2024-01-08", "2024-01-07T00:00:00Z or 2024-01-14T00:00:00Z"),
        ("* * * * *", "2024-01-01", "2025-01-01", f"more than {MOST_INTERVALS} intervals"),
        ("@daily", "2024-01-01", str(2**63 - 1), "no boundary near"),
        ("0 0 30 2 *", "2024-01-01", "2024-01-02", "no boundary near"),
    ],
)
def test_what_the_schedule_does_not_cut_is_refused(schedule: str, lower: str, upper: str, said: str) -> None:
    with pytest.raises(InvalidUsage, match=said):
        Schedule(schedule).split(between(lower, upper))


@pytest.mark.parametrize(
    "text", ["@once", "@continuous", "", "every day", "0 0 * *", "0 0 * * * *", "R R * * *", "H * * * *"]
)
def test_what_says_no_boundaries_is_no_schedule(text: str) -> None:
    with pytest.raises(InvalidUsage, match="not a cron expression or preset"):
        Schedule(text)


@settings(deadline=None)
@given(st.sampled_from(SCHEDULES), st.integers(20_000 * HOUR, 2_000_000 * HOUR))
def test_every_time_is_in_one_interval(text: str, time: int) -> None:
    schedule = Schedule(text)
    lower = schedule.latest(time)
    upper = schedule.following(time)
    assert lower <= time < upper
    assert schedule.following(lower) == upper, "a boundary was passed over"
    assert schedule.last_before(time).upper == lower
    assert schedule.split(Interval(lower, upper)) == [Interval(lower, upper)]


@settings(deadline=None)
@given(st.sampled_from(SCHEDULES), st.lists(st.integers(20_000 * HOUR, 20_060 * HOUR), min_size=2, max_size=6))
def test_intervals_completed_by_events_that_follow_each_other_come_once_each(text: str, times: list[int]) -> None:
    schedule, times = Schedule(text), sorted(times)
    one_by_one = [interval for lower, upper in pairwise(times) for interval in schedule.completed(lower, upper)]
    assert one_by_one == schedule.completed(times[0], times[-1])
    assert all(times[0] < interval.upper <= times[-1] for interval in one_by_one)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_begins_at_a_midnight_or_an_hour(preset: str) -> None:
    assert Schedule(preset).following(0) % HOUR == 0
