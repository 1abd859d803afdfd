"""The data source as Spark calls it: `spark.read.format("tidemark")`, `spark.readStream.format("tidemark")`.

Spark makes it in one Python process, asks it for its schema there, pickles it, and asks for the reader in others. So
what the first one found out, the version, the object itself takes along. Spark asks nothing before it plans a query
where the caller gave a schema: then the version is that of the first query's planning. Either way a data frame, and a
view of it, stays at one version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from tidemark.datasource.refusal import one_line
from tidemark.errors import TidemarkError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tidemark.datasource.options import Options
    from tidemark.datasource.rows import QuestionReader
    from tidemark.datasource.stream import ChangesReader, RefusedReader

FORMAT = "tidemark"


class TidemarkSource(DataSource):
    """A collection: its rows as of a time, or what it learned between two; as a stream, what it learns.

    The options are in docs/how-to/read-from-spark.md. The rows have the columns of the same question asked from
    Python, but that a row of multiplicity m is m rows, unless `multiplicity` is true: so `count(*)` counts rows.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._version: int | None = None
        with one_line():
            self._options()

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the answer, at the version that is newest now, or the one that is asked for."""
        from pyspark.sql.pandas.types import from_arrow_schema

        with one_line():
            found = from_arrow_schema(self._schema(), prefer_timestamp_ntz=False)
        return found

    def _schema(self) -> Any:
        from tidemark.datasource.options import named_columns, opened, question
        from tidemark.datasource.rows import answer_schema
        from tidemark.datasource.stream import stream_schema

        options = self._options()
        found = opened(options)
        self._version = found.version
        if not options.is_stream:
            return answer_schema(question(found, options), options)
        return stream_schema(found.state.collection, options, named_columns(options))

    def reader(self, schema: StructType) -> QuestionReader:
        """What reads the answer in the columns of a schema. It has no `pushFilters`: Spark reuses a plan with
        the filters of another one (docs/decisions/0063)."""
        from tidemark.datasource.rows import QuestionReader

        with one_line():
            return QuestionReader(self._options(), self._version, schema)

    def streamReader(self, schema: StructType) -> ChangesReader | RefusedReader:
        """What reads changes, seal by seal, in the columns of a schema."""
        from tidemark.datasource.stream import ChangesReader, RefusedReader

        try:
            return ChangesReader(self._options(), schema)
        except TidemarkError as refusal:
            return RefusedReader(refusal)

    def _options(self) -> Options:
        from tidemark.datasource.options import Options

        return Options(dict(self.options))
