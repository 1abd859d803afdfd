"""Random updates in chunks whose bounds may be loose, and what a read wants of them: the law against brute force."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from tidemark.model.chunk.bounds import Bounds, TimelineBounds
from tidemark.model.chunk.hull import Hull
from tidemark.model.chunk.law import Interval, Span, Wanted, can_matter
from tidemark.model.frontier import CompactionFunction
from tidemark.model.update import Update
from tidemark.plan.tasks import ALL_KEYS, KeyRange

COLUMNS = {1: 0, 2: 1}
"""Ids of the value columns, and where they are in a value; both may be null."""
KEY_COLUMN = 7
"""The id of the second key column."""


@dataclass(frozen=True)
class Case:
    """Chunks with what is known of them, and a question."""

    chunks: tuple[tuple[Hull, tuple[Update, ...]], ...]
    wanted: Wanted
    ranges: tuple[KeyRange, ...]

    @property
    def taken(self) -> list[tuple[Update, ...]]:
        """The rows of the chunks that the law takes."""
        return [rows for hull, rows in self.chunks if can_matter(hull, self.wanted, self.ranges)]


def case(seed: int) -> Case:
    """The case of a seed. Every third one separates updates: an update and its retraction are in different chunks."""
    dice = random.Random(seed)
    updates = []
    for _ in range(dice.randrange(30)):
        key = (dice.randrange(4), dice.randrange(3))
        value = tuple(dice.choice([None, *range(-3, 9)]) for _ in COLUMNS)
        time, event = dice.randrange(10), dice.randrange(10)
        updates.append(Update(key, value, time, event, dice.choice([1, 1, 1, 2, -1])))
        if dice.random() < 0.5:
            later = dice.randrange(time, 12)
            updates.append(Update(key, value, later, dice.randrange(10), -updates[-1].diff))
    if dice.random() < 0.7:
        updates.sort(key=lambda one: one.key)
    if seed % 3 == 0:
        updates = updates[::2] + updates[1::2]
    chunks = []
    while updates:
        count = dice.randint(1, 8)
        rows, updates = tuple(updates[:count]), updates[count:]
        chunks.append((_hull(dice, rows), rows))
    ranges = tuple(_key_range(dice) for _ in range(dice.choice([0, 0, 1, 2])))
    return Case(tuple(chunks), _wanted(dice), ranges)


def _hull(dice: random.Random, rows: tuple[Update, ...]) -> Hull:
    def loose(low: int, high: int) -> tuple[int, int]:
        return low - dice.choice([0, 0, 0, 2]), high + dice.choice([0, 0, 0, 2])

    columns: dict[int, Bounds] = {}
    for column, at in COLUMNS.items():
        known = [row.value[at] for row in rows if row.value[at] is not None]
        nulls = len(rows) - len(known)
        if dice.random() < 0.8:
            columns[column] = Bounds(*loose(min(known), max(known)), nulls) if known else Bounds(None, None, nulls)  # type: ignore[type-var, arg-type]
    second = [row.key[1] for row in rows]
    if dice.random() < 0.8:
        columns[KEY_COLUMN] = Bounds(*loose(min(second), max(second)))  # type: ignore[type-var, arg-type]
    keys = [row.key for row in rows]
    first, last = min(keys), max(keys)
    if dice.random() < 0.3:
        first = (first[0] - 1, 0)  # type: ignore[operator]
    return Hull(
        1,
        len(rows),
        0,
        first,
        last,
        *loose(min(row.time for row in rows), max(row.time for row in rows)),
        *loose(min(row.event_time for row in rows), max(row.event_time for row in rows)),
        tuple(TimelineBounds.of(column, bounds) for column, bounds in columns.items()),
    )


def _key_range(dice: random.Random) -> KeyRange:
    lower, upper = sorted([(dice.randrange(5), dice.randrange(3)), (dice.randrange(5), dice.randrange(3))])
    return dice.choice([KeyRange(lower, upper), KeyRange(lower), KeyRange(None, upper), ALL_KEYS])


def _wanted(dice: random.Random) -> Wanted:
    spans = tuple(
        Span(column, _intervals(dice)) for column in dice.sample([*COLUMNS, KEY_COLUMN], dice.choice([0, 1, 1, 2, 3]))
    )
    function = dice.choice([CompactionFunction(), CompactionFunction(5), CompactionFunction(8)])
    return Wanted(
        after=dice.choice([-1, -1, 3, 6]),
        upto=dice.choice([3, 7, 20]),
        event_upto=dice.choice([4, 20, 20]),
        event_from=dice.choice([0, 0, 6]),
        function=function,
        spans=spans,
    )


def _intervals(dice: random.Random) -> tuple[Interval, ...]:
    ends = sorted(dice.sample(range(-5, 12), 2 * dice.choice([0, 1, 1, 1, 2, 3])))
    found: list[Interval] = list(zip(ends[::2], ends[1::2], strict=True))
    if found and dice.random() < 0.3:
        found[0] = (None, found[0][1])
    if found and dice.random() < 0.3:
        found[-1] = (found[-1][0], None)
    return tuple(found)


def answer(chunks: list[tuple[Update, ...]], case: Case) -> Counter[tuple[object, ...]]:
    """What is asked, added up: rows of the wanted keys, times and values, without those that add up to nothing."""
    found: Counter[tuple[object, ...]] = Counter()
    for rows in chunks:
        for row in rows:
            if _fits(row, case):
                found[row.key, row.value] += row.diff
    return Counter({row: count for row, count in found.items() if count})


def _fits(row: Update, case: Case) -> bool:
    wanted, keys = case.wanted, case.ranges or (ALL_KEYS,)
    of = {**{column: row.value[at] for column, at in COLUMNS.items()}, KEY_COLUMN: row.key[1]}
    return (
        wanted.after < row.time <= wanted.upto
        and row.event_time <= wanted.event_upto
        and wanted.function(row.event_time) >= wanted.event_from
        and any((r.lower is None or row.key >= r.lower) and (r.upper is None or row.key < r.upper) for r in keys)
        and all(_within(of[span.column], span.intervals) for span in wanted.spans)
    )


def _within(value: object, intervals: tuple[Interval, ...]) -> bool:
    if not isinstance(value, int):
        return False
    return any((low is None or low <= value) and (high is None or value <= high) for low, high in intervals)


def exact(one: Case) -> bool:
    """Whether the answer without the chunks that the law leaves out is that of all."""
    return answer(one.taken, one) == answer([rows for _, rows in one.chunks], one)
