"""The latest rows, found by looking at every row: what reads of latest rows are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.pure.arrow.samples import NAN, collection
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.update import Row, Update

TIMELINES = (ColumnType.INT, ColumnType.DATE, ColumnType.TIMESTAMP)
Named = dict[str, Any]


def readings(timeline: ColumnType, envelope: Envelope = Envelope.UPDATES) -> Collection:
    """Rows that are in order of a word before they are in order of the timeline `at`; but for a date it is declared, so
    footers have more about it."""
    value = (Column("word", ColumnType.STRING), Column("at", timeline), Column("x", ColumnType.FLOAT))
    of = collection(envelope, key=(Column("number", ColumnType.INT),), value=(*value, Column("n", ColumnType.INT)))
    return of if timeline is ColumnType.DATE else replace(of, timelines=("at",))


def some_updates(most: int = 30, *, least_diff: int = -2, keys: int = 3) -> st.SearchStrategy[list[Update]]:
    """Few times and values, so that most rows meet others."""
    value = st.tuples(
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, -1, 0, 1, 2, 3, 4]),
        st.sampled_from([None, NAN, 0.5]),
        st.sampled_from([None, 0, 1]),
    )
    time = st.integers(0, 12)
    key = st.tuples(st.integers(0, keys))
    return st.lists(st.builds(Update, key, value, time, time, st.integers(least_diff, 2)), max_size=most)


def place(cells: Iterable[Any]) -> tuple[Any, ...]:
    """Where cells are in the order of rows: null, then no number, then by value."""
    return tuple((0, 0) if cell is None else (1, 0) if cell != cell else (2, cell) for cell in cells)


class Below(Exception):
    """A row that could be the latest has a negative multiplicity."""


def latest(
    some: Iterable[Update],
    of: Collection,
    key: Row,
    upto: int,
    *,
    within: int | None = None,
    known: int,
    happened: int = 2**63 - 1,
    ties: Sequence[str] = (),
    value_of: str | None = None,
    fits: Any = None,
) -> Named | None:
    """The latest row of a key, by name, None if there is none; of those that have a `value_of` a column, if given.

    A row of negative multiplicity is Below, unless the latest row is later.
    """
    counts: Counter[Row] = Counter()
    for one in some:
        if one.key == key and one.time <= known and one.event_time <= happened:
            counts[one.value] += one.diff
    names = [column.name for column in of.value]
    best: tuple[Any, Named] | None = None
    below: list[int] = []
    for value, count in counts.items():
        row = dict(zip(names, value, strict=True))
        at = row["at"]
        if at is None or at > upto or (within is not None and at < upto - within) or not (fits is None or fits(row)):
            continue
        if count == 0 or (value_of is not None and row[value_of] is None):
            continue
        if count < 0:
            below.append(at)
            continue
        order = (at, place(row[name] for name in ties), place(value))
        if best is None or order > best[0]:
            best = order, row
    if below and (best is None or max(below) >= best[0][0]):
        raise Below(key)
    return None if best is None else best[1]
