"""What a read answers, in whatever shape it is wanted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemark.api.tabular import Tabular
from tidemark.errors import InvalidUsage, TidemarkError, require
from tidemark.model.condition.tree import Condition
from tidemark.model.instant import format_instant
from tidemark.storage.stores.store import Missing

if TYPE_CHECKING:
    import polars

    from tidemark.api.dataset import CollectionDataset
    from tidemark.api.pinned import Pinned
    from tidemark.arrow.explain import Explanation


class Answer(Tabular):
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

    @property
    def versions(self) -> dict[str, int]:
        """The collection, with the version that answers."""
        return {self.collection: self.version}

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as they are read."""
        try:
            yield from self._batches()
        except (Missing, TidemarkError) as error:
            self._pinned.check_kept(error)
            raise

    @abstractmethod
    def explain(self) -> Explanation:
        """What the read opens and why it skips the rest: parts, chunks and bytes. Only footers are opened for it. Print
        it, or take its fields."""

    def to_spark(self, spark: Any) -> Any:
        """The same rows as a data frame of the session `spark`, read by its executors; their order is not said. Lazy:
        nothing is read until an action asks. Executors need what the extra `spark` brings, and get Tidemark itself from
        here. MissingExtra without the extra `spark`."""
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

    @property
    def complete_below(self) -> int:
        """No row on time is missing from the collection below this, in microseconds."""
        return self._pinned.state.complete_below

    @property
    def question(self) -> str:
        """What was asked, in words."""
        return "; ".join(self._asked())

    @property
    def described(self) -> str:
        """What was asked, in words, of which version, and up to where that is complete."""
        return f"{self.question}; version {self.version}, complete below {format_instant(self.complete_below)}"

    def dataset(self) -> CollectionDataset:
        """The rows as a dataset of Arrow, which reads when it is scanned."""
        from tidemark.api.dataset import CollectionDataset
        from tidemark.api.rows import AnswerRows

        return CollectionDataset(AnswerRows(self._pinned, partial(_always, self), ()))

    def _lazy_polars(self) -> polars.LazyFrame:
        return self.dataset().to_polars()

    def __repr__(self) -> str:
        return f"<{self.described}; columns {', '.join(self._schema.names)}; not read yet>"


def _always(answer: Answer, _: Condition) -> Answer:
    return answer
