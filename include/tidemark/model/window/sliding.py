"""Sliding windows: one for each set of rows that a closed interval of fixed length can hold, by its smallest start."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tidemark.model.window.close import closes_at
from tidemark.model.window.kinds import Sliding, Window


def fits_a_window(kind: Sliding, at: int) -> bool:
    """Whether any window can hold an instant: with `clamp_start_at_zero` none holds what is below 0."""
    return at >= 0 or not kind.clamp_start_at_zero


def left_of(kind: Sliding, at: int) -> Window:
    """The window that ends with an instant. It is there for every instant with rows."""
    start = max(at - kind.size, 0) if kind.clamp_start_at_zero else at - kind.size
    return Window(start, start + kind.size)


def right_of(kind: Sliding, at: int) -> Window:
    """The window just after an instant, which no longer holds it. It is there if any row is in it."""
    return Window(at + 1, at + 1 + kind.size)


def sliding_windows(kind: Sliding, instants: Iterable[int]) -> list[Window]:
    """The windows of one key that has rows at these instants, in order."""
    ascending = sorted(at for at in set(instants) if fits_a_window(kind, at))
    found = {left_of(kind, at) for at in ascending}
    found |= {right_of(kind, at) for at, following in pairwise(ascending) if following <= right_of(kind, at).end}
    return sorted(found)


def first_start(kind: Sliding, grace: int, lateness: int, learned: int) -> int:
    """The least start of the windows that what is learned at a time counts in, where windows are frozen so long after
    they closed. It depends on that time alone."""
    return learned - closes_at(kind, kind.size, grace) - lateness + 1
