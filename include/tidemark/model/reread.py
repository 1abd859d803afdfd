"""Corrections: what a source file says now, less what it has contributed.

**Updates** (additive envelopes).

A file was read at some time and contributed updates; it is read again at the seal S, judged as it was the first time.
Knowledge before S stays as it was; from S on the collection is to hold what the file says now. So both sides are taken
as of S, each row at the later of S and its own time, and what differs is written:

    forwarded(now) - forwarded(contributed)

A row that is due is retracted at S. One that is ahead is retracted at its own time: retracted at S it would
have the multiplicity -1 until then. Nothing changed: nothing is written. What is written joins what the file has
contributed, so a correction of a correction is no other thing.

The file said x at 5 and y at 15, and at S = 10 says x twice and no y:

    >>> def says(word, time, diff=+1):
    ...     return Update((word,), (), time, time, diff)
    >>> contributed, now = [says("x", 5), says("y", 15)], [says("x", 5), says("x", 5)]
    >>> for u in corrected(contributed, now, seal=10):
    ...     print(*u.key, u.time, u.event_time, f"{u.diff:+d}")
    x 10 5 +1
    y 15 15 -1

**Facts** (keyed envelopes) are compared in the same way, but a fact's place ends with the number of its row, and a line
more at the top of a file would move all others. The number only decides between facts of one time that are equal in the
rest of their order; so where a file says the same of a key there, in the same sequence, nothing is written, and the
numbers it had stay. Where not, all it said there is retracted and said again. The drain writes the history of what is
said then (model/fact.py).

    >>> def became(value, at, row, diff=+1):
    ...     return Fact(("k",), (value,), 5, at, ("file", row), diff)
    >>> contributed = [became("a", 1, row=0), became("b", 2, row=1)]
    >>> now = [became("new", 0, row=0), became("a", 1, row=1), became("b", 2, row=2)]
    >>> for fact in restated(contributed, now, seal=10):
    ...     print(*fact.value, fact.time, fact.event_time, fact.order, f"{fact.diff:+d}")
    new 10 0 ('file', 0) +1
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from tidemark.model.fact import Fact, summed
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


def restated(contributed: Iterable[Fact], now: Iterable[Fact], *, seal: int) -> list[Fact]:
    """The facts, said and retracted, all learned at `seal` or later, by which one file's facts `now` differ from all
    that it `contributed`, its earlier corrections too. The last of a fact's `order` is the number of its row."""
    groups: dict[tuple[object, ...], tuple[list[Fact], list[Fact]]] = defaultdict(lambda: ([], []))
    for side, facts in enumerate((_said(contributed, seal), _learned(now, seal))):
        for fact in facts:
            groups[fact.key, fact.event_time, fact.order[:-1]][side].append(fact)
    found: list[Fact] = []
    for before, after in groups.values():
        sides = [sorted(side, key=lambda fact: fact.place) for side in (before, after)]
        contents = [[(fact.value, fact.time) for fact in side] for side in sides]
        if contents[0] != contents[1]:
            found += [replace(fact, diff=-1) for fact in sides[0]] + sides[1]
    return found


def _learned(facts: Iterable[Fact], seal: int) -> list[Fact]:
    """The facts as they count from the seal on."""
    return [replace(fact, time=max(fact.time, seal)) for fact in facts]


def _said(contributed: Iterable[Fact], seal: int) -> list[Fact]:
    """What is said from the seal on, by when it is: a row may have been due, and then only later."""
    by_time: dict[int, list[Fact]] = defaultdict(list)
    for fact in _learned(contributed, seal):
        by_time[fact.time].append(fact)
    return [fact for facts in by_time.values() for fact in summed(facts)]


def _as_of(update: Update, seal: int, function: CompactionFunction) -> Update:
    return update._replace(time=max(update.time, seal), event_time=function(update.event_time))
