"""When a batch is cut, and why: each trigger, their precedence, lengths, and what is never cut."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice, pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.batching.cutting import Batching, Cutter, Open, Seen, WatchRate, check_cost
from tidemark.model.batching.length import Adaptive, Fixed
from tidemark.model.batching.rate import SECOND
from tidemark.model.batching.reason import Cut, Direction, Reason

pytestmark = pytest.mark.pure
MINUTE = 60 * SECOND
ALL = Batching(Fixed(MINUTE), count=10, bytes=1_000, rate_change=WatchRate(0.5), memory=0.8, watermark=True)


def cut_of(batching: Batching, batch: Open | None, now: int = 0, **seen: bool | float) -> Cut | None:
    return Cutter.of(batching).cut(batch, now, Seen(**seen))[1]


@pytest.mark.parametrize(
    ("batch", "now", "seen", "reason"),
    [
        (Open(0, rows=10), 0, {}, Reason.COUNT),
        (Open(0, rows=9, bytes=999), MINUTE - 1, {"memory": 0.79}, None),
        (Open(0, rows=1, bytes=1_000), 0, {}, Reason.BYTES),
        (Open(0, rows=1), MINUTE, {}, Reason.TIME),
        (Open(0, rows=1), 0, {"memory": 0.8}, Reason.MEMORY),
        (Open(0, rows=1), 0, {"watermark": True}, Reason.WATERMARK),
        (Open(0, rows=1), 0, {"end_of_input": True}, Reason.END_OF_INPUT),
        (Open(0, rows=1), 0, {"explicit": True}, Reason.EXPLICIT),
    ],
)
def test_each_trigger_cuts_by_itself(batch, now, seen, reason):
    cut = cut_of(ALL, batch, now, **seen)
    assert (cut and (cut.reason, cut.also)) == (reason and (reason, ()))


def test_what_holds_nothing_is_never_cut():
    everything = {"memory": 1.0, "watermark": True, "end_of_input": True, "explicit": True}
    for batch in (None, Open(0)):
        assert cut_of(ALL, batch, 10 * MINUTE, **everything) is None


def test_of_all_that_hold_the_first_is_the_reason_and_the_rest_are_listed():
    cutter = Cutter.of(Batching(Fixed(MINUTE), 10, 1_000, WatchRate(0.5, MINUTE, MINUTE), 0.8, watermark=True))
    cutter = cutter.arrived(0, 1).arrived(2 * MINUTE, 50)
    seen = Seen(memory=1.0, watermark=True, end_of_input=True, explicit=True)
    after, cut = cutter.cut(Open(0, 51, 2_000), 2 * MINUTE, seen)
    assert cut is not None
    assert (cut.reason, *cut.also) == tuple(Reason)
    assert list(Reason) == ["end_of_input", "memory", "bytes", "count", "watermark", "rate_change", "time", "explicit"]
    assert (cut.direction, cut.opened, cut.at) == (Direction.UP, 0, 2 * MINUTE)
    # The next batch is not cut by the same change of rate.
    again = after.cut(Open(2 * MINUTE, 1, 1), 2 * MINUTE + 1)[1]
    assert again is None


@given(st.sets(st.sampled_from(Reason)))
def test_precedence_is_that_of_the_reasons_in_whatever_order_they_are_given(reasons):
    cuts = {Cut.of(list(order)) for order in islice(permutations(reasons), 20)}
    assert len(cuts) == 1
    (cut,) = cuts
    assert cut is None if not reasons else (cut.reason, *cut.also) == tuple(each for each in Reason if each in reasons)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60))
def test_a_count_cuts_as_soon_as_it_is_reached_and_no_row_is_forgotten(sizes):
    batching, batch, cuts = Batching(count=100), Open(0), []
    for rows in sizes:
        before, batch = batch.rows, replace(batch, rows=batch.rows + rows)
        cut = cut_of(batching, batch)
        assert (cut is not None) == (batch.rows >= 100)
        assert before < 100
        if cut:
            cuts, batch = [*cuts, batch.rows], Open(0)
    assert sum(cuts) + batch.rows == sum(sizes)


def test_fixed_batches_are_aligned_with_the_clock():
    fixed = Fixed(MINUTE)
    assert [fixed.due(at, None) for at in (0, 1, MINUTE - 1, MINUTE)] == [MINUTE, MINUTE, MINUTE, 2 * MINUTE]


@given(st.none() | st.floats(allow_nan=True, allow_infinity=True))
def test_an_adaptive_length_is_within_its_bounds_at_any_rate(rate):
    length = Adaptive(SECOND, 5 * MINUTE, 100_000).length(rate)
    assert SECOND <= length <= 5 * MINUTE
    assert isinstance(length, int)
    if rate is None or not rate > 0:
        assert length == 5 * MINUTE


@given(st.lists(st.floats(1e-300, 1e300), min_size=2, max_size=9))
def test_more_rows_a_second_never_make_a_batch_longer(rates):
    lengths = [Adaptive(SECOND, 5 * MINUTE, 1_000).length(rate) for rate in sorted(rates)]
    assert all(slow >= fast for slow, fast in pairwise(lengths))


def test_a_batch_gets_shorter_while_rows_come_faster():
    cutter = Cutter.of(Batching(Adaptive(10 * SECOND, 5 * MINUTE, 1_000)))
    slow = cutter.arrived(0, 1)
    assert slow.cut(Open(0, 1), 5 * MINUTE - 1)[1] is None
    assert slow.cut(Open(0, 1), 5 * MINUTE)[1].reason is Reason.TIME
    fast = slow
    for second in range(1, 21):
        fast = fast.arrived(second * SECOND, 100)
    # 2,001 rows in 20 seconds: a thousand take ten.
    assert fast.cut(Open(10 * SECOND, 1_000), 199 * SECOND // 10)[1] is None
    assert fast.cut(Open(10 * SECOND, 1_000), 20 * SECOND)[1].reason is Reason.TIME


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Adaptive(2, 1, 1), "min 2us is longer than max 1us; write a shorter min, or a longer max"),
        (lambda: Adaptive(0, 1, 1), "min is 0s; it must be above 0"),
        (lambda: Adaptive(1, 1, 0), "target is 0 rows; it must be 1 or more"),
        (lambda: Fixed(0), "fixed is 0s"),
        (lambda: Batching(count=0), "count is 0; it must be 1 or more"),
        (lambda: Batching(bytes=-1), "bytes is -1; it must be 1 or more"),
        (lambda: Batching(memory=0.0), "memory is 0; it is a share"),
        (lambda: Batching(count=1, settle=-1), "settle is -1"),
        (
            lambda: Batching(),
            "nothing says when a batch is cut; write adaptive, fixed, count, bytes, memory, watermark or rate_change",
        ),
        (
            lambda: check_cost(Batching(Adaptive(10_000, SECOND, 1)), SECOND),
            "min is 10ms, and a run alone takes seconds",
        ),
        (lambda: check_cost(Batching(Fixed(10_000)), SECOND), "fixed is 10ms"),
    ],
)
def test_what_cannot_be_is_refused(made, says):
    with pytest.raises(InvalidUsage, match=says):
        made()


CUTS = [
    Cut(Reason.EXPLICIT),
    Cut(Reason.COUNT, (Reason.BYTES, Reason.RATE_CHANGE), 12.5, Direction.DOWN, 1, 2),
    Cut(Reason.TIME, (), 0.0, None, 0, 2**62),
]


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.words)
def test_a_cut_is_read_as_it_was_written(cut):
    assert Cut.parse(json.dumps(cut.as_dict())) == cut


def test_a_cut_in_words():
    assert [cut.words for cut in CUTS] == [
        "explicit",
        "count, also bytes and rate change; 12.5 rows/s, down",
        "time; 0 rows/s",
    ]
    assert Cut.parse("explicit") == Cut(Reason.EXPLICIT)


@pytest.mark.parametrize(
    "text",
    [
        *("", "explcit", "{", "{}", "[]", '{"reason": "time", "rate": "fast"}', '{"reason": 1}'),
        *('{"reason": "time", "rate": -1}', '{"reason": "time", "at": 1e999}', '{"reason": "time", "also": 3}'),
    ],
)
def test_a_text_that_is_no_reason_is_refused_in_a_line(text):
    with pytest.raises(InvalidUsage, match=r"write explicit|did you mean 'explicit'"):
        Cut.parse(text)
