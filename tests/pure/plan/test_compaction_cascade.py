"""Which batches are merged pair by pair behind `since`, where nothing is compacted ahead of it: drawn as levels and
rows, oldest first; the answer as positions."""

from __future__ import annotations

import pytest

from support.world import collection
from tidemark.errors import Uncertified
from tidemark.model.arrangement import Arrangement, Certificate
from tidemark.model.batch import Description, ObjectRef, TraceBatch
from tidemark.model.collection import Envelope, Gate
from tidemark.plan.compact import plan_compaction

pytestmark = pytest.mark.pure

REF = ObjectRef("data/x", 1, "0")


def arrangement(*batches: tuple[int, int], certified: int | None = None) -> Arrangement:
    """A trace of (level, rows), of which all or the oldest `certified` are certified."""
    declared = collection(Envelope.APPEND, compact_ahead=False)
    trace = tuple(
        TraceBatch(str(at), Description(at, at + 1), level, rows, 1, 0, REF if rows else None, 1 if rows else 0)
        for at, (level, rows) in enumerate(batches)
    )
    suite = declared.suite(Gate.TRACE)
    certificates = tuple(Certificate(batch.id, suite) for batch in trace[:certified])
    return Arrangement(
        declared, complete_below=len(trace), seal=len(trace), since=len(trace), trace=trace, certificates=certificates
    )


def merged(*batches: tuple[int, int]) -> list[int]:
    request = plan_compaction(arrangement(*batches))
    return [] if request is None else [int(batch.id) for batch in request.inputs]


@pytest.mark.parametrize(
    ("batches", "expected", "why"),
    [
        ([], [], "nothing there"),
        ([(0, 5)], [], "a lone batch"),
        ([(1, 9), (0, 5)], [], "no two of one level"),
        ([(0, 5), (0, 5)], [0, 1], "a pair"),
        ([(2, 20), (1, 9), (0, 5), (0, 5)], [0, 1, 2, 3], "a cascade is one merge"),
        ([(3, 40), (1, 9), (0, 5), (0, 5)], [1, 2, 3], "the cascade stops where a level is missing"),
        ([(0, 5), (0, 5), (0, 5), (0, 5)], [0, 1, 2, 3], "a backlog is one merge, not a merge of merges"),
        ([(0, 5), (0, 5), (0, 5)], [0, 1], "three: the oldest two, the third waits at level 0"),
        ([(1, 9), (0, 0), (0, 5)], [1, 2], "an empty neighbour adds no rows, so its merge does not climb"),
        ([(0, 5), (0, 0)], [0, 1], "an empty neighbour is taken over"),
    ],
)
def test_the_oldest_run_of_batches_that_would_end_as_one_is_merged_at_once(batches, expected, why):
    assert merged(*batches) == expected, why


def test_what_was_retracted_does_not_climb():
    request = plan_compaction(arrangement((1, 8), (1, 8)))
    assert request is not None
    assert [request.level(rows) for rows in (16, 9, 8, 0)] == [2, 2, 1, 1]


def test_a_merge_with_an_empty_batch_moves_no_data():
    assert plan_compaction(arrangement((0, 5), (0, 0))).moves_no_data
    assert not plan_compaction(arrangement((0, 5), (0, 5))).moves_no_data


def test_an_input_no_gate_has_certified_for_is_refused_by_name():
    with pytest.raises(Uncertified, match="trace batch 1 is not certified") as refused:
        plan_compaction(arrangement((0, 5), (0, 5), certified=1))
    assert refused.value.gate == Gate.TRACE
