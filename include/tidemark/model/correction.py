"""Corrections: what a source file says now, less what it has contributed. The law of additive envelopes.

A file was read at some time and contributed updates; it is read again at the seal S, judged as it was the first time.
Knowledge before S stays as it was; from S on the collection is to hold what the file says now. So both sides are taken
as of S, each row at the later of S and its own time, and what differs is written:

    forwarded(now) - forwarded(contributed)

A row that is due is taken back at S. One that lies ahead is taken back at its own time: taken back at S it would be
held -1 times until then. Nothing changed: nothing is written. What is written joins what the file has contributed, so
a correction of a correction is no other thing.

The file said x at 5 and y at 15, and at S = 10 says x twice and no y:

    >>> def says(word, time, diff=+1):
    ...     return Update((word,), (), time, time, diff)
    >>> contributed, now = [says("x", 5), says("y", 15)], [says("x", 5), says("x", 5)]
    >>> for u in corrected(contributed, now, seal=10):
    ...     print(*u.key, u.time, u.event_time, f"{u.diff:+d}")
    x 10 5 +1
    y 15 15 -1
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemark.model.frontier import IDENTITY, CompactionFunction
from tidemark.model.update import Update, consolidate


def corrected(
    contributed: Iterable[Update], now: Iterable[Update], *, seal: int, function: CompactionFunction = IDENTITY
) -> list[Update]:
    """The consolidated updates, all learned at `seal` or later, by which one file's rows `now` differ from all that it
    `contributed`, its earlier corrections too.

    Event times are forwarded by the collection's compaction `function`: history that was merged is corrected where it
    was merged to, not refused.
    """
    after = (_as_of(update, seal, function) for update in now)
    before = (_as_of(update, seal, function) for update in contributed)
    return consolidate([*after, *(update._replace(diff=-update.diff) for update in before)])


def _as_of(update: Update, seal: int, function: CompactionFunction) -> Update:
    return update._replace(time=max(update.time, seal), event_time=function(update.event_time))
