"""What a statement of SQL answers: DuckDB's rows, read from the collections that the statement names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.dataset

from tidemark.api.dataset import ExplainedDataset
from tidemark.api.sql.database import Database, Limits, in_one_line
from tidemark.api.sql.statement import FUNCTIONS, Statement
from tidemark.api.sql.tables import Tables
from tidemark.api.tabular import Tabular
from tidemark.errors import InvalidUsage, TidemarkError, Unavailable
from tidemark.model.instant import format_instant
from tidemark.model.nearest import similar

if TYPE_CHECKING:
    from tidemark.arrow.explain import Explanation

T = TypeVar("T")

_MISSING = re.compile(r'Catalog Error: ([\w ]+?) with name (.*?) does not exist!(?: Did you mean "(.*?)"\?)?')
"""What DuckDB says of a name that it does not know: of what kind it is, the name, and the nearest it has."""
BATCH_ROWS = 64 * 1024
INEXACT = {"bignum", "bit", "time with time zone", "uhugeint", "variant"}
"""Types of which DuckDB gives Arrow other values without a word: bytes of its own, no offset, negative numbers."""


class SqlAnswer(Tabular):
    """The rows of a statement over the collections of a root, which were opened at one moment: it answers the same
    however much is written meanwhile. They are computed again each time they are asked for, within limits of memory
    and time; what does not fit is put into a folder that is gone afterwards, if it can be.
    """

    def __init__(
        self,
        root: str,
        statement: Statement,
        parameters: Sequence[Any] | Mapping[str, Any] | None,
        limits: Limits,
    ) -> None:
        self._statement, self._parameters, self._limits = statement, parameters, limits
        database = Database(limits)
        try:
            database.check_select(statement.text)
            self._tables = Tables(root, statement)
            database.hold(self._tables.datasets)
            self._schema: pa.Schema = self._read(database, lambda: _schema_of(self._relation(database)))
        finally:
            database.close()  # an answer that nobody reads holds no folder

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._schema

    @property
    def versions(self) -> dict[str, int]:
        """The collections that the statement reads, each with the version at which it is read."""
        return {name: pinned.version for name, pinned in self._tables.read.items()}

    @property
    def complete_below(self) -> int | None:
        """No row on time is missing below this, of all collections that the statement reads, in microseconds; None
        where it reads none."""
        return min((pinned.state.complete_below for pinned in self._tables.read.values()), default=None)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch, as DuckDB gives them."""
        database = self._database()
        try:
            reader = self._read(database, lambda: self._relation(database).to_arrow_reader(BATCH_ROWS))
            while (batch := self._read(database, lambda: next(reader, None))) is not None:
                if batch.num_rows:  # of columns that are called alike the second has another name in the schema
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        finally:
            database.close()

    def dataset(self) -> pa.dataset.Dataset:
        """All rows, which are computed now, as a dataset of Arrow."""
        return pa.dataset.dataset(self.to_arrow())

    @property
    def described(self) -> str:
        """The collections that are read, and up to where all are complete."""
        read = ", ".join(f"{name} at version {version}" for name, version in self.versions.items())
        below = self.complete_below
        return f"sql over {read or 'no collection'}" + (f", complete below {format_instant(below)}" if below else "")

    def explain(self) -> list[Explanation]:
        """What each read of the statement opens and why it skips the rest, as DuckDB asks for columns and filters. Only
        footers are opened for it; what DuckDB finds out from rows on the way, as of joins, is not known to it."""
        found: list[Explanation] = []
        database = Database(self._limits)
        try:
            database.hold(
                {name: ExplainedDataset(dataset.rows, found) for name, dataset in self._tables.datasets.items()}
            )
            self._read(database, lambda: self._relation(database).to_arrow_table())
        except InvalidUsage as error:
            if "pivot" not in self._statement.names:
                raise
            raise InvalidUsage(
                f"the columns of a PIVOT come from rows, which are not read to explain it; write IN (…): {error}"
            ) from None
        finally:
            database.close()
        return found

    def _database(self) -> Database:
        ready = Database(self._limits)
        ready.hold(self._tables.datasets)
        return ready

    def _relation(self, database: Database) -> duckdb.DuckDBPyRelation:
        return database.connection.sql(self._statement.text, params=self._parameters)

    def _read(self, database: Database, work: Callable[[], T]) -> T:
        """What a piece of work gives; what DuckDB refuses as our errors, in one line. A read of ours that failed within
        DuckDB is raised as itself."""
        try:
            return database.run(work)
        except (duckdb.Error, pa.ArrowInvalid, OSError, MemoryError) as error:
            if (failure := self._tables.failure()) is not None:
                raise failure from None
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> TidemarkError:
        """Why DuckDB refused the statement, and what to do."""
        message = in_one_line(error)
        if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
            return InvalidUsage(
                f"the statement needs more memory than it may use; give it more, or ask for less: {message}"
            )
        if isinstance(error, duckdb.CatalogException) and (missing := _MISSING.match(message)) is not None:
            return self._absent(*missing.groups())
        return (Unavailable if isinstance(error, duckdb.IOException | OSError) else InvalidUsage)(message)

    def _absent(self, kind: str, name: str, near: str | None) -> TidemarkError:
        """Why there is nothing of a kind and name; `near` is what DuckDB has instead."""
        if kind == "Table":
            return self._tables.absent(name)
        if kind == "Table Function":
            near = similar(name, FUNCTIONS) or near
        hint = f"; did you mean {near!r}?" if near else ""
        return InvalidUsage(f"there is no {kind.lower()} {name}{hint}")

    def __repr__(self) -> str:
        return f"<{self.described}; columns {', '.join(self.schema.names)}; not read yet>"


def _schema_of(relation: duckdb.DuckDBPyRelation) -> pa.Schema:
    """The columns of an answer. InvalidUsage for one whose values Arrow would have otherwise."""
    for name, type_ in zip(relation.columns, relation.types, strict=True):
        if _is_inexact(type_):
            raise InvalidUsage(
                f"column {name} is of type {type_}, which no answer has; write CAST(… AS VARCHAR) for it"
            )
    return relation.limit(0).to_arrow_table().schema


def _is_inexact(type_: Any) -> bool:
    """Whether values of a type of DuckDB, or what is nested in them, are not exact in Arrow."""
    if type_.id in ("array", "list", "map", "struct", "tuple", "union"):
        return any(_is_inexact(child) for _, child in type_.children if hasattr(child, "id"))
    return type_.id in INEXACT
