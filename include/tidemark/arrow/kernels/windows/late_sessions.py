"""Which session each update of rows counts in, where late rows count for a while only (model/window/frozen_sessions.py
is the law).

Updates come in order of group and instant. Where all updates of a group leave a gap, whenever they were learned, no
session is on both sides of it, whatever came late: so each *stretch* between such gaps is judged by itself, and only
one is in memory, besides a batch. Most stretches are looked at only once: where all of a stretch was learned at
once, or nothing in it can be frozen before all of it is known, the bounds of its sessions follow from its rows alone.
Only where sessions freeze while rows still come are these gone through step by step (freezing.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.windows.freezing import Judged, Rows, ends, gone_through, reach, spans
from tidemark.arrow.kernels.windows.gaps import FAR, Gaps, check_near
from tidemark.arrow.rows.columns import Bools, Ints, integers
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.order import ranks, starts
from tidemark.errors import InvalidUsage

AT, TIME, DIFF = "_at", "_time", "_diff"
"""The columns of updates that say at which instant a row happened, when it was learned, and how often it is there."""
START, END, LATE = "_start", "_end", "_late"
"""The columns that say for each update the bounds of the session it counts in (null: in none), and how many rows of it
came late for all sessions. DIFF is what is left of its own."""
STRETCH, LAST = "_stretch", "_last"
"""The columns that have the first and the last instant of its stretch."""
_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True)
class Lasting:
    """Sessions that a row may join for a while: one that ends at e takes no row that was learned at e + `after` or
    later. A row counts as learned at the last of `ends` that is not after its time; before all of them where none is.
    Updates have equal rows if they are equal in the columns `same`. With `changed_from` only stretches are given in
    which something was learned from then on. With `known_before` LATE says how many more rows were late than among the
    updates below that time alone."""

    gaps: Gaps
    after: int
    ends: tuple[int, ...]
    same: tuple[str, ...]
    changed_from: int | None = None
    known_before: int | None = None

    def __post_init__(self) -> None:
        if self.gaps.gap > FAR:
            raise InvalidUsage(
                f"sessions with a gap of {self.gaps.gap} µs; late rows are supported with a gap of up to 2^61"
            )

    @property
    def bounds(self) -> Gaps:
        """Where a length is too large to matter, it is none."""
        most = self.gaps.max_length
        return self.gaps if most is None or most < 3 * FAR else replace(self.gaps, max_length=None)


def judged_updates(
    batches: Iterable[pa.RecordBatch], rule: Lasting, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The updates, in some `columns`, AT, and what is known of each. Raises InvalidUsage for an instant beyond
    2^61."""
    waiting: list[pa.RecordBatch] = []
    begun: list[Bools] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        begins = _begins(waiting[-1] if waiting else None, batch, rule.gaps)
        whole = int(np.flatnonzero(begins)[-1]) if begins.any() else 0
        if whole or (begins[0] and waiting):
            yield from _given(
                [*waiting, batch.slice(0, whole)], np.concatenate([*begun, begins[:whole]]), rule, columns
            )
            waiting, begun = [], []
        waiting.append(batch.slice(whole))
        begun.append(begins[whole:])
    if waiting:
        yield from _given(waiting, np.concatenate(begun), rule, columns)


def _begins(before: pa.RecordBatch | None, batch: pa.RecordBatch, gaps: Gaps) -> Bools:
    """Where stretches begin, of a batch that follows on another."""
    names = [*gaps.group, AT]
    rows = batch.select(names)
    if before is not None:
        rows = joined([before.slice(before.num_rows - 1).select(names), rows])
    at = integers(rows, AT)
    check_near(at)
    begins = starts(rows, gaps.group)
    begins[0] = True
    begins[1:] |= np.diff(at) > reach(gaps)
    return begins if before is None else begins[1:]


def _given(
    batches: Sequence[pa.RecordBatch], begins: Bools, rule: Lasting, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The updates of whole stretches, judged."""
    batches = [batch for batch in batches if batch.num_rows]
    at, time, diff = (np.concatenate([integers(batch, name) for batch in batches]) for name in (AT, TIME, DIFF))
    first = np.flatnonzero(begins)
    lengths = np.diff(np.append(first, len(at)))
    included = np.ones(len(at), bool)
    if rule.changed_from is not None:
        included = np.repeat(np.maximum.reduceat(time, first) >= rule.changed_from, lengths)
    if not included.any():
        return
    stretch = np.repeat(np.arange(len(first)), lengths)[included]
    updates = _Updates(at[included], _learned(time[included], rule.ends), diff[included], stretch)
    same = _same(batches, included, updates, rule.same)
    outcome = _judged(updates, same, rule)
    if rule.known_before is not None:
        old = time[included] < rule.known_before
        if old.any():
            outcome.late[old] -= _judged(updates.of(old), same[old], rule).late
    numbers = {
        START: pa.array(outcome.start, mask=~outcome.placed),
        END: pa.array(outcome.end, mask=~outcome.placed),
        DIFF: pa.array(outcome.diff),
        LATE: pa.array(outcome.late),
        STRETCH: pa.array(np.repeat(at[first], lengths)[included]),
        LAST: pa.array(np.repeat(at[first + lengths - 1], lengths)[included]),
    }
    read = answered = 0
    for batch in batches:
        selected = included[read : read + batch.num_rows]
        read += batch.num_rows
        rows = batch.select([*columns, AT]).filter(pa.array(selected))
        for name, column in numbers.items():
            rows = rows.append_column(name, column.slice(answered, rows.num_rows))
        answered += rows.num_rows
        if rows.num_rows:
            yield rows


@dataclass(frozen=True)
class _Updates:
    """Updates in order of stretch and instant."""

    at: Ints
    learned: Ints
    diff: Ints
    stretch: Ints

    def of(self, chosen: Bools | slice) -> _Updates:
        return _Updates(self.at[chosen], self.learned[chosen], self.diff[chosen], self.stretch[chosen])

    @property
    def instant(self) -> Ints:
        """The number of the instant that each is at, of all different ones of each stretch."""
        begins = np.diff(self.at, prepend=self.at[:1] - 1) != 0
        return np.cumsum(begins | (np.diff(self.stretch, prepend=-1) != 0)) - 1


def _learned(time: Ints, ends: tuple[int, ...]) -> Ints:
    bounds = np.array([_BEFORE_ALL, *ends], np.int64)
    return bounds[np.searchsorted(bounds[1:], time, "right")]


def _same(batches: Sequence[pa.RecordBatch], included: Bools, updates: _Updates, names: Sequence[str]) -> Ints:
    """Numbers that are equal for updates of equal rows; looked at only where something is retracted: where rows only
    come, one is as good as another."""
    instant = updates.instant
    back = np.zeros(int(instant[-1]) + 1, bool)
    back[instant[updates.diff < 0]] = True
    retracting = back[instant]
    numbers = np.zeros(len(instant), np.int64)
    if retracting.any():
        looked = included.copy()
        looked[included] = retracting
        read, rows = 0, []
        for batch in batches:
            rows.append(batch.select(list(names)).filter(pa.array(looked[read : read + batch.num_rows])))
            read += batch.num_rows
        numbers[retracting] = ranks(joined(rows), names)
    return numbers


def _judged(updates: _Updates, same: Ints, rule: Lasting) -> Judged:
    """What becomes of the updates of several stretches."""
    gaps, outcome = rule.bounds, Judged.of(updates.diff)
    first = np.flatnonzero(np.diff(updates.stretch, prepend=-1))
    lengths = np.diff(np.append(first, len(updates.at)))
    after = min(rule.after, 1 << 62)
    least, most = (how.reduceat(updates.learned, first) for how in (np.minimum, np.maximum))
    soonest = gaps.gap if gaps.max_length is None else min(gaps.gap, gaps.max_length)
    # Where the first session may be open still when the last row is learned, none is frozen before.
    lasts = updates.at[first] + soonest > most - after
    together = lasts | (least == most)
    rows_together = np.repeat(together, lengths)
    if rows_together.any():
        frozen_upto = np.where(lasts, np.iinfo(np.int64).min, most - after)
        own = updates.of(rows_together)
        _put(
            outcome,
            rows_together,
            _at_once(own, _numbered(own, same[rows_together]), np.repeat(frozen_upto, lengths)[rows_together], gaps),
        )
    for low, many in zip(first[~together].tolist(), lengths[~together].tolist(), strict=True):
        stretch = slice(low, low + many)
        own = updates.of(stretch)
        learned, step = np.unique(own.learned, return_inverse=True)
        _put(outcome, stretch, gone_through(_numbered(own, same[stretch]), gaps, step, learned - after))
    return outcome


def _numbered(updates: _Updates, same: Ints) -> Rows:
    instant, many = updates.instant, int(same.max()) + 1
    different, row = np.unique(instant * many + same, return_inverse=True)
    places = np.flatnonzero(np.diff(instant, prepend=-1))
    return Rows(updates.at[places], instant, row, different // many, updates.diff)


def _at_once(updates: _Updates, rows: Rows, frozen_upto: Ints, gaps: Gaps) -> Judged:
    """What becomes of updates where all updates of a stretch are looked at together. The bounds of sessions follow from
    the rows alone, and sessions that end at `frozen_upto` or before are late."""
    outcome = Judged.of(rows.diff)
    sums = np.zeros(len(rows.at), np.int64)
    np.add.at(sums, rows.row, rows.diff)
    occupied = np.zeros(len(rows.instants), bool)
    occupied[rows.at[sums != 0]] = True
    live = np.flatnonzero(occupied)
    if not len(live):
        return outcome
    places = np.flatnonzero(np.diff(rows.instant, prepend=-1))
    first, last = spans(rows.instants, live, gaps, np.diff(updates.stretch[places[live]]) != 0)
    session = np.searchsorted(first, rows.instant, "right") - 1
    inside = np.flatnonzero((session >= 0) & (rows.instant <= last[session]))
    session = session[inside]
    end = ends(rows.instants, first, last, gaps)
    late = end[session] <= frozen_upto[inside]
    outcome.start[inside], outcome.end[inside], outcome.placed[inside] = (
        rows.instants[first[session]],
        end[session],
        ~late,
    )
    gone = inside[late]
    outcome.late[gone], outcome.diff[gone] = np.abs(rows.diff[gone]), 0
    return outcome


def _put(outcome: Judged, places: Bools | slice, own: Judged) -> None:
    for name in ("start", "end", "placed", "diff", "late"):
        getattr(outcome, name)[places] = getattr(own, name)
