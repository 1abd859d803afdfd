"""Chains: sorted rows in immutable chunks, and how they are cut and merged.

>>> a = Chain.of([Correction(1, "a", +1), Correction(4, "b", +1)])
>>> b = Chain.of([Correction(1, "a", -1), Correction(4, "b", +1), Correction(9, "c", +1)])
>>> [(row.time, row.data, row.diff) for row in merged([a, b])]
[(4, 'b', 2), (9, 'c', 1)]
>>> before, rest = b.cut(4)
>>> before.rows, rest.rows
(1, 2)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain as concatenated
from typing import Any, Generic, NamedTuple, TypeVar

CHUNK_ROWS = 204
"""Rows of a chunk: 8 KiB of 40 bytes each."""

D = TypeVar("D")


class Correction(NamedTuple, Generic[D]):
    """By how much the multiplicity of `data` is to change at `time`. Data of one buffer have a total order; so have
    its rows, by time, then data."""

    time: int
    data: D
    diff: int


Rows = tuple[Correction[D], ...]


@dataclass(frozen=True)
class Chain(Generic[D]):
    """Rows sorted by (time, data), consolidated among themselves, in chunks of which none is empty."""

    chunks: tuple[Rows[D], ...] = ()
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", sum(map(len, self.chunks)))

    @classmethod
    def of(cls, rows: Sequence[Correction[D]], chunk_rows: int = CHUNK_ROWS) -> Chain[D]:
        """Rows that are sorted and consolidated already, cut into chunks."""
        return cls(tuple(tuple(rows[at : at + chunk_rows]) for at in range(0, len(rows), chunk_rows)))

    def __iter__(self) -> Iterator[Correction[D]]:
        return concatenated.from_iterable(self.chunks)

    def __bool__(self) -> bool:
        return self.rows > 0

    @property
    def pieces(self) -> int:
        return len(self.chunks)

    @property
    def first_time(self) -> int:
        """Of a chain that is not empty."""
        return self.chunks[0][0].time

    def cut(self, at: int) -> tuple[Chain[D], Chain[D]]:
        """What is before a time, and the rest. Whole chunks are handed over; one at most is cut in two."""
        first = bisect_left(self.chunks, at, key=_last_time)
        before, after = self.chunks[:first], self.chunks[first:]
        if after and after[0][0].time < at:
            row = bisect_left(after[0], at, key=_time)
            before, after = (*before, after[0][:row]), (after[0][row:], *after[1:])
        return Chain(before), Chain(after)

    def times_below(self, bound: int) -> Iterator[int]:
        """The distinct times of its rows below a bound, ascending."""
        rest = self
        while rest and rest.first_time < bound:
            yield rest.first_time
            _, rest = rest.cut(rest.first_time + 1)

    def moved_to(self, time: int) -> Chain[D]:
        """A chain of rows of one time, at another: sorted as before, by data."""
        return Chain(tuple(tuple(Correction(time, row.data, row.diff) for row in chunk) for chunk in self.chunks))


def merged(chains: Sequence[Chain[D]], chunk_rows: int = CHUNK_ROWS) -> Chain[D]:
    """One chain of the rows of several; their times stay as they are.

    A k-way merge: `sorted` finds the ascending runs, which are the chains, and merges these.
    """
    if len(chains) == 1:
        return chains[0]
    return Chain.of(consolidated(concatenated.from_iterable(chains)), chunk_rows)


def consolidated(rows: Iterable[Correction[D]]) -> list[Correction[D]]:
    """Rows in order, the diffs of equal (time, data) summed, zeros dropped."""
    found: list[Correction[D]] = []
    for row in sorted(rows):
        if found and (last := found[-1]).time == row.time and last.data == row.data:
            found.pop()
            row = Correction(row.time, row.data, last.diff + row.diff)
        if row.diff:
            found.append(row)
    return found


def _time(row: Correction[Any]) -> int:
    return row.time


def _last_time(chunk: Rows[Any]) -> int:
    return chunk[-1].time
