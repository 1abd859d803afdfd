"""Which dead letters a replay has to read, given what was replayed before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement
from tidemark.model.interval import Interval
from tidemark.model.ledger import LedgerEntry, late_identity
from tidemark.plan.tasks import DeadLetters


@dataclass(frozen=True)
class ReplayRequest:
    """Apply these late objects' dead letters at the seal; `interval` is the hull of those they came with.

    Event times below `since` are no longer allowed: their history was merged, or its facts are forgotten.
    """

    sources: tuple[DeadLetters, ...]
    interval: Interval
    seal: int
    since: int


def plan_replay(state: Arrangement, entries: Iterable[LedgerEntry]) -> ReplayRequest | None:
    """The dead letters of `entries` (files counted, or replays that left some) whose late objects no replay has taken;
    None if there are none."""
    sources = tuple(
        DeadLetters(late_identity(entry.late), entry.path, entry.interval, entry.late)
        for entry in entries
        if entry.late is not None and entry.rows_late_discarded
    )
    if not sources:
        return None
    lower, upper = min(s.interval.lower for s in sources), max(s.interval.upper for s in sources)
    since = state.merged_below
    return ReplayRequest(sources, Interval(lower, upper), state.seal, since)
