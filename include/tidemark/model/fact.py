"""Facts of keyed envelopes, and the law that turns them into updates.

A keyed source says *what a key's value became, and when it happened*. The history a key should have is its facts in
order (event time, then source order); the collection as known at T, as of E, holds the value of the last fact with
time <= T and event_time <= E, or nothing if that fact is a tombstone.

Inserting one fact `f` between its neighbours `p` and `n` of that order changes the history on `[f.event_time,
n.event_time)` only, from p's value to f's. So it costs at most four updates, all learned at `f.time`:

    -p @ f.event_time   +f @ f.event_time   +p @ n.event_time   -f @ n.event_time

Sums telescope: any arrival order of the same facts gives the same history, and facts learned at one time may be
inserted in any order among themselves.

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
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from tidemark.model.update import Row, Update, consolidate


@dataclass(frozen=True)
class Fact:
    """What a source said of one key. `value` None is a tombstone. `order` breaks ties of `event_time`; it is total."""

    key: Row
    value: Row | None
    time: int
    event_time: int
    order: tuple[object, ...]

    @property
    def place(self) -> tuple[int, tuple[object, ...]]:
        """Where the fact stands in its key's history."""
        return self.event_time, self.order


def resolve(base: Row | None, known: Iterable[Fact], new: Iterable[Fact]) -> list[Update]:
    """The consolidated updates by which `new` facts of one key change its history.

    `base` is the value held before the oldest fact given (None: nothing held); `known` are the facts already resolved.
    """
    history = sorted(known, key=lambda fact: fact.place)
    places = [fact.place for fact in history]
    updates: list[Update] = []
    for fact in sorted(new, key=lambda fact: (fact.time, fact.place)):
        at = bisect_left(places, fact.place)
        before = history[at - 1].value if at else base
        updates += _change(fact, before, fact.event_time, fact.value)
        if at < len(history):
            updates += _change(fact, fact.value, history[at].event_time, before)
        history.insert(at, fact)
        places.insert(at, fact.place)
    return consolidate(updates)


def _change(fact: Fact, before: Row | None, event_time: int, after: Row | None) -> list[Update]:
    minus = [] if before is None else [Update(fact.key, before, fact.time, event_time, -1)]
    plus = [] if after is None else [Update(fact.key, after, fact.time, event_time, +1)]
    return minus + plus
