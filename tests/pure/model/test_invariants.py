"""Every invariant by its name, with both values in the message; and that what the laws make keeps them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.drawn import ref, trace_batch, unsealed_batch
from support.world import collection
from tests.support import rules
from tidemark.errors import Corruption
from tidemark.model import admission
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.frontier import EMPTY, CompactionFunction
from tidemark.model.invariants import Invariant, Violation
from tidemark.model.update import Update, advance, consolidate
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


def at(time: int, key: str = "k", diff: int = 1) -> Update:
    return Update((key,), ("v",), time, time, diff)


def violated(violations: Iterator[Violation]) -> list[tuple[Invariant, dict[str, int | str]]]:
    return [(violation.rule, dict(violation.params)) for violation in violations]


@pytest.mark.parametrize(
    ("description", "rows", "broken"),
    [
        ((0, 2, 0), [], []),
        ((1, 2, 0), [at(0)], [(Invariant.TIMES_FROM_LOWER, {"time": 0, "lower": 1})]),
        ((1, 2, 0), [at(2)], [(Invariant.TIMES_TO_UPPER_OR_SINCE, {"time": 2, "upper": 2})]),
        ((1, 2, 2), [at(2)], []),
        ((1, 2, 4), [at(2)], []),
        ((1, 2, 4), [at(4)], []),
        ((1, 2, 4), [at(5)], [(Invariant.TIMES_TO_UPPER_OR_SINCE, {"time": 5, "since": 4})]),
        ((1, 9, 4), [at(9)], [(Invariant.TIMES_TO_UPPER_OR_SINCE, {"time": 9, "upper": 9})]),
        ((0, 2, EMPTY), [at(1)], []),
        ((0, 2, 0), [at(0), at(1)], []),
        ((0, 2, 0), [at(0, diff=0)], [(Invariant.NO_ZERO_DIFFS, {"time": 0, "diff": 0})]),
    ],
)
def test_the_rows_of_a_trace_batch(description: tuple[int, int, int], rows: list[Update], broken: list[object]):
    assert violated(rules.of_trace_rows(Description(*description), [rows])) == broken


@pytest.mark.parametrize(
    "parts", [[[0, 1]], [[0], [1]], [[0], [], [1]]], ids=["one part", "two", "an empty one between"]
)
def test_borders_of_parts_excuse_nothing(parts: list[list[int]]):
    def broken(*rows: Update) -> list[Invariant]:
        cut = [[rows[place] for place in part] for part in parts]
        return [violation.rule for violation in rules.of_trace_rows(Description(0, 9), cut)]

    assert broken(at(1), at(1)) == [Invariant.CONSOLIDATED]
    assert broken(at(2), at(1)) == [Invariant.SORTED]
    assert broken(at(1, "l"), at(2, "k")) == [Invariant.SORTED]
    assert broken(at(2, "k"), at(1, "l")) == []


@given(
    st.lists(st.builds(at, st.integers(3, 8), st.sampled_from("ab"), st.integers(-1, 1)), max_size=8),
    st.integers(0, 12) | st.just(EMPTY),
)
def test_what_consolidation_makes_of_forwarded_updates_keeps_the_rules(updates: list[Update], since: int):
    rows = consolidate(advance(updates, CompactionFunction(since)))
    assert violated(rules.of_trace_rows(Description(3, 9, since), [rows[:2], rows[2:]])) == []


@pytest.mark.parametrize(
    ("rows", "broken"),
    [([], [Invariant.NOT_EMPTY]), ([at(9), at(1, diff=0), at(1, diff=0)], [])],
    ids=["none", "as they came"],
)
def test_the_rows_of_an_unsealed_batch(rows: list[Update], broken: list[Invariant]):
    assert [rule for rule, _ in violated(rules.of_unsealed_rows((0, 1), rows))] == broken


def test_an_interval_is_checked_before_the_rows():
    assert violated(rules.of_unsealed_rows((4, 4), []))[0] == (Invariant.INTERVAL, {"lower": 4, "upper": 4})


@pytest.mark.parametrize(
    ("sequence", "times", "broken"),
    [
        ((7, 8), [20, 99], []),
        ((7, 9), [29], []),  # below the seal and not in the trace: a write and a later seal may be committed as one
        ((5, 8), [19], [(rules.Asked.SEQUENCE_CONTINUES, {"expected": 7, "got": 5})]),
        ((7, 8), [25, 19, 3], [(Invariant.ABOVE_THE_TRACE, {"time": 19, "trace_upper": 20})]),
        ((7, 8), [], [(Invariant.NOT_EMPTY, {"rows": 0})]),
        ((0, 1), [], [(rules.Asked.SEQUENCE_CONTINUES, {"expected": 7, "got": 0})]),
    ],
)
def test_an_append_says_the_first_of_what_is_wrong(sequence: tuple[int, int], times: list[int], broken: list[object]):
    assert violated(rules.of_append(STATE, sequence, times))[:1] == broken


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
        (
            lambda: replace(STATE, trace=(STATE.trace[0], trace_batch(["z", "[11][20][0]", "2", "0"]))),
            Invariant.NEIGHBOURS_TOUCH,
        ),
        (
            lambda: replace(STATE, trace=(STATE.trace[0], trace_batch(["z", "[9][20][0]", "2", "0"]))),
            Invariant.NEIGHBOURS_TOUCH,
        ),
        (
            lambda: replace(STATE, trace=(STATE.trace[0], replace(STATE.trace[1], level=2))),
            Invariant.LEVELS_DO_NOT_RISE,
        ),
    ],
)
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
