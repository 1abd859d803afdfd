"""Reading many small objects: at once, because a store across a network answers each in its own time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

READERS = 16
FEW = 128
"""So many are read one after the other: threads would not pay."""
AHEAD = 512
"""So many answers are kept in memory at most before they are asked for."""


def read_many(read: Callable[[T], U], items: Sequence[T], *, few: int = FEW) -> Iterator[U]:
    """What `read` answers to each item, in order. Raises what it raises for the first item it fails on. Up to `few` are
    read one after the other; what is not asked for any more is not read either, but for READERS that have begun."""
    if len(items) <= few:
        yield from map(read, items)
        return
    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(items), AHEAD):
            yield from pool.map(read, items[start : start + AHEAD])
