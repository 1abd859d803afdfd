"""What a collection learned within a span of time: each change once, also where history was merged meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidemark.api.pinned import Pinned
from tidemark.api.reads import Changes
from tidemark.errors import InvalidUsage
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.read import history_begins
from tidemark.storage.log.log import StateLog


def changes_within(pinned: Pinned, span: Interval, columns: Any = None, where: Any = None) -> Changes:
    """Ask for what was learned within a span, so that spans in a row give each change once.

    Where retention has merged some of it, it is read in the version that sealed the span. Where history begins inside
    the span, the rows as of then come as insertions, unless some of them may have been learned before the span.

    Raises:
        InvalidUsage: For a span that is not sealed; and where what was learned before the span is merged with it.
    """
    before = span.lower - 1
    version = pinned if _keeps(pinned, before) else sealed_in(pinned, span.upper)
    if _keeps(version, before):
        return Changes(version, None if before < 0 else before, span.upper - 1, columns=columns, where=where)
    begins = history_begins(version.state, span)
    sealed = pinned.state.seal >= span.upper
    if not sealed or (begins is not None and (before < 0 or _nothing_before(version, begins))):
        return Changes(version, None, span.upper - 1, columns=columns, where=where, merged=True)
    since = format_instant(version.state.since)
    raise InvalidUsage(
        f"what {pinned.name} learned within {span} cannot be given once any more: what was learned up to {since} is "
        f"merged; take its rows as of {since} or later in place of it, and let retention keep more"
    )


def rows_at(pinned: Pinned, time: int) -> Pinned:
    """The collection where its rows as of a time can be read: in the version that sealed it, if not in this one."""
    return pinned if pinned.state.function.keeps(time) else sealed_in(pinned, time + 1)


def sealed_in(pinned: Pinned, upper: int) -> Pinned:
    """The collection in the oldest kept version whose seal is at `upper` or above, in the columns of today; as it is,
    where none is."""
    if pinned.state.seal < upper:
        return pinned
    head = pinned.log.load(oldest_sealed(pinned.log, upper, pinned.version))
    return replace(pinned, head=replace(head, arrangement=replace(head.state, collection=pinned.state.collection)))


def oldest_sealed(log: StateLog, upper: int, last: int) -> int:
    """The oldest kept version whose seal is at `upper` or above; `last` has such a seal. Some 16 versions are read for
    each halving."""
    first = max(1, log.oldest_version())
    while first < last:
        middle = (first + last) // 2
        if log.load(middle).state.seal >= upper:
            last = middle
        else:
            first = middle + 1
    return last


def _keeps(pinned: Pinned, before: int) -> bool:
    """Whether the changes after a time can be read (-1: all that there are)."""
    return before >= pinned.state.since or (before < 0 and pinned.state.since == 0)


def _nothing_before(pinned: Pinned, begins: int) -> bool:
    """Whether nothing was readable before history begins: it began so when the collection was first sealed."""
    first = oldest_sealed(pinned.log, begins + 1, pinned.version)
    if first <= max(1, pinned.log.oldest_version()):
        return False
    return pinned.log.load(first - 1).state.seal == 0 and pinned.log.load(first).state.since == begins
