"""The published figures, against the dynamic program they are the closed form of."""

from __future__ import annotations

from functools import cache

import pytest

from support.world import collection
from tidemark.model.arrangement import Arrangement, Totals
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.plan.bounds import bounds, fewest_writes

pytestmark = pytest.mark.pure


@cache
def dynamic(batches: int, runs: int) -> float:
    """The dynamic program: the last write of the oldest run splits the problem."""
    if not batches:
        return 0
    if not runs:
        return float("inf")
    return min(dynamic(last - 1, runs) + last + dynamic(batches - last, runs - 1) for last in range(1, batches + 1))


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 8])
def test_the_closed_form_is_the_dynamic_program(runs: int) -> None:
    assert [fewest_writes(n, runs) for n in range(40)] == [dynamic(n, runs) for n in range(40)]


def test_the_table_of_the_specification() -> None:
    table = {(256, 4): 5.22, (256, 8): 3.16, (1024, 8): 4.31, (1024, 12): 3.46, (4096, 10): 4.94}
    assert {at: round(fewest_writes(*at) / at[0], 2) for at in table} == table


def test_bounds_of_a_state() -> None:
    def batch(at: int, level: int) -> TraceBatch:
        return TraceBatch(f"t{at}", Description(at, at + 1), level, 2, 1, 0, ObjectRef("data/x", 1, "0"), 1)

    totals = Totals(drains=20, rows_drained=100, rows_compacted=180)
    state = Arrangement(
        collection(live_batches=3),
        complete_below=3,
        seal=3,
        trace=(batch(0, 4), batch(1, 1), batch(2, 0)),
        totals=totals,
    )
    found = bounds(state)
    assert (found.live_batches, found.live_bound) == (3, 10)
    assert (found.written, found.written_bound, found.least) == (2.8, 6, fewest_writes(20, 10) / 20)


def test_a_collection_that_waits_for_since_promises_nothing() -> None:
    found = bounds(Arrangement(collection(compact_ahead=False)))
    assert (found.live_bound, found.written_bound, found.written, found.least) == (None, None, None, None)
