"""Early and late results of windows: what is emitted of a window besides its row once it has closed. No collection file
declares a trigger (docs/decisions/0067); this is the law for the vectors of engines that have them.

A *pane* is emitted when a trigger fires: when its window has closed and rows came that no pane contained; besides, each
time so many such rows have come, or each time the frontier passes a multiple of an interval. It contains all rows of
the window (accumulating), or those that no pane contained (discarding). A session that two became emits what neither of
them has. A session that a late row cut in two, as it grew longer than sessions may be, is two windows: both are
emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidemark.errors import InvalidUsage
from tidemark.model.window.close import closes_at
from tidemark.model.window.contents import Rule, rows_by_window
from tidemark.model.window.happened import Happened, Key
from tidemark.model.window.kinds import Session, Window


@dataclass(frozen=True)
class Trigger:
    """When panes are emitted. `count`: each time so many rows came, and then only. `every`: each time the frontier
    passes a multiple of it, from the first one after the first row that came; and when the window closes."""

    count: int | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        for name, limit in (("count", self.count), ("every", self.every)):
            if limit is not None and limit < 1:
                raise InvalidUsage(f"a trigger's {name} is {limit}; it must be 1 or more")


class Pane(NamedTuple):
    """What is emitted of a window at one time."""

    key: Key
    window: Window
    rows: tuple[Happened, ...]


@dataclass(frozen=True)
class Panes:
    """All rows that came, up to where they are complete, and which of them were emitted: by key and window; of sessions
    by key, whatever session they are in. `windows` are those of which a pane was emitted."""

    rule: Rule
    trigger: Trigger = Trigger()
    accumulating: bool = True
    close: int | None = None
    rows: tuple[Happened, ...] = ()
    emitted: Mapping[object, Counter[Happened]] = field(default_factory=dict)
    windows: frozenset[tuple[Key, Window]] = frozenset()

    def with_rows(self, rows: Iterable[Happened]) -> tuple[list[Pane], Panes]:
        """Rows come, at once: what is emitted for that, and the state then."""
        batch = len(self.rows)
        return replace(self, rows=(*self.rows, *(row._replace(batch=batch) for row in rows)))._fired(self.close)

    def advanced(self, close: int) -> tuple[list[Pane], Panes]:
        """The frontier moves on: what is emitted for that, and the state then."""
        return replace(self, close=close)._fired(self.close)

    def _fired(self, before: int | None) -> tuple[list[Pane], Panes]:
        emitted, panes = dict(self.emitted), list[Pane]()
        for (key, window), contained in rows_by_window(self.rule, self.rows).items():
            of: object = key if isinstance(self.rule.kind, Session) else (key, window)
            fresh = (Counter(contained) - emitted.get(of, Counter())).total()
            for _ in range(self._times(key, window, contained, fresh, before)):
                rows = (
                    contained if self.accumulating else [*(Counter(contained) - emitted.get(of, Counter())).elements()]
                )
                if rows:
                    panes.append(Pane(key, window, tuple(rows)))
                emitted[of] = emitted.get(of, Counter()) | Counter(contained)
        windows = self.windows.union((pane.key, pane.window) for pane in panes)
        return panes, replace(self, emitted=emitted, windows=windows)

    def _times(self, key: Key, window: Window, contained: list[Happened], fresh: int, before: int | None) -> int:
        """How often a window fires of whose rows so many were never emitted."""
        if self.trigger.count is not None:
            return int(fresh >= self.trigger.count)
        if self.close is None:
            return 0
        closed = self.rule.closed(window.end, self.close)
        was_closed = before is not None and self.rule.closed(window.end, before)
        is_new = not was_closed or (key, window) not in self.windows
        return self._multiples(window, contained, before) + int(closed and (fresh > 0 or is_new))

    def _multiples(self, window: Window, contained: list[Happened], before: int | None) -> int:
        """How many multiples of the interval the frontier passed while the window was open."""
        every = self.trigger.every
        if every is None or self.close is None:
            return 0
        first_at = min(contained, key=lambda row: (row.batch, row.learned)).at or 0
        first = first_at // every + 1
        if before is not None:
            first = max(first, -(-before // every))
        last = (min(self.close, closes_at(self.rule.kind, window.end, self.rule.grace)) - 1) // every
        return max(last - first + 1, 0)
