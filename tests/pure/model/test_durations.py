"""Times and durations as people write them, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_duration, format_instant, parse_duration, parse_instant
from tidemark.model.retention import Retention, Step

pytestmark = pytest.mark.pure


@given(st.integers(0, 2**60))
def test_what_is_written_reads_back(micros: int) -> None:
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize("text", ["99999999999d", "9223372036854775807h", "106751992d", "9" * 5000 + "d", 2**63])
def test_what_is_longer_than_time_is_refused_in_one_line(text: str | int) -> None:
    with pytest.raises(InvalidUsage, match=r"^duration .* is outside \[0, 9223372036854775807 µs\]$"):
        parse_duration(text)


def test_zeros_in_front_are_no_digits() -> None:
    assert parse_duration("0" * 5000 + "1s" + "0" * 30 + "h") == 1_000_000


@pytest.mark.parametrize(
    ("retention", "words"),
    [
        (Retention(), "every time stays readable"),
        (Retention("tiered", keep_recent=7), "all since the newest 7 seals"),
        (Retention("time_boundary", interval=5_400_000_000), "the last instant of every 1h30m"),
        (
            Retention("ladder", steps=(Step(None, 7 * 86_400_000_000), Step(3_600_000_000))),
            "every time for 7d; the last instant of every 1h",
        ),
    ],
)
def test_retention_in_words(retention: Retention, words: str) -> None:
    assert str(retention) == words


@given(st.integers(0, 2**63 - 1).filter(lambda micros: len(str(micros)) not in (8, 12, 14)))
def test_a_time_reads_back_as_words_and_as_microseconds(micros: int) -> None:
    assert parse_instant(format_instant(micros)) == micros
    assert parse_instant(str(micros)) == parse_instant(f"{micros}us") == parse_instant(f"{micros} µs") == micros


@pytest.mark.parametrize(
    ("digits", "date"),
    [
        ("20240101", "2024-01-01"),
        ("202401010930", "2024-01-01T09:30:00Z"),
        ("20240101093015", "2024-01-01T09:30:15Z"),
        ("19700101", "1970-01-01"),
    ],
)
def test_digits_that_read_as_a_date_are_refused_with_both_readings(digits: str, date: str) -> None:
    with pytest.raises(InvalidUsage, match=f"write {date} for the date, {digits}us for microseconds"):
        parse_instant(digits)
    assert parse_instant(f"{digits}us") == int(digits)
    assert parse_instant(date) > int(digits) or digits.startswith("1970")


@pytest.mark.parametrize("digits", ["20241301", "20240230", "86400000", "96700101", "22000101", "2024010", "202401011"])
def test_digits_that_are_no_date_of_our_age_are_microseconds(digits: str) -> None:
    assert parse_instant(digits) == int(digits)
