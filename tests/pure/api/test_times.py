"""One function takes times as callers have them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tidemark.api.times import lasting, micros
from tidemark.errors import InvalidUsage

pytestmark = pytest.mark.pure
END = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
DAY = 1_357_084_800_000_000  # 2013-01-02


@pytest.mark.parametrize(
    "time",
    [
        "2013-01-02",
        "2013-01-02T00:00:00Z",
        "2013-01-02T01:00:00+01:00",
        date(2013, 1, 2),
        datetime(2013, 1, 2),  # noqa: DTZ001 -- naive is UTC
        datetime(2013, 1, 2, 1, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp("2013-01-02", tz="UTC"),
        pd.Timestamp("2013-01-02T00:00:00.000000999"),
        DAY,
        np.int64(DAY),
        f"{DAY}us",
    ],
    ids=repr,
)
def test_a_time_is_what_it_says_in_utc(time: Any) -> None:
    assert micros(time) == DAY


@pytest.mark.parametrize("time", [1.5, float(DAY), True, None, pd.NaT, b"2013", np.datetime64("2013-01-02"), [DAY]])
def test_what_is_no_time_is_refused_by_the_arguments_name(time: Any) -> None:
    with pytest.raises(InvalidUsage, match=r"upto is .*; write text like '2013-01-02T03:04:05Z', a datetime, or"):
        micros(time, "upto")


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59.999999-05:00", END, pd.Timestamp(END)])
def test_the_end_of_datetimes_is_a_time_in_any_zone(time: Any) -> None:
    """In UTC it is beyond the year 9999, where Python has no datetime."""
    year_10000 = 253_402_300_800_000_000
    assert micros(time) == year_10000 + 5 * 3_600_000_000 - 1


@pytest.mark.parametrize(
    "time",
    [
        *(-1, 2**63, date(1969, 12, 31), datetime(1969, 12, 31, tzinfo=UTC), "1969-12-31"),
        *("0001-01-01T00:00:00+05:00", datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))),
    ],
)
def test_what_is_out_of_range_is_refused(time: Any) -> None:
    with pytest.raises(InvalidUsage, match="outside"):
        micros(time)


@pytest.mark.parametrize(
    ("duration", "expected"), [("1h30m", 5_400_000_000), (timedelta(seconds=2), 2_000_000), (7, 7)]
)
def test_durations(duration: Any, expected: int) -> None:
    assert lasting(duration) == expected


@pytest.mark.parametrize("duration", [1.5, True, "soon", timedelta(-1), -1])
def test_what_is_no_duration_is_refused(duration: Any) -> None:
    with pytest.raises(InvalidUsage):
        lasting(duration)
