"""Facts that are retracted, against an oracle that keeps everything ever said in a list and shares no code."""

from __future__ import annotations

import doctest
from dataclasses import dataclass
from itertools import pairwise, product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidemark.errors import Corruption
from tidemark.model import fact as law
from tidemark.model.fact import Fact, resolve
from tidemark.model.update import Update

pytestmark = pytest.mark.pure

LAST = 7


@dataclass(frozen=True)
class Said:
    """A line of the oracle's list: at `time` the source began (+1) or ceased (-1) to say `value` of a place."""

    time: int
    event_time: int
    row: int
    value: str | None
    diff: int

    @property
    def fact(self) -> Fact:
        value = None if self.value is None else (self.value,)
        return Fact(("k",), value, self.time, self.event_time, (self.row,), self.diff)


def value_at(base: str | None, lines: list[Said], time: int, event_time: int) -> str | None:
    """What the key holds: of what the source says at `time`, the last that happened by `event_time`."""
    count: dict[tuple[int, int, str | None], int] = {}
    for line in lines:
        if line.time <= time and line.event_time <= event_time:
            place = (line.event_time, line.row, line.value)
            count[place] = count.get(place, 0) + line.diff
    assert set(count.values()) <= {0, 1}
    said = sorted((at, row) for (at, row, _), number in count.items() if number)
    if not said:
        return base
    return next(v for (at, row, v), number in count.items() if number and (at, row) == said[-1])


def summed(updates: list[Update], time: int, event_time: int) -> dict[str | None, int]:
    """The sums of the updates' diffs, by value, without those of 0."""
    sums: dict[str | None, int] = {}
    for update in updates:
        if update.time <= time and update.event_time <= event_time:
            sums[update.value[0]] = sums.get(update.value[0], 0) + update.diff  # type: ignore[index]
    return {value: number for value, number in sums.items() if number}


@st.composite
def sources(draw: st.DrawFn) -> list[Said]:
    """What a source says over time: places come, change, go, come again; several at one time, in any order."""
    lines: list[Said] = []
    now: dict[tuple[int, int], str | None] = {}
    for time in range(LAST):
        for _ in range(draw(st.integers(0, 3))):
            place = (draw(st.integers(0, LAST)), draw(st.integers(0, 1)))
            value = draw(st.sampled_from(["a", "b", "c", None, "nothing", "nothing"]))
            if place in now:
                lines.append(Said(time, *place, now.pop(place), -1))
            if value != "nothing":
                now[place] = value
                lines.append(Said(time, *place, value, +1))
    return draw(st.permutations(lines))


@given(sources(), st.lists(st.integers(0, LAST), max_size=3), st.sampled_from([None, "a", "z"]))
def test_what_is_written_is_the_history_of_what_is_said_at_every_time(
    lines: list[Said], cuts: list[int], base: str | None
) -> None:
    """Drained at any times: each drain writes by how much the history of what is said by then differs."""
    written = [] if base is None else [Update(("k",), (base,), 0, -1, +1)]
    bounds = [0, *sorted(cuts), LAST]
    for lower, upper in pairwise(bounds):
        known = [line.fact for line in lines if line.time < lower]
        new = [line.fact for line in lines if lower <= line.time < upper]
        written += resolve(None if base is None else (base,), known, new)
    for time, event_time in product(range(LAST), range(-1, LAST + 1)):
        value = value_at(base, lines, time, event_time)
        assert summed(written, time, event_time) == ({} if value is None else {value: 1})
    event(f"retracted: {min(3, sum(line.diff < 0 for line in lines))}")
    places = [(line.time, line.event_time, line.row, line.diff) for line in lines]
    event(f"retracted and said again at one time: {any((*p[:3], -1) in places for p in places if p[3] > 0)}")


@given(sources())
def test_what_is_retracted_at_once_leaves_no_trace(lines: list[Said]) -> None:
    last = [line.fact for line in lines if line.time == LAST - 1 and line.diff > 0]
    back = [Fact(f.key, f.value, f.time, f.event_time, f.order, -1) for f in last]
    before = [line.fact for line in lines if line.time < LAST - 1]
    assert resolve(None, before, [*back, *last]) == []


def test_a_withdrawn_file_brings_back_what_it_hid() -> None:
    """A@1, B@3 from file 2, B@5 from file 3, drained; file 2 is withdrawn: event 4 is A, event 5 is B."""
    facts = [Said(1, 1, 1, "A", 1), Said(3, 3, 2, "B", 1), Said(5, 5, 3, "B", 1)]
    written = resolve(None, [], [line.fact for line in facts])
    written += resolve(None, [line.fact for line in facts], [Said(10, 3, 2, "B", -1).fact])
    answers = {event_time: summed(written, 10, event_time) for event_time in (1, 2, 3, 4, 5, 9)}
    assert answers == {1: {"A": 1}, 2: {"A": 1}, 3: {"A": 1}, 4: {"A": 1}, 5: {"B": 1}, 9: {"B": 1}}
    assert summed(written, 9, 4) == {"B": 1}


@pytest.mark.parametrize("known", [[], [Said(1, 3, 0, "other", 1)], [Said(1, 3, 1, "a", 1)]])
def test_what_was_never_said_cannot_be_retracted(known: list[Said]) -> None:
    with pytest.raises(Corruption, match="happened at 3 is retracted, but was never said"):
        resolve(None, [line.fact for line in known], [Said(9, 3, 0, "a", -1).fact])
    with pytest.raises(Corruption, match="happened at 3 is retracted, but was never said"):
        resolve(None, [*(line.fact for line in known), Said(8, 3, 0, "a", -1).fact], [])


def test_the_worked_example_is_what_the_law_writes() -> None:
    failed, tried = doctest.testmod(law)
    assert (failed, tried > 0) == (0, True)
