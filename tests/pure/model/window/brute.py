"""Windows the long way: every integer start is tried, every pair of rows is looked at. Shares no code with the laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Contents = dict[tuple[str, int, int], Counter[tuple[Any, int]]]
"""By key, start and end: how often each value at each instant."""


def consolidated(rows: Iterable[Any]) -> dict[str, Counter[tuple[Any, int]]]:
    """By key, how often each value at each instant; without what cancels."""
    found: dict[str, Counter[tuple[Any, int]]] = {}
    for row in rows:
        found.setdefault(row.key, Counter())[row.value, row.at] += row.diff
    return {key: Counter({of: n for of, n in counts.items() if n}) for key, counts in found.items()}


def sliding(rows: Iterable[Any], size: int, clamp: bool) -> Contents:
    """Slide a start over all integers: each change of what is in [start, start + size] to something that is not empty
    opens a window."""
    found: Contents = {}
    for key, counts in consolidated(rows).items():
        before: Counter[tuple[Any, int]] = Counter()
        for start in range(0 if clamp else -70, 70):
            inside = Counter({of: n for of, n in counts.items() if start <= of[1] <= start + size})
            # At one and the same multiset of rows nothing has changed: rows differ by value and instant.
            if inside and inside != before:
                found[key, start, start + size] = inside
            before = inside
    return found


def sessions(rows: Iterable[Any], gap: int, exact: bool, max_length: int | None) -> Contents:
    """Union-find over all pairs of instants; a set that is too long gives up its first rows until it is not."""
    found: Contents = {}
    for key, counts in consolidated(rows).items():
        instants = sorted({at for _, at in counts})
        parent = {at: at for at in instants}

        def root(at: int, parent: dict[int, int] = parent) -> int:
            return at if parent[at] == at else root(parent[at])

        for one in instants:
            for other in instants:
                if abs(one - other) < gap + (1 if exact else 0):
                    parent[root(one)] = root(other)
        for together in {root(at) for at in instants}:
            left = [at for at in instants if root(at) == together]
            while left:
                first = left[0]
                mine = [at for at in left if max_length is None or at < first + max_length]
                # A cut may leave rows at a larger distance than the gap: they are none the less of one set of rows.
                left = [at for at in left if at not in mine]
                end = mine[-1] + gap if max_length is None else min(mine[-1] + gap, first + max_length)
                found[key, first, end] = Counter({of: n for of, n in counts.items() if of[1] in mine})
    return found


def given(rows: Iterable[Any], windows: Iterable[tuple[int, int]]) -> Contents:
    """Aligned windows: each is asked for each row."""
    found: Contents = {}
    for key, counts in consolidated(rows).items():
        for start, end in windows:
            if inside := Counter({of: n for of, n in counts.items() if start <= of[1] < end}):
                found[key, start, end] = inside
    return found


def shows(micros: int, zone: str) -> datetime:
    """What a clock shows."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))


def first_shown(days: Iterable[date], zone: str, after: int, before: int) -> dict[date, int]:
    """When a clock that is looked at every half minute first shows each of the days, or a later one; in seconds."""
    found: dict[date, int] = {}
    waiting = sorted(days)
    for second in range(after, before, 30):
        today = shows(second * 1_000_000, zone).date()
        while waiting and today >= waiting[0]:
            found[waiting.pop(0)] = second
    return found
