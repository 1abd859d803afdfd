"""One scan of a dataset: some columns of the rows that fit a filter, in whatever shape they are wanted.

It does what Arrow's own Scanner does, in the thread that asks. That one takes batches from Python in threads of its
own: ahead of whoever asks, and also when nobody asks any more. Here Arrow computes upon one batch in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from tidemark.model.condition.tree import Condition

if TYPE_CHECKING:
    import pyarrow.compute as pc

Columns = Sequence[str] | Mapping[str, "pc.Expression"] | None
"""Columns by name, or expressions by the name that they get; None: all."""

Read = Callable[[pa.Schema, Condition], Iterator[pa.RecordBatch]]
"""At least the rows for which a condition is true, in some columns."""


class Scan:
    """The rows that fit `filter`, in `columns`. Each shape reads the same rows again."""

    def __init__(
        self, rows: Read, read: pa.Schema, condition: Condition, columns: Columns, filter: pc.Expression | None
    ) -> None:
        self._rows, self._read, self._condition = rows, read, condition
        self._columns = columns if columns is None or isinstance(columns, Mapping) else list(columns)
        self._filter = filter
        self.projected_schema: pa.Schema = self._computed(read.empty_table()).schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as they are read."""
        for batch in self._rows(self._read, self._condition):
            yield from self._computed(pa.Table.from_batches([batch])).to_batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.to_batches(), schema=self.projected_schema)

    def head(self, rows: int) -> pa.Table:
        """Some rows; no more is read than they need."""
        batches, left = list[pa.RecordBatch](), rows
        for batch in self.to_batches():
            batches.append(batch.slice(0, left))
            left -= batches[-1].num_rows
            if left <= 0:
                break
        return pa.Table.from_batches(batches, schema=self.projected_schema)

    def take(self, indices: pa.Array | Sequence[int]) -> pa.Table:
        """The rows at some places, in the order in which this scan has them."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _computed(self, table: pa.Table) -> pa.Table:
        """Of rows in the columns that are read what is asked for."""
        if self._filter is None and (self._columns is None or isinstance(self._columns, list)):
            return table if self._columns is None else table.select(self._columns)
        return ds.InMemoryDataset(table).to_table(columns=self._columns, filter=self._filter)
