"""What a read answers, in whatever shape it is wanted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.errors import InvalidUsage, MissingExtra, TidemarkError, require
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    import pandas
    import polars

    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation


class Answer(ABC):
    """The rows a read asks for: planned, and not read until they are asked for.

    It may be read several times, by several threads, and is the same each time, whatever is written meanwhile; it
    crosses process boundaries as the question, not the rows. Rows come in order of key and value, in bounded memory
    while the first key column is among the columns.
    """

    def __init__(self, pinned: Pinned, schema: pa.Schema) -> None:
        self._pinned = pinned
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._schema

    @property
    def collection(self) -> str:
        """The name of the collection."""
        return self._pinned.name

    @property
    def version(self) -> int:
        """The version of the collection that answers."""
        return self._pinned.version

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as they are read."""
        try:
            yield from self._batches()
        except (Missing, TidemarkError) as error:
            self._pinned.check_kept(error)
            raise

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, for whatever takes one (DuckDB, pyarrow.parquet, Flight), in bounded memory."""
        return pa.RecordBatchReader.from_batches(self._schema, iter(self))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as Arrow's C stream, by which libraries take each other's tables: `pyarrow.table(answer)`."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """All rows as a table."""
        return pa.Table.from_batches(self, schema=self._schema)

    def count(self) -> int:
        """How many rows the answer has; in an as-of each counts once, whatever its multiplicity."""
        return sum(rows.num_rows for rows in self)

    @abstractmethod
    def explain(self) -> Explanation:
        """What the read opens and why no more: parts, chunks and bytes. Only footers are opened for it. Print it, or
        take its fields."""

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas data frame. Integers and truths are of pandas' nullable types, so that no null turns a
        whole number into a float. MissingExtra without pandas."""
        _require("pandas")
        import pandas

        exact = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
        return self.to_arrow().to_pandas(types_mapper=exact.get)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars data frame. MissingExtra without polars."""
        _require("polars")
        import polars

        frame = polars.DataFrame(self.to_arrow())
        return frame

    def to_spark(self, spark: Any) -> Any:
        """The same rows as a data frame of the session `spark`, read by its executors; their order is not said. Lazy:
        nothing is read until an action asks. Executors need what `tidemark[spark]` brings, and get Tidemark itself from
        here. MissingExtra without `tidemark[spark]`."""
        require("pyspark", "spark")
        if not hasattr(spark, "createDataFrame"):
            raise InvalidUsage(f"spark is {spark!r} ({type(spark).__name__}); give a SparkSession")
        from tidemark.spark.package import ship

        ship(spark)  # first: a function for executors takes with it what the session ships when it is made
        return self._frame(spark)

    @abstractmethod
    def _batches(self) -> Iterator[pa.RecordBatch]: ...

    @abstractmethod
    def _frame(self, spark: Any) -> Any: ...

    @abstractmethod
    def _asked(self) -> list[str]:
        """What was asked, in words."""

    def __repr__(self) -> str:
        columns = ", ".join(self._schema.names)
        return f"<{'; '.join([*self._asked(), f'version {self.version}', f'columns {columns}'])}; not read yet>"


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise MissingExtra(f"{package} is not installed: pip install {package}")
