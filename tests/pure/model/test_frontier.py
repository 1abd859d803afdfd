"""The laws of compaction functions, by brute force over a small range of times."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.errors import InvalidUsage
from tidemark.model.frontier import EMPTY, IDENTITY, CompactionFunction, Rung

pytestmark = pytest.mark.pure

TIMES = range(100)
POWERS = (1, 2, 4, 8, 16)
DIVISIBLE = (1, 2, 3, 4, 5, 6, 8, 10, 12)


@st.composite
def functions_of(draw: st.DrawFn, intervals: tuple[int, ...]) -> CompactionFunction:
    """Any function there is with these intervals, drawn from its oldest rung up."""
    rungs: list[Rung] = []
    interval = draw(st.sampled_from(intervals))
    since = interval * draw(st.integers(0, 24 // interval))
    for _ in range(draw(st.integers(0, 3))):
        younger = rungs[0].interval if rungs else 0
        interval = draw(st.sampled_from([i for i in intervals if since % i == 0 and i != younger] or [younger]))
        rungs.insert(0, Rung(since, interval))
        since += interval * draw(st.integers(1, 2))
    return CompactionFunction(since, tuple(rungs))


functions = functions_of(DIVISIBLE)
of_a_chain = functions_of(POWERS)
times = st.integers(0, TIMES[-1])


@cache
def kept(function: CompactionFunction) -> list[int]:
    return [time for time in TIMES if function.keeps(time)]


@given(functions)
def test_it_moves_every_time_to_the_next_one_kept(f: CompactionFunction) -> None:
    assert kept(f)[-1] == TIMES[-1]
    for time in TIMES:
        assert f(time) == min(t for t in kept(f) if t >= time)
        assert f.keeps(time) == (f(time) == time)
        assert f(time) == time or time < f.since


@given(functions)
def test_it_is_monotone_never_back_and_idempotent(f: CompactionFunction) -> None:
    assert all(f(a) <= f(b) for a, b in pairwise(TIMES))
    assert all(time <= f(time) == f(f(time)) for time in TIMES)
    assert f.changes_nothing == (f.since == 0)
    assert all(f(time) == f(f.floor) for time in range(f.floor))


@given(functions)
def test_the_nearest_kept_times_are_those_on_both_sides(f: CompactionFunction) -> None:
    for time in TIMES:
        if not f.keeps(time):
            before = [t for t in kept(f) if t < time]
            assert f.nearest(time) == (before[-1] if before else None, f(time))


@given(functions, times)
def test_what_is_capped_leaves_times_from_the_limit_on_alone_and_can_be_taken_further(
    f: CompactionFunction, limit: int
) -> None:
    capped = f.capped(limit)
    assert all(capped(time) == time for time in range(limit, TIMES[-1]))
    assert f.absorbs(capped)
    assert set(kept(f)) <= set(kept(capped))
    # It goes as far as whole intervals of the function allow.
    reach = next((rung.interval for rung in f.rungs if limit >= rung.lower and limit < f.since), 1)
    assert min(limit, f.since) - capped.since < reach
    assert all(capped(time) == f(time) for time in range(capped.floor, capped.since))
    assert capped.capped(limit) == capped


@given(of_a_chain, of_a_chain)
def test_both_together_keep_what_both_keep(a: CompactionFunction, b: CompactionFunction) -> None:
    both = a.then(b)
    assert kept(both) == [time for time in kept(a) if b.keeps(time)]
    assert both.since == max(a.since, b.since)
    assert both.absorbs(a)
    assert both.absorbs(b)
    assert kept(b.then(a)) == kept(both)
    # Said again it is the same, to the letter: a state that is there already is not written again.
    assert both.then(a) == both.then(b) == both.then(both) == both
    assert a.then(IDENTITY) == a.then(a) == a


@given(functions, functions)
def test_what_absorbs_another_keeps_no_more_and_forwards_what_was_forwarded(
    a: CompactionFunction, b: CompactionFunction
) -> None:
    fewer = set(kept(b)) <= set(kept(a)) and b.since >= a.since
    if b.absorbs(a):
        assert fewer
        assert all(b(a(time)) == b(time) for time in TIMES)
    else:
        assert not fewer


def test_the_empty_frontier_forwards_nothing_is_read_nowhere_and_takes_in_all() -> None:
    empty, some = CompactionFunction(EMPTY), CompactionFunction(8, (Rung(0, 4),))
    assert [empty(time) for time in TIMES] == list(TIMES)
    assert not any(empty.keeps(time) for time in TIMES)
    assert empty.nearest(5) == (None, None)
    assert empty.changes_nothing
    assert some.then(empty) == empty.then(some) == empty
    assert empty.absorbs(some)
    assert not some.absorbs(empty)
    assert empty.capped(7) == IDENTITY
    assert str(empty) == "empty"


@pytest.mark.parametrize(
    ("since", "rungs", "said"),
    [
        *((EMPTY, (Rung(0, 4),), "there are no rungs"), (8, (Rung(8, 4),), "must begin in")),
        *((8, (Rung(-4, 4),), "must begin in"), (8, (Rung(4, 0),), "interval of 1 or more")),
        *((8, (Rung(0, 4), Rung(4, 4)), "must begin in"), (9, (Rung(0, 4),), "whole intervals")),
        *((8, (Rung(2, 4),), "whole intervals"), (8, (Rung(6, 2), Rung(0, 4)), "whole intervals")),
    ],
)
def test_what_is_no_function_is_refused(since: int, rungs: tuple[Rung, ...], said: str) -> None:
    with pytest.raises(InvalidUsage, match=said):
        CompactionFunction(since, rungs)
