"""Sessions of one stretch of time that freeze while rows of it still come: gone through in the order in which rows were
learned, as the law does (model/window/frozen_sessions.py).

What is done at a step follows from the rows that come and from the sessions near them: which instants have rows that
are not frozen is one array, the open sessions are another two, of their first and their last instant. Sessions do not
overlap, so the later one ends later: those that freeze are the first ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tidemark.arrow.kernels.windows.gaps import Gaps, cut
from tidemark.arrow.rows.columns import Bools, Ints


@dataclass(frozen=True)
class Rows:
    """Updates in order of their instant, as numbers. `instants` are the different ones, and `instant` says which of
    these each update is at. Updates of one `row` have equal rows at one instant; `at` says at which, ascending."""

    instants: Ints
    instant: Ints
    row: Ints
    at: Ints
    diff: Ints


@dataclass
class Judged:
    """What became of updates: the bounds of the session that each counts in, where `placed`, as often as `diff`; how
    many rows of it were `late`."""

    start: Ints
    end: Ints
    placed: Bools
    diff: Ints
    late: Ints

    @classmethod
    def of(cls, diff: Ints) -> Judged:
        """Of updates that are in no session yet."""
        none = np.zeros(len(diff), np.int64)
        return cls(none, none.copy(), np.zeros(len(diff), bool), diff.copy(), none.copy())


def reach(gaps: Gaps) -> int:
    """The greatest distance between neighbours in one session."""
    return gaps.gap - (0 if gaps.exact_gap_merges else 1)


def spans(instants: Ints, live: Ints, gaps: Gaps, forced: Bools | None = None) -> tuple[Ints, Ints]:
    """The first and the last of each session of instants, which are given by their places `live`; `forced` says of each
    but the first whether it begins a session whatever the gap is."""
    times = instants[live]
    begins = np.ones(len(live), bool)
    begins[1:] = np.diff(times) > reach(gaps)
    if forced is not None:
        begins[1:] |= forced
    if gaps.max_length is not None and len(live):
        cut(times, times, begins, gaps.max_length)
    first = np.flatnonzero(begins)
    return live[first], live[np.append(first[1:], len(live)) - 1] if len(live) else live


def ends(instants: Ints, first: Ints, last: Ints, gaps: Gaps) -> Ints:
    """Where sessions end."""
    end = instants[last] + gaps.gap
    return end if gaps.max_length is None else np.minimum(end, instants[first] + gaps.max_length)


def gone_through(rows: Rows, gaps: Gaps, step: Ints, frozen_upto: Ints) -> Judged:
    """What became of the updates of one stretch. Those of a `step` are looked at together, and find sessions frozen
    that end at `frozen_upto` of it or before."""
    return _Course(rows, gaps).run(step, frozen_upto)


@dataclass
class _Course:
    """`there`: how many different rows are open at each instant. `counts`: how often each row is in an open session;
    `gone`: in a frozen one, or late. `first` and `last`: places of the open sessions' instants. `open`: the updates
    that are in these, or would be where they are more than cancelled."""

    rows: Rows
    gaps: Gaps
    there: Ints = field(init=False)
    counts: Ints = field(init=False)
    gone: Ints = field(init=False)
    first: Ints = field(init=False)
    last: Ints = field(init=False)
    open: Bools = field(init=False)
    judged: Judged = field(init=False)

    def __post_init__(self) -> None:
        self.there = np.zeros(len(self.rows.instants), np.int64)
        self.counts, self.gone = (np.zeros(len(self.rows.at), np.int64) for _ in range(2))
        self.first, self.last = (np.zeros(0, np.int64) for _ in range(2))
        self.open = np.zeros(len(self.rows.diff), bool)
        self.judged = Judged.of(self.rows.diff)

    def run(self, step: Ints, frozen_upto: Ints) -> Judged:
        order = np.lexsort((self.rows.row, step))
        steps = step[order]
        bounds = np.append(np.flatnonzero(np.diff(steps, prepend=steps[0] - 1)), len(order))
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            frozen = int(frozen_upto[steps[low]])
            self._freeze(int(np.searchsorted(self._ends(), frozen, "right")))
            self._arrive(order[low:high], frozen)
        self._freeze(len(self.first))
        return self.judged

    def _ends(self) -> Ints:
        return ends(self.rows.instants, self.first, self.last, self.gaps)

    def _freeze(self, many: int) -> None:
        """Freeze the first `many` open sessions: they no longer change."""
        end = self._ends()[:many]
        for at in range(many):
            first, last = int(self.first[at]), int(self.last[at])
            some = self._updates(first, last)
            inside = np.flatnonzero(self.open[some]) + some.start
            self.judged.start[inside], self.judged.end[inside] = self.rows.instants[first], end[at]
            self.judged.placed[inside], self.open[inside] = True, False
            self._leave(first, last)
        self.first, self.last = self.first[many:], self.last[many:]

    def _updates(self, first: int, last: int) -> slice:
        """The updates at the instants from one place to another."""
        return slice(*np.searchsorted(self.rows.instant, [first, last + 1]).tolist())

    def _leave(self, first: int, last: int) -> None:
        """The rows at these instants are no longer open."""
        some = slice(*np.searchsorted(self.rows.at, [first, last + 1]).tolist())
        self.gone[some] += self.counts[some]
        self.counts[some] = 0
        self.there[first : last + 1] = 0

    def _arrive(self, updates: Ints, frozen: int) -> None:
        """Updates of one step come, in order of their rows."""
        of = self.rows.row[updates]
        runs = np.flatnonzero(np.diff(of, prepend=-1))
        row, net = of[runs], np.add.reduceat(self.rows.diff[updates], runs)
        net += self._stay(updates, np.append(runs, len(updates)), row, net)
        now = self.counts[row] + net
        grown = (now != 0).astype(np.int64) - (self.counts[row] != 0)
        self.counts[row] = now
        at = self.rows.at[row]
        places = np.flatnonzero(np.diff(at, prepend=-1))
        at, before = at[places], self.there[at[places]]
        after = before + np.add.reduceat(grown, places)
        self.there[at] = after
        self.open[updates] = True
        opened, closed = at[(before == 0) & (after > 0)], at[(before > 0) & (after == 0)]
        self._update_bounds(opened, closed)
        self._refuse(updates, opened, closed, frozen)

    def _stay(self, updates: Ints, bounds: Ints, row: Ints, net: Ints) -> Ints:
        """Of each row how many are not retracted, as a frozen session holds them, or they were late."""
        back = np.maximum(0, np.minimum(-(self.counts[row] + net), self.gone[row]))
        for at in np.flatnonzero(back).tolist():
            left = int(back[at])
            for one in updates[bounds[at] : bounds[at + 1]].tolist():
                taken = max(0, min(left, -int(self.judged.diff[one])))
                self.judged.diff[one] += taken
                self.judged.late[one] += taken
                left -= taken
        self.gone[row] -= back
        return np.asarray(back)

    def _refuse(self, updates: Ints, opened: Ints, closed: Ints, frozen: int) -> None:
        """What came is late where it makes a session by itself that is frozen."""
        late = []
        for place in range(int(np.searchsorted(self._ends(), frozen, "right"))):
            first, last = int(self.first[place]), int(self.last[place])
            new, gone = (np.diff(np.searchsorted(some, [first, last + 1]))[0] for some in (opened, closed))
            if np.count_nonzero(self.there[first : last + 1]) - new + gone:
                continue  # rows were there before
            late.append(place)
            some = updates[slice(*np.searchsorted(self.rows.instant[updates], [first, last + 1]).tolist())]
            self.judged.late[some] += np.abs(self.judged.diff[some])
            self.judged.diff[some] = 0
            self.open[some] = False
            self._leave(first, last)
        if late:
            self.first, self.last = np.delete(self.first, late), np.delete(self.last, late)

    def _update_bounds(self, opened: Ints, closed: Ints) -> None:
        """Update the bounds of the open sessions: some instants have rows now, and others no longer have any."""
        if self.gaps.max_length is not None:
            self._cut_again(np.concatenate([opened, closed]))
            return
        if len(opened):
            self._join(opened)
        for place in closed.tolist():
            self._part(place)

    def _join(self, opened: Ints) -> None:
        near = reach(self.gaps)
        breaks = np.flatnonzero(np.diff(self.rows.instants[opened]) > near)
        first = np.concatenate([self.first, opened[:1], opened[breaks + 1]])
        last = np.concatenate([self.last, opened[breaks], opened[-1:]])
        order = np.argsort(first, kind="stable")
        first, last = first[order], np.maximum.accumulate(last[order])
        begins = np.ones(len(first), bool)
        begins[1:] = self.rows.instants[first[1:]] - self.rows.instants[last[:-1]] > near
        self.first, self.last = first[begins], last[np.append(begins[1:], True)]

    def _part(self, place: int) -> None:
        """An instant within a session has no rows any more."""
        at = int(np.searchsorted(self.first, place, "right")) - 1
        if at < 0 or self.last[at] < place:
            return  # one beside it had none either
        first, last = int(self.first[at]), int(self.last[at])
        before, after = self._before(place, first), self._after(place, last)
        if after is None:
            if before is None:
                self.first, self.last = np.delete(self.first, at), np.delete(self.last, at)
            else:
                self.last[at] = before
        elif before is None:
            self.first[at] = after
        elif self.rows.instants[after] - self.rows.instants[before] > reach(self.gaps):
            self.first, self.last = np.insert(self.first, at + 1, after), np.insert(self.last, at, before)

    def _before(self, place: int, first: int) -> int | None:
        """The last instant before a place that has rows, from `first` on; looked for further back each time."""
        high, width = place, 8
        while high > first:
            low = max(first, high - width)
            if len(found := np.flatnonzero(self.there[low:high])):
                return low + int(found[-1])
            high, width = low, 2 * width
        return None

    def _after(self, place: int, last: int) -> int | None:
        low, width = place + 1, 8
        while low <= last:
            high = min(last + 1, low + width)
            if len(found := np.flatnonzero(self.there[low:high])):
                return low + int(found[0])
            low, width = high, 2 * width
        return None

    def _cut_again(self, changed: Ints) -> None:
        """A session that is cut says where the next begins: those before the first that changed stay."""
        if not len(changed):
            return
        place = int(changed.min())
        at = max(0, int(np.searchsorted(self.first, place, "right")) - 1)
        low = min([place, *self.first[at : at + 1].tolist()])
        high = max([int(changed.max()), *self.last[-1:].tolist()])
        live = low + np.flatnonzero(self.there[low : high + 1])
        first, last = spans(self.rows.instants, live, self.gaps)
        self.first, self.last = np.concatenate([self.first[:at], first]), np.concatenate([self.last[:at], last])
