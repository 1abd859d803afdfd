"""The kernel that judges the updates of sessions, against the law that goes through them row by row."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.budget import examples
from tests.support.presence import presence
from tidemark.arrow.kernels.windows.gaps import Gaps
from tidemark.arrow.kernels.windows.late_sessions import (
    AT,
    DIFF,
    END,
    LAST,
    LATE,
    START,
    STRETCH,
    TIME,
    Lasting,
    judged_updates,
)
from tidemark.errors import InvalidUsage
from tidemark.model.window.close import closes_at
from tidemark.model.window.contents import Rule, contents, rows_by_window
from tidemark.model.window.happened import Happened
from tidemark.model.window.judged import Judging
from tidemark.model.window.kinds import Session
from tidemark.model.window.lateness import judge, lateness
from tidemark.model.window.windows import Late

ENDS = (0, 7, 14, 19, 21, 28, 40, 50)
BEFORE = -(10**6)
Update = tuple[str, int, str | None, int, int]
"""Whose, at what instant, its value, when it was learned, how often."""


def history_of(chance: random.Random, many: int) -> list[Update]:
    """Rows that come, and such that are retracted, of which the input never holds fewer than none; dense enough that
    sessions freeze, are joined, parted and emptied."""
    found: list[Update] = []
    there: list[tuple[str, int, str | None]] = []
    for time in sorted(chance.randrange(-3, 60) for _ in range(many)):
        if there and chance.random() < 0.4:
            row = there.pop(chance.randrange(len(there)))
            found.append((*row, time, -1))
            continue
        # Most rows happen shortly before they are learned, some long before.
        row = chance.choice("kkkl"), time - chance.choice([0, 1, 3, 5, 8, 12, 20]), chance.choice(["x", "x", "y", None])
        times = chance.choice([1, 1, 2])
        there += [row] * times
        found.append((*row, time, times))
    return found


histories = st.builds(history_of, st.randoms(use_true_random=False), st.integers(1, 40))
sessions = st.builds(Session, st.integers(1, 9), st.booleans(), st.none() | st.integers(1, 14))


def learned(time: int) -> int:
    found = Judging(0, ENDS).learned(time)
    return BEFORE if found is None or time < 0 else found


def judged(
    rule: Lasting, history: list[Update], each: int, shown: Sequence[str] = ("key", "value")
) -> list[dict[str, Any]]:
    rows = sorted(history, key=lambda one: one[:2])
    columns = zip(*rows, strict=True)
    types = (pa.string(), pa.int64(), pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(column, of) for column, of in zip(columns, types, strict=True)]
    batch = pa.record_batch(arrays, names=["key", AT, "value", TIME, DIFF])
    batches = [batch.slice(at, each) for at in range(0, len(batch), each)]
    return [row for some in judged_updates(batches, rule, shown) for row in some.to_pylist()]


def happened(history: list[Update]) -> list[Happened]:
    return [Happened(key, value, at, learned(time), many) for key, at, value, time, many in history]


def by_law(rule: Rule, history: list[Update]) -> dict[Any, Counter[Any]]:
    return {(key, *window): Counter(of) for (key, window), of in contents(rule, happened(history)).items()}


def added_up(rows: list[dict[str, Any]]) -> dict[Any, Counter[Any]]:
    found: dict[Any, Counter[Any]] = {}
    for row in rows:
        if row[START] is not None:
            found.setdefault((row["key"], row[START], row[END]), Counter())[row["value"], row[AT]] += row[DIFF]
    kept = {of: Counter({one: many for one, many in counts.items() if many}) for of, counts in found.items()}
    return {of: counts for of, counts in kept.items() if counts}


def stretches(history: list[Update], kind: Session) -> dict[str, list[tuple[int, int]]]:
    near = kind.gap - (not kind.exact_gap_merges)
    found: dict[str, list[tuple[int, int]]] = {}
    for key, at in sorted({one[:2] for one in history}):
        own = found.setdefault(key, [])
        if own and at - own[-1][1] <= near:
            own[-1] = own[-1][0], at
        else:
            own.append((at, at))
    return found


JOINED_AGAIN = [("k", 12, "x", 14, 1), ("k", 16, "y", 19, 1), ("k", 12, "x", 19, 1), ("k", 12, "x", 21, -1)]
"""A row is in a frozen session, comes again into an open one, and is retracted: from that."""


@examples(200)
@given(histories, sessions, st.integers(0, 3), st.integers(0, 9), st.integers(0, 60), st.integers(1, 9))
@example(JOINED_AGAIN, Session(5), 0, 0, 0, 9)
def test_updates_are_judged_as_the_law_does_whatever_batches_they_come_in(
    history: list[Update], kind: Session, grace: int, lateness_: int, before: int, each: int
) -> None:
    rule = Rule(kind, grace, Late.REEMIT, lateness_)
    gaps = Gaps(("key",), kind.gap, kind.exact_gap_merges, kind.max_length)
    lasting = Lasting(gaps, closes_at(kind, 0, grace) + lateness_, ENDS, ("key", "value"))
    rows = judged(lasting, history, each)
    assert added_up(rows) == by_law(rule, history)
    late = lateness(judge(rule, happened(history))).rows_late_for_all
    assert sum(row[LATE] for row in rows) == late
    assert sum(row[DIFF] for row in rows if row[DIFF] < 0) >= sum(one[4] for one in history if one[4] < 0)
    bounds = stretches(history, kind)
    assert all((row[STRETCH], row[LAST]) in bounds[row["key"]] for row in rows)
    # What is new alone: only stretches in which something is, and by how much more was late.
    new = Lasting(lasting.gaps, lasting.after, ENDS, lasting.same, changed_from=before, known_before=before)
    some = judged(new, history, each)
    touched = {
        (key, span)
        for key, of in bounds.items()
        for span in of
        if any(one[0] == key and span[0] <= one[1] <= span[1] and one[3] >= before for one in history)
    }
    assert {(row["key"], (row[STRETCH], row[LAST])) for row in some} == touched
    inside = {of: counts for of, counts in by_law(rule, history).items() if _stretch(of, bounds) in touched}
    assert added_up(some) == inside
    old = [one for one in history if one[3] < before]
    was = lateness(judge(rule, happened(old))).rows_late_for_all
    assert sum(row[LATE] for row in some) == late - was


class Dated(str):
    """A value that knows when it was said, and is equal to itself whenever that was."""

    time: int


def dated(history: list[Update]) -> list[Happened]:
    found = []
    for key, at, value, time, many in history:
        of = Dated(value)
        of.time = time
        found.append(Happened(key, of, at, learned(time), many))
    return found


@examples(300)
@given(histories, sessions, st.integers(0, 3), st.integers(0, 9), st.randoms(use_true_random=False))
def test_since_when_rows_stand_in_a_session_does_not_hang_on_the_order_of_updates(
    history: list[Update], kind: Session, grace: int, lateness_: int, dice: random.Random
) -> None:
    """Which of two that are retracted in one interval stays in a frozen session is left open, and changes nothing."""
    rule = Rule(kind, grace, Late.REEMIT, lateness_)
    gaps = Gaps(("key",), kind.gap, kind.exact_gap_merges, kind.max_length)
    lasting = Lasting(gaps, closes_at(kind, 0, grace) + lateness_, ENDS, ("key", "value"))
    expected: dict[Any, Counter[int]] = defaultdict(Counter)
    for (key, window), rows in rows_by_window(rule, dated(history)).items():
        for one in rows:
            expected[key, *window, one.value, one.at][one.value.time] += one.diff  # type: ignore[attr-defined]
    shuffled = [*history]
    dice.shuffle(shuffled)
    found: dict[Any, Counter[int]] = defaultdict(Counter)
    for row in judged(lasting, shuffled, 5, ["key", "value", TIME]):
        if row[START] is not None:
            of = row["key"], row[START], row[END], str(row["value"]), row[AT]
            found[of][row[TIME]] += row[DIFF]
    right, there = ({of: presence(one) for of, one in some.items() if one.total()} for some in (expected, found))
    assert there == right


def _stretch(of: tuple[str, int, int], bounds: dict[str, list[tuple[int, int]]]) -> tuple[str, tuple[int, int]]:
    return of[0], next(span for span in bounds[of[0]] if span[0] <= of[1] <= span[1])


def test_far_instants_and_gaps_are_refused() -> None:
    with pytest.raises(InvalidUsage, match="beyond 2\\^61"):
        judged(Lasting(Gaps(("key",), 1), 0, (), ("key",)), [("k", 2**61 + 1, "x", 0, 1)], 1)
    with pytest.raises(InvalidUsage, match="up to 2\\^61"):
        Lasting(Gaps(("key",), 2**61 + 1), 0, (), ("key",))
    far = [("k", -(2**61), "x", 0, 1), ("k", 2**61, "x", 0, 1)]
    rows = judged(Lasting(Gaps(("key",), 2**61, max_length=2**70), 0, (), ("key",)), far, 1)
    assert [(row[START], row[END]) for row in rows] == [(-(2**61), 0), (2**61, 2**62)]
