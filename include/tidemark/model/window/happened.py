"""Rows as windows see them: signed, with when they happened and when that was learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

Key = Hashable
Value = Hashable
Contents = Mapping[tuple[Value, int], int]
"""What a window holds: how often each value at each instant; never empty, no zeros. Negative where a row was retracted
at an instant at which it was not there."""


class Happened(NamedTuple):
    """`diff` more rows of a key that happened `at` an instant (None: it is not known; no window holds them), which was
    `learned` at a time: the frontier that lateness is judged by. What is learned at one time is learned at once, unless
    its `batch` gives an order."""

    key: Key
    value: Value
    at: int | None
    learned: int
    diff: int = 1
    batch: int = 0


def consolidated(rows: Iterable[Happened]) -> Contents:
    """How often each value at each instant is there, whatever its key. A row and its retraction are nothing."""
    sums: Counter[tuple[Value, int]] = Counter()
    for row in rows:
        if row.at is not None:
            sums[row.value, row.at] += row.diff
    return {entry: count for entry, count in sums.items() if count}


def instants(contents: Contents) -> set[int]:
    """At which instants anything is there."""
    return {at for _, at in contents}
