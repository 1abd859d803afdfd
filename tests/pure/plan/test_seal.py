"""How far the seal moves: not at all before the collection's first interval, whatever else was ingested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidemark.model.arrangement import Arrangement
from tidemark.model.change import Sealed
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.interval import Interval, IntervalSet
from tidemark.plan.seal import plan_seal

pytestmark = pytest.mark.pure

START = 100
COLLECTION = Collection(
    "c", (Column("id", ColumnType.INT),), (), Landed(Source("*", Format.CSV, Envelope.APPEND), start=START, grace=5)
)


def ingested(*intervals: tuple[int, int]) -> Arrangement:
    return Arrangement(COLLECTION, ingested=IntervalSet(tuple(Interval(*bounds) for bounds in intervals)))


def test_later_intervals_do_not_seal_what_came_before_the_start() -> None:
    """The first interval's rows may have happened before the start: they are on time, in whatever order days come."""
    assert plan_seal(ingested((200, 300)), 300) == Sealed(0, 0, 300)


def test_the_first_interval_passes_those_that_waited() -> None:
    waiting = replace(ingested((100, 300)), requested_seal=300)
    assert plan_seal(waiting, 200) == Sealed(295, 295, 300)


def test_the_seal_stops_at_a_hole_less_the_grace() -> None:
    assert plan_seal(ingested((100, 200), (300, 400)), 400) == Sealed(195, 195, 400)


def test_a_wait_is_recorded_once() -> None:
    assert plan_seal(replace(ingested((200, 300)), requested_seal=300), 300) is None
