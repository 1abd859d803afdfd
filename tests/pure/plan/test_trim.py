"""What is left of a batch by a trim is never nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.stage import trace_batch, unsealed_batch, whole
from support.world import collection
from tidemark.model.arrangement import Arrangement
from tidemark.model.collection import Envelope, Late
from tidemark.plan.trim import TrimRequest, plan_trim, trimming

pytestmark = pytest.mark.pure


def trimmed(state: Arrangement, *, least_share: float = 0.5) -> TrimRequest | None:
    """The first batch that is worth it, each being of one part."""
    for request in plan_trim(state):
        if trimming(request, [whole(request.batch)], least_share=least_share):
            return request
    return None


def test_a_batch_of_which_nothing_stays_is_left_to_be_evicted():
    """A drain evicts by the horizon of its time; since may have moved that beyond all facts of a batch afterwards."""
    state = Arrangement(
        collection(Envelope.UPSERT, late=Late("reemit")),
        complete_below=50,
        seal=50,
        since=0,
        unsealed=(unsealed_batch(["a", "36..36", "rows=2"], 0), unsealed_batch(["b", "40..49", "events=30..49"], 1)),
        trace=(trace_batch(["x", "[0][50][0]", "4", "0"]),),
    )
    assert trimmed(state) is None
    assert trimmed(replace(state, since=36)) is None
    assert trimmed(replace(state, since=37)) is None
    asked = trimmed(replace(state, since=40), least_share=0.1)
    assert asked
    assert (asked.batch.id, asked.lower, asked.horizon) == ("b", 50, 40)
    assert trimmed(replace(state, since=50)) is None
