"""The streaming k-way merge of sorted parts: drains, compactions and reads go through it, in bounded memory.

Parts that follow one another by key are chained to a *run*, so there are about as many runs as batches. Of each run the
next few rows are in memory. What follows the last of these is not known yet, so the merge goes in *rounds*:

1. The bound is the least of the last rows in memory, over the runs that have more to come.
2. Every run gives its rows strictly before the bound. No row still to come is before it, so no later round has a row
   equal to one of these. They are sorted if they come from more than one run, consolidated, and passed on.
3. If no run has such a row, the least rows in memory are equal, and more of their group may come. All rows equal to the
   bound are then taken, consolidated and kept for the next round: so a group larger than memory shrinks as it is
   read, and is passed on in one piece.

An example: two runs of which two rows at a time are in memory.

    >>> def run(*pieces):
    ...     batches = [pa.record_batch({"key": keys}) for keys in pieces]
    ...     return Run(((rows, rows is not batches[-1]) for rows in batches), ["key"], capacity=2)
    >>> for batches in rounds([run([1, 2], [5, 6]), run([2, 3], [4, 7])], shrink=lambda kept: kept):
    ...     print([rows["key"].to_pylist() for rows in batches])
    [[1]]
    [[2], [2], [3], [5, 6], [4, 7]]

In memory are 1 2 and 2 3, both with more to come: the bound is 2, and before it is 1, the first round. Then nothing is
before 2: both rows 2 are kept, to be added up when they are updates. The first run reads 5 6, its last; the second
has 3 left, which is the bound now, with nothing before it: it is kept too. The second run reads 4 7, and no run
has more to come: all that is left, with what was kept, is the second round.

Forwarding times puts rows of one (key, value) at one time, and their event times are then in no order. There "equal"
means equal key, value and forwarded time, by which forwarded rows are still in order, and each round is sorted again.

Costs: every row is read once and sorted within its round only; where few rows meet many, these few only, and what they
touch (rows/woven.py). In memory are BUFFERED_ROWS over all runs together, at least one row group of each, and a round,
which is no more than that. What small runs do not need of it the large ones have: a round has a cost for each run, so
thirty small ones beside a large one should make few rounds of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tidemark.arrow.parts.chunks import NO_SPANS, Spanned
from tidemark.arrow.parts.reader import Fetched, OpenedPart
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows.arrays import of_bools
from tidemark.arrow.rows.columns import integers
from tidemark.arrow.rows.consolidate import cancelling, consolidated, forwarded
from tidemark.arrow.rows.cuts import PIECE_BYTES, compacted, joined, size_of, sorted_pieces
from tidemark.arrow.rows.digest import digest
from tidemark.arrow.rows.memory import memory
from tidemark.arrow.rows.order import SortKey, last_start, rows_before, rows_up_to, sort_key_at, sort_key_of
from tidemark.arrow.rows.schema import TIME, key_at_rest, sort_columns, updates_schema
from tidemark.arrow.rows.woven import woven
from tidemark.model.batch import DIGEST_MODULUS, Part
from tidemark.model.chunk.cuts import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from tidemark.model.chunk.law import meets_keys
from tidemark.plan.ranges import groups_among
from tidemark.plan.tasks import ALL_KEYS, KeyRange, MergeTask, UnsealedTask, WriteAnswer
from tidemark.storage.stores.store import ObjectStore

BUFFERED_ROWS = 2**18
"""Rows in memory over all runs together, as far as a row group of each allows: tens of megabytes. Half as many cost a
read of a dozen runs a tenth more CPU, in rounds."""
ROW_BYTES = 256
"""Of rows that take more bytes than this fewer are kept in memory, so that their bytes are bounded too."""

VALUE_ROWS = 2**14
"""The most updates of one key and value that wait for more of them: all are looked at together for what cancels."""

LEAST_SHARE = 8
"""Rows are limited to a part in so many of that at the least, however little memory is left."""

Shrink = Callable[[list[pa.RecordBatch]], list[pa.RecordBatch]]
Piece = tuple[pa.RecordBatch, bool]
"""Some rows of a run, and whether more may follow them."""


@dataclass
class Tally:
    """What was read: rows within key range and time bounds, their digest once forwarded, bytes fetched.

    Attributes:
        unmatched: How many before-images were not what is stored.
    """

    rows: int = 0
    digest: int = 0
    fetched: Fetched = field(default_factory=Fetched)
    unmatched: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Count rows that were read and belong to the task."""
        self.rows += rows.num_rows
        self.digest = (self.digest + digest(rows)) % DIGEST_MODULUS


def merge_range(store: ObjectStore, task: MergeTask) -> WriteAnswer:
    """Write the consolidated updates of the task's key range and time bounds, forwarded by its function.

    Raises Corruption if a part is not what was recorded, InvalidUsage if diffs add up beyond 64 bits.
    """
    tally = Tally()
    updates = merged(store, task, tally)
    return (
        write_updates(store, task, updates, tally)
        if task.separate_upto < 0
        else _write_divided(store, task, updates, tally)
    )


def _write_divided(store: ObjectStore, task: MergeTask, updates: Iterable[pa.RecordBatch], tally: Tally) -> WriteAnswer:
    """As `write_updates`, with what cancels in parts of its own."""
    schema, width = updates_schema(task.collection), len(key_at_rest(task.collection))
    columns = sort_columns(task.collection, facts=False)[:-2]
    with (
        PartWriter(store, task.prefix, schema, key_width=width, facts=False) as kept,
        PartWriter(store, task.prefix, schema, key_width=width, facts=False, cancels=True) as cancelled,
    ):
        for batch in _whole_values(updates, columns):
            gone = cancelling(batch, columns, task.separate_upto)
            kept.write(batch.filter(of_bools(~gone)))
            cancelled.write(batch.filter(of_bools(gone)))
        return WriteAnswer((*kept.close(), *cancelled.close()), tally.rows, tally.digest, tally.fetched.bytes)


def _whole_values(updates: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The same rows, those equal in `columns`, by which they are in order, in one batch: but for more of them than
    VALUE_ROWS (fewer where they are wide), which are looked at in pieces, so that memory is bounded.

    A single pair split over two batches would keep its part from being answered with as it is (plan/unmerged.py).
    """
    waiting: list[pa.RecordBatch] = []
    for batch in updates:
        rows = joined([*waiting, batch])
        last = last_start(rows, columns) if rows.num_rows else 0
        rest = rows.slice(last)
        waits = weight_of_rows(rest) <= VALUE_ROWS
        yield rows.slice(0, last) if waits else rows
        waiting = [compacted(rest, rows)] if waits else []
    yield from waiting


def write_updates(
    store: ObjectStore, task: UnsealedTask, updates: Iterable[pa.RecordBatch], tally: Tally
) -> WriteAnswer:
    """Write a task's `updates`, consolidated and in order, into parts; `tally` counts what was read for them."""
    schema = updates_schema(task.collection)
    with PartWriter(store, task.prefix, schema, key_width=len(key_at_rest(task.collection)), facts=False) as writer:
        for batch in updates:
            writer.write(batch)
        read = tally.rows, tally.digest, tally.fetched.bytes
        return WriteAnswer(writer.close(), *read, unmatched=tally.unmatched)


def merged(
    store: ObjectStore, task: MergeTask, tally: Tally, *, buffered_rows: int = BUFFERED_ROWS
) -> Iterator[pa.RecordBatch]:
    """The consolidated updates of a merge, in order."""
    order = sort_columns(task.collection, facts=False)
    function = task.function
    first = min((min(part.first_time, part.first_event_time) for part in task.parts), default=function.since)
    forwards = first < function.since and not function.changes_nothing
    together = order[:-1] if forwards else order
    chains = chained(part for part in task.parts if meets_keys(part, task.keys))
    capacities = shared([weight_of(chain, [task.keys]) for chain in chains], buffered_rows)
    runs = [
        Run(_pieces(store, chain, task, tally, capacity), together, capacity)
        for chain, capacity in zip(chains, capacities, strict=True)
    ]

    for rows in rounds(runs, lambda kept: list(summed(kept, order, resort=forwards))):
        yield from summed(rows, order, resort=forwards)


def summed(
    batches: Sequence[pa.RecordBatch], columns: Sequence[str], *, resort: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of a round in order of `columns`, those equal in them added up, in pieces. Each batch is taken to be in
    order already, unless `resort`."""
    if not resort and len(batches) > 1 and size_of(batches) <= PIECE_BYTES:
        rows = woven(batches, columns)
        if rows is not None:
            yield rows
            return
    for rows in sorted_pieces(batches, columns, together=columns, resort=resort, most=PIECE_BYTES):
        yield consolidated(rows, columns)


def rounds(runs: Sequence[Run], shrink: Shrink) -> Iterator[list[pa.RecordBatch]]:
    """The rows of all runs, round by round: those of a round come before those of the next, and rows that are equal in
    the runs' columns are in one round.

    A round is a list of batches, each in order. What is kept (see above) passes through `shrink` each time. Where
    the process has little memory left for it, the runs hold less, and there are more rounds.
    """
    wanted = sum(run.capacity for run in runs) * ROW_BYTES
    with memory().some("runs", wanted, least=wanted // LEAST_SHARE) as size:
        for run in runs if size < wanted else ():
            run.capacity = max(1, run.capacity * size // wanted)
        yield from _rounds(runs, shrink)


def _rounds(runs: Sequence[Run], shrink: Shrink) -> Iterator[list[pa.RecordBatch]]:
    kept: list[pa.RecordBatch] = []
    while runs := [run for run in runs if run.fill()]:
        bound = min((run.last for run in runs if run.more), default=None)
        taken = [rows for run in runs if (rows := run.take_before(bound)).num_rows]
        if taken or bound is None:
            yield [*kept, *taken]
            kept = []
        else:
            equal = (run.take_up_to(bound) for run in runs)
            kept = shrink([*kept, *(rows for rows in equal if rows.num_rows)])
    if kept:
        yield kept


def chained(parts: Iterable[Part]) -> list[list[Part]]:
    """The parts in as few chains as can be, each of parts that follow one another by key and share none."""
    chains: list[list[Part]] = []
    for part in sorted(parts, key=lambda part: (part.first_key, part.last_key)):
        fitting = next((chain for chain in chains if chain[-1].last_key < part.first_key), None)
        if fitting is None:
            chains.append([part])
        else:
            fitting.append(part)
    return chains


def weight_of(chain: Iterable[Part], ranges: Sequence[KeyRange]) -> int:
    """The most rows that a chain of parts can give of some ranges of keys, by its records; or how many rows of
    ROW_BYTES their bytes would be, as they are in the file, if that is more."""
    weight = 0
    for part in chain:
        rows = sum(part.groups[group][1] for group in groups_among(part, ranges))
        weight += max(rows, part.file.bytes * rows // part.rows // ROW_BYTES)
    return weight


def shared(weights: Sequence[int], room: int) -> list[int]:
    """How many rows of each run to hold in memory, `room` of all together, at least one of each.

    A run that is smaller than its share has no use for the rest, so larger ones have it: of one large run among thirty
    small ones more rows come at a time, and a round has a cost for each run.

        >>> shared([1000, 10, 10], room=100), shared([1000, 1000], room=100)
        ([80, 10, 10], [50, 50])
    """
    shares = [1] * len(weights)
    left = room
    for before, at in enumerate(sorted(range(len(weights)), key=weights.__getitem__)):
        shares[at] = max(1, min(weights[at], left // (len(weights) - before)))
        left = max(0, left - shares[at])
    return shares


class Run:
    """Rows in order of `columns`, of which the next few are in memory."""

    def __init__(self, pieces: Iterator[Piece], columns: Sequence[str], capacity: int) -> None:
        self._pieces, self._columns, self.capacity = pieces, columns, capacity
        self._rows: pa.RecordBatch = None  # until the first fill
        self.more = True

    def fill(self) -> bool:
        """Read on if few rows are left in memory; False if none are left at all."""
        batches = [self._rows] if self._rows else []
        weight = sum(map(weight_of_rows, batches))
        if weight == 0 or weight < self.capacity // 2:
            while self.more and weight < max(1, self.capacity):
                rows, self.more = next(self._pieces, (None, False))
                if rows:
                    batches.append(rows)
                    weight += weight_of_rows(rows)
            self._rows = joined(batches) if batches else None
        return bool(weight)

    @property
    def last(self) -> SortKey:
        """The place of the last row in memory."""
        return sort_key_at(self._rows, self._rows.num_rows - 1, self._columns)

    def take_before(self, bound: SortKey | None) -> pa.RecordBatch:
        """Remove and return the rows in memory before a place (None: all)."""
        return self._take(self._rows.num_rows if bound is None else rows_before(self._rows, bound, self._columns))

    def take_up_to(self, bound: SortKey) -> pa.RecordBatch:
        """Remove and return the rows in memory before a place or at it."""
        return self._take(rows_up_to(self._rows, bound, self._columns))

    def _take(self, count: int) -> pa.RecordBatch:
        taken, self._rows = self._rows.slice(0, count), self._rows.slice(count)
        return taken


def weight_of_rows(rows: pa.RecordBatch) -> int:
    """The rows, or how many rows of ROW_BYTES their bytes would be, if that is more."""
    return max(int(rows.num_rows), int(rows.nbytes) // ROW_BYTES)


def among(batch: pa.RecordBatch, ranges: Sequence[KeyRange], key_columns: Sequence[str]) -> pa.RecordBatch:
    """The rows of a sorted batch whose key is in one of some ranges, which ascend and do not overlap. The batch
    need not have the key where all rows are asked for."""
    if not batch.num_rows or ALL_KEYS in ranges:
        return batch
    least, most = (sort_key_at(batch, row, key_columns) for row in (0, batch.num_rows - 1))
    reaching = bisect_left(ranges, True, key=lambda keys: keys.upper is None or least < sort_key_of(keys.upper))
    found = list[pa.RecordBatch]()
    for keys in ranges[reaching:]:
        lower, upper = (None if bound is None else sort_key_of(bound) for bound in (keys.lower, keys.upper))
        if lower is not None and most < lower:
            break  # and so are all that follow
        first = 0 if lower is None or least >= lower else rows_before(batch, lower, key_columns)
        end = batch.num_rows if upper is None or most < upper else rows_before(batch, upper, key_columns)
        if first < end:
            found.append(batch.slice(first, end - first))
    return joined(found) if found else batch.slice(0, 0)


def between(batch: pa.RecordBatch, lower: int, upper: int) -> pa.RecordBatch:
    """The rows with `lower <= _time < upper`."""
    times = integers(batch, TIME)
    inside = (times >= lower) & (times < upper)
    return batch if inside.all() else batch.filter(of_bools(inside))


def pieces_of(
    store: ObjectStore,
    parts: Sequence[Part],
    keys: KeyRange,
    capacity: int,
    *,
    schema: Callable[[Part], pa.Schema],
    prepare: Callable[[Part, pa.RecordBatch], pa.RecordBatch],
    key_columns: Sequence[str],
    ranges: Sequence[KeyRange] = (),
    spanned: Spanned = NO_SPANS,
    fetched: Fetched | None = None,
) -> Iterator[Piece]:
    """The rows of a chain of parts within a range of keys, or within `ranges` in it, which ascend and do not overlap;
    about `capacity` at a time, each batch prepared. Of row groups that can hold no row `spanned` none is read."""
    asked = ranges or [keys]
    opened = [(part, groups_among(part, asked)) for part in parts]
    opened = [(part, groups) for part, groups in opened if groups]
    for at, (part, groups) in enumerate(opened):
        at_once, wanted = groups_at_once(part, capacity), schema(part)
        with OpenedPart(store, part, fetched) as file:
            needed = spanned.among(file, groups)
            for start in range(0, len(needed), at_once):
                batch = file.read(needed[start : start + at_once], wanted)
                inside = compacted(among(batch, asked, key_columns), batch)
                yield prepare(part, inside), start + at_once < len(needed) or at + 1 < len(opened)


def pieces_in_memory(
    batches: Sequence[pa.RecordBatch], capacity: int, prepare: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> Iterator[Piece]:
    """The pieces of rows that are in memory, in order."""
    for at, rows in enumerate(batches):
        for start in range(0, rows.num_rows, max(1, capacity)):
            some = rows.slice(start, max(1, capacity))
            yield prepare(some), start + some.num_rows < rows.num_rows or at + 1 < len(batches)


def groups_at_once(part: Part, capacity: int) -> int:
    """How many row groups to read of a part. Those with fewer rows than they could have contain wide rows."""
    full = part.groups[0][1] >= ROW_GROUP_ROWS
    return max(1, capacity // ROW_GROUP_ROWS if full else capacity * ROW_BYTES // ROW_GROUP_BYTES)


def _pieces(store: ObjectStore, chain: Sequence[Part], task: MergeTask, tally: Tally, capacity: int) -> Iterator[Piece]:
    """The rows of a chain of parts that belong to the task, forwarded and tallied."""
    schema = updates_schema(task.collection)

    def prepare(_: Part, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = forwarded(between(batch, task.lower, task.upper), task.function)
        tally.add(rows)
        return rows

    return pieces_of(
        store,
        chain,
        task.keys,
        capacity,
        schema=lambda _: schema,
        prepare=prepare,
        key_columns=key_at_rest(task.collection),
        fetched=tally.fetched,
    )
