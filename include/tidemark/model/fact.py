"""Facts of keyed envelopes, and the law that turns them into updates.

A keyed source says *what a key's value became, and when it happened*. The history a key should have is its facts in
order (event time, then source order); the collection as known at T, as of E, holds the value of the last fact with
time <= T and event_time <= E, or nothing if that fact is a tombstone.

A source that is corrected takes facts back: a fact has a `diff`, +1 or -1, and what was said as known at T is the sum
of those with time <= T. What is written is the derivative of that set: history now minus history before.

Inserting one fact `f` between its neighbours `p` and `n` of that order changes the history on `[f.event_time,
n.event_time)` only, from p's value to f's. So it costs at most four updates, all learned at `f.time`:

    -p @ f.event_time   +f @ f.event_time   +p @ n.event_time   -f @ n.event_time

Taking it back is the same with every sign turned, so that what it hid applies again. Sums telescope: any arrival
order of the same facts gives the same history, and facts learned at one time may come in any order among themselves.

An example: a key became `a` at 10 and `c` at 30, which was learned at 1 and 2. At 5 it is learned that it was `b` from
20 on: of the collection as known from 5 on, `b` takes the place of `a` between 20 and 30.

    >>> a, b, c = (Fact(("k",), (v,), t, e, (0,)) for v, t, e in (("a", 1, 10), ("b", 5, 20), ("c", 2, 30)))
    >>> for update in resolve(None, known=[a, c], new=[b]):
    ...     print(f"{update.diff:+} {update.value[0]}  learned {update.time}  happened {update.event_time}")
    -1 a  learned 5  happened 20
    +1 a  learned 5  happened 30
    +1 b  learned 5  happened 20
    -1 b  learned 5  happened 30

(The +a at 30 makes up for the -a that `c` brought there: until now it was `a` that `c` replaced.)

Another became A at 1, B at 3 (file 2 says so) and B at 5 (file 3). At 10 file 2 is withdrawn:

    >>> def says(value, at, learned, diff=+1):
    ...     return Fact(("k",), (value,), learned, at, (), diff)
    >>> known = [says("A", 1, 1), says("B", 3, 3), says("B", 5, 5)]
    >>> for u in resolve(None, known, [says("B", 3, 10, -1)]):
    ...     print(u.time, u.event_time, *u.value, f"{u.diff:+d}")
    10 3 A +1
    10 5 A -1
    10 3 B -1
    10 5 B +1

So event 4 is A now, and event 5 is B, of which file 3 had written nothing: the key was B already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from tidemark.errors import Corruption
from tidemark.model.update import Row, Update, consolidate


@dataclass(frozen=True)
class Fact:
    """What a source said of one key or, with a `diff` of -1, no longer says. `value` None is a tombstone. `order`
    breaks ties of `event_time`; it is total."""

    key: Row
    value: Row | None
    time: int
    event_time: int
    order: tuple[object, ...]
    diff: int = 1

    @property
    def place(self) -> tuple[int, tuple[object, ...]]:
        """Where the fact is in its key's history."""
        return self.event_time, self.order


def resolve(base: Row | None, known: Iterable[Fact], new: Iterable[Fact]) -> list[Update]:
    """The consolidated updates by which `new` facts of one key change its history.

    `base` is the value before the oldest fact given (None: there was none); `known` are the facts already resolved.
    Raises Corruption if a fact is retracted that was not said.
    """
    history = sorted(summed(known), key=lambda fact: fact.place)
    places = [fact.place for fact in history]
    if unsaid := [fact for fact in history if fact.diff < 0]:
        raise _unsaid(unsaid[0])
    updates: list[Update] = []
    for _, learned in groupby(sorted(new, key=lambda fact: fact.time), key=lambda fact: fact.time):
        # What leaves a place leaves it before another fact takes it.
        for fact in sorted(summed(learned), key=lambda fact: (fact.diff, fact.place)):
            if fact.diff < 0:
                at = _place_of(fact, history, places)
                del history[at], places[at]
            else:
                at = bisect_left(places, fact.place)
            before = history[at - 1].value if at else base
            updates += _change(fact, before, fact.event_time, fact.value)
            if at < len(history):
                updates += _change(fact, fact.value, history[at].event_time, before)
            if fact.diff > 0:
                history.insert(at, fact)
                places.insert(at, fact.place)
    return consolidate(updates)


def summed(facts: Iterable[Fact]) -> list[Fact]:
    """The sum of facts: those that are said and not retracted, and those that are retracted and were not said among
    them. Of equal ones the first is given, with a diff of +1 or -1."""
    sums: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], Fact] = {}
    for fact in facts:
        said = (fact.key, fact.place, fact.value)
        first.setdefault(said, fact)
        sums[said] = sums.get(said, 0) + fact.diff
    return [replace(first[said], diff=1 if diff > 0 else -1) for said, diff in sums.items() for _ in range(abs(diff))]


def _place_of(fact: Fact, history: list[Fact], places: list[tuple[int, tuple[object, ...]]]) -> int:
    at = bisect_left(places, fact.place)
    while at < len(places) and places[at] == fact.place:
        if history[at].value == fact.value:
            return at
        at += 1
    raise _unsaid(fact)


def _unsaid(fact: Fact) -> Corruption:
    return Corruption(f"a fact of key {fact.key} that happened at {fact.event_time} is retracted, but was never said")


def _change(fact: Fact, before: Row | None, event_time: int, after: Row | None) -> list[Update]:
    minus = [] if before is None else [Update(fact.key, before, fact.time, event_time, -fact.diff)]
    plus = [] if after is None else [Update(fact.key, after, fact.time, event_time, +fact.diff)]
    return minus + plus
