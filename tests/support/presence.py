"""What became of a row by its changes, counted one by one."""

from __future__ import annotations

from collections.abc import Mapping


def presence(changes: Mapping[int, int]) -> tuple[int, int, int]:
    """How often a row is there, since when without a break, and since when not more rarely; by how much more often it
    was there from each time on."""
    there = arrived = grew = 0
    for time in sorted(changes):
        before, there = there, there + changes[time]
        arrived = arrived if before and there else time
        grew = time if there > before else grew
    return there, arrived, grew
