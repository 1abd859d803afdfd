"""Which rows of a file are taken: those for which the source's `only` is true. Of the others nothing else is looked at.

So a row that is left out may have columns of other types, or none of those that are declared.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.jsonlfile import Field
from tidemark.arrow.decode.typed import field_of, typed
from tidemark.arrow.rows.arrays import bools_of
from tidemark.arrow.rows.columns import Bools, Ints
from tidemark.arrow.rows.condition import holds
from tidemark.model.collection import Collection, Column
from tidemark.model.only import condition_of, fields

FIRST_ROWS = 20
"""Rows that are taken whose numbers are remembered: those by which the columns of a file are known."""


class Only:
    """The rows that a collection takes of one file; counts the others.

    Attributes:
        columns: The fields of the condition.
        unseen: Those that no row had so far but as null.
        rows: How many rows were looked at.
    """

    def __init__(self, content: Content, collection: Collection) -> None:
        self._content, self._collection = content, collection
        self._condition = condition_of(collection)
        source = collection.landed.source
        columns = [Column(name, collection.type_of(name)) for name in fields(source.only)]
        self.columns = tuple(columns)
        self.unseen = {column.name for column in columns} - {*source.optional}
        self.rows = 0

    @classmethod
    def of(cls, content: Content, collection: Collection) -> Only | None:
        """None where all rows are taken."""
        return cls(content, collection) if collection.landed.source.only else None

    @property
    def raw(self) -> list[Field]:
        """What is read of a row."""
        return [field_of(self._collection, column) for column in self.columns]

    def keep(self, read: pa.RecordBatch, rows: Ints, is_row: Bools | None = None) -> Bools:
        """Which rows of a block are taken, whose numbers are `rows`; others than `is_row` are none, and not counted.

        Raises:
            BadFile: A field is not of its type.
        """
        names = [column.name for column in self.columns]
        arrays = [typed(self._content, self._collection, each, read.column(each.name), rows) for each in self.columns]
        self.unseen -= {name for name, array in zip(names, arrays, strict=True) if array.null_count < len(array)}
        is_row = np.ones(len(rows), np.bool_) if is_row is None else is_row
        taken = bools_of(holds(self._condition, pa.RecordBatch.from_arrays(arrays, names))) & is_row
        self.rows += int(np.count_nonzero(is_row))
        first = self._content.seen.first_rows
        first += rows[taken][: FIRST_ROWS - len(first)].tolist()
        self.leave(int(np.count_nonzero(is_row & ~taken)))
        return taken

    def leave(self, rows: int) -> None:
        """Count rows that are left out."""
        self._content.seen.left_out += rows

    def refuse(self, name: str, has: str) -> BadFile:
        """The error for a field that no row has."""
        return BadFile(self._content.path, f"only: {name} is in no row, so that all would be left out; {has}")
