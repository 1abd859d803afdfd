"""Durations as people write them, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.model.instant import format_duration, parse_duration
from tidemark.model.retention import Retention, Step

pytestmark = pytest.mark.pure


@given(st.integers(0, 2**60))
def test_what_is_written_reads_back(micros: int) -> None:
    assert parse_duration(format_duration(micros)) == micros


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
