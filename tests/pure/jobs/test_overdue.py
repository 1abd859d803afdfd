"""Overdue: an interval that ended longer ago than its collection's file allows, and is not sealed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.world import collection
from tidemark.jobs.queries.overdue import overdue
from tidemark.model.collection import Collection
from tidemark.model.instant import format_instant, parse_instant

pytestmark = pytest.mark.pure
HOUR = 3_600_000_000


def landed(start: str = "2024-01-01", **fields: Any) -> Collection:
    declared = collection()
    origin = replace(declared.landed, start=parse_instant(start), end=None, schedule="@daily", grace=0)
    return replace(declared, name="orders", origin=replace(origin, **fields))


def found(now: str, complete: str, *collections: Collection, after: int = 3 * HOUR) -> tuple[str, str, str] | None:
    """The bounds of what is overdue, and up to where all is."""
    late = overdue("orders", parse_instant(complete), collections or [landed()], after=after, now=parse_instant(now))
    return late and tuple(format_instant(time)[:16] for time in (late.interval.lower, late.interval.upper, late.upto))


@pytest.mark.parametrize(
    ("now", "complete", "expected"),
    [
        ("2024-01-02T02:59:59Z", "1970-01-01", None),
        ("2024-01-02T03:00:00Z", "1970-01-01", ("2024-01-01T00:00", "2024-01-02T00:00", "2024-01-02T00:00")),
        ("2024-01-02T09:00:00Z", "2024-01-02", None),
        ("2024-01-05T04:00:00Z", "2024-01-02", ("2024-01-02T00:00", "2024-01-03T00:00", "2024-01-05T00:00")),
        ("2024-01-05T02:00:00Z", "2024-01-02", ("2024-01-02T00:00", "2024-01-03T00:00", "2024-01-04T00:00")),
        ("2024-01-05T02:00:00Z", "2024-01-04T12:00:00Z", None),
    ],
)
def test_the_oldest_interval_that_should_be_sealed(now: str, complete: str, expected: object) -> None:
    assert found(now, complete) == expected


def test_what_the_grace_holds_back_is_on_time() -> None:
    graceful = landed(grace=6 * HOUR)
    assert found("2024-01-03T12:00:00Z", "2024-01-02T18:00:00Z", graceful) is None
    assert found("2024-01-03T12:00:00Z", "2024-01-02T17:59:59Z", graceful) == (
        "2024-01-02T00:00",
        "2024-01-03T00:00",
        "2024-01-03T00:00",
    )


def test_nothing_is_overdue_before_the_start_nor_beyond_the_end() -> None:
    assert found("2024-01-01T00:00:00Z", "1970-01-01", landed("2024-01-03")) is None
    ended = landed(end=parse_instant("2024-01-04"), grace=6 * HOUR)
    assert found("2030-01-01", "2024-01-04", ended) is None
    assert found("2030-01-01", "2024-01-03", ended) == ("2024-01-03T00:00", "2024-01-04T00:00", "2024-01-04T00:00")


def test_a_derived_collection_waits_for_its_slowest_input() -> None:
    weekly = landed(schedule="0 0 * * MON")  # 2024-01-01 is a Monday
    assert found("2024-01-05", "2024-01-01", landed(), weekly) is None
    assert found("2024-01-08T03:00:00Z", "2024-01-01", landed(), weekly) == (
        "2024-01-01T00:00",
        "2024-01-08T00:00",
        "2024-01-08T00:00",
    )
    ended = landed(schedule="0 0 * * MON", end=parse_instant("2024-01-08"))
    late = found("2024-01-11T03:00:00Z", "2024-01-09", landed(), ended)
    assert late == ("2024-01-09T00:00", "2024-01-10T00:00", "2024-01-11T00:00")
    assert overdue("totals", 0, [], after=0, now=parse_instant("2030-01-01")) is None


def test_it_is_one_sentence_and_json() -> None:
    now = parse_instant("2024-01-05T04:30:00Z")
    late = overdue("orders", parse_instant("2024-01-02"), [landed()], after=3 * HOUR, now=now)
    assert late is not None
    assert late.words(now) == (
        "orders: [2024-01-02T00:00:00Z, 2024-01-03T00:00:00Z), and all up to 2024-01-05T00:00:00Z is overdue by "
        "2 days; the collection is complete below 2024-01-02T00:00:00Z"
    )
    assert late.as_dict()["since"] == "2024-01-03T03:00:00Z"
