"""What came late, in three separate numbers: rows late for all their windows, rows late for some of them,
and how often a row was late for a window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidemark.model.window.contents import Rule, contents, judged_sessions
from tidemark.model.window.happened import Happened, Key
from tidemark.model.window.kinds import Session, Sliding, Window
from tidemark.model.window.sliding import fits_a_window, left_of
from tidemark.model.window.windows import Late
from tidemark.model.wording import counted


class Judged(NamedTuple):
    """A row, how many windows it came in time for, and how many it was late for. `refused`: it was late for whatever
    window could have contained it, also for those that no row opened."""

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


@dataclass(frozen=True)
class Lateness:
    """The three numbers. Rows that were retracted count as those that came."""

    rows_late_for_all: int = 0
    rows_late_for_some: int = 0
    window_updates_late: int = 0

    def __bool__(self) -> bool:
        return self != NOT_LATE

    @property
    def words(self) -> str:
        """The numbers, for people."""
        of_rows = f"{counted(self.rows_late_for_all, 'row')} late for all windows, {self.rows_late_for_some:,} for some"
        return f"{of_rows}, {counted(self.window_updates_late, 'window update')} lost"

    def __add__(self, other: Lateness) -> Lateness:
        return Lateness(
            self.rows_late_for_all + other.rows_late_for_all,
            self.rows_late_for_some + other.rows_late_for_some,
            self.window_updates_late + other.window_updates_late,
        )

    def __sub__(self, other: Lateness) -> Lateness:
        return self + Lateness(-other.rows_late_for_all, -other.rows_late_for_some, -other.window_updates_late)


NOT_LATE = Lateness()


def lateness(judged: Iterable[Judged]) -> Lateness:
    """The numbers of rows that were judged, each as often as it is there. One that sliding windows to come may hold is
    late for some, though none that is there holds it: so what comes later changes no number."""
    all_of = some_of = updates = 0
    for one in judged:
        times = abs(one.row.diff)
        all_of += times * one.refused
        some_of += times * (one.late > 0 and not one.refused)
        updates += times * one.late
    return Lateness(all_of, some_of, updates)


def late_when_closed(rule: Rule) -> Rule:
    """The rule by which a row is late that comes when its window has closed, whatever is done with it then."""
    return replace(rule, late=Late.DISCARD, max_lateness=None)


def judge(rule: Rule, rows: Iterable[Happened]) -> list[Judged]:
    """The rows that some window can hold, each with how many windows no longer take it: those that are frozen by the
    rule (`late_when_closed`: that had closed). A row that is late for every sliding window it could be in opens none
    and is late once; so is one that no session takes. Of sliding windows those count that hold something, and the one
    that ends with the row."""
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
        judgement = judged_sessions(rule, kind, rows)
        in_time = [Judged(row, 1, 0, False) for row in judgement.in_time]
        return [*in_time, *(Judged(row, 0, 1, True) for row in judgement.late)]
    if isinstance(kind, Sliding):
        windows = {window for _, window in contents(rule, rows)}
        return [judge_slid(rule, kind, windows, row, _at(row)) for row in rows if fits_a_window(kind, _at(row))]
    found = []
    for row in rows:
        holding = rule.windows_at(kind, _at(row))
        missed = sum(rule.frozen(window.end, row.learned) for window in holding)
        if holding:
            found.append(Judged(row, len(holding) - missed, missed, missed == len(holding)))
    return found


def judge_slid(rule: Rule, kind: Sliding, windows: Iterable[Window], row: Happened, at: int) -> Judged:
    """A row at an instant, judged by the sliding windows of its key that hold something."""
    holding = {window for window in windows if window.start <= at <= window.end} | {left_of(kind, at)}
    missed = sum(rule.frozen(window.end, row.learned) for window in holding)
    refused = rule.frozen(at + kind.size, row.learned)
    return Judged(row, len(holding) - missed, 1 if refused else missed, refused)


def _at(row: Happened) -> int:
    assert row.at is not None, "rows that no window holds were left out"
    return row.at
