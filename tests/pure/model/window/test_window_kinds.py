"""Which windows rows are in, against the long way: any rows, in any order, split in any way."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pure.model.window import brute
from tests.support.kinds import ALIGNED, Sample, aligned, by_hand, kinds, name
from tidemark.errors import InvalidUsage
from tidemark.model.window.calendar import Unit
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import AlignedKind, Calendar, Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.sliding import sliding_windows

instants = st.integers(-25, 30)
rows = st.lists(
    st.builds(
        Happened,
        st.sampled_from("ab"),
        st.sampled_from("xy"),
        instants,
        st.just(0),
        st.sampled_from([1, 1, -1]),
        st.just(0),
    ),
    max_size=9,
)


def the_long_way(kind: WindowKind, some: list[Happened]) -> brute.Contents:
    if isinstance(kind, Sliding):
        return brute.sliding(some, kind.size, kind.clamp_start_at_zero)
    if isinstance(kind, Session):
        return brute.sessions(some, kind.gap, kind.exact_gap_merges, kind.max_length)
    return brute.given(some, by_hand(kind, -90, 90))


def by_law(kind: WindowKind, some: list[Happened]) -> dict[Any, Counter[Any]]:
    return {(key, *window): Counter(inside) for (key, window), inside in contents(Rule(kind), some).items()}


@settings(max_examples=200)
@given(kinds, rows, st.randoms())
def test_windows_are_those_of_the_long_way_in_any_order(kind: WindowKind, some: list[Happened], dice: random.Random):
    assert by_law(kind, some) == the_long_way(kind, some)
    shuffled = [*some]
    dice.shuffle(shuffled)
    split = [half for row in shuffled for half in (row._replace(diff=row.diff - 3), row._replace(diff=3))]
    assert by_law(kind, split) == by_law(kind, some)


@given(st.builds(Sliding, st.integers(0, 12)), st.lists(instants, max_size=8), instants)
def test_a_change_reaches_the_starts_that_it_is_said_to_reach(kind: Sliding, some: list[int], at: int):
    first, last = at - kind.size, at + 1
    before, after = set(sliding_windows(kind, some)), set(sliding_windows(kind, [*some, at]))
    assert all(first <= window.start <= last for window in before ^ after)
    near = [one for one in [*some, at] if at - kind.size - 1 <= one <= at + kind.size + 1]
    found = {window for window in sliding_windows(kind, near) if first <= window.start <= last}
    assert found == {window for window in after if first <= window.start <= last}


@given(aligned, instants, st.booleans())
def test_the_earliest_window_after_an_instant(kind: AlignedKind, at: int, clamp: bool):
    rule = Rule(kind, clamp_start_at_zero=clamp)
    later = {window for t in range(at, at + 80) for window in rule.windows_at(kind, t)}
    assert rule.earliest_after(kind, at) == min(window for window in later if window.end > at)


@pytest.mark.parametrize("sample", ALIGNED, ids=name)
def test_the_law_of_a_sample_is_what_it_is_by_hand(sample: Sample):
    """At the bounds of its windows, just before them, and between."""
    kind, first, last = sample.kind, -20 * sample.unit, 160 * sample.unit
    assert isinstance(kind, AlignedKind)
    windows = by_hand(kind, first, last)
    all_of_them = by_hand(kind, 2 * first - kind.reach, 2 * last + 2 * kind.reach)
    assert windows == sorted(windows, key=lambda window: window[1]), "who starts later ends later"
    bounds = {at for window in windows for at in window if first < at <= last}
    most = 0
    for at in {*range(first, last + 1, sample.unit), *bounds, *(at - 1 for at in bounds)}:
        holding = [window for window in windows if window[0] <= at < window[1]]
        assert list(kind.windows_at(at)) == holding
        most = max(most, len(holding))
        following = kind.earliest_after(at)
        assert following == min(window for window in all_of_them if window[1] > at)
        assert kind.earliest_from(following) == max(end for _, end in all_of_them if end < following.end)
    assert most == kind.most_windows == sample.most
    assert max(end - start for start, end in all_of_them) <= kind.reach
    assert (most > 1 or any(end > start for (_, end), (start, _) in pairwise(windows))) <= kind.overlap


def test_a_unit_of_the_calendar_is_the_earliest_from_its_beginning_on():
    for zone in ("America/Havana", "America/Sao_Paulo"):
        kind = Calendar(Unit.DAY, zone)
        window = kind.earliest_after(1_541_300_400_000_000)
        assert kind.earliest_from(window) == window.start
        assert kind.earliest_after(window.start - 1).end == window.start


def test_rows_between_sampled_windows_are_in_none():
    with pytest.raises(InvalidUsage, match="write sampling: true"):
        Hopping(3, 10)
    assert Hopping(3, 10, sampling=True).windows_at(5) == ()
    assert contents(Rule(Hopping(3, 10, sampling=True)), [Happened("k", "v", 5, 0)]) == {}


def test_a_row_without_an_instant_is_in_no_window():
    for kind in (Tumbling(10), Sliding(10), Session(10)):
        assert contents(Rule(kind), [Happened("k", "v", None, 0)]) == {}
