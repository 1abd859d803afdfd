"""Which rows each window holds: the law of windows over signed rows, whatever order they came in.

Without a bound on lateness the instants of the rows alone decide that. With one, a row counts in a window if it was
learned before the window was frozen: a function of each row's own instant and of when it was learned, so that how rows
were split into runs does not matter (only for sessions it takes more: `frozen_sessions.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemark.model.window.close import is_closed, is_frozen
from tidemark.model.window.frozen_sessions import Judgement, Revival, frozen_sessions, rows_of_sessions
from tidemark.model.window.happened import Contents, Happened, Key, consolidated, instants
from tidemark.model.window.kinds import AlignedKind, Session, Sliding, Window, WindowKind
from tidemark.model.window.sliding import fits_a_window, left_of, right_of, sliding_windows
from tidemark.model.window.windows import Late, Windows

ByWindow = dict[tuple[Key, Window], Contents]
RowsByWindow = dict[tuple[Key, Window], list[Happened]]


@dataclass(frozen=True)
class Rule:
    """How rows fall into windows: the kind, the grace, and what late rows do (as in `Windows`). With
    `clamp_start_at_zero` aligned windows that start below 0 do not exist. `revival` says which sessions a row joins."""

    kind: WindowKind
    grace: int = 0
    late: Late = Late.REEMIT
    max_lateness: int | None = None
    clamp_start_at_zero: bool = False
    revival: Revival = Revival.FROZEN_IS_FINAL

    @classmethod
    def of(cls, windows: Windows) -> Rule:
        """The rule of a definition."""
        return cls(windows.kind, windows.grace, windows.late, windows.max_lateness)

    @property
    def lateness(self) -> int | None:
        """For how long after it closed a window changes. None: for ever."""
        return self.max_lateness if self.late is Late.REEMIT else 0

    def windows_at(self, kind: AlignedKind, at: int) -> tuple[Window, ...]:
        """The windows that hold an instant, in order of start and end."""
        return tuple(one for one in kind.windows_at(at) if not self.clamp_start_at_zero or one.start >= 0)

    def earliest_after(self, kind: AlignedKind, at: int) -> Window:
        """The first window, by start and end, that ends after an instant."""
        found = kind.earliest_after(at)
        if found.start >= 0 or not self.clamp_start_at_zero:
            return found
        before_zero = kind.windows_at(-1)
        return kind.earliest_after(before_zero[-1].end if before_zero else -1)

    def frozen(self, end: int, learned: int) -> bool:
        """Whether what is learned at that time no longer changes a window of that end."""
        return is_frozen(self.kind, end, self.grace, self.lateness, learned)

    def closed(self, end: int, close: int) -> bool:
        """Whether a window of that end is closed for a frontier."""
        return is_closed(self.kind, end, self.grace, close)


def contents(rule: Rule, rows: Iterable[Happened]) -> ByWindow:
    """What each window of each key holds. A window is there if anything in it is not cancelled."""
    return {of: consolidated(in_window) for of, in_window in rows_by_window(rule, rows).items()}


def rows_by_window(rule: Rule, rows: Iterable[Happened]) -> RowsByWindow:
    """The rows that count in each window of each key, one by one, those that cancel each other among them."""
    by_key: dict[Key, list[Happened]] = defaultdict(list)
    for row in rows:
        if row.at is not None:
            by_key[row.key].append(row)
    return {(key, window): in_window for key, rows in by_key.items() for window, in_window in _of_one_key(rule, rows)}


def aligned_windows(rule: Rule, kind: AlignedKind, at: int, learned: int) -> set[Window]:
    """The windows in which a row counts."""
    holding = rule.windows_at(kind, at)
    found = {window for window in holding if not rule.frozen(window.end, learned)}
    if rule.late is Late.NEXT_WINDOW and len(found) < len(holding):
        # The first that is not closed ends after what is closed: an aligned window's end is exclusive.
        found.add(rule.earliest_after(kind, learned - rule.grace))
    return found


def candidates(rule: Rule, kind: Sliding, rows: list[Happened]) -> set[Window]:
    """Where sliding windows of one key may be: before what was in time for the window before it, after what was in time
    for any. The last window that can hold a row starts at its instant: who is late for it is late for all."""
    rows = [row for row in rows if fits_a_window(kind, _at(row))]
    if rule.lateness is None:
        return set(sliding_windows(kind, instants(consolidated(rows))))
    lasting = consolidated(row for row in rows if not rule.frozen(_at(row) + kind.size, row.learned))
    to_left = consolidated(row for row in rows if not rule.frozen(left_of(kind, _at(row)).end, row.learned))
    return {left_of(kind, at) for at in instants(to_left)} | {right_of(kind, at) for at in instants(lasting)}


def judged_sessions(rule: Rule, kind: Session, rows: list[Happened]) -> Judgement:
    """The sessions of one key where what is late for them is bounded."""
    return frozen_sessions(kind, rows, rule.frozen, rule.revival)


def _of_one_key(rule: Rule, rows: list[Happened]) -> Iterator[tuple[Window, list[Happened]]]:
    kind = rule.kind
    by_window: dict[Window, list[Happened]] = defaultdict(list)
    if isinstance(kind, Sliding):
        for window in candidates(rule, kind, rows):
            by_window[window] = [row for row in rows if _counts(rule, window, row)]
    elif isinstance(kind, Session):
        by_window.update(
            rows_of_sessions(kind, rows) if rule.lateness is None else judged_sessions(rule, kind, rows).sessions
        )
    else:
        for row in rows:
            for window in aligned_windows(rule, kind, _at(row), row.learned):
                by_window[window].append(row)
    return ((window, by_window[window]) for window in sorted(by_window) if consolidated(by_window[window]))


def _counts(rule: Rule, window: Window, row: Happened) -> bool:
    return window.start <= _at(row) <= window.end and not rule.frozen(window.end, row.learned)


def _at(row: Happened) -> int:
    assert row.at is not None, "rows that no window holds were left out"
    return row.at
