"""Rows in whatever shape they are wanted: what every answer can be turned into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from tidemark.errors import require

if TYPE_CHECKING:
    import os

    import duckdb
    import pandas
    import polars
    import pyarrow.dataset

    from tidemark.api.export import Exported


class Tabular(ABC):
    """Rows that are read again each time they are asked for."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as they are read."""

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, for whatever takes one (DuckDB, pyarrow.parquet, Flight), in bounded memory."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as Arrow's C stream, by which libraries take each other's tables: `pyarrow.table(answer)`."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return pa.Table.from_batches(self, schema=self.schema)

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows as a table; no more is read than they need."""
        batches, left = [], rows
        for batch in self:
            batches.append(batch.slice(0, left))
            left -= batches[-1].num_rows
            if left <= 0:
                break
        return pa.Table.from_batches(batches, schema=self.schema)

    def count(self) -> int:
        """How many rows there are; in an as-of each counts once, whatever its multiplicity."""
        return sum(rows.num_rows for rows in self)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        partition_by: str | None = None,
        replace: bool = False,
    ) -> Exported:
        """Write all rows to a file (.parquet, .csv, .jsonl), or with `partition_by` into a folder with a file for each
        value of that column. It appears whole: a reader finds what was there before, or all of it.

        With `replace` a file that is there is replaced, and a folder that contains only what an export wrote.

        Raises InvalidUsage for a format, a column and a place that cannot be; Contention while another export to that
        place is running; Unwritable where it cannot be written.
        """
        from tidemark.api.export import export

        options: dict[str, Any] = {"format": format, "partition_by": partition_by, "replace": replace}
        return export(self.__iter__, self.schema, path, versions=self.versions, **options)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas data frame. Integers and truths have pandas' nullable types, so that no null turns a
        whole number into a float. MissingExtra without pandas."""
        require("pandas")
        import pandas

        exact = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        return self.to_arrow().to_pandas(types_mapper=exact.get)

    @overload
    def to_polars(self, lazy: Literal[False] = False) -> polars.DataFrame: ...

    @overload
    def to_polars(self, lazy: Literal[True]) -> polars.LazyFrame: ...

    def to_polars(self, lazy: bool = False) -> polars.DataFrame | polars.LazyFrame:
        """All rows as a polars data frame; `lazy` as a frame that reads when it is collected, and only the columns and
        chunks that it needs. MissingExtra without polars."""
        require("polars")
        import polars

        return self._lazy_polars() if lazy else polars.DataFrame(self.to_arrow())

    def _lazy_polars(self) -> polars.LazyFrame:
        import polars

        return polars.DataFrame(self.to_arrow()).lazy()

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, on a `connection` or DuckDB's own; it reads when it is asked, and only the
        columns and chunks that it needs. MissingExtra without the extra `sql`."""
        require("duckdb", "sql")
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.dataset())

    @abstractmethod
    def dataset(self) -> pyarrow.dataset.Dataset:
        """The rows as a dataset of Arrow, which reads when it is scanned, and only what is asked for."""

    @property
    @abstractmethod
    def versions(self) -> dict[str, int]:
        """The collections that are read, each with the version at which it is read."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What is answered, in words, and by what."""

    def _repr_html_(self) -> str:
        """The first rows, for a notebook."""
        from tidemark.api.notebook import ROWS, of_rows

        return of_rows(self.head(ROWS + 1), self.described)
