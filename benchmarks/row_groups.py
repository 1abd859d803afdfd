"""What a reader could skip by the parts' sparse indexes alone, to be compared with what it really reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tidemark.model.batch import Part
from tidemark.model.update import Row


def groups_holding(part: Part, touched: Sequence[Row]) -> list[int]:
    """The row groups of a part that can hold any of the `touched` keys (ascending)."""
    firsts = [first_key for first_key, _ in part.groups]
    found: set[int] = set()
    for key in touched:
        if part.first_key <= key <= part.last_key:
            last = bisect_right(firsts, key) - 1
            found.add(last)
            while last > 0 and firsts[last] == key:
                last -= 1
                found.add(last)
    return sorted(found)
