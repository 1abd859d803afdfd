"""Gates over batches that were written under an earlier declaration: judged and shown in today's columns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.quality.support import DAY, World, collection, fact, update
from tidemark.errors import GateFailed
from tidemark.jobs.steps.gate import gate
from tidemark.model.batch import Description
from tidemark.model.change import Redefined, Sealed
from tidemark.model.collection import Column, ColumnType, Envelope, Gate
from tidemark.model.evolution import evolved

pytestmark = pytest.mark.quality


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))


def redefine(world: World, *quality: dict[str, Any]) -> None:
    """`status` is called `state`, `amount` is dropped, `day` is a timestamp, `note` is new."""
    value = [("state", ColumnType.STRING), ("at", ColumnType.TIMESTAMP), ("day", ColumnType.TIMESTAMP)]
    asked = replace(
        world.collection,
        value=tuple(Column(name, of) for name, of in [*value, ("note", ColumnType.STRING)]),
        renames=(("status", "state"),),
        quality=tuple(json.dumps(one) for one in quality),
    )
    world.commit(Redefined(evolved(world.collection, asked)))
    world.collection = world.state.collection


def states(*allowed: str) -> dict[str, Any]:
    return {"expect_column_values_to_be_in_set": {"column": "state", "value_set": list(allowed)}}


@pytest.mark.parametrize("keyed", [False, True])
def test_an_earlier_batch_is_judged_by_todays_expectations(keyed: bool) -> None:
    world = World(collection(Envelope.UPSERT if keyed else Envelope.APPEND))
    row_of = fact if keyed else update
    batch = world.ingest(1, [row_of(1, time=DAY, status="paid", day=3), row_of(2, time=DAY, status="bogus")])
    redefine(world, states("new", "paid"))
    with pytest.raises(GateFailed, match=r"expect_column_values_to_be_in_set\(state\) .*1 row holds bogus"):
        gate(world.job(), Gate.UNSEALED)
    shown = "\n".join(world.notes)
    assert "state" in shown
    assert "note" in shown
    assert "amount" not in shown
    assert "_dropped" not in shown
    redefine(world, states("paid", "bogus"), {"expect_column_values_to_be_null": {"column": "note"}})
    assert gate(world.job(), Gate.UNSEALED)["batches"] == [batch.id]


def test_trace_batches_of_any_declaration_keep_the_invariants() -> None:
    world = World(collection())
    world.ingest(0, [update(1, time=1)])
    gate(world.job(), Gate.UNSEALED)
    world.commit(Sealed(2 * DAY, 2 * DAY, 2 * DAY))
    old = world.drain(Description(0, DAY), [update(1, time=1, status="a"), update(1, time=2, status="b")])
    redefine(world)
    rows = [{"id": 1, "state": "c", "_time": DAY, "_event_time": DAY, "_diff": 1}]
    new = world.drain(Description(DAY, 2 * DAY), rows)
    assert gate(world.job(), Gate.TRACE)["batches"] == [old.id, new.id]


def test_a_column_lost_from_a_batch_of_today_is_no_earlier_declaration() -> None:
    world = World(collection())
    earlier = world.collection
    redefine(world)
    today, world.collection = world.collection, replace(earlier, schema=world.collection.schema)
    world.ingest(1, [update(1, time=DAY)])
    world.collection = today
    with pytest.raises(
        GateFailed, match=r"schema of batch .*: 1 of 1 parts have the columns id, status, amount, at, day"
    ):
        gate(world.job(), Gate.UNSEALED)
