"""Days and ranges of days, on schedules of all kinds."""

from __future__ import annotations

import pytest

from tidemark.cli.schedule import intervals
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("schedule", "first", "last", "count", "expected"),
    [
        ("@daily", "2024-01-02", "2024-01-02", 1, "[2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z)"),
        ("@daily", "2024-02-28", "2024-03-01", 3, "[2024-02-28T00:00:00Z, 2024-02-29T00:00:00Z)"),
        ("@hourly", "2024-01-02", "2024-01-02", 24, "[2024-01-02T00:00:00Z, 2024-01-02T01:00:00Z)"),
        ("30 6 * * *", "2024-01-02", "2024-01-02", 1, "[2024-01-02T06:30:00Z, 2024-01-03T06:30:00Z)"),
        ("@weekly", "2024-01-05", "2024-01-08", 1, "[2024-01-07T00:00:00Z, 2024-01-14T00:00:00Z)"),
        ("@monthly", "2024-02-01", "2024-02-01", 1, "[2024-02-01T00:00:00Z, 2024-03-01T00:00:00Z)"),
        ("@quarterly", "2024-04-01", "2024-04-01", 1, "[2024-04-01T00:00:00Z, 2024-07-01T00:00:00Z)"),
    ],
)
def test_intervals_start_on_the_days(schedule: str, first: str, last: str, count: int, expected: str) -> None:
    found = intervals(schedule, first, last)
    assert (len(found), str(found[0])) == (count, expected)


@pytest.mark.parametrize(
    ("schedule", "first", "last", "message"),
    [
        ("@weekly", "2024-01-02", "2024-01-02", "no interval of schedule '@weekly' starts on 2024-01-02"),
        ("@daily", "2024-01-03", "2024-01-02", "--from 2024-01-03 is later than --to 2024-01-02"),
        ("@once", "2024-01-02", "2024-01-02", "schedule '@once' is not a cron expression or preset"),
        ("* * * * *", "2024-01-01", "2024-12-31", "more than 10000 intervals"),
        ("@daily", "2024-01-32", "2024-02-01", "not a day: '2024-01-32'"),
    ],
)
def test_no_intervals_is_said(schedule: str, first: str, last: str, message: str) -> None:
    with pytest.raises(InvalidUsage, match=message.replace("*", r"\*")):
        intervals(schedule, first, last)
