"""What late rows do, against readings of the same law that share no code with it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.window_retention import least_retention, require_retention
from tests.pure.model.window import brute
from tests.pure.model.window.test_window_kinds import by_law, the_long_way
from tests.support.kinds import aligned, kinds
from tidemark.errors import InvalidUsage
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.close import closes_at, end_exclusive, is_closed
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import AlignedKind, Session, Sliding, Window
from tidemark.model.window.lateness import Lateness, judge, late_when_closed, lateness
from tidemark.model.window.sessions import would_take
from tidemark.model.window.windows import Late, Windows

instants = st.integers(-5, 30)
learned = st.integers(0, 45)
once, at_once = st.just(1), st.just(0)
rows = st.lists(st.builds(Happened, st.just("k"), st.sampled_from("xy"), instants, learned, once, at_once), max_size=8)
late = st.sampled_from([(Late.DISCARD, None), (Late.REEMIT, 0), (Late.REEMIT, 4), (Late.REEMIT, None)])
graces = st.integers(0, 6)


def windows_of(rule: Rule, some: list[Happened]) -> dict[Any, Counter[Any]]:
    return {(key, *window): Counter(of) for (key, window), of in contents(rule, some).items()}


@given(kinds, graces, st.integers(-10, 60), rows)
def test_closed_is_when_nothing_on_time_can_change_it(kind: Any, grace: int, close: int, some: list[Happened]):
    """The brute way: a frontier has closed what no row at or after it, less the grace, changes."""
    before = contents(Rule(kind), some)
    later = [Happened("k", "new", at, 0) for at in range(max(close - grace, -40), 70)]
    for key, window in before:
        closed = is_closed(kind, window.end, grace, close)
        assert (
            closed
            == (closes_at(kind, window.end, grace) <= close)
            == (end_exclusive(kind, window.end) <= close - grace)
        )
        if closed:
            assert all(contents(Rule(kind), [*some, row]).get((key, window)) == before[key, window] for row in later)


@given(kinds.filter(lambda kind: not (isinstance(kind, Session) and kind.max_length)), graces, rows)
def test_a_window_is_not_closed_too_late_either(kind: Any, grace: int, some: list[Happened]):
    """Just before it closes, one more row that is on time changes it."""
    for key, window in contents(Rule(kind), some):
        row = Happened("k", "new", end_exclusive(kind, window.end) - 1, 0)
        assert is_closed(kind, window.end, grace, row.at + 1 + grace)  # type: ignore[operator]
        assert not is_closed(kind, window.end, grace, row.at + grace)  # type: ignore[operator]
        assert contents(Rule(kind), [*some, row]).get((key, window)) != contents(Rule(kind), some)[key, window]


@given(aligned, graces, late, rows)
def test_a_row_counts_in_the_windows_that_were_not_frozen(kind: Any, grace: int, how: Any, some: list[Happened]):
    policy, max_lateness = how
    bound = 0 if policy is Late.DISCARD else max_lateness
    expected = {
        (key, start, end): inside
        for key, start, end in by_law(kind, some)
        if (
            inside := Counter(
                (row.value, row.at)
                for row in some
                if start <= row.at < end and (bound is None or row.learned < end + grace + bound)  # type: ignore[operator]
            )
        )
    }
    assert windows_of(Rule(kind, grace, policy, max_lateness), some) == expected


@given(aligned, graces, rows)
def test_next_window_by_hand(kind: Any, grace: int, some: list[Happened]):
    """Each row alone, of all windows there are: the open ones that it is in, and where one had closed the first."""
    all_over = [Happened("k", "", at, 0) for at in range(-40, 75)]
    everywhere = [(start, end) for _, start, end in the_long_way(kind, all_over)]
    expected: dict[Any, Counter[Any]] = {}
    for row in some:
        own = [(start, end) for start, end in everywhere if start <= row.at < end]  # type: ignore[operator]
        still_open = [(start, end) for start, end in everywhere if end + grace > row.learned]
        found = {one for one in own if one in still_open}
        if len(found) < len(own):
            found.add(min(still_open))
        for one in found:
            expected.setdefault(("k", *one), Counter())[row.value, row.at] += 1
    assert windows_of(Rule(kind, grace, Late.NEXT_WINDOW), some) == expected


@given(st.builds(Sliding, st.integers(0, 8), st.booleans()), graces, rows)
def test_sliding_windows_hold_what_found_them_open(kind: Sliding, grace: int, some: list[Happened]):
    """The brute way: a start is one where a row that was in time leaves, or the first that holds one in time for it."""
    if kind.clamp_start_at_zero:
        some = [row for row in some if row.at >= 0]  # type: ignore[operator]
    starts: set[int] = set()
    for row in some:
        assert row.at is not None
        left = max(row.at - kind.size, 0) if kind.clamp_start_at_zero else row.at - kind.size
        starts |= {left} if row.learned <= left + kind.size + grace else set()
        starts |= {row.at + 1} if row.learned <= row.at + kind.size + grace else set()
    expected = {}
    for start in starts:
        end = start + kind.size
        inside = Counter(
            (row.value, row.at)
            for row in some
            if start <= row.at <= end and row.learned <= end + grace  # type: ignore[operator]
        )
        if inside:
            expected["k", start, end] = inside
    assert windows_of(Rule(kind, grace, Late.DISCARD), some) == expected


def engine_sessions(some: list[Happened], gap: int, grace: int, revive: bool) -> dict[Any, Counter[Any]]:
    """The way of engines: one row after the other, sessions in a list; what is closed stays in it, and merges if
    `revive`."""
    stored: list[tuple[int, int, list[Happened]]] = []
    for row in sorted(some, key=lambda row: (row.learned, row.batch)):
        assert row.at is not None
        touching = [
            one
            for one in stored
            if one[0] - gap <= row.at <= one[1] + gap and (revive or one[1] + gap + grace >= row.learned)
        ]
        first, last = min([row.at, *(one[0] for one in touching)]), max([row.at, *(one[1] for one in touching)])
        if last + gap + grace < row.learned:
            continue
        stored = [one for one in stored if one not in touching]
        stored.append((first, last, [row, *(other for one in touching for other in one[2])]))
    found: dict[Any, Counter[Any]] = {}
    for first, last, inside in stored:
        found.setdefault(("k", first, last + gap), Counter()).update((row.value, row.at) for row in inside)
    return found


one_by_one = rows.map(lambda some: [row._replace(batch=number) for number, row in enumerate(some)])


@settings(max_examples=200)
@given(st.integers(1, 8), graces, one_by_one, st.booleans())
def test_sessions_are_those_of_an_engine(gap: int, grace: int, some: list[Happened], revive: bool):
    revival = Revival.ALL_MERGE if revive else Revival.FROZEN_IS_FINAL
    rule = Rule(Session(gap), grace, Late.DISCARD, revival=revival)
    assert windows_of(rule, some) == engine_sessions(some, gap, grace, revive)


@given(st.builds(Session, st.integers(1, 8), st.booleans(), st.none() | st.integers(1, 12)), graces, rows, st.randoms())
def test_what_is_learned_at_once_is_looked_at_at_once(kind: Session, grace: int, some: Any, dice: random.Random):
    shuffled = [*some]
    dice.shuffle(shuffled)
    rule = Rule(kind, grace, Late.DISCARD)
    assert windows_of(rule, some) == windows_of(rule, shuffled)
    in_time = [row._replace(learned=-100) for row in some]
    assert windows_of(rule, in_time) == by_law(kind, in_time)


@given(kinds, graces, rows)
def test_the_three_numbers(kind: Any, grace: int, some: list[Happened]):
    rule = Rule(kind, grace, Late.DISCARD)
    judged = judge(rule, some)
    in_some_window = [row for row in some if the_long_way(kind, [row])]
    assert Counter(one.row for one in judged) == Counter(in_some_window)
    numbers = lateness(judged)
    assert numbers.rows_late_for_all + numbers.rows_late_for_some <= len(some)
    assert numbers == lateness(judge(late_when_closed(Rule(kind, grace)), some))
    assert lateness(judge(Rule(kind, grace), some)) == Lateness(0, 0, 0)
    if isinstance(kind, AlignedKind):
        counted = sum(sum(of.values()) for of in windows_of(rule, some).values())
        assert counted == sum(one.in_time for one in judged)
        assert counted + numbers.window_updates_late == sum(sum(of.values()) for of in by_law(kind, some).values())
    if isinstance(kind, Session):
        assert sum(sum(of.values()) for of in windows_of(rule, some).values()) + numbers.rows_late_for_all == len(some)


def test_a_retraction_of_what_a_closed_session_holds_takes_nothing_from_an_open_one():
    rule = Rule(Session(10), late=Late.DISCARD)
    first, fresh = Happened("k", "a", 0, 0), Happened("k", "b", 10, 11)
    assert windows_of(rule, [first, fresh, first._replace(diff=-1, learned=12)]) == {
        ("k", 0, 10): Counter([("a", 0)]),
        ("k", 10, 20): Counter([("b", 10)]),
    }


@given(kinds, graces, rows)
def test_windows_that_are_open_have_their_rows_within_the_least_retention(kind: Any, grace: int, some: list[Happened]):
    """The last row of a window that is open, and of all but sessions the first, is kept: just that long is enough."""
    least = least_retention(kind, grace)
    require_retention(kind, grace, least)
    with pytest.raises(InvalidUsage, match="rows are kept for"):
        require_retention(kind, grace, least - 1)
    for close in range(-5, 60, 4):
        for (_, window), of in contents(Rule(kind), some).items():
            if not is_closed(kind, window.end, grace, close):
                at = sorted(at for _, at in of)
                assert at[-1] >= close - least
                assert isinstance(kind, Session) or at[0] >= close - least


@pytest.mark.parametrize(("kind", "called"), [(Sliding(5), "sliding windows"), (Session(5), "sessions")])
def test_there_is_no_next_window_of_data_driven_windows(kind: Sliding | Session, called: str):
    with pytest.raises(InvalidUsage, match=rf"next_window is not available for {called}: .*; write discard or reemit$"):
        Windows((), "t", kind, (Aggregate("n", Function.COUNT),), late=Late.NEXT_WINDOW)


@pytest.mark.parametrize("learned", [0, 100])
def test_a_row_that_no_window_can_hold_is_neither_in_time_nor_late(learned: int) -> None:
    rule = Rule(Sliding(10, clamp_start_at_zero=True), late=Late.DISCARD)
    rows = [Happened("k", "v", -5, learned), Happened("k", "v", 3, 0)]
    assert [one.row.at for one in judge(rule, rows)] == [3]
    assert contents(rule, rows).keys() == {("k", (0, 10))}


def test_a_retraction_of_a_row_that_was_late_is_late_whatever_session_has_come_meanwhile():
    """The row at 5 came too late for a session of its own; one that is around it began after that."""
    rule = Rule(Session(10), late=Late.DISCARD)
    late_one, fresh = Happened("k", "a", 5, 16), Happened("k", "b", 8, 17)
    back = late_one._replace(diff=-1, learned=18)
    assert windows_of(rule, [late_one, fresh, back]) == {("k", 8, 18): Counter([("b", 8)])}
    assert [one.row for one in judge(rule, [late_one, fresh, back]) if one.late] == [late_one, back]


def test_rows_retracted_are_taken_from_open_sessions_first():
    """One stands in a frozen session, one in an open one, and both go at once."""
    rule = Rule(Session(10), late=Late.DISCARD)
    first, bridge, again = Happened("k", "a", 0, 0), Happened("k", "b", 8, 12), Happened("k", "a", 0, 13)
    gone = first._replace(diff=-2, learned=14)
    before = {("k", 0, 10): Counter([("a", 0)]), ("k", 0, 18): Counter([("a", 0), ("b", 8)])}
    assert windows_of(rule, [first, bridge, again]) == before
    assert windows_of(rule, [first, bridge, again, gone]) == {
        ("k", 0, 10): Counter([("a", 0)]),
        ("k", 8, 18): Counter([("b", 8)]),
    }


with_retractions = st.lists(
    st.tuples(st.sampled_from("xy"), st.integers(-5, 12), st.integers(0, 45), st.booleans(), st.integers(0, 20)),
    max_size=8,
).map(
    lambda drawn: [
        row
        for value, at, when, retracted, after in drawn
        for row in [
            Happened("k", value, at, when),
            *([Happened("k", value, at, when + after, -1)] if retracted else []),
        ]
    ]
)


@settings(max_examples=200)
@given(
    st.builds(Session, st.integers(1, 8), st.booleans(), st.none() | st.integers(1, 12)),
    graces,
    with_retractions,
    st.sampled_from(Revival),
)
def test_no_session_holds_fewer_rows_than_none(kind: Session, grace: int, some: list[Happened], revival: Revival):
    rule = Rule(kind, grace, Late.DISCARD, revival=revival)
    assert all(count > 0 for of in contents(rule, some).values() for count in of.values())


def together(kind: Session, instants: list[int]) -> bool:
    """Whether rows at these instants are one session, the long way."""
    rows = [Happened("k", "", at, 0) for at in instants]
    return len(brute.sessions(rows, kind.gap, kind.exact_gap_merges, kind.max_length)) == 1


@given(
    st.builds(Session, st.integers(1, 8), st.booleans(), st.none() | st.integers(1, 12)),
    st.lists(st.integers(0, 20), min_size=1, max_size=5),
    st.integers(-15, 40),
)
def test_a_session_would_take_what_is_within_it_or_together_with_an_end_of_it(
    kind: Session, existing: list[int], at: int
) -> None:
    for _, start, end in brute.sessions(
        [Happened("k", "", one, 0) for one in existing], kind.gap, kind.exact_gap_merges, kind.max_length
    ):
        own = sorted(one for one in existing if start <= one < end)
        near = own[0] <= at <= own[-1] or together(kind, [at, own[0]] if at < own[0] else [*own, at])
        assert would_take(kind, Window(start, end), at) == near
