"""The latest row of each key, on a timeline: which of some rows it is, and which it is for each of many probes.

Rows are those of whole keys, in the order in which rows lie at rest: by key, then by value. Of two rows of a key the
later one on the timeline wins; at one time the one that is greater in the columns `ties`; and if these are equal, too,
the one that is behind the other at rest. So the winner does not depend on when rows came, or in how many batches.

An example, of one key, by `at`:

    row  at  word
    0    3   "a"
    1    5   "a"
    2    5   "b"

At 4 the latest row is 0, at 5 it is 2. Had row 2 been held from the time 8 of knowledge on only, then for a probe that
asks at 5 what was known at 7 it would be row 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, values
from tidemark.arrow.rows.consolidate import addable
from tidemark.arrow.rows.cuts import compacted, joined
from tidemark.arrow.rows.order import ranks, sort_key_at, starts
from tidemark.arrow.rows.schema import DIFF, TIME
from tidemark.model.instant import MAX_TIME

FOR_EVER = MAX_TIME
"""Until when a row is held that is not taken back: behind every time of knowledge."""


def plain_times(column: pa.Array | pa.ChunkedArray) -> Ints:
    """The times of a timeline as whole numbers: microseconds, days, or what a column of int counts; anything where
    null."""
    return values(contiguous(column)).astype(np.int64)


def whole_keys(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], reduce: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The same rows, cut between keys only. What of a key is held while more of it may come passes through `reduce`
    each time, which leaves what can still matter: so memory does not grow with the rows of one key."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if held is not None and sort_key_at(held, 0, key) != sort_key_at(batch, 0, key):
            yield held
            held = None
        rows = batch if held is None else joined([held, batch])
        last = int(np.flatnonzero(starts(rows, key))[-1])
        if last:
            yield rows.slice(0, last)
        left = reduce(rows.slice(last))
        held = compacted(left, rows) if left.num_rows else None
    if held is not None:
        yield held


def newest(rows: pa.RecordBatch, key: Sequence[str], timeline: str, ties: Sequence[str], among: Bools) -> Ints:
    """For each key of the rows its latest row of those `among` them, all of which have a time; -1 where there is
    none."""
    begins = starts(rows, key)
    group = np.cumsum(begins) - 1
    found = np.full(int(np.count_nonzero(begins)), -1, np.int64)
    left = np.flatnonzero(among)
    left = _greatest(left, group[left], plain_times(rows.column(timeline))[left])
    if ties:
        left = _greatest(left, group[left], ranks(rows.select(list(ties)).take(pa.array(left)), ties))
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
class Held:
    """When rows are held: row `row[n]` is, as known from `since[n]` on and before `until[n]`. Where `sign[n]` is -1 it
    is held fewer than zero times then."""

    row: Ints
    sign: Ints
    since: Ints
    until: Ints

    def where(self, chosen: Bools) -> Held:
        """Some of it."""
        return Held(self.row[chosen], self.sign[chosen], self.since[chosen], self.until[chosen])


def held_of(rows: pa.RecordBatch, names: Sequence[str]) -> Held:
    """When rows are held by their updates, which are in order of the columns `names` and `_time`, and added up. A row
    is told by the place of its first update. What is held no times is left out."""
    diffs = integers(rows, DIFF)
    if TIME not in rows.schema.names:
        at = np.arange(rows.num_rows)
        return Held(at, np.sign(diffs), np.full(len(at), -1), np.full(len(at), FOR_EVER)).where(diffs != 0)
    times, begins = integers(rows, TIME), starts(rows, names)
    firsts = np.flatnonzero(begins)
    first = np.repeat(firsts, np.diff(firsts, append=rows.num_rows))
    added = np.cumsum(addable(diffs))
    count = added - added[first] + diffs[first]
    until = np.append(times[1:], FOR_EVER)
    until[np.append(begins[1:], True)] = FOR_EVER
    sign = np.asarray(count > 0, np.int64) - np.asarray(count < 0, np.int64)
    return Held(first, sign, times, until).where(sign != 0)


@dataclass(frozen=True)
class Asked:
    """Probes: each asks in its `group`, at a time `upto`, for the latest row from the time `lower` on (None: any), as
    `known` then (None: as the rows are)."""

    group: Ints
    upto: Ints
    lower: Ints | None = None
    known: Ints | None = None


@dataclass(frozen=True)
class Placed:
    """Held rows of several keys in the order in which they win, to be asked by many probes at once."""

    held: Held
    group: Ints
    """Of each row, not of each entry of `held`."""
    time: Ints
    rank: Ints

    def latest(self, asked: Asked) -> Ints:
        """For each probe its row, -1 where there is none. One sort of the rows and a search for each probe; by
        knowledge, one search for each level of a tree over the times at which rows come and go, for those probes whose
        last row was not held just then."""
        row, since, until = self.held.row, self.held.since, self.held.until
        if not len(row):
            return np.full(len(asked.group), -1, np.int64)
        distinct, place = np.unique(self.time[row], return_inverse=True)
        width = len(distinct) + 1
        packed, rank = self.group[row] * width + place, self.rank[row]
        if rank.any() or (np.diff(packed) < 0).any():  # else rows lie in order of the timeline, as they often do
            order = np.lexsort((rank, packed))  # and of equal ones as they were
            row, since, until, packed = row[order], since[order], until[order], packed[order]
        before = np.searchsorted(distinct, asked.upto, "right")
        last = np.searchsorted(packed, asked.group * width + before, "left") - 1
        after = np.zeros(1, np.int64) if asked.lower is None else np.searchsorted(distinct, asked.lower, "left")
        first = np.searchsorted(packed, asked.group * width + after, "left")
        found = np.where(last >= first, last, -1)
        if asked.known is not None:
            wrong = (found >= 0) & ((since[found] > asked.known) | (until[found] <= asked.known))
            found[wrong] = last_open(since, until, first[wrong], last[wrong], asked.known[wrong])
        return np.where(found >= 0, row[found], -1)


def last_open(since: Ints, until: Ints, first: Ints, last: Ints, at: Ints) -> Ints:
    """For each question the greatest place in `[first, last]` whose span `[since, until)` holds the time `at`, -1 where
    there is none.

    Each span is made of the nodes of a binary tree over all times at which one begins or ends, at most two a level; a
    time is in one node of each level. So the place is the greatest, over the levels, that the time's node has up to
    `last`: of n spans and m questions that takes (n + m) log² n, however the spans lie.

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
    return np.asarray(pc.is_valid(rows.column(name)).to_numpy(zero_copy_only=False))
