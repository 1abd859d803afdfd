"""What cases of windows are answered: by production, wherever a collection file can declare the rule, and then the law
must say the same; else by the law alone, which is noted with the reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tests.conformance.window_declared import LawOnly, by_production, by_the_law, declared
from tests.conformance.window_for_a_while import is_for_a_while, late_for_sessions, windows_for_a_while
from tests.conformance.window_production import ComputedWindow, counts_when_rows_came, refreshed, windows
from tests.conformance.window_words import described, named, numbers
from tidemark.model.derived import Derived
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.frozen_sessions import Revival
from tidemark.model.window.happened import Happened, consolidated
from tidemark.model.window.kinds import AlignedKind, Session, Sliding, Window
from tidemark.model.window.lateness import judge

Shown = list[dict[str, Any]]
Answer = TypeVar("Answer")
ORDER = "a late row counts or not by the order of rows of one interval, which production judges together"


def all_windows(rule: Rule, rows: Sequence[Happened], without: Sequence[Happened] = (), close: int = 1) -> Shown:
    """All windows of rows, by the vectors' names, and whether each is `closed` at a frontier. Rows that are in no
    window, `without` a key or a value, are there for production only."""
    by_law = _by_law(rule, rows, close)
    return answered(by_law, lambda: windows_by_production(rule, rows, without, close), alike=unordered)


def _by_law(rule: Rule, rows: Sequence[Happened], close: int) -> Shown:
    return [
        described(rule, key, window, contained) | {"closed": rule.closed(window.end, close)}
        for (key, window), contained in contents(rule, rows).items()
    ]


def windows_by_production(
    rule: Rule, rows: Sequence[Happened], without: Sequence[Happened] = (), close: int = 1
) -> Shown:
    """The same by production alone. Raises LawOnly where it cannot answer."""
    one = declared(_as_declared(rule, rows))
    computed = _computed(one, [*rows, *without], max(close, 1))
    by_times = close >= 1 and not is_for_a_while(one) and not counts_when_rows_came(one)
    closed = [window.time < close if by_times else rule.closed(window.end, close) for window in computed]
    shaped = [_named(rule, window, rows) | {"closed": shut} for window, shut in zip(computed, closed, strict=True)]
    if _is_by_order(rule, rows):
        together = _by_law(rule, _together(rows), close)
        assert unordered(shaped) == unordered(together), f"production has {shaped}, the law of intervals {together}"
        raise LawOnly(ORDER)
    return shaped


def _is_by_order(rule: Rule, rows: Sequence[Happened]) -> bool:
    """Whether windows differ by the order in which the rows of one interval came."""
    return contents(rule, rows) != contents(rule, _together(rows))


def _together(rows: Iterable[Happened]) -> list[Happened]:
    """The rows without their order within an interval."""
    return [row._replace(batch=0) for row in rows]


def before_and_after(rule: Rule, before: Sequence[Happened], more: Sequence[Happened]) -> list[Shown]:
    """The windows of rows, and those once more rows came."""
    by_law = [
        [described(rule, key, window, contained) for (key, window), contained in contents(rule, rows).items()]
        for rows in (before, [*before, *more])
    ]

    def by_production() -> list[Shown]:
        every = [*before, *more]
        if any(count < 0 for count in consolidated(every).values()):
            raise LawOnly("production refuses rows that are there fewer times than none")
        learned = [[_as_stored(row)._replace(learned=at) for row in some] for at, some in enumerate((before, more))]
        computed = refreshed(declared(rule, early=True), *learned)
        return [[_named(rule, one, every) for one in state] for state in computed]

    return answered(by_law, by_production, alike=lambda states: [*map(unordered, states)])


def windows_of_instants(rule: Rule, instants: Sequence[int]) -> list[list[Window]]:
    """The windows of an aligned kind that each instant is in."""
    assert isinstance(rule.kind, AlignedKind), "windows of instants are asked of a kind that has none"
    by_law = [[*rule.windows_at(rule.kind, at)] for at in instants]
    rows = [Happened(str(number), 1, at, 0, 1, number) for number, at in enumerate(instants)]

    def by_production() -> list[list[Window]]:
        computed = windows(declared(_as_declared(rule, rows)), rows, 1)
        found = [[Window(one.start, one.end) for one in computed if one.key == row.key] for row in rows]
        return [sorted(some, reverse=law != sorted(law)) for some, law in zip(found, by_law, strict=True)]

    return answered(by_law, by_production)


def late_records(rule: Rule, rows: Sequence[Happened]) -> list[int]:
    """The records that came too late for all windows."""
    by_law = sorted(one.row.batch for one in judge(rule, rows) if one.late_for_all)

    def by_production() -> list[int]:
        one = declared(_as_declared(rule, rows))
        if not is_for_a_while(one) or not isinstance(rule.kind, Session):
            raise LawOnly("production counts late rows of aligned and sliding windows, and does not name them")
        if _is_by_order(rule, rows):
            raise LawOnly(ORDER)
        return [*late_for_sessions(one, tuple(map(_as_stored, rows)))]

    return answered(by_law, by_production, note=False)


def answered(
    by_law: Answer,
    by_production_: Callable[[], Answer],
    *,
    alike: Callable[[Answer], object] = lambda answer: answer,
    note: bool = True,
) -> Answer:
    """What production answers, or, where it cannot, the law. Raises where they answer what is not `alike`."""
    try:
        found = by_production_()
    except LawOnly as why:
        if note:
            by_the_law(str(why))
        return by_law
    by_production()
    assert alike(found) == alike(by_law), f"production has {found}, the law {by_law}"
    return found


def unordered(rows: Sequence[Any]) -> Counter[str]:
    """Rows in whatever order."""
    return Counter(map(str, rows))


def _texts(rows: Iterable[Happened]) -> dict[str, Any]:
    """Keys and values by their texts, as which the input contains them."""
    found: dict[str, Any] = {}
    for value in (value for row in rows for value in (row.key, row.value) if value is not None):
        if type(found.setdefault(str(value), value)) is not type(value):
            raise LawOnly(f"{value} is a text and a number")
    return found


def _as_stored(row: Happened) -> Happened:
    return row if row.key is None else row._replace(key=str(row.key))


def _computed(one: Derived, rows: Sequence[Happened], close: int) -> Sequence[ComputedWindow]:
    rows = [*map(_as_stored, rows)]
    if is_for_a_while(one):
        return windows_for_a_while(one, tuple(rows))
    # A row that came before all frontiers came at 0, of which nothing is judged.
    came = [max(row.learned, 0) if counts_when_rows_came(one) else 0 for row in rows]
    return windows(one, [row._replace(learned=time) for row, time in zip(rows, came, strict=True)], close)


def _as_declared(rule: Rule, rows: Sequence[Happened]) -> Rule:
    """The rule without what makes no difference to these rows: that windows do not start below 0, where none would; and
    that late rows revive closed sessions, where none does."""
    if rule.clamp_start_at_zero and not isinstance(rule.kind, Sliding):
        plain = replace(rule, clamp_start_at_zero=False)
        rule = plain if contents(plain, rows) == contents(rule, rows) else rule
    if rule.revival is not Revival.FROZEN_IS_FINAL:
        final = replace(rule, revival=Revival.FROZEN_IS_FINAL)
        rule = final if contents(final, rows) == contents(rule, rows) else rule
    return rule


def _named(rule: Rule, one: ComputedWindow, rows: Iterable[Happened]) -> dict[str, Any]:
    """A window by the vectors' names. Values are as they came, and are added up where they are numbers."""
    came = _texts(rows)
    values = sorted((came[text] for text in json.loads(one.aggregates[4])), key=str)
    count, total, first, last, _ = one.aggregates
    aggregates = (count, total if numbers(values) else None, first, last, values)
    return named(rule.kind, came[one.key], Window(one.start, one.end), aggregates)
