"""Sessions that do not change any more once they are frozen: what is learned is looked at in the order it was learned.

A row joins the sessions it touches that are not frozen when it is learned, however old it is; if it touches none, and
the session it would make is frozen already, it is late for it. Rows learned at once are looked at together.

A retraction takes its row from an open session, if one has it. Else the retraction is late, too, where the row is in a
frozen session, which keeps it, or was late itself: so no row of a session has a negative multiplicity, unless it has
one in the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from tidemark.model.window.happened import Happened, consolidated, instants
from tidemark.model.window.kinds import Session, Window
from tidemark.model.window.sessions import Span, session_of, spans

Frozen = Callable[[int, int], bool]
"""Whether a session of an end is frozen for what is learned at a time."""


class Revival(StrEnum):
    """Which sessions a row joins. `frozen_is_final`: those that are not frozen when it is learned. `own_is_judged`: of
    these too, but not if the session it would make by itself is frozen (as Spark has it). `all_merge`: frozen ones too,
    unless what comes of it is frozen (as Kafka has it)."""

    FROZEN_IS_FINAL = "frozen_is_final"
    OWN_IS_JUDGED = "own_is_judged"
    ALL_MERGE = "all_merge"


def rows_of_sessions(kind: Session, rows: Iterable[Happened]) -> dict[Window, list[Happened]]:
    """The sessions of one key's rows, each with the rows in it; a session is there if one of them is not cancelled."""
    ordered = [*rows]
    return {
        session_of(kind, span): [row for row in ordered if _within(row, span)]
        for span in spans(kind, instants(consolidated(ordered)))
    }


class Judgement(NamedTuple):
    """The sessions of one key, each with its rows; the rows that came too late for any, and those that did not."""

    sessions: dict[Window, list[Happened]]
    late: list[Happened]
    in_time: list[Happened]


def frozen_sessions(kind: Session, rows: Iterable[Happened], frozen: Frozen, revival: Revival) -> Judgement:
    """The sessions of one key, without the rows that came too late for any."""
    open_rows: list[Happened] = []
    late: list[Happened] = []
    in_time: list[Happened] = []
    final: list[tuple[Span, list[Happened]]] = []
    for (learned, _), together in groupby(sorted(rows, key=_order), key=_order):
        if revival is not Revival.ALL_MERGE:
            done = [span for span in _spans(kind, open_rows) if frozen(session_of(kind, span).end, learned)]
            final += [(span, [row for row in open_rows if _within(row, span)]) for span in done]
            open_rows = [row for row in open_rows if not any(_within(row, span) for span in done)]
        gone = [*late, *(row for _, in_span in final for row in in_span)]
        arriving, staying = _split_late_retractions(list(together), open_rows, gone)
        if revival is Revival.OWN_IS_JUDGED:
            counting = [row for row in arriving if not frozen(session_of(kind, (_at(row), _at(row))).end, learned)]
        else:
            counting = _on_time(kind, open_rows, arriving, lambda end: frozen(end, learned), revival)  # noqa: B023
        open_rows += counting
        in_time += counting
        late += [*staying, *(Counter(arriving) - Counter(counting)).elements()]
    found: dict[Window, list[Happened]] = {}
    last = [(span, [row for row in open_rows if _within(row, span)]) for span in _spans(kind, open_rows)]
    for span, in_span in [*final, *last]:
        found.setdefault(session_of(kind, span), []).extend(in_span)
    return Judgement(found, late, in_time)


def _on_time(
    kind: Session, open_rows: list[Happened], arriving: list[Happened], frozen: Callable[[int], bool], revival: Revival
) -> list[Happened]:
    """What of the rows that arrive is not late: a session that none of the open rows is in, or any where all merge,
    takes no rows if it is frozen. Without these rows sessions may have other bounds: so this is repeated until no
    row is left that is late."""
    there = instants(consolidated(open_rows)) if revival is not Revival.ALL_MERGE else set()
    while True:
        late = [
            span
            for span in _spans(kind, [*open_rows, *arriving])
            if frozen(session_of(kind, span).end) and not any(span[0] <= at <= span[1] for at in there)
        ]
        on_time = [row for row in arriving if not any(_within(row, span) for span in late)]
        if len(on_time) == len(arriving):
            return arriving
        arriving = on_time


def _split_late_retractions(
    arriving: list[Happened], open_rows: list[Happened], gone: list[Happened]
) -> tuple[list[Happened], list[Happened]]:
    """The rows that arrive without those that retract what no open session holds, but frozen ones do, or what was
    late; and these."""
    still_open, elsewhere, back = consolidated(open_rows), consolidated(gone), Counter[tuple[object, int]]()
    for of, diff in consolidated(arriving).items():
        back[of] = max(0, min(-still_open.get(of, 0) - diff, elsewhere.get(of, 0)))
    left, late_retractions = [], []
    for row in arriving:
        of = row.value, _at(row)
        many = max(0, min(-row.diff, back[of]))
        back[of] -= many
        if many:
            late_retractions.append(row._replace(diff=-many))
        if row.diff + many or not many:
            left.append(row._replace(diff=row.diff + many))
    return left, late_retractions


def _spans(kind: Session, rows: Iterable[Happened]) -> list[Span]:
    return spans(kind, instants(consolidated(rows)))


def _within(row: Happened, span: Span) -> bool:
    return span[0] <= _at(row) <= span[1]


def _order(row: Happened) -> tuple[int, int]:
    return row.learned, row.batch


def _at(row: Happened) -> int:
    assert row.at is not None, "rows that no window holds were left out"
    return row.at
