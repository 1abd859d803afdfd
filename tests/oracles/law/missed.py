"""How much came too late for each window: the law of what a window tells of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened, Key
from tidemark.model.window.kinds import Session, Window
from tidemark.model.window.lateness import NOT_LATE, Judged, Lateness, judge
from tidemark.model.window.sessions import would_take


def missed(rule: Rule, rows: Iterable[Happened]) -> dict[tuple[Key, Window], Lateness]:
    """Of each window that is there what came too late for it: rows whose time is in it (a session would have taken
    them) and came when it was frozen. Each counts as often as it is there, as late for all its windows or for some;
    retracted, as the row does. A row is counted by every window that refused it, so the numbers of windows add up to
    more rows than came.

    A session tells of those only that no other took: a row that an open one took was late for none. By `next_window` a
    row is late that its own windows did not take, wherever it counts."""
    ordered = [*rows]
    late: dict[Key, list[Judged]] = defaultdict(list)
    for one in judge(rule, ordered):
        if one.late:
            late[one.row.key].append(one)
    return {(key, window): _of_one(rule, window, late[key]) for key, window in contents(rule, ordered)}


def _of_one(rule: Rule, window: Window, late: Iterable[Judged]) -> Lateness:
    found = NOT_LATE
    for one in late:
        many = abs(one.row.diff)
        if rule.frozen(window.end, one.row.learned) and _covers(rule, window, one.row):
            found += Lateness(many, 0, many) if one.refused else Lateness(0, many, many)
    return found


def _covers(rule: Rule, window: Window, row: Happened) -> bool:
    assert row.at is not None, "rows that no window holds were left out"
    if isinstance(rule.kind, Session):
        return would_take(rule.kind, window, row.at)
    return window.start <= row.at < window.end or (rule.kind.inclusive and row.at == window.end)
