"""A table that a user has in a file: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tidemark.arrow.decode.strict import Misfit, parsed
from tidemark.arrow.rows.columns import contiguous
from tidemark.arrow.rows.shown import as_shown
from tidemark.errors import InvalidUsage
from tidemark.model.collection import ValueType


def read_table(path: str, types: Mapping[str, ValueType]) -> pa.Table:
    """The table in a file, by its ending. Columns of a CSV that are among `types` are read as a collection's source
    files are, an empty cell as null; of others their type is guessed. InvalidUsage for a file that cannot be read."""
    reader = {".csv": _csv, ".parquet": _parquet}.get(Path(path).suffix.lower())
    if reader is None:
        raise InvalidUsage(f"{path}: a table is read from a .csv or a .parquet file")
    try:
        return as_shown(reader(path, types))
    except (OSError, pa.ArrowException) as error:
        raise InvalidUsage(f"{path}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None


def _parquet(path: str, types: Mapping[str, ValueType]) -> pa.Table:
    return pyarrow.parquet.read_table(path)


def _csv(path: str, types: Mapping[str, ValueType]) -> pa.Table:
    texts = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(types, pa.string()))
    table = pyarrow.csv.read_csv(path, convert_options=texts)
    for at, name in enumerate(table.schema.names):
        if name not in types:
            continue
        try:
            column = parsed(contiguous(table.column(name)), types[name], empty_is_null=True)
        except Misfit as misfit:
            row = "" if misfit.index is None else f"row {misfit.index + 1}: "
            raise InvalidUsage(f"{path}: {row}column {name} {misfit.reason}") from None
        table = table.set_column(at, name, column)
    return table
