"""Full snapshots, and the law that turns them into updates.

A source of full snapshots reports *all its rows*: the files of one interval together are its whole content at the last
instant of that interval, t, a multiset of (key, value) rows, which holds until the next full snapshot says otherwise.
With n the multiplicity of a row in what was said to be there at t, and n' in what is said now, the updates are

    (t, n' - n)     and     (t', n - n')     at the time t' of the next full snapshot, if one was said

A full snapshot that comes in its turn is the last: n is what the one before it said, and nothing follows. An unchanged
one says nothing, an empty one that the source is empty. Where none came, nothing was said: the next one says what
changed since the last.

Those that come in their turn are learned, and true, at t. What is learned of a full snapshot *afterwards* is learned at
the seal S, and happened at t and t'. (Of one that is not due yet it is learned at t.) It is one of three things:

    announced   it comes afterwards: n is what the one before it said
    corrected   n' - n are the rows of the correction
    withdrawn   n' is what the one before it said: its interval says nothing any more

All of this is linear in the rows that are read. So a row of the trace, of a full snapshot or of a correction stands for
some updates whatever the other rows are, and consolidation does the rest (`derivative`, `StandsFor`). A row of full
snapshot i stands for +1 at t_i and -1 at t_{i+1}; nothing has to be paired up. An example: `a` is stored; the source
says `a` and `b` at 9, and `b` alone at 19.

    >>> a, b = (("a",), (), 1), (("b",), (), 1)
    >>> said = [(FullSnapshot("first", Interval(0, 10), 2), [a, b]), (FullSnapshot("second", Interval(10, 20), 1), [b])]
    >>> for update in changes([Update(("a",), (), 5, 5, 1)], Times(), said):
    ...     print(f"{update.diff:+} {update.key[0]} at {update.time}")
    -1 a at 19
    +1 b at 9

Of full snapshots at 9, 19 and 29 with 1, 1 and no x, the second is corrected to none at the seal 30:

    >>> second = FullSnapshot("batch", Interval(10, 20), 1, effect=Effect.CORRECTED, learned_at=30)
    >>> for u in changes([], Times.of([9, 19, 29]), [(second, [(("x",), (), -1)])]):
    ...     print(f"{u.diff:+} {u.key[0]}, learned at {u.time}, happened at {u.event_time}")
    -1 x, learned at 30, happened at 19
    +1 x, learned at 30, happened at 29

What the trace holds counts in `n` by when it happened: a full snapshot said what the trace adds up to until t, where no
other was announced between. An example: that of 19 is withdrawn. Rows of the trace that happened at 9 stay as they are;
one that happened at 19 moves to 29.

    >>> withdrawn = FullSnapshot("batch", Interval(10, 20), 0, effect=Effect.WITHDRAWN, learned_at=30)
    >>> found = derivative(Times.of([9, 19, 29]), [withdrawn])
    >>> for event_time in (9, 19, 29):
    ...     print(event_time, [(each.event_time, each.count) for each in found.of_trace_row(event_time)])
    9 []
    19 [(19, -1), (29, 1)]
    29 []
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import Interval
from tidemark.model.times import Times, around
from tidemark.model.update import Row, Update, consolidate


class Effect(StrEnum):
    """What is learned of a full snapshot."""

    ANNOUNCED = "told"
    """A full snapshot that was not known before; stored as `told` (docs/format.md)."""
    CORRECTED = "corrected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class FullSnapshot:
    """What an interval's files said the source holds, or say otherwise now, from its ingest to its drain.

    `batch` is the id of the ingest, by which commands and the ledger know it; there is an unsealed batch of that id if
    it has rows: those of the full snapshot, or by which it is corrected. While it is `quarantined` it does not count.
    What is learned afterwards says at which seal (`learned_at`). `net` is by how many rows it makes its content larger:
    all of its own, or those that a correction adds, less those it retracts (None: not recorded).
    """

    batch: str
    interval: Interval
    rows: int
    quarantined: bool = False
    effect: Effect = Effect.ANNOUNCED
    learned_at: int | None = None
    net: int | None = None

    @property
    def time(self) -> int:
        """When the full snapshot was true: the last instant of its interval."""
        return self.interval.upper - 1

    @property
    def known(self) -> int:
        """When it is learned: when it was true, or at the seal of then, if that is later."""
        return max(self.time, self.learned_at or 0)


def after(announced: Times, learned: Iterable[FullSnapshot]) -> Times:
    """The times of the full snapshots that count once those `learned` do, too, in order of when they are known."""
    for snapshot in learned:
        change = announced.remove if snapshot.effect is Effect.WITHDRAWN else announced.add
        announced = change(snapshot.time)
    return announced


@dataclass(frozen=True)
class StandsFor:
    """An update that a row stands for, `count` times the row's multiplicity."""

    time: int
    event_time: int
    count: int


@dataclass(frozen=True)
class Derivative:
    """What each row read stands for: `said[i]` the rows of full snapshot or correction i; `of_trace[n]` those of the
    trace that happened after the first n of `bounds`, and not after the next."""

    said: tuple[tuple[StandsFor, ...], ...]
    bounds: tuple[int, ...]
    of_trace: tuple[tuple[StandsFor, ...], ...]

    @property
    def reads_trace(self) -> bool:
        """Whether rows of the trace stand for anything."""
        return any(self.of_trace)

    def of_trace_row(self, event_time: int) -> tuple[StandsFor, ...]:
        """What a row of the trace stands for that happened then."""
        return self.of_trace[bisect_left(self.bounds, event_time)]


@dataclass(frozen=True)
class _TraceRows:
    """The rows of the trace that happened at `upto` or before, as a full snapshot that is in it said them."""

    upto: int


_Form = Counter[int | _TraceRows]
"""How often the rows of each source count: of the full snapshots by their number."""


def derivative(announced: Times, learned: Sequence[FullSnapshot]) -> Derivative:
    """What rows stand for where `announced` are the times of the full snapshots in the trace, and `learned` what comes
    now, in order of when it is known, and for one time in the order in which it came.

    Of a time that is to be corrected, withdrawn or announced afterwards all that were announced later must be among
    `announced`.
    """
    in_trace = list(announced)
    said: dict[int, _Form] = {}
    times = list(in_trace)
    by_source: dict[int | _TraceRows, Counter[tuple[int, int]]] = defaultdict(Counter)
    for number, snapshot in enumerate(learned):
        time = snapshot.time
        before, there, after = around(times, time)
        prior = _content(said, in_trace, before)
        was = _content(said, in_trace, time) if there else prior
        now = _said_now(snapshot.effect, number, was, prior)
        for source, count in _less(now, was).items():
            by_source[source][snapshot.known, time] += count
            if after is not None:
                by_source[source][snapshot.known, after] -= count
        if snapshot.effect is Effect.WITHDRAWN:
            said.pop(time, None)
            times.remove(time)
        else:
            said[time] = now
            if not there:
                insort(times, time)
    return _derived(by_source, len(learned))


def _said_now(effect: Effect, number: int, was: _Form, prior: _Form) -> _Form:
    if effect is Effect.ANNOUNCED:
        return Counter({number: 1})
    return prior if effect is Effect.WITHDRAWN else _Form({**was, number: 1})


def _content(said: Mapping[int, _Form], in_trace: Sequence[int], time: int | None) -> _Form:
    """What the full snapshot of a time says (None: what there was before all that are known). Of one in the trace it is
    what happened before the next one there."""
    if time is not None and time in said:
        return said[time]
    at = 0 if time is None else bisect_right(in_trace, time)
    return Counter({_TraceRows(in_trace[at] - 1 if at < len(in_trace) else MAX_TIME): 1})


def _less(now: _Form, was: _Form) -> dict[int | _TraceRows, int]:
    found = {source: now[source] - was[source] for source in [*now, *(each for each in was if each not in now)]}
    return {source: count for source, count in found.items() if count}


def _derived(by_source: Mapping[int | _TraceRows, Counter[tuple[int, int]]], count: int) -> Derivative:
    traces = {each: found for each, found in by_source.items() if isinstance(each, _TraceRows)}
    forms = {each.upto: found for each, found in traces.items() if any(found.values())}
    bounds = tuple(sorted(upto for upto in forms if upto != MAX_TIME))
    of_trace = []
    for bound in (*bounds, MAX_TIME):
        found: Counter[tuple[int, int]] = Counter()
        for upto, each in forms.items():
            if upto >= bound:
                found.update(each)
        of_trace.append(_stands_for(found))
    return Derivative(
        tuple(_stands_for(by_source.get(number, Counter())) for number in range(count)), bounds, tuple(of_trace)
    )


def _stands_for(found: Counter[tuple[int, int]]) -> tuple[StandsFor, ...]:
    return tuple(StandsFor(*at, count) for at, count in sorted(found.items()) if count)


def last_announced(learned: Sequence[FullSnapshot]) -> list[FullSnapshot]:
    """The full snapshot announced last, and its corrections known at once: together all there was then. Empty if
    none is announced, or it is withdrawn at once."""
    at = next((at for at in reversed(range(len(learned))) if learned[at].effect is Effect.ANNOUNCED), len(learned))
    found = [
        snapshot
        for snapshot in learned[at:]
        if (snapshot.known, snapshot.time) == (learned[at].known, learned[at].time)
    ]
    return [] if any(snapshot.effect is Effect.WITHDRAWN for snapshot in found) else found


Counted = tuple[Row, Row, int]
"""A row (key, value) and how often."""


def changes(
    trace: Iterable[Update], announced: Times, learned: Sequence[tuple[FullSnapshot, Iterable[Counted]]]
) -> list[Update]:
    """The law: the consolidated updates by which what is `learned`, in order and each with its rows, changes the
    `trace`, which holds the full snapshots of the times `announced`."""
    meant = derivative(announced, [snapshot for snapshot, _ in learned])
    read = [(meant.of_trace_row(u.event_time), u.key, u.value, u.diff) for u in trace]
    read += [(meant.said[n], *row) for n, (_, rows) in enumerate(learned) for row in rows]
    return consolidate(
        Update(key, value, each.time, each.event_time, each.count * count)
        for stands_for, key, value, count in read
        for each in stands_for
    )
