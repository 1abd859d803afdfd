"""The rows that a collection holds, in no order: for readers that want them as a table has them, each as often as its
multiplicity says.

    parts of which nothing is retracted    plan/unmerged.py, `in_a_bag`; their row groups come as they are, read ahead
    all others                              merged as in any read (`rows_as_of`), by whole keys

So a bag, rows that came and never went, costs what reading its files costs, however many batches hold them. An example:
the trace holds keys 1 to 3 million in three parts of 1 million, and today's batch changed ten keys of the last part.
Two parts are read as they are, in as many threads as the machine has cores; the third is merged with today's.

Memory: two pieces of `PIECE_ROWS` rows for each thread, and the rounds of a merge. A part's row groups are
left out by the same law as in any read (model/chunk/law.py).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tidemark.arrow.kernels.merge import groups_at_once
from tidemark.arrow.parts.reader import OpenedPart
from tidemark.arrow.read import as_of_schema, rows_as_of
from tidemark.arrow.repeated import all_once, each_time, without_negative
from tidemark.arrow.rows.arrays import of_numbers
from tidemark.arrow.rows.columns import values
from tidemark.arrow.rows.schema import DIFF
from tidemark.arrow.runs import Asked, Keep
from tidemark.model.batch import Part
from tidemark.plan.ranges import groups_among
from tidemark.plan.read import ReadRequest, read_tasks
from tidemark.plan.tasks import ReadTask
from tidemark.plan.unmerged import in_a_bag
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.store import ObjectStore

T = TypeVar("T")

Counted = tuple[pa.RecordBatch, pa.Array | None]
"""Rows, and the multiplicity of each; None: that of all is 1."""
PIECE_ROWS = 128 * 1024
"""Rows that are read at once, and come in one batch: of wide rows fewer."""
MOST_THREADS = 8


@dataclass(frozen=True)
class Bag:
    """The rows that a request of `plan_as_of` asks for, in the columns `names`."""

    store: ObjectStore
    request: ReadRequest
    names: Sequence[str]

    @property
    def schema(self) -> pa.Schema:
        """The columns, without a multiplicity."""
        return as_of_schema(self.request.collection, self.names).remove(len(self.names))

    def rows(self, keep: Keep | None = None) -> Iterator[pa.RecordBatch]:
        """Read each row as often as its multiplicity says; of rows that `keep` does not leave, some may be missing.

        Raises InvalidUsage for a whole row of negative multiplicity that `keep` leaves (None: it leaves all), whichever
        columns are read.
        """
        for rows, counts in self._counted(
            partial(without_negative, keep=keep, unshown=self.request.collection.unshown)
        ):
            if counts is None:
                yield rows
            else:
                yield from each_time(rows, values(counts), self.request.collection.unshown)

    def counted(self) -> Iterator[pa.RecordBatch]:
        """The rows with `_multiplicity`, never 0. Rows that are equal in these columns may come several times."""
        schema = as_of_schema(self.request.collection, self.names)
        for rows, counts in self._counted():
            column = of_numbers(np.ones(rows.num_rows, np.int64)) if counts is None else counts
            yield pa.RecordBatch.from_arrays([*rows.columns, column], schema=schema)

    def _counted(self, keep: Keep | None = None) -> Iterator[Counted]:
        """The rows and their multiplicities; of those that are merged what `keep` leaves of whole rows with DIFF."""
        unmerged, merged = self._tasks
        yield from self._as_they_are(unmerged)
        if merged is not None:
            yield from self._merged(merged, keep)

    @cached_property
    def _tasks(self) -> tuple[ReadTask, ReadTask | None]:
        """What is read as it is, and what is merged."""
        request, parts = parts_table.opened_read(self.store, self.request)
        in_bag = in_a_bag(request, parts)
        files = {part.file.key for some in in_bag for part in some.parts}
        (merged,) = read_tasks(request, parts, but=files)
        is_merged = merged.unsealed is not None or any(rest.parts for rest in merged.at_rest)
        return replace(merged, at_rest=in_bag, unsealed=None), merged if is_merged else None

    @property
    def columns(self) -> list[str]:
        """The columns that `rows` reads: all of them where it is whole rows that show a negative multiplicity."""
        collection = self.request.collection
        whole = not collection.kind.one_value and self._tasks[1] is not None
        return [*dict.fromkeys([*self.names, *(column.name for column in collection.columns if whole)]), DIFF]

    def _as_they_are(self, task: ReadTask) -> Iterator[Counted]:
        pieces = (
            partial(self._of_groups, task, part, some.after, groups)
            for some in task.at_rest
            for part in some.parts
            for groups in _pieces(part, groups_among(part, [task.keys]))
        )
        for found in ahead(pieces):
            if found is not None:
                yield found

    def _of_groups(self, task: ReadTask, part: Part, after: int, groups: Sequence[int]) -> Counted | None:
        with OpenedPart(self.store, part) as file:
            groups = Asked(self.store, task, self.names).spanned.among(file, groups)
            if not groups:
                return None
            once = all_once(file.metadata, groups)
            asked = Asked(self.store, task, self.names if once else [*self.names, DIFF])
            rows = asked.of_groups(file, after, groups)
        return self._split(rows, counted=not once)

    def _merged(self, task: ReadTask, keep: Keep | None) -> Iterator[Counted]:
        """Merge by whole keys, so that memory is bounded whatever the columns are, and by whole rows for `keep`.

        Where a key has one value, no multiplicity is negative, and `keep` is not called.
        """
        collection = task.collection
        keep = None if collection.kind.one_value else keep
        needed = collection.columns if keep else collection.key
        columns = list(dict.fromkeys([*(column.name for column in needed), *self.names]))
        for rows in rows_as_of(self.store, task, columns):
            whole = rows.rename_columns([*columns, DIFF])
            yield self._split(keep(whole) if keep else whole, counted=True)

    def _split(self, rows: pa.RecordBatch, *, counted: bool) -> Counted:
        """The columns that are asked for, as the schema has them, and the multiplicity of each row."""
        columns = [rows.column(name) for name in self.names]
        counts = rows.column(DIFF) if counted else None
        return pa.RecordBatch.from_arrays(columns, schema=self.schema), counts


def ahead(work: Iterable[Callable[[], T]]) -> Iterator[T]:
    """What each piece of work gives, in order, a few of them done at once by threads before they are asked for."""
    waiting: deque[Future[T]] = deque()
    threads = min(os.cpu_count() or 1, MOST_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        try:
            for one in work:
                waiting.append(pool.submit(one))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _pieces(part: Part, groups: Sequence[int]) -> Iterator[Sequence[int]]:
    """Row groups that are read together."""
    several = groups_at_once(part, PIECE_ROWS)
    return (groups[start : start + several] for start in range(0, len(groups), several))
