"""A gate that is declared is judged by, kept and reported like any other: nothing else names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quality.support import World, collection, update
from tests.support import toy_step
from tidemark.errors import GateFailed
from tidemark.jobs.steps.gate import gate
from tidemark.model.batch import Description
from tidemark.model.change import Sealed
from tidemark.quality.results import Results
from tidemark.storage.stores.private import open_private

pytestmark = pytest.mark.quality


@pytest.fixture(autouse=True)
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))
    return tmp_path


def test_a_gate_of_ones_own_judges_by_its_rules(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, counted = toy_step.declared(monkeypatch)
    world = World(collection())
    world.commit(Sealed(10, 10, 10))
    few = world.drain(Description(0, 5), [update(1, time=2)])
    many = world.drain(Description(5, 10), [update(1, time=6), update(2, time=7)])
    with pytest.raises(GateFailed) as failed:
        gate(world.job(), counted)
    message = str(failed.value)
    assert message.startswith(f"counted gate of orders: few rows of batch {many.id[:12]}: holds 2 rows, which is too")
    assert message.endswith(f"forget {many.id[:12]} of `orders`, run again")
    results = Results(open_private(str(docs)))
    (name,) = results.names("orders", "counted")
    document = results.load("orders", "counted", name)
    assert document is not None
    assert (name.outcome, document["suite"]) == ("failed", world.collection.suite(counted))
    assert [result["passed"] for result in document["results"]] == [True, False]
    # It covers trace batches: what it certified needs no other gate.
    assert (world.state.is_certified(few), world.state.is_certified(many)) == (True, False)
