"""The latest row of one key, chunk by chunk (the law: model/chunk/latest.py).

The chunks that can hold the key are opened by falling bound: the last time that a chunk may have, but not above the
time that is asked for. Rows above the bound of what is still shut are settled: no chunk that is still shut can add to
them or retract them. The first with a positive multiplicity is the answer, and the rest stays shut. With `each` every
column has such a search of its own, by the bounds of the rows with a value in it, over the same opened chunks.

An example: of one key chunk A has the times 0 to 40, B 30 to 60, C 50 to 90. At 70 the bounds are 40, 60 and 70. C is
opened. If it holds a row at 65, that is the answer; if its greatest is 55, B may have a later one, or retract it, so
B is opened, too; and A only if neither holds a row above 40.

Rows that are facts still, or full snapshots, are resolved first: they are chosen by their key alone. Where more rows
wait for a decision than memory holds, the search gives up, and all chunks are merged in one pass instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.latest import plain_times
from tidemark.arrow.kernels.merge import BUFFERED_ROWS, LEAST_SHARE, ROW_BYTES, groups_at_once, summed, weight_of_rows
from tidemark.arrow.parts.bounds import chunk_bounds
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.parts.timelines import recorded_unit
from tidemark.arrow.read import ordered_by
from tidemark.arrow.rows.arrays import of_bools
from tidemark.arrow.rows.cuts import joined
from tidemark.arrow.rows.fields import field_id
from tidemark.arrow.rows.memory import memory
from tidemark.arrow.rows.schema import DIFF, updates_schema
from tidemark.arrow.runs import Asked
from tidemark.arrow.winners import Latest, Target, Winners, winners_of
from tidemark.model.batch import Part
from tidemark.model.chunk.bounds import Bounds
from tidemark.model.chunk.forest import Descent, Forest
from tidemark.model.chunk.index import IntervalIndex
from tidemark.model.chunk.latest import may_stop
from tidemark.model.chunk.law import interval_of
from tidemark.model.chunk.metadata import UNKNOWN, Ends
from tidemark.plan.ranges import groups_among
from tidemark.plan.tasks import AtRest, ReadTask
from tidemark.storage.stores.store import ObjectStore

ChunkName = tuple[str, int]
"""The key of a part's object, and the number of a row group in it."""
_Part = tuple[Part, int]
"""A part, and after which time its rows count."""


@dataclass(frozen=True)
class Found:
    """The answer to a task of one key (None: the key has no row), and the chunks that were opened for it."""

    answer: pa.RecordBatch | None
    opened: frozenset[ChunkName]


class _TooMany(Exception):
    """More rows wait for a decision than memory holds."""


def search(store: ObjectStore, task: ReadTask, ask: Latest) -> Found | None:
    """The latest row of the only key of a task; None where too many rows would be in memory at once.

    Raises InvalidUsage, naming the key, where a row that is not before the latest one has a negative multiplicity.
    """
    asked = Asked(store, task, [*ask.read(task.collection), DIFF], ask.keep)
    wanted = BUFFERED_ROWS * ROW_BYTES
    with memory().some("runs", wanted, least=wanted // LEAST_SHARE) as size, ExitStack() as files:
        try:
            return _Search(asked, ask, _Chunks(asked, ask.timeline, files), size // ROW_BYTES).run()
        except _TooMany:
            return None


@dataclass(frozen=True)
class _Chunk:
    """A row group of a part whose rows count from after `after` on."""

    file: OpenedPart
    after: int
    group: int


class _Chunks:
    """The chunks of a task that can hold its key, by falling bound. The footer of a part is opened when its turn
    comes."""

    def __init__(self, asked: Asked, timeline: str, files: ExitStack) -> None:
        self._asked, self._files = asked, files
        self._opened = dict[str, OpenedPart]()
        self._schema = updates_schema(asked.task.collection)
        self._timeline = self._schema.field(timeline)
        self._id = field_id(self._timeline) or 0
        self._unit = recorded_unit(self._timeline.type)
        lower, upper = interval_of(asked.task.spans, self._id)
        self._lower, self._upper = lower, UNKNOWN.last if upper is None else upper
        self._parts = Forest(tuple(IntervalIndex(self._recorded(some)) for some in asked.task.at_rest))

    def _recorded(self, some: AtRest) -> Iterator[tuple[int, int, _Part]]:
        for part in some.parts:
            if ends := _ends(self._today(part.bounds_of(self._id))):
                yield (*ends, (part, some.after))

    def falling(self, target: Target) -> Descent[_Part, _Chunk]:
        """Those that can hold the latest row with a value in the column `target` (None: the latest row)."""
        return Descent(self._parts.falling(self._upper, self._lower), partial(self._of_part, target))

    def _of_part(self, target: Target, one: _Part) -> Iterator[tuple[int, _Chunk]]:
        part, after = one
        file = self._file(part)
        groups = self._asked.spanned.among(file, groups_among(part, [self._asked.task.keys]))
        known = zip(groups, self._bounds(file, groups, target), strict=True)
        index = IntervalIndex((*ends, _Chunk(file, after, group)) for group, ends in known if ends)
        return index.falling(self._upper, self._lower)

    def _bounds(self, file: OpenedPart, groups: Sequence[int], target: Target) -> list[Ends | None]:
        """Of the rows of some row groups, or of those with a value in a column; None: there is no such row."""
        whole = list(map(_ends, chunk_bounds(file, self._timeline, groups)))
        if target is None:
            return whole
        column = self._schema.field(target)
        values = chunk_bounds(file, column, groups)
        said = file.timelines[self._id].present.get(field_id(column) or 0) if self._id in file.timelines else None
        present = [None if said is None else said[group] for group in groups]
        return [
            None if _ends(value) is None else own if some is None else _ends(self._today(Bounds(some.first, some.last)))
            for own, value, some in zip(whole, values, present, strict=True)
        ]

    def _today(self, recorded: Bounds | None) -> Bounds | None:
        return recorded and recorded.over(self._unit)

    def _file(self, part: Part) -> OpenedPart:
        if part.file.key not in self._opened:
            self._opened[part.file.key] = self._files.enter_context(OpenedPart(self._asked.store, part))
        return self._opened[part.file.key]


def _ends(bounds: Bounds | None) -> Ends | None:
    """The first and the last value of some rows (UNKNOWN where nothing is known); None: none of them has a value."""
    if bounds is None:
        return UNKNOWN
    return None if bounds.first is None or bounds.last is None else Ends(bounds.first, bounds.last)


@dataclass
class _Search:
    """What was opened so far, and which of its rows wait for what is still shut."""

    asked: Asked
    ask: Latest
    chunks: _Chunks
    most: int
    """Rows that may wait."""
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    opened: set[ChunkName] = field(default_factory=set)

    def run(self) -> Found:
        """Open chunks until each target is settled."""
        targets = self.ask.targets(self.asked.task.collection)
        pending = {target: self.chunks.falling(target) for target in targets}
        winners = dict[Target, pa.RecordBatch]()
        if self.asked.task.unsealed is not None:
            for rows, _ in self.asked.of_unsealed():
                self._add(rows)
        while True:
            bounds = {target: descent.bound for target, descent in pending.items()}
            winners |= self._settled(bounds)
            left = {target: bound for target, bound in bounds.items() if bound is not None and target not in winners}
            if not left:
                return Found(self._answer(targets, winners), frozenset(self.opened))
            pending = {target: pending[target] for target in left}
            nearest = max(left, key=left.__getitem__)
            self._forget_above(left[nearest])
            self._open(pending[nearest])

    def _settled(self, bounds: Mapping[Target, int | None]) -> dict[Target, pa.RecordBatch]:
        """Of each target the latest row above its bound (None: of all rows), where there is one: nothing that is shut
        can add to these rows, or retract them."""
        collection = self.asked.task.collection
        above = {bound: self._summed_above(bound) for bound in set(bounds.values())}
        found = dict[Target, pa.RecordBatch]()
        for target, bound in bounds.items():
            if (rows := above[bound]) is not None:
                winners = winners_of(rows, collection, self.ask, [target])
                winners.check(collection, self.ask)
                (place,) = winners.latest[target].tolist()
                if place >= 0:
                    found[target] = rows.slice(place, 1)
        return found

    def _summed_above(self, bound: int | None) -> pa.RecordBatch | None:
        """The waiting rows above a bound, each once; None if there are none."""
        chosen = []
        for rows in self.waiting:
            times = plain_times(rows.column(self.ask.timeline))
            if may_stop(int(times.max()), bound):
                chosen.append(rows if bound is None else rows.filter(of_bools(times > bound)))
        if not chosen:
            return None
        names = self.asked.names[:-1]
        resort = ordered_by(self.asked.task.collection, names) != names
        rows = joined(list(summed(chosen, names, resort=resort)))
        return rows if rows.num_rows else None

    def _forget_above(self, bound: int) -> None:
        """Leave out rows above all bounds that are left: they add up to nothing, or have no value that is wanted."""
        waiting, self.waiting = self.waiting, []
        for rows in waiting:
            times = plain_times(rows.column(self.ask.timeline))
            self._add(rows if times.max() <= bound else rows.filter(of_bools(times <= bound)))

    def _open(self, descent: Descent[_Part, _Chunk]) -> None:
        """Open the chunk that comes next, or find out more about its bound."""
        if descent.sharpen():
            return
        bound, chunk = next(descent)
        groups = {chunk.group}
        # Chunks of an equal bound are all needed, so those of one part are read at once.
        most = groups_at_once(chunk.file.part, self.most)
        while len(groups) < most and (other := descent.peek()) and other[0] == bound and other[1].file is chunk.file:
            groups.add(next(descent)[1].group)
        if shut := sorted(group for group in groups if (chunk.file.part.file.key, group) not in self.opened):
            self.opened |= {(chunk.file.part.file.key, group) for group in shut}
            self._add(self.asked.of_groups(chunk.file, chunk.after, shut))

    def _add(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self.waiting.append(rows)
        if sum(map(weight_of_rows, self.waiting)) > self.most:
            raise _TooMany

    def _answer(self, targets: Sequence[Target], winners: Mapping[Target, pa.RecordBatch]) -> pa.RecordBatch | None:
        if None not in winners:
            return None
        rows = joined(list(winners.values()))
        places = {target: place for place, target in enumerate(winners)}
        latest = {target: np.array([places.get(target, -1)]) for target in targets}
        return Winners(rows, latest, {}).answer(self.asked.task.collection, self.ask)
