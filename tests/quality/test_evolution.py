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
from tidemark.model.change import Redefined
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
