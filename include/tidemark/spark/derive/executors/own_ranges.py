"""What executors make of some keys compared with what the collection holds of these. Both come in order, so of each
only a round of a merge is in memory (arrow/kernels/merge.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.kernels.merge import Piece, Run, rounds
from tidemark.arrow.read import updates_of
from tidemark.arrow.rows.schema import updates_schema
from tidemark.model.collection import Collection
from tidemark.plan.tasks import KeyRange, ReadTask
from tidemark.spark.derive.difference import stored
from tidemark.spark.derive.here.diff import diff
from tidemark.spark.derive.parts import Batches, at_rest
from tidemark.spark.derive.views import Views
from tidemark.storage import open_store
from tidemark.storage.documents.codec import decode, encode

NEXT_ROWS = 2**16
"""Rows of either that are in memory, about."""
_IS_STORED = "_is_stored"
"""Whether a row of a round is stored, or made."""


@dataclass(frozen=True)
class OwnRanges:
    """Tasks that read what the collection at `url` holds, of ranges of keys that are numbered; it was corrected to
    `previous`, and is to `at` + 1."""

    url: str
    tasks: tuple[bytes, ...]
    collection: Collection
    previous: int
    at: int

    @classmethod
    def of(cls, views: Views, ranges: Sequence[Sequence[KeyRange]]) -> OwnRanges:
        """What the collection of a computation holds of some ranges of keys each."""
        computation = views.computation
        tasks = tuple(encode(task) for task in views.own_tasks(ranges))
        return cls(computation.url, tasks, computation.collection, computation.previous, computation.upper - 1)

    def diff(self, number: int, made: Batches) -> Batches:
        """By what the collection differs, in the ranges of a number, from updates that are made, which are in order of
        its key."""
        columns = [column.name for column in stored(self.collection)]
        own = updates_of(open_store(self.url), decode(self.tasks[number], ReadTask, name="read task"), columns)
        key = [column.name for column in self.collection.key]
        runs = [Run(self._pieces(some, is_stored), key, NEXT_ROWS) for some, is_stored in ((made, False), (own, True))]
        for batches in rounds(runs, shrink=lambda pieces: pieces):
            yield from diff(self.collection, self.previous, self.at, *self._both(batches))

    def _pieces(self, batches: Batches, is_stored: bool) -> Iterator[Piece]:
        schema = updates_schema(self.collection)
        for rows in batches:
            marks = pa.array(np.full(rows.num_rows, is_stored))
            yield at_rest(rows, self.collection, schema).append_column(_IS_STORED, marks), True

    def _both(self, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows of a round that are made, and those that are stored."""
        rows = pa.Table.from_batches(batches)
        for is_stored in (False, True):
            yield rows.filter(pc.equal(rows.column(_IS_STORED), is_stored)).drop_columns([_IS_STORED])
