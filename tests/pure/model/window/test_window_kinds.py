"""Which windows rows lie in, against the long way: any rows, in any order, split in any way."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.law.told import delta
from tests.pure.model.window import brute
from tidemark.errors import InvalidUsage
from tidemark.model.window.bounds import earliest_after, earliest_from, windows_at
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.kind import Calendar, Cumulate, Hopping, Session, Sliding, Tumbling, Unit, WindowKind
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
sizes = st.integers(1, 12)
kinds = st.one_of(
    st.builds(Tumbling, sizes, st.integers(-30, 30)),
    st.builds(Hopping, sizes, sizes, st.integers(-30, 30), st.just(True)),
    st.builds(lambda step, n, offset: Cumulate(step * n, step, offset), st.integers(1, 4), st.integers(1, 4), instants),
    st.builds(Sliding, st.integers(0, 12), st.booleans()),
    st.builds(Session, sizes, st.booleans(), st.none() | sizes),
)


def the_long_way(kind: WindowKind, some: list[Happened]) -> brute.Held:
    if isinstance(kind, Sliding):
        return brute.sliding(some, kind.size, kind.clamp_start_at_zero)
    if isinstance(kind, Session):
        return brute.sessions(some, kind.gap, kind.exact_gap_merges, kind.max_length)
    step = kind.advance if isinstance(kind, Hopping) else kind.size  # type: ignore[union-attr]
    starts = [at for at in range(-90, 90) if (at - kind.offset) % step == 0]  # type: ignore[union-attr]
    size = kind.size  # type: ignore[union-attr]
    steps = range(kind.step, size + 1, kind.step) if isinstance(kind, Cumulate) else [size]
    return brute.grid(some, starts, lambda start: [start + length for length in steps])


def by_law(kind: WindowKind, some: list[Happened]) -> dict[Any, Counter[Any]]:
    return {(key, *window): Counter(held) for (key, window), held in contents(Rule(kind), some).items()}


@settings(max_examples=200)
@given(kinds, rows, st.randoms())
def test_windows_are_those_of_the_long_way_in_any_order(kind: WindowKind, some: list[Happened], dice: random.Random):
    assert by_law(kind, some) == the_long_way(kind, some)
    shuffled = [*some]
    dice.shuffle(shuffled)
    split = [half for row in shuffled for half in (row._replace(diff=row.diff - 3), row._replace(diff=3))]
    assert by_law(kind, split) == by_law(kind, some)


@given(kinds, rows, rows)
def test_what_differs_takes_the_rows_before_to_those_after(
    kind: WindowKind, some: list[Happened], more: list[Happened]
):
    before, after = by_law(kind, some), by_law(kind, some + more)
    held = Counter({(of, frozenset(rows.items())): 1 for of, rows in before.items()})
    told = delta(
        {of: frozenset(rows.items()) for of, rows in before.items()},  # type: ignore[misc]
        {of: frozenset(rows.items()) for of, rows in after.items()},  # type: ignore[misc]
    )
    for of, row, diff in told:
        held[of, row] += diff  # type: ignore[index]
    assert {one: n for one, n in held.items() if n} == {(of, frozenset(rows.items())): 1 for of, rows in after.items()}
    assert len({(of, row, diff) for of, row, diff in told}) == len(told)


@given(st.builds(Sliding, st.integers(0, 12)), st.lists(instants, max_size=8), instants)
def test_a_change_reaches_the_starts_that_it_is_said_to_reach(kind: Sliding, some: list[int], at: int):
    first, last = at - kind.size, at + 1
    before, after = set(sliding_windows(kind, some)), set(sliding_windows(kind, [*some, at]))
    assert all(first <= window.start <= last for window in before ^ after)
    near = [one for one in [*some, at] if at - kind.size - 1 <= one <= at + kind.size + 1]
    told = {window for window in sliding_windows(kind, near) if first <= window.start <= last}
    assert told == {window for window in after if first <= window.start <= last}


@given(kinds.filter(lambda kind: not isinstance(kind, Sliding | Session)), instants, st.booleans())
def test_the_earliest_window_after_an_instant(kind: Any, at: int, clamp: bool):
    later = {window for t in range(at, at + 80) for window in windows_at(kind, t, clamp_start_at_zero=clamp)}
    found = earliest_after(kind, at, clamp_start_at_zero=clamp)
    assert found == min(window for window in later if window.end > at)


@given(kinds.filter(lambda kind: not isinstance(kind, Sliding | Session)), instants)
def test_from_when_on_a_window_is_the_earliest_after(kind: Any, at: int):
    window = earliest_after(kind, at)
    since = earliest_from(kind, window)
    assert since <= at
    assert earliest_after(kind, since) == window != earliest_after(kind, since - 1)


def test_a_unit_of_the_calendar_is_the_earliest_from_its_beginning_on():
    for zone in ("America/Havana", "America/Sao_Paulo"):
        window = earliest_after(Calendar(Unit.DAY, zone), 1_541_300_400_000_000)
        assert earliest_from(Calendar(Unit.DAY, zone), window) == window.start
        assert earliest_after(Calendar(Unit.DAY, zone), window.start - 1).end == window.start


def test_an_offset_counts_by_what_is_left_of_the_size():
    for at in range(-40, 40):
        assert windows_at(Tumbling(10, 3), at) == windows_at(Tumbling(10, 43), at) == windows_at(Tumbling(10, -7), at)


def test_rows_between_sampled_windows_are_in_none():
    with pytest.raises(InvalidUsage, match="write sampling: true"):
        Hopping(3, 10)
    assert windows_at(Hopping(3, 10, sampling=True), 5) == ()
    assert contents(Rule(Hopping(3, 10, sampling=True)), [Happened("k", "v", 5, 0)]) == {}


def test_a_row_without_an_instant_is_in_no_window():
    for kind in (Tumbling(10), Sliding(10), Session(10)):
        assert contents(Rule(kind), [Happened("k", "v", None, 0)]) == {}
