"""The latest row of each key, on a timeline: which of some rows it is, and which it is for each of many probes.

Rows are those of whole keys, in the order that rows have at rest: by key, then by value. Of two rows of a key the
later one on the timeline wins; at one time the one that is greater in the columns `ties`; and if these are equal, too,
the one that is behind the other at rest. So the winner does not depend on when rows came, or in how many batches.

An example, of one key, by `at`:

    row  at  word
    0    3   "a"
    1    5   "a"
    2    5   "b"

At 4 the latest row is 0, at 5 it is 2. Had row 2 been current from the time 8 of knowledge on only, then for a probe
that asks at 5 what was known at 7 it would be row 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, values
from tidemark.arrow.rows.consolidate import addable
from tidemark.arrow.rows.cuts import compacted, joined
from tidemark.arrow.rows.order import ranks, sort, sort_key_at, starts
from tidemark.arrow.rows.schema import DIFF, TIME
from tidemark.model.instant import MAX_TIME

GATHERED_ROWS = 2**18
"""Rows that are gathered before it is looked at which of them still matter."""
FOR_EVER = MAX_TIME
"""Until when a row is current that is not retracted: behind every time of knowledge."""


def plain_times(column: pa.Array | pa.ChunkedArray) -> Ints:
    """The times of a timeline as whole numbers: microseconds, days, or what a column of int counts; anything where
    null."""
    return values(contiguous(column)).astype(np.int64)


def whole_keys(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], reduce: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The same rows, cut between keys only. What of a key is kept while more of it may come passes through `reduce`
    each time, which leaves what can still matter: so memory does not grow with the rows of one key."""
    waiting: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        begins = np.flatnonzero(starts(batch, key)).tolist()
        if waiting is not None and sort_key_at(waiting, 0, key) == sort_key_at(batch, 0, key):
            # Only the rows of that key are copied.
            first, *begins = begins
            end = begins[0] if begins else batch.num_rows
            waiting = joined([waiting, batch.slice(first, end)])
        if not begins:
            waiting = _reduced(waiting, reduce)
            continue
        if waiting is not None:
            yield waiting
        if begins[0] < begins[-1]:
            yield batch.slice(begins[0], begins[-1] - begins[0])
        waiting = _reduced(batch.slice(begins[-1]), reduce)
    if waiting is not None:
        yield waiting


def _reduced(rows: pa.RecordBatch | None, reduce: Callable[[pa.RecordBatch], pa.RecordBatch]) -> pa.RecordBatch | None:
    """What is left of some rows, in memory of its own; None where nothing is."""
    left = None if rows is None else reduce(rows)
    return compacted(left, rows) if left is not None and left.num_rows else None


def gathered_keys(
    batches: Iterable[pa.RecordBatch], order: Sequence[str], reduce: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of whole keys, in `order`, which begins with the key, of rows that come in another one: all at once,
    once they have passed through `reduce`, which leaves what can still matter, as often as they have doubled."""
    gathered, count, left = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        if count > 2 * left + GATHERED_ROWS:
            gathered = [reduce(sort(joined(gathered), order))]
            count = left = gathered[0].num_rows
    if count:
        yield sort(joined(gathered), order)


def newest(rows: pa.RecordBatch, key: Sequence[str], timeline: str, ties: Sequence[str], among: Bools) -> Ints:
    """For each key of the rows its latest row of those `among` them, all of which have a time; -1 where there is
    none."""
    begins = starts(rows, key)
    group = np.cumsum(begins) - 1
    found = np.full(int(np.count_nonzero(begins)), -1, np.int64)
    left = np.flatnonzero(among)
    left = _greatest(left, group[left], plain_times(rows.column(timeline))[left])
    if ties:
        left = _greatest(left, group[left], ranks(rows.select(list(ties)).take(of_numbers(left)), ties))
    found[group[left]] = left  # of several the last one stays: that which is behind the others
    return found


def _greatest(rows: Ints, group: Ints, by: Ints) -> Ints:
    """Those of some rows, in order of their group, that have the greatest number of their group."""
    if not len(rows):
        return rows
    begins = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    best = np.maximum.reduceat(by, begins)
    return np.asarray(rows[by == np.repeat(best, np.diff(begins, append=len(rows)))])


@dataclass(frozen=True)
class Periods:
    """When rows are current: row `row[n]` is, as known from `since[n]` on and before `until[n]`. Where `sign[n]` is -1
    its multiplicity is negative then."""

    row: Ints
    sign: Ints
    since: Ints
    until: Ints

    def where(self, chosen: Bools) -> Periods:
        """Some of it."""
        if chosen.all():
            return self
        return Periods(self.row[chosen], self.sign[chosen], self.since[chosen], self.until[chosen])


def periods_of(rows: pa.RecordBatch, names: Sequence[str]) -> Periods:
    """When rows are current, by their updates, which are in order of the columns `names` and `_time`, and added up. A
    row is identified by the place of its first update. What has the multiplicity 0 is left out."""
    diffs = integers(rows, DIFF)
    if TIME not in rows.schema.names:
        at = np.arange(rows.num_rows)
        # All of them at all times of knowledge: one number each, seen as many.
        since, until = np.broadcast_to(-1, len(at)), np.broadcast_to(FOR_EVER, len(at))
        return Periods(at, np.sign(diffs), since, until).where(diffs != 0)
    times, begins = integers(rows, TIME), starts(rows, names)
    firsts = np.flatnonzero(begins)
    first = np.repeat(firsts, np.diff(firsts, append=rows.num_rows))
    added = np.cumsum(addable(diffs))
    count = added - added[first] + diffs[first]
    until = np.append(times[1:], FOR_EVER)
    until[np.append(begins[1:], True)] = FOR_EVER
    sign = np.asarray(count > 0, np.int64) - np.asarray(count < 0, np.int64)
    return Periods(first, sign, times, until).where(sign != 0)


@dataclass(frozen=True)
class Asked:
    """Probes: each asks in its `group`, at a time `upto`, for the latest row from the time `lower` on (None: any), as
    `known` then (None: as the rows are)."""

    group: Ints
    upto: Ints
    lower: Ints | None = None
    known: Ints | None = None


@dataclass(frozen=True)
class LatestIndex:
    """Rows of several keys in the order in which they win, to be asked by many probes at once."""

    periods: Periods
    group: Ints
    """Of each row, not of each entry of `periods`."""
    time: Ints
    rank: Ints | None = None
    """What decides between rows of one time before their order at rest does (None: nothing)."""

    def latest(self, asked: Asked) -> Ints:
        """For each probe its row, -1 where there is none. One sort of the rows and a search for each probe; by
        knowledge, one search for each level of a tree over the times at which rows come and go, for those probes whose
        last row was not current just then."""
        row, since, until = self.periods.row, self.periods.since, self.periods.until
        if not len(row) or not len(asked.group):
            return np.full(len(asked.group), -1, np.int64)
        groups = 1 + max(int(self.group.max()), int(asked.group.max()))
        scale = _Scale.of(self.time[row], groups)
        packed, order = _sorted(self.group[row] * scale.width + scale.place, self._rank_of(row))
        last = np.searchsorted(packed, asked.group * scale.width + scale.up_to(asked.upto), "left") - 1
        after = np.zeros(1, np.int64) if asked.lower is None else scale.before(asked.lower)
        first = np.searchsorted(packed, asked.group * scale.width + after, "left")
        found = np.where(last >= first, last, -1)
        if asked.known is not None:
            since, until = since[order], until[order]
            wrong = (found >= 0) & ((since[found] > asked.known) | (until[found] <= asked.known))
            found[wrong] = last_open(since, until, first[wrong], last[wrong], asked.known[wrong])
        return np.where(found >= 0, row[order[found]], -1)

    def _rank_of(self, row: Ints) -> Ints | None:
        return None if self.rank is None else self.rank[row]


@dataclass(frozen=True)
class _Scale:
    """Times as whole numbers from 0 to below `width` - 1: `place` those of rows."""

    place: Ints
    width: int
    distinct: Ints | None
    """The times of the rows, where a place is the number of those before; None: a place is counted from `least` on."""
    least: int
    most: int

    @classmethod
    def of(cls, times: Ints, groups: int) -> _Scale:
        """That of the times of rows, for so many groups of them."""
        least, most = int(times.min()), int(times.max())
        width = most - least + 2
        # A unit more on both sides is a number, too.
        if least > -(2**63) and most < 2**63 - 1 and groups * width < 2**63:
            return cls(times - least, width, None, least, most)
        distinct, place = np.unique(times, return_inverse=True)
        return cls(place, len(distinct) + 1, distinct, least, most)

    def up_to(self, times: Ints) -> Ints:
        """The first place behind all times that are not above some."""
        if self.distinct is not None:
            return np.searchsorted(self.distinct, times, "right")
        return np.clip(times, self.least - 1, self.most) - (self.least - 1)

    def before(self, times: Ints) -> Ints:
        """The first place of a time that is not below some."""
        if self.distinct is not None:
            return np.searchsorted(self.distinct, times, "left")
        return np.clip(times, self.least, self.most + 1) - self.least


def _sorted(packed: Ints, rank: Ints | None) -> tuple[Ints, Ints]:
    """Numbers in order, and which one each was; those that are equal by `rank`, then as they were."""
    count = len(packed)
    if rank is not None:
        order = np.lexsort((rank, packed))
        return packed[order], order
    if (packed[1:] >= packed[:-1]).all():  # as where rows are in order of the timeline
        return packed, np.arange(count)
    bits = count.bit_length()
    if int(packed.max()) < 2 ** (62 - bits):  # then number and place are one number, which sorts by far the fastest
        both = (packed << bits) | np.arange(count)
        both.sort()
        return both >> bits, both & ((1 << bits) - 1)
    order = np.argsort(packed, kind="stable")
    return packed[order], order


def last_open(since: Ints, until: Ints, first: Ints, last: Ints, at: Ints) -> Ints:
    """For each question the greatest place in `[first, last]` whose span `[since, until)` holds the time `at`, -1 where
    there is none.

    Each span is made of the nodes of a binary tree over all times at which one begins or ends, at most two a level; a
    time is in one node of each level. So the place is the greatest, over the levels, that the time's node has up to
    `last`: of n spans and m questions that takes (n + m) log² n, wherever the spans are.

        >>> since, until = np.array([0, 2, 5]), np.array([9, 4, 9])
        >>> last_open(since, until, np.array([0, 0, 1]), np.array([2, 2, 1]), np.array([3, 4, 4])).tolist()
        [1, 0, -1]
    """
    found = np.full(len(at), -1, np.int64)
    if not len(at):
        return found
    times, count = np.sort(np.concatenate([since, until[until < FOR_EVER], [FOR_EVER]])), len(since)
    size = 1 << (len(times) - 1).bit_length()
    low, high = np.searchsorted(times, since) + size, np.searchsorted(times, until) + size
    node = np.searchsorted(times, at, "right") - 1 + size
    known = node >= size
    while (low < high).any():
        odd_low, odd_high = (low < high) & (low % 2 == 1), (low < high) & (high % 2 == 1)
        places = np.concatenate([low[odd_low] * count, (high[odd_high] - 1) * count])
        places += np.concatenate([np.flatnonzero(odd_low), np.flatnonzero(odd_high)])
        if len(places):
            places.sort()
            near = np.searchsorted(places, node * count + last, "right") - 1
            there = known & (near >= 0) & (places[near] // count == node)
            found = np.where(there, np.maximum(found, places[near] % count), found)
        low, high, node = (low + odd_low) // 2, (high - odd_high) // 2, node // 2
    return np.where(found >= first, found, -1)


def has_value(rows: pa.RecordBatch, name: str) -> Bools:
    """Which rows have a value in a column."""
    return np.asarray(values(contiguous(pc.is_valid(rows.column(name)))))
