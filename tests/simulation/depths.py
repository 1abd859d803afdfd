"""How deep the state machines went, over all examples of a process."""

from __future__ import annotations

from collections import Counter

from hypothesis import event

REACHED: Counter[str] = Counter()
"""How often each depth was reached."""


def reached(depth: str) -> None:
    REACHED[depth] += 1
    event(depth)
