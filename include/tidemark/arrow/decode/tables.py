"""Of which table messages are: they are refused where they are of two, unless `only` says of which they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.arrow.decode import debezium_files
from tidemark.arrow.decode.content import BadFile, Content
from tidemark.arrow.decode.typed import place
from tidemark.arrow.rows.arrays import first_true, of_numbers, scalar_of
from tidemark.arrow.rows.columns import Ints
from tidemark.model.collection import Collection
from tidemark.model.only import NAMES_TABLE, TABLE_FIELDS, fields, table_of, two_tables

TABLES_SEEN = 2
"""Tables of one file that are remembered: so many show that there are several."""


class TableCheck:
    """Sees of which table the messages of a file are.

    Attributes:
        fields: The fields that say it, which no message need have; none where nobody asks.
    """

    def __init__(self, content: Content, collection: Collection) -> None:
        self._content, self._collection = content, collection
        source = collection.landed.source
        self._refuses = source.table is not None and not NAMES_TABLE & set(fields(source.only))
        self.fields = () if NAMES_TABLE & set(fields(source.only)) else TABLE_FIELDS

    def see(self, block: pa.RecordBatch, rows: Ints) -> None:
        """Note the tables of a block of messages, whose numbers are `rows`. Raises BadFile for a second one."""
        has = [name for name in self.fields if name in block.schema.names]
        texts = {name: block.column(name) for name in has if _is_text(block.schema.field(name).type)}
        columns = {name: column for name, column in texts.items() if column.null_count < len(column)}
        if all(column.null_count == 0 and _is_constant(column) for column in columns.values()):
            return self._see({name: column[0].as_py() for name, column in columns.items()}, rows[0] if columns else 0)
        messages = pa.Table.from_arrays([*columns.values(), of_numbers(rows)], [*columns, "row"])
        for message in messages.group_by([*columns]).aggregate([("row", "min")]).sort_by("row_min").to_pylist():
            self._see(message, message["row_min"])
        return None

    def _see(self, message: Mapping[str, Any], row: int) -> None:
        table = table_of({name: value for name, value in message.items() if isinstance(value, str)})
        seen = self._content.seen.tables
        if not table or table in seen:
            return
        before = self._collection.landed.source.table or next(iter(seen), "")
        if self._refuses and before and before != table:
            raise self._refusal(table, before, int(row))
        if len(seen) < TABLES_SEEN:
            seen.add(table)

    def another(self) -> BadFile | None:
        """The error for a message of a second table, where a file is refused: its columns may be the reason."""
        if not self._refuses or self._collection.landed.source.only:
            return None
        before = self._collection.landed.source.table
        try:
            for row, table in debezium_files.tables(self._content, self._collection.landed.source.format):
                if before and table != before:
                    return self._refusal(table, before, row)
                before = table
        except BadFile:
            return None
        return None

    def _refusal(self, table: str, before: str, row: int) -> BadFile:
        where = place(self._content, self._collection.landed.source.format, row)
        return BadFile(self._content.path, f"{where}: {two_tables(table, before)}")


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _is_constant(column: pa.Array) -> bool:
    return bool(first_true(pc.not_equal(column, scalar_of(column[0].as_py(), column.type))) < 0)
