"""What a collection must answer, by brute force over a plain list. It shares no code with the library, on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """A source row: `time` and `event_time` as the source says, and after acceptance as they were judged."""

    key: object
    value: object  # None: the key was deleted
    time: int
    event_time: int
    order: tuple
    diff: int = 1


class Oracle:
    """The rows accepted, and the two frontiers.

    A row from below `complete` is late, or from before its interval's turn; whatever is learned now is learned at
    `seal` or later, which is never less, and not before that turn.
    Late rows from below `since`, or below what the collection has `forgotten_below`, do not count. Where they apply at
    all, `reach` is how far below `complete` (None: however far). Where late rows `move` they happen at the seal, all of
    them. Without `two_times` the source tells one time only, which a row loses that is learned later.
    """

    def __init__(self, *, keyed: bool, two_times: bool) -> None:
        self.keyed, self.two_times = keyed, two_times
        self.complete = self.seal = self.since = self.forgotten_below = 0
        self.rungs: tuple[tuple[int, int], ...] = ()
        self.rows: list[Row] = []

    def allow(self, policy: str, reach: int | None) -> None:
        self.applies_late, self.moves, self.reach = policy == "reemit", policy == "next_window", reach

    def judge(self, rows: list[Row], turn: int) -> list[Row]:
        """The rows of an interval that count, each with the time the collection learned it. `turn` is up to where the
        collection is complete when the interval is read in its turn."""
        complete, seal = max(self.complete, turn), max(self.seal, turn)
        late = [r for r in rows if r.event_time < complete and self.applies_late]
        kept = [r for r in late if self.reach is None or complete - r.event_time <= self.reach]
        on_time = [r for r in rows if r.event_time >= complete]
        judged = [r._replace(time=seal) for r in kept if r.event_time >= max(self.since, self.forgotten_below)]
        if self.moves:
            judged = [r._replace(time=seal, event_time=seal) for r in rows if r.event_time < complete]
        judged += [r._replace(time=max(r.time, seal)) for r in on_time]
        return judged if self.two_times else [r._replace(event_time=r.time) for r in judged]

    def kept(self) -> list[int]:
        """The times that can be read, of what is known for good."""
        return [time for time in range(self.seal) if self.keeps(time)]

    def keeps(self, time: int) -> bool:
        """Whether a time can be distinguished from its neighbours: from `since` on each, below it the last of every
        interval, from the rung's lower bound on (newest rung first)."""
        return self._keeps(time, self.since, self.rungs)

    def forward(self, time: int) -> int:
        """The next time that is kept: where history was merged, it happened then."""
        return self.forwarding(self.since, self.rungs)(time)

    @classmethod
    def forwarding(cls, since: int, rungs: tuple[tuple[int, int], ...]) -> Callable[[int], int]:
        def forward(time: int) -> int:
            while not cls._keeps(time, since, rungs):
                time += 1
            return time

        return forward

    @staticmethod
    def _keeps(time: int, since: int, rungs: tuple[tuple[int, int], ...]) -> bool:
        every = [interval for lower, interval in rungs if time >= lower]
        return time >= since or bool(every and (time + 1) % every[0] == 0)

    def as_of(self, time: int, event_time: int) -> Counter:
        """Multiplicity of each (key, value) as known at a time, as of an event time."""
        return self._rows_at(self.rows, time, event_time)

    def _rows_at(self, rows: list[Row], time: int, event_time: int) -> Counter:
        known = [r for r in rows if r.time <= time and r.event_time <= event_time]
        if self.keyed:
            last = {r.key: r for r in sorted(known, key=lambda r: (r.event_time, r.order))}
            known = [r for r in last.values() if r.value is not None]
        found: Counter = Counter()
        for r in known:
            found[r.key, r.value] += r.diff
        return Counter({at: n for at, n in found.items() if n})

    def changes(self, after: int, upto: int) -> Counter:
        """Diff of each (key, value, time, event_time) learned in (after, upto]: what changes from grid to grid."""
        found: Counter = Counter()
        for key in {r.key for r in self.rows}:
            rows = [r for r in self.rows if r.key == key]
            times = sorted({self.forward(r.time) for r in rows if after < r.time <= upto})
            events = sorted({self.forward(r.event_time) for r in rows})
            for t, t0 in zip(times, [after, *times], strict=False):
                for e, e0 in zip(events, [-1, *events], strict=False):
                    for at, sign in (((t, e), 1), ((t0, e), -1), ((t, e0), -1), ((t0, e0), 1)):
                        for row, n in self._rows_at(rows, *at).items():
                            found[(*row, t, e)] += sign * n
        return Counter({at: n for at, n in found.items() if n})
