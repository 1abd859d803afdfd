"""How much of a collection is looked at where it is shown to somebody: an end of it that is bounded, however large it
is. The sparse indexes of its parts show what a range of keys costs, before anything is read.

An example: a part has the key (origin, start), 10,000 rows a row group, and these begin with (EWR, 1), (EWR, 70),
(EWR, 140) and (JFK, 5). All of EWR is 30,000 rows. With a bound of 20,000 the end of EWR that is looked at begins at
(EWR, 140): the row groups that can hold its keys are the third, and the second, which may end with the first of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidemark.model.batch import Part
from tidemark.model.key import Key
from tidemark.plan.ranges import groups_within, within
from tidemark.plan.tasks import KeyRange

T = TypeVar("T")


@dataclass(frozen=True)
class Weight:
    """Rows, and their bytes at rest, of row groups."""

    rows: int
    bytes: int

    def within(self, bound: Weight) -> bool:
        """Whether it is no more than a bound, in rows and in bytes."""
        return self.rows <= bound.rows and self.bytes <= bound.bytes


A_LOOK = Weight(262_144, 32 * 2**20)
"""What is opened at most for a look, which somebody waits for: about a second."""


def weight_of(parts: Sequence[Part], keys: KeyRange) -> Weight:
    """What must be opened to read a range of keys: the row groups that can hold them."""
    rows = nbytes = 0
    for part in within(parts, keys):
        count = sum(part.groups[at][1] for at in groups_within(part, keys))
        rows += count
        nbytes += part.file.bytes * count // part.rows
    return Weight(rows, nbytes)


def newest_within(parts: Sequence[Part], keys: KeyRange, bound: Weight, width: int) -> KeyRange:
    """The end of a range of keys, from the first `width` columns of some key on, that is as much as a bound allows.

    Where even the shortest end that the sparse indexes distinguish is more, it is that one: a row group or two of each
    part that reaches so far.
    """
    if weight_of(parts, keys).within(bound):
        return keys
    # The further on it begins, the fewer row groups can hold its keys.
    starts = landmarks(parts, keys, width)
    found = bisect_left(starts, True, key=lambda start: weight_of(parts, KeyRange(start, keys.upper)).within(bound))
    return KeyRange(starts[min(found, len(starts) - 1)], keys.upper) if starts else keys


def landmarks(parts: Sequence[Part], keys: KeyRange, width: int) -> list[Key]:
    """With what the row groups in a range of keys begin, in the first `width` columns: some of all keys, ascending.
    Where the range itself begins is none of them."""
    firsts = {first[:width] for part in within(parts, keys) for first, _ in part.groups}
    lower, upper = keys.lower, keys.upper
    return sorted(first for first in firsts if (lower is None or first > lower) and (upper is None or first < upper))


def thinned(some: Sequence[T], most: int) -> list[T]:
    """At most so many of some things, evenly spread, the first among them.

    >>> thinned("abcdefg", 3), thinned("ab", 3)
    (['a', 'c', 'e'], ['a', 'b'])
    """
    return [some[at * len(some) // most] for at in range(most)] if len(some) > most else list(some)
