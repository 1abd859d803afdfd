"""How far a compaction may forward what facts to come are resolved against."""

from __future__ import annotations

import pytest

from support.world import collection, interval
from tidemark.model.arrangement import Arrangement, Certificate
from tidemark.model.batch import Description, ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.collection import Envelope, Gate
from tidemark.plan.compact import plan_compaction

REF = ObjectRef("data/x", 1, "0")


@pytest.mark.parametrize(("envelope", "expected"), [(Envelope.APPEND, 9), (Envelope.UPSERT, 4)])
def test_a_keyed_trace_is_not_forwarded_beyond_the_oldest_fact_to_come(envelope: Envelope, expected: int):
    """It happened at 4: the value its key had before is what the trace says at 4, which forwarding to 9 would lose."""
    declared = collection(envelope, live_batches=2)
    trace = tuple(TraceBatch(f"t{at}", Description(at * 3, at * 3 + 3), 0, 2, 1, 0, REF, 1) for at in range(3))
    pending = UnsealedBatch("u", interval(1), REF, 1, 1, 1, 0, 10, 12, 4, 12)
    suite = declared.suite(Gate.TRACE)
    state = Arrangement(
        declared,
        complete_below=9,
        seal=9,
        since=9,
        unsealed=(pending,),
        trace=trace,
        certificates=tuple(Certificate(batch.id, suite) for batch in trace),
    )
    request = plan_compaction(state)
    assert request is not None
    assert request.description == Description(0, 9, expected)
