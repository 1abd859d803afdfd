"""What of windows was told: by how much rows differ, and which revision of a window each is.

A window's row is told when the window closes, and again whenever it changes after that: the old row is taken back, the
new one follows. What was told is kept with what it was told from, so that after any crash the same is computed again,
and nothing is told twice or never.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tidemark.model.window.bounds import Window
from tidemark.model.window.happened import Key

Row = TypeVar("Row", bound=Hashable)
Id = tuple[Key, Window]


class Signed(NamedTuple):
    """A row of a window that comes or goes. `revision` counts the rows the window has had, from 1: a row goes with the
    revision it came with."""

    key: Key
    window: Window
    row: Hashable
    revision: int
    diff: int


def delta(before: Mapping[Id, Row], after: Mapping[Id, Row]) -> list[tuple[Id, Row, int]]:
    """What takes some rows of windows to others: those that go, then those that come. Equal rows stay."""
    gone = [(of, row, -1) for of, row in before.items() if of not in after or after[of] != row]
    come = [(of, row, 1) for of, row in after.items() if of not in before or before[of] != row]
    return [*gone, *come]


@dataclass(frozen=True)
class Told:
    """The rows that were told and not taken back, and how many each window has had."""

    rows: Mapping[Id, Hashable] = field(default_factory=dict)
    revisions: Mapping[Id, int] = field(default_factory=dict)

    def tell(self, closed: Mapping[Id, Hashable]) -> tuple[list[Signed], Told]:
        """What is to be told when these are the rows of all closed windows, and what was told then. A second time it
        is nothing."""
        revisions, signed = dict(self.revisions), []
        for (key, window), row, diff in delta(self.rows, closed):
            if diff > 0:
                revisions[key, window] = revisions.get((key, window), 0) + 1
            signed.append(Signed(key, window, row, revisions[key, window], diff))
        return signed, Told(dict(closed), revisions)


def revisions(history: Iterable[tuple[Hashable, int, int]]) -> dict[int, int]:
    """Which revision of one window its row is from each time on, from its history of (row, time, diff): how many
    different rows it has had. 0 from when it has none. What happened below `since` counts as one."""
    at: dict[int, dict[Hashable, int]] = defaultdict(lambda: defaultdict(int))
    for row, time, diff in history:
        at[time][row] += diff
    found, count = {}, 0
    for time in sorted(at):
        changed = {row: diff for row, diff in at[time].items() if diff}
        if any(diff > 0 for diff in changed.values()):
            count += 1
            found[time] = count
        elif changed:
            found[time] = 0
    return found
