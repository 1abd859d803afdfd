"""Rows as a program gives them, as Arrow batches of a landed collection's source columns: exact, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.api.values import value_of
from tidemark.arrow.decode.content import MAX_ROW_BYTES
from tidemark.arrow.decode.source import source_columns
from tidemark.arrow.decode.strict import Misfit, fitted
from tidemark.arrow.decode.typed import wrong_value
from tidemark.arrow.rows.columns import one_batch
from tidemark.arrow.rows.encode import check_plain, check_writable
from tidemark.arrow.rows.schema import arrow_type
from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection, Column, ColumnType
from tidemark.model.nearest import nearest


class RowReader:
    """Makes batches of the columns that a collection's files must have, key first."""

    def __init__(self, collection: Collection) -> None:
        check_plain(collection.name, collection.landed.source)
        self._collection = collection
        self.columns = source_columns(collection)
        self.schema = pa.schema([(column.name, arrow_type(column.type)) for column in self.columns])
        self._names = [column.name for column in self.columns]

    def of_row(self, row: Mapping[str, Any]) -> pa.RecordBatch:
        """One row, values by column; a column that is absent is null. InvalidUsage for what no file may hold."""
        self._check_names([*row])
        arrays = []
        for column, field in zip(self.columns, self.schema, strict=True):
            given = row.get(column.name)
            if column.type is ColumnType.STRING and isinstance(given, bytes | bytearray | memoryview):
                raise InvalidUsage(
                    f"column {column.name} is of type string; {type(given).__name__} is no text, decode it"
                )
            value = value_of(column.name, given, field.type, column.type is ColumnType.JSON)
            arrays.append(self._checked(column, pa.array([value], field.type), ""))
        return self._batch(arrays)

    def of_arrow(self, rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
        """Rows of Arrow, whose columns must be of the declared types or fit them without loss."""
        names = list(rows.schema.names)
        self._check_names(names)
        if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise InvalidUsage(f"column {repeated[0]} is there {names.count(repeated[0])} times; give it once")
        batch = one_batch(rows) if isinstance(rows, pa.Table) else rows
        arrays = []
        for column in self.columns:
            given = batch.column(column.name) if column.name in names else pa.nulls(batch.num_rows)
            try:
                arrays.append(self._checked(column, fitted(given, column.type), "row {} of the batch: "))
            except Misfit as misfit:
                where = "" if misfit.index is None else f"row {misfit.index + 1} of the batch: "
                reason = misfit.reason.replace("the file has", "the batch has")
                raise InvalidUsage(f"{where}column {column.name} {reason}") from None
        # A copy: what the caller does with its buffers afterwards changes nothing that waits.
        return self._batch(arrays).take(pa.array(np.arange(batch.num_rows)))

    def _check_names(self, names: list[str]) -> None:
        if unknown := [name for name in names if name not in self._names]:
            raise InvalidUsage(
                f"{self._collection.name} has no column {unknown[0]!r}{nearest(str(unknown[0]), self._names)}"
            )

    def _checked(self, column: Column, array: pa.Array, where: str) -> pa.Array:
        if (wrong := wrong_value(self._collection, column, array)) is not None:
            problem, at = wrong
            raise InvalidUsage(f"{where.format(at + 1)}column {column.name} {problem}")
        check_writable(self._collection.name, column, array, self._collection.landed.source)
        return array

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        if batch.nbytes > MAX_ROW_BYTES:
            for at in range(batch.num_rows):
                if (size := batch.slice(at, 1).nbytes) > MAX_ROW_BYTES:
                    raise InvalidUsage(f"row {at + 1} has {size:,} bytes; a row has at most {MAX_ROW_BYTES:,}")
        return batch
