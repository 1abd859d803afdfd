"""Sliding windows over a stream of cells: for each instant t of a group the window [t - size, t] that ends with it, and
[t + 1, t + 1 + size] after it if that holds a cell, each start once.

Cells come in order of group and instant, each instant of a group once. Each window is a range of cells, so what it
holds is told by differences of running sums, and the like, for many windows at once, and no cell is read again for each
window that it is in. What is carried from one block of cells to the next is what windows that are to come reach: no
more than two windows hold. A block is as large as what was carried, so that each cell is carried a few times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.windows.merged import Lists, Texts, grows, merged
from tidemark.arrow.rows.columns import Bools, Ints, contiguous, integers
from tidemark.arrow.rows.order import starts
from tidemark.definition.recipe import BAND
from tidemark.definition.state import Op, State
from tidemark.errors import InvalidUsage

AT, CHUNK = "_at", "_chunk"
"""The columns of cells that say at which instant, and for which chunk of starts, if windows are told by chunks."""
START, END = "_start", "_end"
"""The columns of windows: both bounds belong to the window."""
ROWS = 16_384
ROOM = 32 << 20
"""Windows of a batch that is told, and about how many bytes of what grows with a window."""
_FAR = 1 << 61


@dataclass(frozen=True)
class Slide:
    """How to slide: cells are together where they are equal in `group`; the windows' `size`; whether none starts below
    0 (then cells below 0 are in none). With a `width` cells have the column CHUNK, are together by it too, and of
    chunk c the windows that start in [c * width, (c + 1) * width) are told: it must hold all cells from one before
    these starts to `size` after them. With `bounds`, which ascend, the same holds of the column BAND: of band b those
    are told that start at bounds[b - 1] or later, and before bounds[b]."""

    group: tuple[str, ...]
    size: int
    states: tuple[State, ...]
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
    """The windows of a stream of cells: the columns of the group, START, END (int64), and the states of each.

    Raises InvalidUsage for an instant beyond 2^61, Overflowed (sums.py) for a sum that does not fit.
    """
    for block in _blocks(batches, slide):
        yield from _told(block, block.windows(), rows, room)


def sliding_in_order(batches: Iterable[pa.RecordBatch], slide: Slide) -> Iterator[pa.RecordBatch]:
    """The same in order of group and START, for states that do not grow with a window. What is in memory besides are
    the windows that start within a window's size of the last cell: those to come may start between them."""
    waiting: list[pa.RecordBatch] = []
    for block in _blocks(batches, slide):
        windows, groups = block.windows(), np.cumsum(starts(block.cells, slide.together))
        windows = windows.where(np.lexsort((windows.start, groups[windows.lo])))
        of, held = groups[windows.lo], sum(map(len, waiting))
        told = [*waiting, *_told(block, windows, len(windows) + 1, ROOM)]
        waiting = []
        if not told:
            continue
        found = pa.concat_batches(told)
        if held:  # they are of the group that the block begins with, as the cells are that were carried
            begun = held + int(np.searchsorted(of, groups[0], "right"))
            first = np.argsort(integers(found, START)[:begun], kind="stable")
            found = found.take(pa.array(np.append(first, np.arange(begun, len(found)))))
        done = len(found)
        if not block.ends:
            last = 0 if groups[-1] == groups[0] else held + int(np.searchsorted(of, groups[-1], "left"))
            upto = integers(block.cells, AT)[-1] - slide.size
            done = last + int(np.searchsorted(integers(found, START)[last:], upto, "left"))
            waiting = [found.slice(done)] if done < len(found) else []
        if done:
            yield found.slice(0, done)


def _blocks(batches: Iterable[pa.RecordBatch], slide: Slide) -> Iterator[_Block]:
    """Cells as blocks, each with what its windows reach of those before."""
    carried: pa.RecordBatch | None = None
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        some = _countable(batch, slide)
        if not some.num_rows:  # what waits may be the last there is
            continue
        if waiting and sum(map(len, waiting)) >= (0 if carried is None else len(carried)):
            block = _Block.of(carried, waiting, slide, ends=False)
            yield block
            carried, waiting = block.reached(), []
        waiting.append(some)
    if waiting:
        yield _Block.of(carried, waiting, slide, ends=True)


def schema_of(cells: pa.Schema, slide: Slide) -> pa.Schema:
    """The columns of windows over cells with these columns."""
    bounds = [pa.field(START, pa.int64()), pa.field(END, pa.int64())]
    states = [pa.field(state.name, _type_of(state, cells.field(state.name).type)) for state in slide.states]
    return pa.schema([*(cells.field(name) for name in slide.group), *bounds, *states])


def _type_of(state: State, of: pa.DataType) -> pa.DataType:
    if state.op is Op.DISTINCT:
        return pa.int64()
    return of.value_type if state.op is Op.QUANTILE else of


def _countable(batch: pa.RecordBatch, slide: Slide) -> pa.RecordBatch:
    """The cells that are in any window. Raises InvalidUsage for an instant that is too far to be counted from."""
    at = integers(batch, AT)
    if len(at) and (int(at.min()) < -_FAR or int(at.max()) > _FAR):
        far = next(int(one) for one in at if not -_FAR <= one <= _FAR)
        raise InvalidUsage(f"a row is at {far}, beyond 2^61, where there are no sliding windows; filter such rows out")
    if not slide.clamp_start_at_zero or not (at < 0).any():
        return batch
    return batch.filter(pa.array(at >= 0))


@dataclass(frozen=True)
class _Ranges:
    """Windows: the instant each starts at, and the range [lo, hi) of cells that it holds."""

    start: Ints
    lo: Ints
    hi: Ints

    def __len__(self) -> int:
        return len(self.start)

    def where(self, wanted: Bools | Ints) -> _Ranges:
        return _Ranges(self.start[wanted], self.lo[wanted], self.hi[wanted])

    def moved(self, by: int) -> _Ranges:
        return _Ranges(self.start, self.lo + by, self.hi + by)


def _together(some: Sequence[_Ranges]) -> _Ranges:
    return _Ranges(*(np.concatenate([getattr(one, name) for one in some]) for name in ("start", "lo", "hi")))


@dataclass(frozen=True)
class _Block:
    """Cells of which the first `carried` were in a block before; their last was at `before`. Cells of its last group
    are to come, unless it `ends` here."""

    cells: pa.RecordBatch
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
        """The cells that windows to come hold, or are told by: those of the last group, from one before the start of
        the window that ends with its last cell."""
        at = integers(self.cells, AT)
        begins = int(np.flatnonzero(starts(self.cells, self.slide.together))[-1])
        first = begins + int(np.searchsorted(at[begins:], at[-1] - self.slide.size - 1, "left"))
        # A copy: a slice would keep all of the block.
        return self.cells.take(pa.array(np.arange(first, len(at))))

    def windows(self) -> _Ranges:
        """The windows that are complete with this block, and were not with those before."""
        at, begins = integers(self.cells, AT), starts(self.cells, self.slide.together)
        found = _windows(at, begins, self.slide, self.carried, self.before, self.ends)
        if self.slide.width is not None:
            chunk = integers(self.cells, CHUNK)[found.lo]
            found = found.where(found.start // self.slide.width == chunk)
        if self.slide.bounds is not None:
            band = integers(self.cells, BAND)[found.lo]
            found = found.where(np.searchsorted(self.slide.bounds, found.start, "right") == band)
        return found


def _windows(at: Ints, begins: Bools, slide: Slide, carried: int, before: int, ends: bool) -> _Ranges:
    """The windows of sorted cells at these instants, of which groups begin where `begins` says."""
    size, count, first = slide.size, len(at), np.flatnonzero(begins)
    step = np.empty(count, np.int64)
    step[1:] = np.minimum(at[1:] - at[:-1], size + 2)
    step[begins] = size + 2
    if len(first) > 1 and float(step.sum(dtype=np.float64)) > 2 * _FAR:  # windows so large that places would not do
        cut = int(first[max(1, len(first) // 2)])
        one = _windows(at[:cut], begins[:cut], slide, min(carried, cut), before, True)
        other = _windows(at[cut:], begins[cut:], slide, max(0, carried - cut), before, ends)
        return _together([one, other.moved(cut)])
    # Places at which cells are as far from each other as in time, as long as a window reaches, and groups farther.
    place = np.cumsum(step)
    every = np.arange(count)
    closed = np.ones(count, bool)
    if not ends:
        closed[first[-1] :] = at[first[-1] :] + (1 + size) < at[-1]
    left = _Ranges(at - size, np.searchsorted(place, place - size, "left"), every + 1).where(
        (every >= carried) & ((at > size) if slide.clamp_start_at_zero else True)
    )
    hi = np.searchsorted(place, place + (1 + size), "right")
    same = place[hi - 1] == place + (1 + size)  # as the window that ends with that cell
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


def _told(block: _Block, windows: _Ranges, rows: int, room: int) -> Iterator[pa.RecordBatch]:
    """Windows of a block, some at a time."""
    cells, slide = block.cells, block.slide
    if not len(windows):
        return
    schema = schema_of(cells.schema, slide)
    columns = {state.name: contiguous(cells.column(state.name)) for state in slide.states}
    growing: dict[str, Lists | Texts] = {
        state.name: (Texts if state.op is Op.TEXT else Lists)(columns[state.name])
        for state in slide.states
        if grows(state.op)
    }
    sized = {
        state.name: merged(state, columns[state.name], windows.lo, windows.hi)
        for state in slide.states
        if not grows(state.op)
    }
    for first, last in _slices(windows, growing, rows, room):
        some = slice(first, last)
        lo, hi, start = windows.lo[some], windows.hi[some], windows.start[some]
        group = [cells.column(name).take(pa.array(lo)) for name in slide.group]
        bounds = [pa.array(start), pa.array(start + slide.size)]
        states = [
            growing[state.name].of(lo, hi) if state.name in growing else sized[state.name].slice(first, last - first)
            for state in slide.states
        ]
        yield pa.RecordBatch.from_arrays([*group, *bounds, *states], schema=schema)


def _slices(windows: _Ranges, growing: Mapping[str, Lists | Texts], rows: int, room: int) -> Iterator[tuple[int, int]]:
    """Windows by batches: as many as there is room for, and one at least."""
    sizes = np.zeros(len(windows) + 1, np.int64)
    for column in growing.values():
        sizes[1:] += column.bytes_of(windows.lo, windows.hi)
    running, first = np.cumsum(sizes), 0
    while first < len(windows):
        fitting = int(np.searchsorted(running, running[first] + room, "right")) - 1
        last = min(len(windows), first + rows, max(first + 1, fitting))
        yield first, last
        first = last
