"""How much came too late for each window, against counting row by row in the windows that there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.law.missed import missed
from tests.pure.model.window import brute
from tests.pure.model.window.test_late_rows import aligned, graces, instants, learned, with_retractions
from tests.pure.model.window.test_window_kinds import the_long_way
from tidemark.model.window.contents import Rule, contents, rows_by_window
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Session, Sliding, Tumbling, Window
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.sessions import would_take
from tidemark.model.window.windows import Late

NUMBERS = ("rows_late_for_all", "rows_late_for_some", "window_updates_late")
policies = st.sampled_from([(Late.DISCARD, None), (Late.REEMIT, 0), (Late.REEMIT, 4)])
keyed = st.lists(st.builds(Happened, st.sampled_from("kl"), st.just(""), instants, learned), max_size=8).map(
    lambda some: [row._replace(value=str(number), diff=1 + number % 2) for number, row in enumerate(some)]
)
"""Rows, each with a value of its own."""
sessions = st.builds(Session, st.integers(1, 8), st.booleans(), st.none() | st.integers(1, 12))


def numbers_by_window(rule: Rule, some: list[Happened]) -> dict[Any, tuple[int, int, int]]:
    found = missed(rule, some)
    assert {*found} == {*contents(rule, some)}, "of the windows that there are"
    return {of: tuple(getattr(one, name) for name in NUMBERS) for of, one in found.items()}


def bound(how: tuple[Late, int | None]) -> int:
    return how[1] or 0


@given(aligned, graces, policies, keyed)
def test_aligned_windows_report_each_row_that_they_refused(
    kind: Any, grace: int, how: Any, some: list[Happened]
) -> None:
    rule, expected = Rule(kind, grace, *how), {}
    for key, window in contents(rule, some):
        numbers = Counter[str]()
        for row in some:
            own = [end + grace + bound(how) <= row.learned for _, _, end in the_long_way(kind, [row])]
            inside = window.start <= row.at < window.end  # type: ignore[operator]
            if row.key == key and inside and window.end + grace + bound(how) <= row.learned:
                numbers["all" if all(own) else "some"] += row.diff
        expected[key, window] = numbers["all"], numbers["some"], numbers.total()
    assert numbers_by_window(rule, some) == expected


@given(aligned, graces, keyed)
def test_by_next_window_those_are_late_that_are_where_late_rows_are_lost(
    kind: Any, grace: int, some: list[Happened]
) -> None:
    """What counts in a window as its next one is late there only if that had refused it, which it had not."""
    some = [row for row in some if the_long_way(kind, [row])]  # others are in no window, early or late
    moving = Rule(kind, grace, Late.NEXT_WINDOW)
    expected, found = numbers_by_window(replace(moving, late=Late.DISCARD), some), numbers_by_window(moving, some)
    assert {of: found[of] for of in expected} == expected
    for (_, window), rows in rows_by_window(moving, some).items():
        for row in rows:
            assert not moving.frozen(window.end, row.learned)


@given(st.builds(Sliding, st.integers(0, 8), st.booleans()), graces, policies, keyed)
def test_sliding_windows_report_each_row_within_them_that_does_not_count(
    kind: Sliding, grace: int, how: Any, some: list[Happened]
) -> None:
    rule, expected = Rule(kind, grace, *how), {}
    for (key, window), counted in contents(rule, some).items():
        numbers = Counter[str]()
        for row in some:
            between = window.start <= row.at <= window.start + kind.size  # type: ignore[operator]
            if row.key == key and between and (row.value, row.at) not in counted:
                last = row.at + kind.size + grace + bound(how)  # type: ignore[operator]
                numbers["all" if row.learned > last else "some"] += row.diff
        expected[key, window] = numbers["all"], numbers["some"], numbers.total()
    assert numbers_by_window(rule, some) == expected


def together(kind: Session, instants: list[int]) -> bool:
    """Whether rows at these instants are one session, the long way."""
    rows = [Happened("k", "", at, 0) for at in instants]
    return len(brute.sessions(rows, kind.gap, kind.exact_gap_merges, kind.max_length)) == 1


@given(sessions, st.lists(st.integers(0, 20), min_size=1, max_size=5), st.integers(-15, 40))
def test_a_session_would_take_what_is_within_it_or_together_with_an_end_of_it(
    kind: Session, existing: list[int], at: int
) -> None:
    for _, start, end in brute.sessions(
        [Happened("k", "", one, 0) for one in existing], kind.gap, kind.exact_gap_merges, kind.max_length
    ):
        own = sorted(one for one in existing if start <= one < end)
        near = own[0] <= at <= own[-1] or together(kind, [at, own[0]] if at < own[0] else [*own, at])
        assert would_take(kind, Window(start, end), at) == near


@settings(max_examples=300)
@given(sessions, graces, policies, keyed)
def test_sessions_tell_of_the_rows_that_none_took(kind: Session, grace: int, how: Any, some: list[Happened]) -> None:
    """Rows in no session, by those that had frozen when they came."""
    rule, expected = Rule(kind, grace, *how), {}
    there = contents(rule, some)
    counted = {(key, value) for (key, _), inside in there.items() for value, _ in inside}
    late = [row for row in some if (row.key, row.value) not in counted]
    for key, window in there:
        last = window.end + grace + bound(how) + kind.exact_gap_merges
        many = sum(
            row.diff
            for row in late
            if row.key == key and row.learned >= last and would_take(kind, window, row.at)  # type: ignore[arg-type]
        )
        expected[key, window] = many, 0, many
    assert numbers_by_window(rule, some) == expected


@given(
    st.one_of(sessions, st.builds(Sliding, st.integers(0, 8)), st.builds(Tumbling, st.integers(1, 9))),
    graces,
    with_retractions,
)
def test_every_window_tells_at_most_what_was_late_in_all(kind: Any, grace: int, some: list[Happened]) -> None:
    rule = Rule(kind, grace, Late.DISCARD)
    most = lateness(judge(rule, some))
    for one in missed(rule, some).values():
        assert one.rows_late_for_all <= most.rows_late_for_all
        assert one.rows_late_for_some <= most.rows_late_for_some
        assert one.window_updates_late == one.rows_late_for_all + one.rows_late_for_some
    if isinstance(kind, Tumbling):
        assert sum(one.window_updates_late for one in missed(rule, some).values()) <= most.window_updates_late


def test_a_retraction_that_is_too_late_is_reported_by_the_window_that_keeps_the_row() -> None:
    row = Happened("k", "a", 3, 0)
    gone = row._replace(diff=-1, learned=30)
    for kind in (Tumbling(10), Sliding(10), Session(10)):
        found = missed(Rule(kind, late=Late.DISCARD), [row, gone])
        assert {one.rows_late_for_all for one in found.values()} == {1}
