"""What windows emitted: by how much rows differ, and which revision of a window each is. The product keeps no such
book: what a collection of windows emits is the difference between two computations of it.

A window's row is emitted when the window closes, and again whenever it changes after that: the old row is retracted,
the new one follows. What was emitted is kept with the rows that it was computed from, so that after any crash the same
is computed again, and nothing is emitted twice or never.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tidemark.model.window.happened import Key
from tidemark.model.window.kinds import Window

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
class Emitted:
    """The rows that were emitted and not retracted, and how many each window has had."""

    rows: Mapping[Id, Hashable] = field(default_factory=dict)
    revisions: Mapping[Id, int] = field(default_factory=dict)

    def emit(self, closed: Mapping[Id, Hashable]) -> tuple[list[Signed], Emitted]:
        """What is to be emitted when these are the rows of all closed windows, and what was emitted then. A second time
        it is nothing."""
        revisions, signed = dict(self.revisions), []
        for (key, window), row, diff in delta(self.rows, closed):
            if diff > 0:
                revisions[key, window] = revisions.get((key, window), 0) + 1
            signed.append(Signed(key, window, row, revisions[key, window], diff))
        return signed, Emitted(dict(closed), revisions)
