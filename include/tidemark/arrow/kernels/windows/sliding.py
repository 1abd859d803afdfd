"""Sliding windows over a stream of rows: for each instant t of a group the window [t - size, t] that ends with it, and
[t + 1, t + 1 + size] after it if that holds a row, each start once.

Rows come in order of group and instant. Each window is a range of them, so its aggregates are computed of ranges
(aggregates/ranges.py), and no row is read again for each window that it is in. Rows at one instant are put together
first, where the aggregates have parts (aggregates/parts.py): so many rows at few instants take little.

    rows    at 1: 5, 7    at 2: 1    at 9: 4        size 3
    parts   at 1: n=2 sum=12, at 2: n=1 sum=1, at 9: n=1 sum=4
    windows [-2, 1] 2, 12   [-1, 2] 3, 13   [2, 5] 1, 1   [6, 9] 1, 4

What later windows reach is carried from one block to the next: at most what two windows hold. A block is as large as
what was carried, so that each row is carried a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.aggregates.at_instants import AtInstants, peeked
from tidemark.arrow.kernels.aggregates.ranges import Collected, Ranges, aggregated
from tidemark.arrow.kernels.aggregates.values import ordered
from tidemark.arrow.kernels.windows.keys import GROUP, ascend
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers, one_batch, values
from tidemark.arrow.rows.order import last_start, starts
from tidemark.arrow.rows.schema import arrow_type
from tidemark.definition.recipe import BAND, AggregateColumn
from tidemark.definition.windows.rows import AT, END, START
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ColumnType
from tidemark.model.window.aggregate import Function
from tidemark.model.window.kinds import Sliding

CHUNK = "_chunk"
"""The column of rows that says for which chunk of starts, if windows are computed by chunks."""
ROWS = 16_384
ROOM = 32 << 20
"""Windows of a batch, and about how many bytes of what grows with a window."""
_SLICE = 65_536
"""Rows of a table that go through the kernel at once: what it needs besides them grows with these."""
_FAR = 1 << 61


@dataclass(frozen=True)
class Slide:
    """How to slide: rows are together where they are equal in `group`; the windows' `size`; whether none starts below 0
    (then rows below 0 are in none). With a `width` rows have the column CHUNK, are together by it too, and of chunk c
    the windows that start in [c * width, (c + 1) * width) are given: it must hold all rows from one before these starts
    to `size` after them. With `bounds`, which ascend, the same holds of the column BAND: of band b those are given that
    start at bounds[b - 1] or later, and before bounds[b]. Windows have the `aggregates` of their rows."""

    group: tuple[str, ...]
    size: int
    aggregates: tuple[AggregateColumn, ...] = ()
    clamp_start_at_zero: bool = False
    width: int | None = None
    bounds: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.size < _FAR:
            raise InvalidUsage(f"the size of a sliding window is {self.size}; it must be 0 or more, and below 2^61")

    @property
    def together(self) -> tuple[str, ...]:
        chunk = () if self.width is None else (CHUNK,)
        return (*self.group, *chunk) if self.bounds is None else (*self.group, *chunk, BAND)


def sliding(
    batches: Iterable[pa.RecordBatch], slide: Slide, *, rows: int = ROWS, room: int = ROOM
) -> Iterator[pa.RecordBatch]:
    """The windows of a stream of rows: the columns of the group, START, END (int64), and the aggregates of each.

    Raises InvalidUsage for an instant beyond 2^61, Overflowed (sums.py) for a sum that does not fit.
    """
    together = _Together.of(batches, slide)
    for block in _blocks(together.rows, together.slide):
        yield from map(together.shown, _batches_of(block, block.windows(), rows, room))


def sliding_in_order(batches: Iterable[pa.RecordBatch], slide: Slide) -> Iterator[pa.RecordBatch]:
    """The same in order of group and START. What is in memory besides are the windows that start within a window's size
    of the last row: those to come may start between them."""
    together = _Together.of(batches, slide)
    yield from map(together.shown, _in_order(together.rows, together.slide))


def sliding_of(
    rows: pa.Table, numbers: Ints, at: Ints, kind: Sliding, aggregates: Sequence[AggregateColumn]
) -> Iterator[pa.RecordBatch]:
    """The windows of rows at some instants, whose keys have these numbers: GROUP, START, END and the aggregates, in
    order of GROUP and START. Raises as `sliding`."""
    names = list(dict.fromkeys(aggregate.of for aggregate in aggregates if aggregate.of))
    batch = one_batch(rows.select(names))
    if not ascend(numbers, at):
        order = np.lexsort((at, numbers))
        numbers, at, batch = numbers[order], at[order], batch.take(pa.array(order))
    ordered = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(at), *batch.columns], [GROUP, AT, *names])
    slide = Slide((GROUP,), kind.size, tuple(aggregates), kind.clamp_start_at_zero)
    yield from sliding_in_order((ordered.slice(at, _SLICE) for at in range(0, len(numbers), _SLICE)), slide)


@dataclass(frozen=True)
class _Together:
    """Rows that were put together, and how to slide over these."""

    rows: Iterator[pa.RecordBatch]
    slide: Slide
    by: AtInstants | None

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], slide: Slide) -> _Together:
        schema, stream = peeked(batches)
        if schema is None:
            return cls(stream, slide, None)
        by = AtInstants.of(schema, [*slide.together, AT], slide.aggregates)
        countable = (_countable(rows, slide) for rows in stream)
        return cls(map(by.put_together, countable), replace(slide, aggregates=by.merged), by)

    def shown(self, windows: pa.RecordBatch) -> pa.RecordBatch:
        """Windows with the aggregates that were asked for."""
        assert self.by is not None
        names = [*(name for name in self.slide.group), START, END]
        columns = [*(windows.column(name) for name in names), *self.by.finals(windows)]
        return pa.RecordBatch.from_arrays(columns, [*names, *(aggregate.name for aggregate in self.by.aggregates)])


def _in_order(batches: Iterable[pa.RecordBatch], slide: Slide) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    for block in _blocks(batches, slide):
        windows, groups = block.windows(), np.cumsum(starts(block.rows, slide.together))
        windows = windows.where(np.lexsort((windows.start, groups[windows.lo])))
        window_groups, waited = groups[windows.lo], sum(map(len, waiting))
        ready = [*waiting, *_batches_of(block, windows, len(windows) + 1, ROOM)]
        waiting = []
        if not ready:
            continue
        batch = pa.concat_batches(ready)
        if waited:  # they belong to the group that the block begins with, as the rows do that were carried
            begun = waited + int(np.searchsorted(window_groups, groups[0], "right"))
            first = np.argsort(integers(batch, START)[:begun], kind="stable")
            batch = batch.take(pa.array(np.append(first, np.arange(begun, len(batch)))))
        done = len(batch)
        if not block.ends:
            last = 0 if groups[-1] == groups[0] else waited + int(np.searchsorted(window_groups, groups[-1], "left"))
            upto = integers(block.rows, AT)[-1] - slide.size
            done = last + int(np.searchsorted(integers(batch, START)[last:], upto, "left"))
            waiting = [batch.slice(done)] if done < len(batch) else []
        if done:
            yield batch.slice(0, done)


def _blocks(batches: Iterable[pa.RecordBatch], slide: Slide) -> Iterator[_Block]:
    """Rows as blocks, each with what its windows reach of those before."""
    carried: pa.RecordBatch | None = None
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:  # what waits may be the last there is
            continue
        if waiting and sum(map(len, waiting)) >= (0 if carried is None else len(carried)):
            whole, rest = _at_an_instant(waiting, slide)
            waiting = rest
            if whole:
                block = _Block.of(carried, whole, slide, ends=False)
                yield block
                carried = block.reached()
        waiting.append(batch)
    if waiting:
        yield _Block.of(carried, waiting, slide, ends=True)


def _at_an_instant(waiting: list[pa.RecordBatch], slide: Slide) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """The rows before the last instant, and the rows at it, as more rows may be at it."""
    rows = pa.concat_batches(waiting)
    last = last_start(rows, [*slide.together, AT])
    return [rows.slice(0, last)] if last else [], [rows.slice(last)]


def _schema_of(rows: pa.Schema, slide: Slide) -> pa.Schema:
    """The columns of windows over rows with these columns."""
    bounds = [pa.field(START, pa.int64()), pa.field(END, pa.int64())]
    aggregates = [pa.field(aggregate.name, arrow_type(aggregate.type)) for aggregate in slide.aggregates]
    return pa.schema([*(rows.field(name) for name in slide.group), *bounds, *aggregates])


def _countable(batch: pa.RecordBatch, slide: Slide) -> pa.RecordBatch:
    """The rows that are in any window. Raises InvalidUsage for an instant that is too far to be counted from."""
    at = integers(batch, AT)
    if len(at) and (int(at.min()) < -_FAR or int(at.max()) > _FAR):
        far = next(int(instant) for instant in at if not -_FAR <= instant <= _FAR)
        raise InvalidUsage(f"a row is at {far}, beyond 2^61, where there are no sliding windows; filter such rows out")
    if not slide.clamp_start_at_zero or not (at < 0).any():
        return batch
    return batch.filter(pa.array(at >= 0))


@dataclass(frozen=True)
class _Ranges:
    """Windows: the instant each starts at, and the range [lo, hi) of rows that it holds."""

    start: Ints
    lo: Ints
    hi: Ints

    def __len__(self) -> int:
        return len(self.start)

    def where(self, wanted: Bools | Ints) -> _Ranges:
        return _Ranges(self.start[wanted], self.lo[wanted], self.hi[wanted])

    def of(self, bounds: Ints) -> _Ranges:
        """The same over rows, of ranges of what begins at some of them."""
        return _Ranges(self.start, bounds[self.lo], bounds[self.hi])

    def moved(self, by: int) -> _Ranges:
        return _Ranges(self.start, self.lo + by, self.hi + by)


def _together(ranges: Sequence[_Ranges]) -> _Ranges:
    return _Ranges(*(np.concatenate([getattr(part, name) for part in ranges]) for name in ("start", "lo", "hi")))


@dataclass(frozen=True)
class _Block:
    """Rows of which the first `carried` were in a block before; their last was at `before`. Rows of its last group are
    to come, unless it `ends` here."""

    rows: pa.RecordBatch
    slide: Slide
    carried: int
    before: int
    ends: bool

    @classmethod
    def of(
        cls, carried: pa.RecordBatch | None, waiting: Sequence[pa.RecordBatch], slide: Slide, *, ends: bool
    ) -> _Block:
        if carried is None:
            return cls(pa.concat_batches(waiting), slide, 0, 0, ends)
        before = int(integers(carried, AT)[-1])
        return cls(pa.concat_batches([carried, *waiting]), slide, len(carried), before, ends)

    def reached(self) -> pa.RecordBatch:
        """The rows that windows to come hold, or start by: those of the last group, from one before the start of the
        window that ends with its last row."""
        at = integers(self.rows, AT)
        begins = last_start(self.rows, self.slide.together)
        first = begins + int(np.searchsorted(at[begins:], at[-1] - self.slide.size - 1, "left"))
        # A copy: a slice would keep all of the block.
        return self.rows.take(pa.array(np.arange(first, len(at))))

    def windows(self) -> _Ranges:
        """The windows that are complete with this block, and were not with those before."""
        at, begins = integers(self.rows, AT), starts(self.rows, self.slide.together)
        runs = self._runs(at, begins)
        carried = int(np.searchsorted(runs, self.carried))
        windows = _windows(at[runs], begins[runs], self.slide, carried, self.before, self.ends)
        windows = windows.of(np.append(runs, len(at)))
        if self.slide.width is not None:
            chunk = integers(self.rows, CHUNK)[windows.lo]
            windows = windows.where(windows.start // self.slide.width == chunk)
        if self.slide.bounds is not None:
            band = integers(self.rows, BAND)[windows.lo]
            windows = windows.where(np.searchsorted(self.slide.bounds, windows.start, "right") == band)
        return windows

    def _runs(self, at: Ints, begins: Bools) -> Ints:
        """Where the rows of each instant begin."""
        first = begins.copy()
        first[1:] |= at[1:] != at[:-1]
        return np.flatnonzero(first)


def _windows(at: Ints, begins: Bools, slide: Slide, carried: int, before: int, ends: bool) -> _Ranges:
    """The windows of sorted instants, of which groups begin where `begins` says."""
    size, count, first = slide.size, len(at), np.flatnonzero(begins)
    step = np.empty(count, np.int64)
    step[1:] = np.minimum(at[1:] - at[:-1], size + 2)
    step[begins] = size + 2
    if len(first) > 1 and float(step.sum(dtype=np.float64)) > 2 * _FAR:  # windows so large that places would not do
        cut = int(first[max(1, len(first) // 2)])
        head = _windows(at[:cut], begins[:cut], slide, min(carried, cut), before, True)
        tail = _windows(at[cut:], begins[cut:], slide, max(0, carried - cut), before, ends)
        return _together([head, tail.moved(cut)])
    # Places at which instants are as far from each other as in time, as long as a window reaches, and groups farther.
    place = np.cumsum(step)
    every = np.arange(count)
    closed = np.ones(count, bool)
    if not ends:
        closed[first[-1] :] = at[first[-1] :] + (1 + size) < at[-1]
    left = _Ranges(at - size, np.searchsorted(place, place - size, "left"), every + 1).where(
        (every >= carried) & ((at > size) if slide.clamp_start_at_zero else True)
    )
    hi = np.searchsorted(place, place + (1 + size), "right")
    same = place[hi - 1] == place + (1 + size)  # as the window that ends with that instant
    right = _Ranges(at + 1, every + 1, hi).where(closed & (hi > every + 1) & ~same)
    if not slide.clamp_start_at_zero:
        return _together([left, right])
    early = first[at[first] <= size]
    upto = np.searchsorted(place, place[early] + (size - at[early]), "right")
    is_closed = np.ones(len(early), bool)
    if not ends and at[-1] <= size:
        is_closed[early == first[-1]] = False
    if carried and before > size:
        is_closed[early == 0] = False
    return _together([left, right, _Ranges(np.zeros(len(early), np.int64), early, upto).where(is_closed)])


def _batches_of(block: _Block, windows: _Ranges, rows: int, room: int) -> Iterator[pa.RecordBatch]:
    """Windows of a block, some at a time."""
    if not len(windows):
        return
    batch, slide = block.rows, block.slide
    schema, columns = _schema_of(batch.schema, slide), _of_rows(block, windows)
    for first, last in _slices(columns, len(windows), rows, room):
        start = windows.start[first:last]
        group = [batch.column(name).take(pa.array(windows.lo[first:last])) for name in slide.group]
        bounds = [pa.array(start), pa.array(start + slide.size)]
        aggregates = [column.between(first, last) for column in columns]
        yield pa.RecordBatch.from_arrays([*group, *bounds, *aggregates], schema=schema)


@dataclass(frozen=True)
class _WindowColumn:
    """A column of windows: the values of those in [first, last), made when they are asked for, and the
    `sizes` of values in memory where these are not all alike."""

    between: Callable[[int, int], pa.Array]
    sizes: Ints | None = None

    @classmethod
    def of_array(cls, values: pa.Array) -> _WindowColumn:
        return cls(lambda first, last: values.slice(first, last - first))

    @classmethod
    def of_lists(cls, column: Collected, windows: _Ranges) -> _WindowColumn:
        """What grows with a window."""
        lo, hi = windows.lo, windows.hi
        return cls(lambda first, last: column.of(lo[first:last], hi[first:last]), column.bytes_of(lo, hi))


def _of_rows(block: _Block, windows: _Ranges) -> list[_WindowColumn]:
    """The aggregates of windows."""
    ranges = Ranges(windows.lo, windows.hi, integers(block.rows, AT), starts(block.rows, block.slide.together))
    return [_aggregate(aggregate, block.rows, ranges, windows) for aggregate in block.slide.aggregates]


def _aggregate(aggregate: AggregateColumn, rows: pa.RecordBatch, ranges: Ranges, windows: _Ranges) -> _WindowColumn:
    if aggregate.of is None or aggregate.type is not ColumnType.STRING:
        return _WindowColumn.of_array(aggregated(aggregate, rows, ranges))
    column = contiguous(rows.column(aggregate.of))
    if aggregate.function is Function.COLLECT:
        return _WindowColumn.of_lists(Collected.of_rows(aggregate, rows, ranges), windows)
    # A long value may be that of many windows, so it is chosen by its number, and copied when it is asked for.
    numbers, again = ordered(column)
    numbered = pa.array(numbers, mask=pc.is_null(column).to_numpy(zero_copy_only=False))
    chosen = aggregated(aggregate, pa.record_batch([numbered], [aggregate.of]), ranges)
    none = pc.is_null(chosen).to_numpy(zero_copy_only=False)
    places = np.where(none, 0, values(chosen))
    lengths = np.zeros(len(column), np.int64)
    lengths[numbers] = pc.fill_null(pc.binary_length(column), 0).to_numpy()
    return _WindowColumn(
        lambda first, last: again(places[first:last], none[first:last]), np.where(none, 0, lengths[places])
    )


def _slices(columns: Sequence[_WindowColumn], count: int, rows: int, room: int) -> Iterator[tuple[int, int]]:
    """Windows by batches: as many as there is room for, and one at least."""
    sizes = np.zeros(count + 1, np.int64)
    for column in columns:
        if column.sizes is not None:
            sizes[1:] += column.sizes
    running, first = np.cumsum(sizes), 0
    while first < count:
        fitting = int(np.searchsorted(running, running[first] + room, "right")) - 1
        last = min(count, first + rows, max(first + 1, fitting))
        yield first, last
        first = last
