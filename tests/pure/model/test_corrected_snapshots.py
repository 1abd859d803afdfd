"""Full snapshots that are corrected, withdrawn or come afterwards, against what was said by when, kept in a list."""

from __future__ import annotations

import doctest
from collections import Counter
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidemark.model import full_snapshot as law
from tidemark.model.full_snapshot import correction
from tidemark.model.update import Update

pytestmark = pytest.mark.pure

TIMES = (2, 4, 6, 8)
LAST = 14
Content = Counter[str]


@dataclass(frozen=True)
class Said:
    """From `time` on the source is known to have held `content` at `at`; None: what it held then is not known."""

    time: int
    at: int
    content: Content | None


contents = st.lists(st.sampled_from("xy"), max_size=3).map(Counter)


@st.composite
def told_over_time(draw: st.DrawFn) -> list[Said]:
    """Some full snapshots in order, each learned when it was true; then corrections, one at each later instant."""
    lines = [Said(at, at, draw(contents)) for at in TIMES if draw(st.booleans())]
    corrections = [
        Said(time, draw(st.sampled_from(TIMES)), draw(st.one_of(st.none(), contents))) for time in range(9, LAST)
    ]
    return lines + corrections[: draw(st.integers(0, len(corrections)))]


def in_force(lines: list[Said], time: int) -> dict[int, Content]:
    """What is known at `time` of each instant that something is known of."""
    known = {line.at: line.content for line in lines if line.time <= time}
    return {at: content for at, content in sorted(known.items()) if content is not None}


def held(lines: list[Said], time: int, event_time: int) -> Content:
    last = [content for at, content in in_force(lines, time).items() if at <= event_time]
    return +last[-1] if last else Counter()


def sums(updates: list[Update], time: int, event_time: int) -> Content:
    count: Content = Counter()
    for update in updates:
        if update.time <= time and update.event_time <= event_time:
            count[update.key[0]] += update.diff  # type: ignore[index]
    assert all(number >= 0 for number in count.values())
    return +count


@given(told_over_time())
def test_at_every_time_each_full_snapshot_is_what_is_known_of_it(lines: list[Said]) -> None:
    written: list[Update] = []
    for number, line in enumerate(lines):
        before = in_force(lines[:number], LAST)
        was = held(lines[:number], LAST, line.at)
        now = held(lines[: number + 1], LAST, line.at)
        differing = [((word,), (), now[word] - was[word]) for word in sorted(now | was) if now[word] != was[word]]
        following = min((at for at in before if at > line.at), default=None)
        written += correction(differing, time=line.at, following=following, seal=line.time)
    for time, event_time in product(range(LAST + 1), repeat=2):
        assert sums(written, time, event_time) == held(lines, time, event_time)
    event(f"withdrawn: {any(line.content is None for line in lines)}")
    event(f"came afterwards: {any(line.time > 8 and line.at not in in_force(lines, 8) for line in lines)}")


def test_a_full_snapshot_in_the_middle_is_corrected_until_the_next() -> None:
    """Full snapshots at 9, 19 and 29 hold x = 1, 1, 0; that of 19 is corrected to 0: exactly -x@19 and +x@29."""
    written = [Update(("x",), (), 9, 9, 1), Update(("x",), (), 29, 29, -1)]
    found = correction([(("x",), (), -1)], time=19, following=29, seal=30)
    assert found == [Update(("x",), (), 30, 19, -1), Update(("x",), (), 30, 29, 1)]
    now = {event_time: sums(written + found, 30, event_time)["x"] for event_time in (9, 18, 19, 28, 29, 35)}
    assert now == {9: 1, 18: 1, 19: 0, 28: 0, 29: 0, 35: 0}
    assert {event_time: sums(written + found, 29, event_time)["x"] for event_time in (9, 19, 29)} == {
        9: 1,
        19: 1,
        29: 0,
    }


def test_what_lies_ahead_of_the_seal_is_learned_when_it_is_true() -> None:
    assert correction([(("x",), (), 1)], time=19, following=29, seal=20) == [
        Update(("x",), (), 20, 19, 1),
        Update(("x",), (), 29, 29, -1),
    ]


def test_the_worked_example_is_what_the_law_writes() -> None:
    failed, tried = doctest.testmod(law)
    assert (failed, tried > 0) == (0, True)
