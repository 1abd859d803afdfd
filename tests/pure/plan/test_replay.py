"""Which dead letters a replay reads, and what it may still correct."""

from __future__ import annotations

import pytest

from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.replay import plan_replay

pytestmark = pytest.mark.pure


def entry(path: str, day: int, *, discarded: int = 1, late: str | None = "a", size: int = 1) -> LedgerEntry:
    interval = Interval(day * 10, day * 10 + 10)
    ref = ObjectRef(f"data/{late}.parquet", size, "0") if late else None
    return LedgerEntry(path, 1, "0", "t", interval, Status.INGESTED, "b", 5, 1, discarded, ref)


def test_only_files_with_dead_letters_are_read() -> None:
    state = Arrangement(collection(), complete_below=50, seal=50)
    assert plan_replay(state, []) is None
    assert plan_replay(state, [entry("none left", 1, discarded=0), entry("no object", 1, late=None)]) is None
    plan = plan_replay(state, [entry("f", 3), entry("late/data/a.parquet", 1, late="b")])
    assert plan is not None
    assert plan.interval == Interval(10, 40)
    assert [(source.path, source.of) for source in plan.sources] == [
        ("late/data/a.parquet", "f"),
        ("late/data/b.parquet", "late/data/a.parquet"),
    ]


@pytest.mark.parametrize(
    ("since", "forgotten_below", "expected"),
    [(0, 0, 0), (20, 0, 20), (20, 30, 30), (40, 30, 40), (70, 30, 50)],
    ids=["all", "since", "forgotten_below", "since again", "since beyond the seal"],
)
def test_nothing_is_corrected_below_since_or_what_was_forgotten(
    since: int, forgotten_below: int, expected: int
) -> None:
    plan = plan_replay(
        Arrangement(collection(), complete_below=50, seal=50, since=since, forgotten_below=forgotten_below),
        [entry("f", 1)],
    )
    assert plan is not None
    assert (plan.seal, plan.since) == (50, expected)
