"""Realistic mistakes in one line of the product, each with a law of this ring that notices it.

tests/support/mutants.py makes them. Those that only a whole step shows are in tests/simulation/test_mutants.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from support.mutants import Mutant, check_caught
from tests.pure.arrow import test_gaps, test_joined, test_known_keys, test_merge, test_placed, test_timelines
from tests.pure.model import test_key, test_laws, test_transitions
from tests.pure.model.chunk import test_law
from tests.pure.model.chunk.pruning import case, exact
from tests.pure.model.window import test_late_rows
from tests.pure.plan import test_correct
from tests.pure.storage import test_log, test_low_water, test_stores
from tests.support.kinds import ALIGNED
from tidemark.arrow.kernels import joined, merge
from tidemark.arrow.kernels.windows import gaps
from tidemark.arrow.kernels.windows.aligned.hopping import HoppingKernel
from tidemark.arrow.parts import bounds
from tidemark.arrow.rows import consolidate, known_keys
from tidemark.model.chunk import law
from tidemark.model.chunk.bounds import NO_VALUE, Bounds
from tidemark.model.interval import Interval, IntervalSet
from tidemark.model.key import Null
from tidemark.model.transition import fences, unsealed
from tidemark.model.window import close, frozen_sessions
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Hopping, Tumbling
from tidemark.model.window.windows import Late
from tidemark.plan import correct
from tidemark.storage.log.log import StateLog
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate

pytestmark = pytest.mark.pure


def example(test: Any, *values: object) -> Callable[[], None]:
    """A law for one example of those that it is tried with."""
    return partial(test.hypothesis.inner_test, *values)


def transitions_of_ingests() -> None:
    (path,) = (path for path in test_transitions.FILES if path.stem == "ingested")
    test_transitions.test_text(path)


def hops_by_law() -> None:
    for sample in ALIGNED:
        if isinstance(sample.kind, Hopping):
            test_placed.test_the_kernel_is_the_law(sample)


def answers_are_exact() -> None:
    assert all(exact(case(seed)) for seed in range(300))


def creates_once() -> None:
    test_stores.TestMemoryStore().test_the_second_create_changes_nothing(MemoryStore())


lost_answer = partial(test_log.test_a_lost_reply_is_found_to_be_one_s_own, MemoryStore)
same_window = partial(example, test_late_rows.test_a_row_counts_in_the_windows_that_were_not_frozen, Tumbling(10), 0)
sessions = test_gaps.test_sessions_are_those_found_row_by_row_whatever_batches_they_come_in
pairs = test_joined.test_they_are_the_pairs_that_are_equal
numbered = test_known_keys.test_each_row_has_the_number_of_its_key
meets = test_law.test_a_span_meets_bounds
frontiers, holds = test_correct.TestFrontiers(), test_correct.TestHolds()

MUTANTS = [
    # Rows are added up and merged.
    Mutant(
        "a sum of zero stays",
        consolidate.consolidated,
        "kept = sums != 0",
        "kept = np.ones(len(sums), bool)",
        test_merge.test_what_cancels_out_leaves_no_part,
    ),
    Mutant(
        "what a round kept is forgotten",
        merge._rounds,
        "yield [*kept, *taken]",
        "yield taken",
        test_merge.test_a_group_whose_halves_are_in_two_row_groups_leaves_as_one,
    ),
    Mutant(
        "forwarded rows are merged by event times that are in no order",
        merge.merged,
        "order[:-1] if forwards else order",
        "order",
        partial(test_merge.test_forwarding_that_changes_the_order_by_event_time_is_sorted_again, 3, 1),
    ),
    Mutant(
        "sums are exact where each diff fits, not their sum",
        consolidate.summed,
        "largest * len(diffs) <= MAX_TIME",
        "largest <= MAX_TIME",
        test_merge.test_sums_beyond_64_bits_are_refused_and_never_wrap,
    ),
    # Fences and the log.
    Mutant(
        "a stalled writer takes a version that was collected for its commit",
        StateLog._create,
        "self._check_not_stray(created)",
        "pass",
        test_low_water.test_frozen_before_the_create_of_a_number_that_was_collected,
    ),
    Mutant(
        "a reader takes it, too, whatever its number",
        StateLog._create,
        "self._check_not_stray(created)",
        "pass",
        partial(test_low_water.test_no_stray_misleads_a_reader_whatever_its_number, 31),
    ),
    Mutant(
        "a lost answer is taken for a lost race",
        StateLog._caught_up,
        "mine = mine or version.record.id == identity",
        "mine = False",
        partial(lost_answer, AlreadyExists),
    ),
    Mutant(
        "an answer that never came is taken for a lost race",
        StateLog._caught_up,
        "mine = mine or version.record.id == identity",
        "mine = False",
        partial(lost_answer, Indeterminate),
    ),
    Mutant(
        "it is not said that a create may have succeeded",
        StateLog.commit,
        "unknown = True",
        "failure = None",
        partial(test_log.test_a_store_that_never_says_gives_commit_unknown, MemoryStore),
    ),
    Mutant(
        "an attempt goes on after a newer one has finished",
        fences.fenced_off,
        "holder == fence.token or (holder is None and fence.unannounced)",
        "holder in (fence.token, None)",
        transitions_of_ingests,
    ),
    Mutant(
        "a create of what is there already succeeds",
        MemoryStore.create,
        "if key in self.objects:",
        "if key in self.objects and self.objects[key] != data:",
        creates_once,
    ),
    Mutant(
        "the age of a plan counts from the last look",
        StateLog._check_fresh,
        "self.monotonic() - base.seen_at > PLAN_LIMIT",
        "self.monotonic() - head.seen_at > PLAN_LIMIT",
        test_low_water.test_planned_half_a_day_ago_counts_from_the_plan_not_from_the_last_look,
    ),
    # What was ingested.
    Mutant(
        "an interval counts as read when its beginning is",
        IntervalSet.covers,
        "m.lower <= interval.lower and interval.upper <= m.upper",
        "m.lower <= interval.lower < m.upper",
        example(test_laws.test_a_set_of_intervals_is_the_set_of_their_times, [Interval(0, 2)], 1),
    ),
    Mutant(
        "runs of the ledger are merged over one between them",
        unsealed.ledger_merged,
        "tuple(keys[at : at + len(change.inputs)]) != change.inputs",
        "len(keys[at:]) < len(change.inputs)",
        transitions_of_ingests,
    ),
    # Windows.
    Mutant(
        "a row at the end of a window is in it",
        HoppingKernel.windows_at,
        "(size - 1 - (at - newest))",
        "(size - (at - newest))",
        hops_by_law,
    ),
    Mutant(
        "rows at a distance of exactly the gap are one session",
        gaps._starts,
        "(0 if gaps.exact_gap_merges else 1)",
        "0",
        example(sessions, {("x", 0), ("x", 5)}, gaps.Gaps(("key",), 5, exact_gap_merges=False), 1),
    ),
    Mutant(
        "a window takes what comes as it freezes",
        close.is_frozen,
        "since <= learned",
        "since < learned",
        same_window((Late.DISCARD, None), [Happened("k", "x", 5, learned=10)]),
    ),
    Mutant(
        "a retraction of what a frozen session has empties an open one",
        frozen_sessions.frozen_sessions,
        "[*late, *(row for _, in_span in final for row in in_span)]",
        "late",
        test_late_rows.test_a_retraction_of_what_a_closed_session_holds_takes_nothing_from_an_open_one,
    ),
    # The refresh of what is derived.
    Mutant(
        "changes of the first instant that was not consumed are not read",
        correct._range,
        "consumed - 1",
        "consumed",
        holds.test_each_input_has_a_hold_at_what_was_consumed,
    ),
    Mutant(
        "a correction of a source moves nothing as no interval was completed",
        correct._Plan._moves,
        "return ends or further or any(upper > self._floors()[source.name] for source, upper in met.uppers)",
        "return ends or further",
        frontiers.test_a_tick_is_consumed_and_the_frontier_is_above_it,
    ),
    Mutant(
        "a frontier is recorded that was there before",
        correct._Plan._request,
        "last + 1",
        "last",
        frontiers.test_a_tick_is_consumed_and_the_frontier_is_above_it,
    ),
    Mutant(
        "groups whose key has a null are not computed again",
        known_keys._places,
        "pc.index_in(column, among)",
        "pc.index_in(column, among, skip_nulls=True)",
        example(numbered, {(None, 0, 1)}, [(None, 0, 1)], 1),
    ),
    Mutant(
        "what the other side of a join retracts is added",
        joined.Side.joined,
        "pc.multiply_checked(rows.column(DIFF), other.column(_OTHER).fill_null(_ONCE))",
        "rows.column(DIFF)",
        example(pairs, [(0, "x", 0.1, None, 1, 1)], [(0, "x", 0.1, None, 1, -1)], ["int"], False),
    ),
    # What is not opened.
    Mutant(
        "the least value of a part is not in it",
        law.Span.meets,
        "lower <= bounds.last",
        "lower < bounds.last",
        partial(meets, ((3, 5),), Bounds(1, 3), True),
    ),
    Mutant(
        "a part that has only nulls has any value",
        law.Span.meets,
        "if bounds is None:",
        "if bounds is None or bounds.first is None:",
        partial(meets, ((None, None),), NO_VALUE, False),
    ),
    Mutant(
        "statistics of texts, which are cut off, are taken for numbers",
        bounds._units,
        "return 1 if pa.types.is_date32(asked) or any(of(asked) for of in whole) else None",
        "return 1",
        test_timelines.test_texts_and_floats_have_no_plain_bounds,
    ),
    Mutant(
        "a null of a key comes after its values",
        Null.__lt__,
        "other is not self",
        "False",
        example(test_key.test_every_comparison_says_the_same, (None, "", True), (0, "", True)),
    ),
    Mutant(
        "event times are compared as they are stored, not as they were forwarded",
        law.meets_times,
        "wanted.function(chunk.last_event_time)",
        "chunk.last_event_time",
        answers_are_exact,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    check_caught(mutant, mutant.law, monkeypatch)


def test_a_mutant_that_no_law_notices_and_one_whose_line_is_gone_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    right = MUTANTS[0]
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_caught(replace(right, mistake=right.line), right.law, monkeypatch)
    with pytest.raises(AssertionError, match="consolidated says 'sums > 1' 0 times: write the mutant again"):
        check_caught(replace(right, line="sums > 1"), right.law, monkeypatch)
