"""Every invariant by its name, with both values in the message; and that what the laws make keeps them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.drawn import ref, trace_batch, unsealed_batch
from support.world import collection
from tests.support import rules
from tidemark.errors import Corruption
from tidemark.model import admission
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.frontier import EMPTY, CompactionFunction
from tidemark.model.invariants import Invariant, Violation
from tidemark.quality.gates import GATES

pytestmark = pytest.mark.pure

STATE = Arrangement(
    collection(),
    complete_below=30,
    seal=30,
    since=9,
    unsealed=(replace(unsealed_batch(["u", "20..40"], 0), sequence=(3, 7)),),
    trace=(trace_batch(["x", "[0][10][9]", "4", "1"]), trace_batch(["y", "[10][20][0]", "2", "0"])),
)


def violated(violations: Iterator[Violation]) -> list[tuple[Invariant, dict[str, int | str]]]:
    return [(violation.rule, dict(violation.params)) for violation in violations]


def test_frontiers_stay_or_advance():
    assert violated(rules.of_seal(4, 4)) == violated(rules.of_seal(4, EMPTY)) == []
    assert violated(rules.of_seal(4, 3)) == [(Invariant.SEAL_ADVANCES, {"requested": 3, "current": 4})]
    four, nine, empty = CompactionFunction(4), CompactionFunction(9), CompactionFunction(EMPTY)
    assert violated(admission.of_since(four, four)) == violated(admission.of_since(nine, empty)) == []
    assert violated(admission.of_since(nine, four)) == [(Invariant.SINCE_ADVANCES, {"requested": 4, "current": 9})]
    assert violated(admission.of_since(empty, nine)) == [(Invariant.SINCE_ADVANCES, {"requested": 9, "current": EMPTY})]
    (back,) = admission.of_since(empty, nine)
    assert "empty" in back.message
    assert str(EMPTY) not in back.message


def test_writes_ranges_and_appends_to_the_trace():
    assert violated(admission.of_write(4, 4)) == []
    assert violated(admission.of_write(4, 3)) == [(Invariant.ABOVE_THE_SEAL, {"time": 3, "seal": 4})]
    assert violated(rules.of_range(4, 4)) == []
    assert violated(rules.of_range(4, 3)) == [(rules.Asked.RANGE, {"lower": 4, "upper": 3})]
    assert violated(admission.of_trace_append(STATE, Description(20, 30))) == []
    assert violated(admission.of_trace_append(STATE, Description(19, 30))) == [
        (Invariant.NEIGHBOURS_TOUCH, {"upper": 20, "lower": 19})
    ]


def test_a_merge_is_of_neighbours_and_never_forgets_how_far_they_were_forwarded():
    older, newer, distant = Description(0, 2, 1), Description(2, 4), Description(5, 6)
    assert violated(admission.of_merge([older, newer], CompactionFunction(1))) == []
    assert violated(admission.of_merge([older, newer], CompactionFunction(0))) == [
        (Invariant.MERGE_KEEPS_SINCE, {"requested": 0, "input_since": 1})
    ]
    assert violated(admission.of_merge([newer, distant], CompactionFunction(0))) == [
        (Invariant.MERGE_OF_NEIGHBOURS, {"upper": 4, "lower": 5})
    ]


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (lambda: Description(2, 2), Invariant.INTERVAL),
        (lambda: Description(3, 2), Invariant.INTERVAL),
        (lambda: replace(STATE.unsealed[0], sequence=(4, 4)), Invariant.INTERVAL),
        (lambda: replace(STATE.unsealed[0], first_time=41), Invariant.TIME_BOUNDS),
        (lambda: replace(STATE.unsealed[0], last_event_time=19), Invariant.TIME_BOUNDS),
        (lambda: replace(STATE.unsealed[0], rows=0), Invariant.NOT_EMPTY),
        (lambda: replace(STATE.trace[0], rows=0), Invariant.PARTS_FOR_ROWS),
        (lambda: replace(STATE.trace[0], parts=None), Invariant.PARTS_FOR_ROWS),
        (lambda: replace(STATE, quarantined=STATE.unsealed), Invariant.BATCHES_NAMED_ONCE),
        (lambda: replace(STATE, unsealed=(*STATE.unsealed, _next(6))), Invariant.SEQUENCES_ASCEND),
        (lambda: replace(STATE, since=8), Invariant.SINCE_OF_THE_STATE),
        (lambda: replace(STATE, complete_below=31), Invariant.COMPLETE_IS_KNOWN),
        (lambda: replace(STATE, complete_below=19, seal=19), Invariant.UPPER_BELOW_THE_SEAL),
        (lambda: replace(STATE, trace=STATE.trace[1:]), Invariant.TRACE_FROM_ZERO),
        (lambda: replace(STATE, trace=(STATE.trace[0], trace_batch(["z", "[11][20][0]", "2", "0"]))),
         Invariant.NEIGHBOURS_TOUCH),
        (lambda: replace(STATE, trace=(STATE.trace[0], trace_batch(["z", "[9][20][0]", "2", "0"]))),
         Invariant.NEIGHBOURS_TOUCH),
        (lambda: replace(STATE, trace=(STATE.trace[0], replace(STATE.trace[1], level=2))),
         Invariant.LEVELS_DO_NOT_RISE),
    ],
)  # fmt: skip
def test_states_and_batches_refuse_to_be_wrong(wrong, rule: Invariant):
    with pytest.raises(Corruption) as refused:
        wrong()
    assert refused.value.rule == rule
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.rule, again.params) == (str(refused.value), rule, refused.value.params)
    for name, value in refused.value.params:
        assert str(value) in str(refused.value), f"{name} is not in the message"


def test_gates_call_the_rules_they_judge_by_the_same_names():
    named = {rule.name for gate in GATES.values() for rule in gate.rules}
    assert named & set(Invariant) == {
        Invariant.ABOVE_THE_TRACE,
        Invariant.CONSOLIDATED,
        Invariant.LEVELS_DO_NOT_RISE,
        Invariant.NEIGHBOURS_TOUCH,
        Invariant.NO_ZERO_DIFFS,
        Invariant.SEAL_ADVANCES,
        Invariant.SINCE_OF_THE_STATE,
        Invariant.SORTED,
        Invariant.TIMES_TO_UPPER_OR_SINCE,
        Invariant.UPPER_BELOW_THE_SEAL,
    }


def test_what_the_rules_allow():
    """Gaps between sequence intervals, a since beyond the seal, equal levels, an empty batch."""
    replace(STATE, unsealed=(*STATE.unsealed, _next(9)))
    replace(STATE, since=99)
    replace(STATE, since=EMPTY)
    replace(STATE, trace=(STATE.trace[0], replace(STATE.trace[1], level=1)))
    replace(STATE.trace[0], rows=0, parts=None, part_count=0)


def _next(sequence: int):
    return replace(STATE.unsealed[0], id="w", parts=ref("w"), sequence=(sequence, sequence + 1))
