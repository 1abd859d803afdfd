"""What the whole content of an interval is: some of the owner's expectations are about that (docs/decisions/0070)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import UnsealedBatch
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.gate import GateRequest


@dataclass(frozen=True)
class Whole:
    """The batches that have all rows of an interval, or why these are not judged."""

    batches: tuple[UnsealedBatch, ...] = ()
    why_not: str = ""


OPEN = Whole(why_not="not asked: the interval goes on, and is judged when it is over")
DIFFERS = Whole(why_not="not asked: these rows are what a correction or a replay changes")
DRAINED = Whole(why_not="not asked: other rows of the interval are drained")


def wholes(state: Arrangement, request: GateRequest, recent: Callable[[], Sequence[LedgerEntry]]) -> dict[str, Whole]:
    """The content of the interval of each batch, and of each interval without one, that is to be certified, by their
    ids. What a derived collection was corrected by belongs to no interval, and is judged by itself."""
    contents = {}
    for each in request.unjudged:
        if state.collection.is_derived and isinstance(each, UnsealedBatch):
            contents[each.id] = Whole((each,))
        elif isinstance(each, UnsealedBatch) and each.difference:
            contents[each.id] = DIFFERS
        elif not state.ingested.covers(each.interval):
            contents[each.id] = OPEN
        else:
            contents[each.id] = _content(state, each.interval, recent)
    return contents


def _content(state: Arrangement, interval: Interval, recent: Callable[[], Sequence[LedgerEntry]]) -> Whole:
    batches = tuple(batch for batch in state.unsealed if batch.interval == interval and not batch.difference)
    ids = {batch.id for batch in batches}
    others = (
        entry
        for entry in recent()
        if entry.interval == interval and entry.status is Status.INGESTED and entry.rows and entry.batch not in ids
    )
    # Corrections and replays beside it are judged as what they are.
    drained = any(entry.replay_of is None and not entry.is_corrected for entry in others)
    drained |= any(batch.trimmed for batch in batches) or any(batch.interval == interval for batch in state.ahead)
    return DRAINED if drained else Whole(batches)
