"""The state of an interval: one line of a table for each, and no two of them."""

from __future__ import annotations

import pytest

from tidemark.model.arrangement import Stopped
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.plan.day import WORDS, DayState, Seen, day_of

DAY = Interval(parse_instant("2024-01-21"), parse_instant("2024-01-22"))
FILE = Stopped(DAY, "line 3: 'x' is no int; mend the file", "orders/2024-01-21/a.csv", 2)
BESIDE = Stopped(DAY, "nothing matches /in/*.csv, and a.CSV is there")


@pytest.mark.parametrize(
    ("seen", "now", "words", "blocks"),
    [
        ({"is_complete": True, "is_ingested": True, "has_rows": True}, "2024-01-23", "complete", False),
        ({"is_complete": True, "is_ingested": True, "has_rows": False}, "2024-01-23", "complete, without rows", False),
        ({"has_failed": True, "is_ingested": True}, "2024-01-23", "ingested, and did not pass its gate", True),
        ({"is_ingested": True}, "2024-01-23", "ingested, not sealed yet", False),
        ({"is_ingested": True, "waits": True}, "2024-01-23", "ingested, waits for an earlier one", False),
        ({"is_ingested": True, "stopped": FILE}, "2024-01-23", "ingested, not sealed yet", False),
        ({"stopped": FILE}, "2024-01-23", "refused: 2 files cannot be taken", True),
        ({"stopped": BESIDE}, "2024-01-23", "refused", True),
        ({"stopped": FILE}, "2024-01-21", "refused: 2 files cannot be taken", True),
        ({}, "2024-01-21", "not over yet", False),
        ({}, "2024-01-22", "not ingested, expected by 2024-01-22T12:00:00Z", False),
        ({"is_hole": True}, "2024-01-22", "not ingested, expected by 2024-01-22T12:00:00Z", True),
        ({}, "2024-01-22T12:00:00Z", "not ingested", False),
        ({"is_hole": True}, "2024-01-22T12:00:00Z", "not ingested", True),
        ({"has_landed": False}, "2024-01-23", "not ingested", False),
        ({"has_landed": True, "is_hole": True}, "2024-01-22", "landed, not ingested", True),
    ],
)
def test_an_interval_has_one_state(seen: dict[str, object], now: str, words: str, blocks: bool) -> None:
    day = day_of(Seen(DAY, **seen), parse_instant(now))  # type: ignore[arg-type]
    assert (day.words, day.blocks) == (words, blocks)
    assert day.sentence == f"2024-01-21: {words}"
    assert words.startswith(WORDS[day.state])
    details = {
        FILE: "2 files cannot be taken: orders/2024-01-21/a.csv: line 3: 'x' is no int",
        BESIDE: "refused: nothing matches /in/*.csv, and a.CSV is there",
    }
    if day.state is DayState.REFUSED:
        assert details[seen["stopped"]] in day.in_full  # type: ignore[index]


def test_what_each_is_called_says_one_thing() -> None:
    assert set(WORDS) == set(DayState)
    assert len(set(WORDS.values())) == len(DayState)
    assert all(state.is_read or not state.is_complete for state in DayState)
