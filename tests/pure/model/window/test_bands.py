"""Bands of starts against the law of sliding windows, and what suffices of an input's history to tell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidemark.model.window.bands import Bands
from tidemark.model.window.close import frozen_from
from tidemark.model.window.contents import Rule, contents, rows_by_window
from tidemark.model.window.happened import Happened
from tidemark.model.window.judged import judging_of
from tidemark.model.window.kinds import Sliding
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.windows import Late

pytestmark = pytest.mark.pure

ENDS = tuple(range(0, 70, 10))
Update = tuple[str, int, int, int]
"""What, when it happened, with what time it came, and how often."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rule, list[Update]]:
    """A rule, and rows, some of which are retracted later. Many happened about where a band begins, and came about
    then."""
    kind = draw(st.builds(Sliding, st.integers(0, 25), st.booleans()))
    rule = Rule(kind, draw(st.integers(0, 4)), Late.REEMIT, draw(st.integers(0, 25)))
    drawn: list[Update] = []
    for _ in range(draw(st.integers(0, 7))):
        end, value = draw(st.sampled_from(ENDS)), draw(st.sampled_from("xy"))
        begins = bands_of(rule).first(end)
        at = begins + draw(st.integers(-2, 1) | st.integers(-20, 50))
        time = max(0, end + draw(st.integers(-1, 2) | st.integers(-30, 30)))
        drawn.append((value, at, time, 1))
        if draw(st.integers(0, 4)) == 0:
            drawn.append((value, at, time + draw(st.integers(0, 25)), -1))
    return rule, [one for one in drawn if one[2] < 70]


def bands_of(rule: Rule, ends: tuple[int, ...] = ENDS) -> Bands:
    assert isinstance(rule.kind, Sliding)
    assert rule.lateness is not None
    return Bands.of(rule.kind, rule.grace, rule.lateness, ends)


def plain_windows(kind: Sliding, cells: set[int]) -> set[int]:
    """The starts of the windows of plain rows at these instants, found by moving a start."""
    if kind.clamp_start_at_zero:
        cells = {at for at in cells if at >= 0}
    found, before = set(), frozenset[int]()
    for start in range(0 if kind.clamp_start_at_zero else -150, 150):
        inside = frozenset(at for at in cells if start <= at <= start + kind.size)
        if inside and inside != before:
            found.add(start)
        before = inside
    return found


def banded(bands: Bands, rows: Iterable[tuple[str, int, int | None, int]]) -> dict[int, Counter[Any]]:
    """What windows hold by their starts: in each band those of the plain rows that are in it."""
    by_band: dict[int, Counter[Any]] = {}
    for value, at, learned, diff in rows:
        for band in bands.reached(at, learned):
            by_band.setdefault(band, Counter())[value, at] += diff
    found = {}
    for band, there in by_band.items():
        current = {of: count for of, count in there.items() if count}
        assert all(count > 0 for count in current.values())
        for start in plain_windows(bands.kind, {at for _, at in current}):
            if bands.band(start) == band:
                found[start] = Counter(
                    {of: n for of, n in current.items() if start <= of[1] <= start + bands.kind.size}
                )
    return found


def by_law(rule: Rule, some: Iterable[Update]) -> dict[int, Counter[Any]]:
    rows = [Happened("k", value, at, time // 10 * 10, diff) for value, at, time, diff in some]
    return {window.start: Counter(of) for (_, window), of in contents(rule, rows).items()}


@settings(max_examples=300)
@given(cases())
def test_within_a_band_windows_are_those_of_plain_rows(case: tuple[Rule, list[Update]]) -> None:
    rule, updates = case
    rows = [(value, at, time // 10 * 10, diff) for value, at, time, diff in updates]
    assert banded(bands_of(rule), rows) == by_law(rule, updates)


@settings(max_examples=300)
@given(cases())
def test_each_update_is_in_every_window_of_its_bands_that_is_around_it(case: tuple[Rule, list[Update]]) -> None:
    """So what became of a row is the same in all windows of a band that hold it."""
    rule, updates = case
    bands = bands_of(rule)
    rows = [Happened("k", value, at, time // 10 * 10, diff) for value, at, time, diff in updates]
    for (_, window), inside in rows_by_window(rule, rows).items():
        around = [row for row in rows if row.at is not None and window.start <= row.at <= window.end]
        assert inside == [row for row in around if bands.band(window.start) in bands.reached(row.at or 0, row.learned)]


LATE_FOR_ALL = (Rule(Sliding(10), 0, Late.DISCARD), [("x", 15, 18, 1), ("x", 9, 22, 1)])
"""A row that would open a window just after it, which would hold the other, had it come one instant before."""


@settings(max_examples=500)
@example(LATE_FOR_ALL, 45, 25, False)
@example(LATE_FOR_ALL, 25, 19, True)
@given(cases(), st.integers(1, 65), st.integers(0, 65), st.booleans())
def test_no_merging_changes_windows_that_do_not_stand(
    case: tuple[Rule, list[Update]], consumed: int, since: int, only_new: bool
) -> None:
    """Rows by the times they had at first, and by those they were merged to: a hold keeps the input's since below
    the end of the interval up to which the stored windows were computed, wherever in the next one `consumed` is."""
    rule, updates = case
    since = min(since, max(0, consumed // 10 * 10 - 1))
    judging = judging_of(ENDS, since=since, merged=since > 0, consumed=consumed, only_new=only_new)
    bands = bands_of(rule, judging.ends)

    def computed(start: int) -> bool:
        return not judging.stays(frozen_from(rule.kind, start + bands.kind.size, rule.grace, rule.lateness))

    rows = [(value, at, judging.learned(max(time, since)), diff) for value, at, time, diff in updates]
    found = {start: inside for start, inside in banded(bands, rows).items() if computed(start)}
    assert found == {start: inside for start, inside in by_law(rule, updates).items() if computed(start)}
    least = bands.frozen_count(judging.frozen_at)
    assert all(bands.band(start) >= least for start in range(-150, 150) if computed(start))


@settings(max_examples=200)
@given(cases(), st.sampled_from(ENDS))
def test_the_three_numbers_of_runs_add_up(case: tuple[Rule, list[Update]], cut: int) -> None:
    """What comes later changes no number of what came before."""
    rule, updates = case
    rows = [Happened("k", value, at, time // 10 * 10, diff) for value, at, time, diff in updates]
    first = [row for row in rows if row.learned < cut]
    second = lateness(one for one in judge(rule, rows) if one.row.learned >= cut)
    assert lateness(judge(rule, first)) + second == lateness(judge(rule, rows))


def test_what_comes_just_late_for_all_opens_nothing() -> None:
    """Of windows of 10 that close at once, a row at 9 that came when 20 was complete is late by one instant; one at 10
    counts in the window that starts with it, and the next one begins after it."""
    bands = Bands.of(Sliding(10), 0, 0, (20,))
    assert (bands.first(20), bands.bounds) == (10, (10,))
    assert list(bands.reached(9, 20)) == []
    assert list(bands.reached(10, 20)) == [1]
    assert list(bands.reached(9, None)) == [0, 1]
    assert (bands.frozen_count(None), bands.frozen_count(20), bands.frozen_count(19)) == (0, 1, 0)
