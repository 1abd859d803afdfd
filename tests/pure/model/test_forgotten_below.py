"""Facts are forgotten below the horizon, so nothing that happened below it may be placed any more, whatever changed."""

from __future__ import annotations

from dataclasses import replace

from support.relanded import relanded
from support.world import collection, interval
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.batch import Description, ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.change import Drained, Ingested, Redefined
from tidemark.model.collection import Envelope, Late
from tidemark.model.transition import Applied, Stale, apply
from tidemark.plan.ingest import plan_ingest

REF = ObjectRef("data/x", 1, "0")
KEYED = collection(Envelope.UPSERT, late=Late("reemit", 3))
FENCE = Fence("drain", interval(0), "t")
INGEST = Fence("ingest", interval(1), "t")


def unsealed(name: str, times: tuple[int, int], events: tuple[int, int]) -> UnsealedBatch:
    return UnsealedBatch(name, interval(0), REF, 1, 1, 1, 0, *times, *events)


def after_a_drain(declared=KEYED) -> Arrangement:
    """Sealed and drained to 10, with a batch of facts at 0 to 4, which are older than any that may come."""
    state = Arrangement(
        declared, complete_below=10, seal=10, unsealed=(unsealed("a", (0, 4), (0, 4)),), fences=(FENCE, INGEST)
    )
    outcome = apply(state, Drained(FENCE, TraceBatch("x", Description(0, 10), 0, 0, 0, 0)))
    assert isinstance(outcome, Applied)
    return outcome.state


def test_what_is_forgotten_stays_so_when_more_lateness_is_allowed():
    state = after_a_drain()
    assert (state.unsealed, state.horizon) == ((), 7)
    redefined = apply(state, Redefined(relanded(KEYED, late=Late("reemit"))))
    assert isinstance(redefined, Applied)
    assert redefined.state.horizon == 7
    request = plan_ingest(redefined.state, interval(1), (), {}, turn=0)
    assert request is not None
    assert request.since == 7


def test_a_batch_with_facts_from_below_is_judged_again():
    late = Ingested(INGEST, unsealed("late", (10, 10), (6, 6)), None)
    assert isinstance(apply(after_a_drain(), late), Stale)
    assert isinstance(apply(after_a_drain(), replace(late, batch=unsealed("late", (10, 10), (7, 7)))), Applied)


def test_late_rows_below_since_are_judged_again():
    state = replace(after_a_drain(collection(Envelope.APPEND)), since=8)
    late = Ingested(INGEST, unsealed("late", (10, 10), (7, 7)), None)
    assert isinstance(apply(state, late), Stale)
    assert isinstance(apply(state, replace(late, batch=unsealed("late", (10, 10), (8, 8)))), Applied)


def test_rows_on_time_are_taken_although_since_is_beyond_them():
    on_time = Ingested(INGEST, unsealed("b", (10, 12), (11, 12)), None)
    for envelope in (Envelope.APPEND, Envelope.UPSERT):
        state = replace(after_a_drain(collection(envelope)), since=20)
        assert isinstance(apply(state, on_time), Applied)
        assert state.horizon <= 10
