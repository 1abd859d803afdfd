"""Values as JSON and people have them, also beyond every calendar."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tidemark.arrow.rows.plain import format_day, plain_rows
from tidemark.model.instant import format_instant, parse_instant

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        (253_402_300_800_000_000, "253402300800000000"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        (-62_135_596_800_000_001, "-62135596800000001"),
        (2**63 - 1, str(2**63 - 1)),
        (-(2**63), str(-(2**63))),
    ],
)
def test_any_64_bits_are_a_time_with_four_digits_of_year_or_a_number(micros: int, text: str) -> None:
    assert format_instant(micros) == text
    assert micros < 0 or parse_instant(text) == micros


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-719_162, "0001-01-01"),
        (-719_163, "-719163"),
        (2_932_896, "9999-12-31"),
        (2**31 - 1, "2147483647"),
    ],
)
def test_any_32_bits_are_a_day(days: int, text: str) -> None:
    assert format_day(days) == text


def test_rows_are_strict_json() -> None:
    table = pa.table(
        {
            "at": pa.array([2**63 - 1, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "day": pa.array([-(2**31), None], pa.int32()).cast(pa.date32()),
            "share": [float("nan"), float("-inf")],
        }
    )
    assert json.loads(json.dumps(plain_rows(table), allow_nan=False)) == [
        [str(2**63 - 1), str(-(2**31)), "nan"],
        [None, None, "-inf"],
    ]
