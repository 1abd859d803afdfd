"""The memory budget: a level is no refusal, what is refused counts nothing, and one maximum holds for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.batching.memory import Budget, Level, Usage

pytestmark = pytest.mark.pure


def test_what_can_never_fit_is_another_error_than_no_room_now():
    usage = Usage(Budget(100)).reserved("a", 60)
    assert usage is not None
    assert usage.reserved("a", 60) is None
    with pytest.raises(InvalidUsage, match="asks for 96 bytes at once, and 95 are the most"):
        usage.reserved("a", 96)


def test_whoever_has_a_share_may_borrow_up_to_the_high_mark_and_the_rest_is_for_those_within_theirs():
    usage = Usage(Budget(100, {"a": 20, "b": 40})).reserved("a", 80)
    assert usage is not None
    assert usage.reserved("a", 1) is None
    assert usage.reserved("c", 1) is None
    within = usage.reserved("b", 15)
    assert within is not None
    assert within.used == 95
    with pytest.raises(InvalidUsage, match="80 are the most"):
        usage.reserved("c", 81)


SIZES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60), st.booleans()), max_size=40)


@given(SIZES, st.booleans())
def test_never_more_than_the_emergency_mark_and_what_is_given_back_is_there_again(steps, shared):
    budget = Budget(100, {"a": 30, "b": 50} if shared else {})
    usage, reserved = Usage(budget), []
    for name, size, back in steps:
        if back and reserved:
            usage = usage.released(*reserved.pop())
        after = usage.reserved(name, size)
        if after is not None:
            usage, reserved = after, [*reserved, (name, size)]
        assert usage.used == sum(size for _, size in reserved) <= 95
    for name, size in reserved:
        usage = usage.released(name, size)
    assert (usage.used, usage.level) == (0, Level.LOW)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Budget(0), "is too small"),
        (lambda: Budget(1, high=0.9, emergency=0.8), "high mark 0.9 and emergency mark 0.8"),
        (lambda: Budget(1, high=0.4), "high mark 0.4"),
        (lambda: Budget(1, {"a": -1}), "share of a is -1 bytes"),
        (lambda: Usage(Budget(1)).reserved("a", -1), "a asks for -1 bytes"),
    ],
)
def test_what_cannot_be_is_refused(made, says):
    with pytest.raises(InvalidUsage, match=says):
        made()
