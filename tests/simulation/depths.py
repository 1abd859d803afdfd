"""How deep the state machines went, over all examples of a process."""

from __future__ import annotations

from collections import Counter

from hypothesis import currently_in_test_context, event

REACHED: Counter[str] = Counter()
"""How often each depth was reached."""


def reached(depth: str) -> None:
    REACHED[depth] += 1
    if currently_in_test_context():
        event(depth)
