"""Corrections of additive files, against an oracle that keeps the readings of every file and shares no code."""

from __future__ import annotations

import doctest
from dataclasses import dataclass
from itertools import pairwise, product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tidemark.model import reread as law
from tidemark.model.fact import Fact, resolve
from tidemark.model.frontier import CompactionFunction, Rung
from tidemark.model.reread import corrected, restated
from tidemark.model.update import Update

pytestmark = pytest.mark.pure

LAST = 9
READINGS = 4

Row = tuple[str, int, int, int]
"""What a file's row says: a word, when it is learned if its file is read in time, when it happened, how often."""
rows = st.lists(
    st.tuples(st.sampled_from("xyz"), st.integers(0, LAST), st.integers(0, LAST), st.sampled_from([1, 1, 2, -1])),
    max_size=5,
)


@dataclass(frozen=True)
class Reading:
    """File number `file` was read at `seal` and said `rows`."""

    seal: int
    file: int
    rows: list[Row]


readings = st.lists(
    st.builds(Reading, st.integers(0, LAST), st.integers(0, 1), rows), max_size=READINGS, unique_by=lambda r: r.seal
).map(lambda some: sorted(some, key=lambda reading: reading.seal))


def expected(read: list[Reading], time: int, event_time: int) -> dict[str, int]:
    """The multiplicity of each word: of each file what the newest reading by then says is due and has happened."""
    count: dict[str, int] = {}
    for file in (0, 1):
        newest = [reading.rows for reading in read if reading.file == file and reading.seal <= time][-1:]
        for word, due, happened, times in (row for some in newest for row in some):
            if due <= time and happened <= event_time:
                count[word] = count.get(word, 0) + times
    return {word: times for word, times in count.items() if times}


def summed(updates: list[Update], time: int, event_time: int) -> dict[str, int]:
    count: dict[str, int] = {}
    for update in updates:
        if update.time <= time and update.event_time <= event_time:
            count[update.key[0]] = count.get(update.key[0], 0) + update.diff  # type: ignore[index,arg-type]
    return {word: times for word, times in count.items() if times}  # type: ignore[return-value]


def updates(said: list[Row]) -> list[Update]:
    return [Update((word,), (), due, happened, times) for word, due, happened, times in said]


def contributions(read: list[Reading], function: CompactionFunction) -> dict[int, list[Update]]:
    """What each file has contributed by all its readings, the first of which is a correction of nothing."""
    of: dict[int, list[Update]] = {0: [], 1: []}
    for reading in read:
        of[reading.file] += corrected(of[reading.file], updates(reading.rows), seal=reading.seal, function=function)
    return of


@given(readings)
def test_at_every_time_the_rows_are_those_of_the_newest_readings(read: list[Reading]) -> None:
    of = contributions(read, CompactionFunction(0))
    for time, event_time in product(range(LAST + 1), repeat=2):
        assert summed(of[0] + of[1], time, event_time) == expected(read, time, event_time)
    event(f"corrections of a file: {max((sum(r.file == file for r in read) for file in (0, 1)), default=0)}")
    event(f"ahead: {any(due > reading.seal for reading in read for _, due, _, _ in reading.rows)}")


@given(readings, st.integers(0, LAST), st.sampled_from([(), (Rung(0, 2),), (Rung(0, 3),)]))
def test_what_was_merged_is_corrected_at_the_instants_that_are_kept(
    read: list[Reading], since: int, rungs: tuple[Rung, ...]
) -> None:
    """At event times that can be read the answers are as if no history had been merged."""
    since -= since % (rungs[0].interval if rungs else 1)
    function = CompactionFunction(since, rungs if since else ())
    of = contributions(read, function)
    for time, event_time in product(range(LAST + 1), repeat=2):
        if function(event_time) == event_time:
            assert summed(of[0] + of[1], time, event_time) == expected(read, time, event_time)
    assert all(function(update.event_time) == update.event_time for update in of[0] + of[1])


@given(rows, st.integers(0, LAST), st.integers(0, LAST))
def test_a_file_that_says_the_same_again_writes_nothing(said: list[Row], first: int, then: int) -> None:
    contributed = corrected([], updates(said), seal=first)
    assert corrected(contributed, updates(said[::-1]), seal=max(first, then)) == []


facts = st.lists(
    st.tuples(
        st.sampled_from("kl"),
        st.sampled_from(["a", "b", None]),
        st.integers(0, LAST),
        st.integers(0, 3),
        st.sampled_from([0, 1]),
    ),
    max_size=5,
)
"""Of each row of a file: key, value, when it is learned if the file is read in time, when it happened, its order."""


def said_by(rows: list[tuple[str, str | None, int, int, int]]) -> list[Fact]:
    return [
        Fact((key,), None if value is None else (value,), due, happened, (order, "file", row))
        for row, (key, value, due, happened, order) in enumerate(rows)
    ]


def last_said(rows: list[tuple[str, str | None, int, int, int]], time: int, event_time: int) -> dict[str, str]:
    """What each key is by one reading of its file: the last row that is due and has happened says it."""
    words: dict[str, str | None] = {}
    due = [(at, row) for at, row in enumerate(rows) if row[2] <= time and row[3] <= event_time]
    for _, (key, value, *_) in sorted(due, key=lambda one: (one[1][3], one[1][4], one[0])):
        words[key] = value
    return {key: value for key, value in words.items() if value}


@given(st.lists(facts, min_size=1, max_size=4), st.booleans())
def test_from_each_reading_on_the_history_is_that_of_the_file_as_it_says_now(
    versions: list[list[tuple[str, str | None, int, int, int]]], drained: bool
) -> None:
    """Drained after each reading, or all at once."""
    recorded: list[Fact] = []
    for seal, rows in enumerate(versions):
        recorded += restated(recorded, said_by(rows), seal=2 * seal)
    written: list[Update] = []
    bounds = [0, *range(1, LAST + 1)] if drained else [0, LAST + 1]
    for lower, upper in pairwise([*bounds, LAST + 1]):
        for key in "kl":
            known = [fact for fact in recorded if fact.key == (key,) and fact.time < lower]
            written += resolve(None, known, [f for f in recorded if f.key == (key,) and lower <= f.time < upper])
    for time, event_time in product(range(LAST + 1), range(4)):
        newest = versions[min(time // 2, len(versions) - 1)]
        sums: dict[tuple[str, str], int] = {}
        for u in written:
            if u.time <= time and u.event_time <= event_time:
                sums[u.key[0], u.value[0]] = sums.get((u.key[0], u.value[0]), 0) + u.diff  # type: ignore[index]
        found = {at: count for at, count in sums.items() if count}
        assert found == dict.fromkeys(last_said(newest, time, event_time).items(), 1)


@given(facts, facts)
def test_what_a_file_says_again_further_down_is_not_written(
    rows: list[tuple[str, str | None, int, int, int]], above: list[tuple[str, str | None, int, int, int]]
) -> None:
    """Lines come in above, of another key: all others move down, and only those that came are said."""
    new = [("other", *row[1:]) for row in above]
    found = restated(said_by(rows), said_by([*new, *rows]), seal=3)
    assert sorted(fact.order[2] for fact in found) == list(range(len(new)))  # type: ignore[type-var]
    assert {fact.diff for fact in found} <= {1}


def test_the_worked_example_is_what_the_law_writes() -> None:
    failed, tried = doctest.testmod(law)
    assert (failed, tried > 0) == (0, True)
