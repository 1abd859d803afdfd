"""Full snapshots that are corrected, withdrawn or come afterwards, against what was said by when, kept in a list."""

from __future__ import annotations

import doctest
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, product
from types import ModuleType

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidemark.model import full_snapshot, times
from tidemark.model.full_snapshot import Effect, FullSnapshot, after, changes, last_announced
from tidemark.model.interval import Interval
from tidemark.model.times import Times
from tidemark.model.update import Update

pytestmark = pytest.mark.pure

TIMES = (2, 4, 6, 8)
LAST = 14
Content = Counter[str]


@dataclass(frozen=True)
class Said:
    """From `time` on it is known that the source had `content` at `at`; None: what it had then is not known."""

    time: int
    at: int
    content: Content | None


contents = st.lists(st.sampled_from("xy"), max_size=3).map(Counter)


@st.composite
def statements(draw: st.DrawFn) -> list[Said]:
    """Some full snapshots in order, each learned when it was true; others are learned later, corrected or withdrawn,
    several at one time or while newer ones come."""
    found: list[Said] = []
    for time in range(2, LAST):
        if time in TIMES and draw(st.booleans()):
            found.append(Said(time, time, draw(contents)))
        past = [at for at in TIMES if at < time]
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])) if past else 0):
            found.append(Said(time, draw(st.sampled_from(past)), draw(st.one_of(st.none(), contents))))
    return found


def in_force(lines: list[Said], time: int) -> dict[int, Content]:
    """What is known at `time` of each instant that something is known of."""
    known = {line.at: line.content for line in lines if line.time <= time}
    return {at: content for at, content in sorted(known.items()) if content is not None}


def content_at(lines: list[Said], time: int, event_time: int) -> Content:
    last = [content for at, content in in_force(lines, time).items() if at <= event_time]
    return +last[-1] if last else Counter()


def sums(updates: list[Update], time: int, event_time: int) -> Content:
    count: Content = Counter()
    for update in updates:
        if update.time <= time and update.event_time <= event_time:
            count[update.key[0]] += update.diff  # type: ignore[index]
    assert all(number >= 0 for number in count.values())
    return +count


Learned = tuple[FullSnapshot, list[tuple[tuple[str], tuple[()], int]]]


def learned(lines: list[Said]) -> list[Learned]:
    """What an ingest records of each line: a whole content where none was known, else by what it differs."""
    found: list[Learned] = []
    for number, line in enumerate(lines):
        before = in_force(lines[:number], LAST).get(line.at)
        if line.content is None and before is None:
            continue
        effect = Effect.WITHDRAWN if line.content is None else Effect.ANNOUNCED if before is None else Effect.CORRECTED
        now, was = line.content or Counter(), before or Counter()
        differing = [((word,), (), now[word] - was[word]) for word in sorted(now | was) if now[word] != was[word]]
        at = line.time if line.time > line.at else None
        snapshot = FullSnapshot(str(number), Interval(line.at, line.at + 1), 0, effect=effect, learned_at=at)
        found.append((snapshot, [] if effect is Effect.WITHDRAWN else differing))  # type: ignore[arg-type]
    return found


@given(statements(), st.sets(st.integers(1, LAST)))
def test_at_every_time_each_full_snapshot_is_what_is_known_of_it(lines: list[Said], drains: set[int]) -> None:
    """In whatever drains it comes into the trace."""
    trace: list[Update] = []
    announced = Times()
    for lower, upper in pairwise([0, *sorted(drains), LAST + 1]):
        some = [each for each in learned(lines) if lower <= each[0].known < upper]
        found = changes(trace, announced, some)
        assert all(lower <= update.time < upper for update in found)
        trace, announced = trace + found, after(announced, [snapshot for snapshot, _ in some])
    for time, event_time in product(range(LAST + 1), repeat=2):
        assert sums(trace, time, event_time) == content_at(lines, time, event_time), (time, event_time)
    effects = [snapshot.effect for snapshot, _ in learned(lines)]
    event(f"withdrawn: {Effect.WITHDRAWN in effects}, corrected: {Effect.CORRECTED in effects}")
    event(f"announced afterwards: {any(s.effect is Effect.ANNOUNCED and s.learned_at for s, _ in learned(lines))}")


@given(statements(), st.integers(1, LAST))
def test_the_last_announced_content_is_that_of_its_time(lines: list[Said], upper: int) -> None:
    """The sum that a drain checks is of a content that somebody said."""
    some = [each for each in learned(lines) if each[0].known < upper]
    whole = last_announced([snapshot for snapshot, _ in some])
    if whole:
        names = {snapshot.batch for snapshot in whole}
        said: Content = Counter()
        for snapshot, rows in some:
            for (word,), _, count in rows if snapshot.batch in names else ():
                said[word] += count
        assert +said == content_at(lines, whole[0].known, whole[0].time)
    event(f"checked: {bool(whole)}")


def line(at: int, effect: Effect, learned_at: int) -> FullSnapshot:
    return FullSnapshot("", Interval(at, at + 1), 0, effect=effect, learned_at=learned_at)


instants = st.lists(st.integers(0, 60))


@given(instants, instants, st.integers(0, 60))
def test_times_are_a_set_in_whatever_order_they_come(added: list[int], removed: list[int], lower: int) -> None:
    found = Times()
    for instant in added:
        found = found.add(instant)
    for instant in removed:
        found = found.remove(instant)
    expected = set(added) - set(removed)
    assert (list(found), len(found)) == (sorted(expected), len(expected))
    assert found == Times.of(expected)
    assert found.since(lower) == Times.of(at for at in expected if at >= lower)
    assert [at in found for at in range(61)] == [at in expected for at in range(61)]


def test_instants_at_regular_intervals_are_one_run_and_each_hole_one_more() -> None:
    """Hourly full snapshots of 90 days."""
    hour = 3_600_000_000
    hourly = Times()
    for number in range(1, 24 * 90 + 1):
        hourly = hourly.add(number * hour - 1)
    assert len(hourly.runs) == 1
    assert len(hourly.remove(700 * hour - 1).remove(900 * hour - 1).runs) == 3
    assert hourly.remove(700 * hour - 1).add(700 * hour - 1) == hourly


@pytest.mark.parametrize("module", [full_snapshot, times])
def test_the_worked_examples_are_what_the_law_writes(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)
