"""The law of `latest_at` and `range` over chunks: what the answer is, which chunks are opened, and when reading stops.

`may_stop` is what a reader goes by, and `opening_order` is the order in which an index (`falling`) gives it the chunks.
The rest answers the two questions in plain Python: readers are compared with it.

A row and its retraction have the same values, so the same time, and every chunk that holds either reaches up to that
time. Chunks are opened by falling bound; what is above the bound of the next one is therefore settled: no chunk that
is still shut can add to it or take it away. Bounds that are too wide open a chunk in vain and change no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tidemark.errors import InvalidUsage
from tidemark.model.chunk.chunk import Chunk, Row
from tidemark.model.chunk.metadata import Ends, describe
from tidemark.model.update import Row as Cells
from tidemark.model.update import ordered

T = TypeVar("T")


def opening_order(chunks: Sequence[Ends | None], at: int, within: int | None = None) -> list[tuple[int, int]]:
    """The chunks that can hold the latest row in [at - within, at]: (bound, position) by falling min(last, at).

    A chunk without bounds has no row on the timeline and is left out. Chunks of equal bounds keep their order. An index
    (`falling`) gives the same, one by one.
    """
    openings = [
        (min(bounds.last, at), position)
        for position, bounds in enumerate(chunks)
        if bounds is not None and bounds.first <= at and (within is None or bounds.last >= at - within)
    ]
    return sorted(openings, key=lambda opening: -opening[0])


def may_stop(found: int | None, next_bound: int | None) -> bool:
    """Whether the time found is the answer although chunks are still shut: it is above the greatest bound of these.

    `found` is the greatest time of a row found so far (None: no row), `next_bound` the bound of the next chunk to
    open (None: all are open). An equal bound is no reason to stop: the chunk may win the tie or retract the row.
    """
    return next_bound is None or (found is not None and found > next_bound)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the rows of one key: on which timeline, of a table of which columns (in the order at rest).

    Equal times: the greatest by `ties`, then by the order at rest. With a `column`, only rows with a value in it count.
    """

    timeline: str
    columns: tuple[str, ...]
    ties: tuple[str, ...] = ()
    column: str | None = None
    key: Cells = ()

    def rank(self, row: Row) -> tuple[object, ...]:
        """What rows are compared by: time, ties, order at rest. A row that is on no timeline has no time."""
        return (*ordered((row.time(self.timeline),)), ordered(row.cells(self.ties)), ordered(row.cells(self.columns)))

    def sees(self, row: Row) -> bool:
        """Whether a row counts: it is on the timeline, and has a value in the column asked for."""
        return row.time(self.timeline) is not None and self._has_value(row)

    def static(self, rows: Iterable[Row]) -> Row | None:
        """The greatest of the rows without any time that has a value in the column asked for."""
        return max(filter(self._has_value, rows), key=self.rank, default=None)

    def _has_value(self, row: Row) -> bool:
        return self.column is None or row.values.get(self.column) is not None


class BoundedChunk(NamedTuple):
    """Rows of one key, and bounds that are not narrower than their times."""

    bounds: Ends | None
    rows: Sequence[Row]


class Latest(NamedTuple, Generic[T]):
    """The latest row (None: there is none), and the chunks that were opened, in order."""

    row: Row | None
    opened: tuple[T, ...]


def bounded(chunk: Chunk, timeline: str, column: str | None = None) -> BoundedChunk:
    """A chunk with its exact bounds on a timeline, or those of the rows with a value in a column."""
    return BoundedChunk(describe(chunk).bounds(timeline, column), chunk.rows)


def latest_at(
    chunks: Sequence[BoundedChunk],
    question: Question,
    at: int,
    within: int | None = None,
    static: Sequence[Row] = (),
) -> Latest[int]:
    """The row of one key with the greatest time in [at - within, at] that has a positive multiplicity, and the
    positions of the chunks that were opened to find it.

    Raises InvalidUsage if a row at or above the time of the answer has a negative multiplicity. `static` are rows
    without any time: one of them that counts is the answer at every time. No read passes any; the chunk store that
    this law is compared with has them.
    """
    if (row := question.static(static)) is not None:
        return Latest(row, ())
    order = opening_order([chunk.bounds for chunk in chunks], at, within)
    return latest_of(order, lambda position: chunks[position].rows, question, at, within)


def latest_of(
    order: Iterable[tuple[int, T]],
    rows_of: Callable[[T], Iterable[Row]],
    question: Question,
    at: int,
    within: int | None = None,
) -> Latest[T]:
    """The same of chunks that come with their bounds, by falling bound: each is opened by `rows_of` when its turn
    comes, and no others are asked for once the answer is settled."""
    merged, opened = _Multiplicities(question), list[T]()
    lowest = None if within is None else at - within
    waiting = iter(order)
    following = next(waiting, None)
    while following is not None:
        _, chunk = following
        opened.append(chunk)
        merged.add(row for row in rows_of(chunk) if _is_in(row.time(question.timeline), lowest, at))
        following = next(waiting, None)
        found = merged.greatest()
        time = None if found is None else found.time(question.timeline)
        if may_stop(time, None if following is None else following[0]):
            merged.check(time)
            return Latest(found, tuple(opened))
    return Latest(None, ())


def in_range(
    chunks: Sequence[BoundedChunk], question: Question, low: int, high: int, static: Sequence[Row] = ()
) -> list[Row]:
    """The rows of one key with a time in [low, high], merged and sorted by time, ties and the order at rest.

    Their `diff` is their multiplicity; what cancels is absent. None if low is above high. `static` as in
    `latest_at`: one of these that counts is the only row of every range.
    """
    if (row := question.static(static)) is not None:
        return [row]
    merged = _Multiplicities(question)
    for bounds, rows in chunks:
        if bounds is not None and bounds.first <= high and bounds.last >= low:
            merged.add(row for row in rows if _is_in(row.time(question.timeline), low, high))
    return sorted(merged.rows(), key=question.rank)


def _is_in(time: int | None, low: int | None, high: int) -> bool:
    return time is not None and (low is None or low <= time) and time <= high


class _Multiplicities:
    """The multiplicity of each row in what was opened so far."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._times: Counter[Cells] = Counter()

    def add(self, rows: Iterable[Row]) -> None:
        for row in filter(self._question.sees, rows):
            self._times[row.cells(self._question.columns)] += row.diff

    def rows(self) -> list[Row]:
        """Those whose multiplicity is not zero."""
        return [
            Row(dict(zip(self._question.columns, cells, strict=True)), times)
            for cells, times in self._times.items()
            if times
        ]

    def greatest(self) -> Row | None:
        """The greatest row with a positive multiplicity."""
        return max((row for row in self.rows() if row.diff > 0), key=self._question.rank, default=None)

    def check(self, lowest: int | None) -> None:
        """Raise InvalidUsage if a row from `lowest` on has a negative multiplicity."""
        timeline = self._question.timeline
        for row in self.rows():
            if row.diff < 0 and _is_in(row.time(timeline), lowest, 2**63 - 1):
                raise InvalidUsage(
                    f"key {self._question.key} holds row {dict(row.values)} {row.diff} times, so its latest row on "
                    f"{timeline} is not known; correct the collection, or ask for a time before {row.time(timeline)}"
                )
