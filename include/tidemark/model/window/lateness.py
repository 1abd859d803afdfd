"""What came late, in three numbers that are kept apart: rows late for all their windows, rows late for some of them,
and how often a row was late for a window."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from tidemark.model.window.bounds import Window, windows_at
from tidemark.model.window.contents import Rule, candidates, judged_sessions
from tidemark.model.window.happened import Happened, Key
from tidemark.model.window.kind import Session, Sliding
from tidemark.model.window.sliding import left_of
from tidemark.model.window.windows import Late


class Judged(NamedTuple):
    """A row, how many windows it came in time for, and how many it was late for. `refused`: it was late for whatever
    window could have held it, also for those that no row opened."""

    row: Happened
    in_time: int
    late: int
    refused: bool

    @property
    def late_for_all(self) -> bool:
        return self.late > 0 and not self.in_time

    @property
    def late_for_some(self) -> bool:
        return self.late > 0 and self.in_time > 0


def behind(rows: Iterable[Happened]) -> list[int]:
    """How far behind the frontier each row came, as often as it is there."""
    return [max(row.learned - row.at, 0) for row in rows if row.at is not None for _ in range(abs(row.diff))]


class Lateness(NamedTuple):
    """The three numbers."""

    rows_late_for_all: int
    rows_late_for_some: int
    window_updates_late: int


def lateness(judged: Iterable[Judged]) -> Lateness:
    """The numbers of rows that were judged, each as often as it is there."""
    all_of = some_of = updates = 0
    for one in judged:
        times = abs(one.row.diff)
        all_of += times * one.late_for_all
        some_of += times * one.late_for_some
        updates += times * one.late
    return Lateness(all_of, some_of, updates)


def late_when_closed(rule: Rule) -> Rule:
    """The rule by which a row is late that comes when its window has closed, whatever is done with it then."""
    return replace(rule, late=Late.DISCARD, max_lateness=None)


def judge(rule: Rule, rows: Iterable[Happened]) -> list[Judged]:
    """The rows that some window can hold, each with how many windows take it no more: those that are frozen by the rule
    (`late_when_closed`: that had closed). A row that is late for every sliding window it could be in opens none and is
    late once; so is one that no session takes."""
    if rule.late is Late.NEXT_WINDOW:
        rule = late_when_closed(rule)
    by_key: dict[Key, list[Happened]] = defaultdict(list)
    for row in rows:
        if row.at is not None:
            by_key[row.key].append(row)
    return [one for of_key in by_key.values() for one in _of_one_key(rule, of_key)]


def _of_one_key(rule: Rule, rows: list[Happened]) -> list[Judged]:
    kind = rule.kind
    if isinstance(kind, Session):
        if rule.lateness is None:
            return [Judged(row, 1, 0, False) for row in rows]
        late = judged_sessions(rule, kind, rows).late
        in_time = (Counter(rows) - Counter(late)).elements()
        return [*(Judged(row, 1, 0, False) for row in in_time), *(Judged(row, 0, 1, True) for row in late)]
    if isinstance(kind, Sliding):
        windows = candidates(rule, kind, rows)
        return [_of_sliding(rule, kind, windows, row, _at(row)) for row in rows]
    found = []
    for row in rows:
        holding = windows_at(kind, _at(row), clamp_start_at_zero=rule.clamp_start_at_zero)
        missed = sum(rule.frozen(window.end, row.learned) for window in holding)
        found.append(Judged(row, len(holding) - missed, missed, 0 < missed == len(holding)))
    return found


def _of_sliding(rule: Rule, kind: Sliding, windows: set[Window], row: Happened, at: int) -> Judged:
    holding = {window for window in windows if window.start <= at <= window.end} | {left_of(kind, at)}
    missed = sum(rule.frozen(window.end, row.learned) for window in holding)
    refused = rule.frozen(at + kind.size, row.learned)
    return Judged(row, len(holding) - missed, 1 if refused else missed, refused)


def _at(row: Happened) -> int:
    assert row.at is not None, "rows that no window holds were left out"
    return row.at
