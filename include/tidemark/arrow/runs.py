"""The runs of a read: its parts and the updates of unsealed rows, each in order and filtered to what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import BUFFERED_ROWS, Piece, Run, among, chained, pieces_of, shared, weight_of
from tidemark.arrow.kernels.updates import updates_of
from tidemark.arrow.parts.chunks import NO_SPANS, Spanned
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.rows.arrays import of_bools
from tidemark.arrow.rows.columns import Bools, integers
from tidemark.arrow.rows.consolidate import forwarded
from tidemark.arrow.rows.fields import field_id
from tidemark.arrow.rows.schema import EVENT_TIME, TIME, key_at_rest, some_of, updates_schema
from tidemark.model.batch import Part
from tidemark.plan.tasks import ALL_KEYS, ReadTask
from tidemark.storage.stores.store import ObjectStore

Keep = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The rows of a batch that are asked for, by their columns of key and value alone."""


def runs_of(
    store: ObjectStore, task: ReadTask, names: Sequence[str], together: Sequence[str], keep: Keep | None = None
) -> list[Run]:
    """The updates of a task, in the columns `names`, as runs in order of the columns `together`; of them those that
    `keep` leaves: it keeps all updates of a row, or none, so what they add up to is the same.

    Parts that follow one another by key are one run, so there are about as many as batches, and they share
    BUFFERED_ROWS in memory. How many updates the unsealed rows become is not known before.
    """
    chains = [(chain, some.after) for some in task.at_rest for chain in chained(some.parts)]
    weights = [weight_of(chain, task.ranges or [task.keys]) for chain, _ in chains]
    unsealed = [] if task.unsealed is None else [BUFFERED_ROWS]
    capacities = shared([*weights, *unsealed], BUFFERED_ROWS)
    asked = Asked(store, task, names, keep)
    pieces = [asked.of_parts(*chain, capacity) for chain, capacity in zip(chains, capacities, strict=False)]
    if task.unsealed is not None:
        pieces.append(asked.of_unsealed())
    return [Run(each, together, capacity) for each, capacity in zip(pieces, capacities, strict=True)]


@dataclass(frozen=True)
class Asked:
    """What a task asks of the rows it meets, in the columns `names`."""

    store: ObjectStore
    task: ReadTask
    names: Sequence[str]
    keep: Keep | None = None

    @cached_property
    def spanned(self) -> Spanned:
        """The rows to which the columns of the task's spans confine it."""
        if not self.task.spans:
            return NO_SPANS
        fields = {field_id(field): field for field in self._schema}
        return Spanned(self.task.spans, tuple(fields[span.column] for span in self.task.spans))

    def of_groups(self, file: OpenedPart, after: int, groups: Sequence[int]) -> pa.RecordBatch:
        """The updates of some row groups of an opened part, in their order, learned after `after`."""
        part, bounds = file.part, self._bounds(after)
        rows = file.read(groups, self.columns_of(part, after))
        inside = among(rows, self.task.ranges or [self.task.keys], key_at_rest(self.task.collection))
        return self._answered(inside, {name: bounds[name] for name in self._tested(part, after)})

    def of_parts(self, parts: Sequence[Part], after: int, capacity: int) -> Iterator[Piece]:
        """The updates of a chain of parts learned after `after`."""
        task, bounds = self.task, self._bounds(after)
        return pieces_of(
            self.store,
            parts,
            task.keys,
            capacity,
            schema=lambda part: self.columns_of(part, after),
            prepare=lambda part, rows: self._answered(rows, {name: bounds[name] for name in self._tested(part, after)}),
            key_columns=key_at_rest(task.collection),
            ranges=task.ranges,
            spanned=self.spanned,
        )

    def columns_of(self, part: Part, after: int) -> pa.Schema:
        """The columns that are read of a part whose rows count from after `after` on. A time column is read only where
        it can matter, and the key where not all keys are asked for."""
        everything = self.task.keys == ALL_KEYS and not self.task.ranges
        key_columns = [] if everything else key_at_rest(self.task.collection)
        return some_of(self._schema, [*self.names, *key_columns, *self._tested(part, after)])

    @cached_property
    def _schema(self) -> pa.Schema:
        return updates_schema(self.task.collection)

    def _bounds(self, after: int) -> dict[str, tuple[int, int]]:
        return {TIME: (after, self.task.upto), EVENT_TIME: (-1, self.task.event_upto)}

    def _tested(self, part: Part, after: int) -> list[str]:
        """The columns of times that some rows of a part may have outside the bounds."""
        by_time = part.first_time <= after or part.last_time > self.task.upto
        by_event_time = part.last_event_time > self.task.event_upto
        return [*([TIME] if by_time else []), *([EVENT_TIME] if by_event_time else [])]

    def of_unsealed(self) -> Iterator[Piece]:
        """The updates that unsealed rows become, by the law the drain will apply."""
        task = self.task
        assert task.unsealed is not None
        bounds = self._bounds(task.after)
        key_columns = key_at_rest(task.collection)
        for rows in updates_of(self.store, task.unsealed):
            rows = among(rows, task.ranges, key_columns) if task.ranges else rows
            yield self._answered(rows, bounds), True

    def _answered(self, rows: pa.RecordBatch, bounds: dict[str, tuple[int, int]]) -> pa.RecordBatch:
        """The rows within bounds `(after, upto]`, times as a compaction would leave them, whether or not one has
        run yet."""
        inside: Bools = np.ones(rows.num_rows, bool)
        for name, (after, upto) in bounds.items():
            times = integers(rows, name)
            inside &= (times > after) & (times <= upto)
        rows = rows if inside.all() else rows.filter(of_bools(inside))
        rows = self.spanned.holding(rows)
        rows = (self.keep(rows) if self.keep else rows).select(list(self.names))
        return forwarded(rows, self.task.function, [name for name in (TIME, EVENT_TIME) if name in self.names])
