"""A table of Delta Lake that holds a collection, by deltalake. All rows are copied.

What the table says of itself is in the metadata of each commit, and that Tidemark made it in an application transaction
of its log, which stays when the log is cleaned up. A commit is tried once, as the version that follows the one that was
read: if another took that version, it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from tidemark.errors import Contention, InvalidUsage, TidemarkError, Unavailable, plain_line
from tidemark.model.collection import Collection
from tidemark.model.publication import Destination
from tidemark.plan.publish import PREFIX, Mark, TableHead, Way, marked
from tidemark.publish.rows import GONE, table_schema
from tidemark.publish.table import Content

FOLDER = "_published/delta"
"""Below the root: the tables for which no path is declared."""
_SAME_ROWS = ("VACUUM START", "VACUUM END", "OPTIMIZE", "CHECKPOINT", "SET TBLPROPERTIES", "UPDATE TABLE METADATA")
"""Operations of others that leave the rows as they are."""
_MOST_VERSIONS = 10_000


@dataclass
class DeltaLakeTable:
    """One table (publish/table.py). `root` is that of collections, `collection` the name of the one it is to hold."""

    destination: Destination
    root: str
    collection: str
    _table: DeltaTable | None = None

    @property
    def where(self) -> str:
        if self.destination.table:
            return self.destination.table
        root = self.root if "://" in self.root else str(Path(self.root).expanduser().resolve())
        return f"{root.rstrip('/')}/{FOLDER}/{self.collection}"

    def head(self, recorded: str) -> TableHead | None:
        with _translated(self.where):
            self._table = None
            if "%" in self.where:
                raise InvalidUsage(
                    f"table {self.where} has a % in its path, which deltalake decodes; choose another path"
                )
            if not DeltaTable.is_deltatable(self.where):
                return None
            self._table = DeltaTable(self.where)
            return self._head(self._table, recorded)

    def _head(self, table: DeltaTable, recorded: str) -> TableHead:
        newest = table.version()
        before = int(recorded) if recorded else -1
        since = table.history(min(newest - before, _MOST_VERSIONS)) if newest > before else []
        mark = self._mark(table)
        foreign = [one["version"] for one in since if not _is_ours(one) and one.get("operation") not in _SAME_ROWS]
        by = f"version {max(foreign)}" if foreign else f"version {newest}" if newest < before else None
        if mark is not None:
            owner: tuple[str, str] | None = (mark.collection, mark.incarnation)
        else:
            owner = (self.collection, "") if table.transaction_version(self._application) is not None else None
        return TableHead(str(newest), newest, mark, owner, by, () if mark is None else (mark,))

    def _mark(self, table: DeltaTable) -> Mark | None:
        """What the newest version says of itself, by the newest of our commits."""
        for most in (1, 20, _MOST_VERSIONS):  # mostly it is the newest of all
            ours = next((one for one in table.history(most) if _is_ours(one)), None)
            if ours is not None:
                return marked({name: value for name, value in ours.items() if name.startswith(PREFIX)})
        return None

    @property
    def _application(self) -> str:
        return f"tidemark/{self.collection}"

    def named(self) -> frozenset[str]:
        return frozenset()

    def commit(self, collection: Collection, head: TableHead | None, mark: Mark, content: Content) -> TableHead:
        assert content.rows is not None, "of Delta all rows are copied"
        schema = table_schema(collection)
        if content.way is Way.MERGE:
            schema = schema.append(pa.field(GONE, pa.bool_(), nullable=False))
        schema = pa.schema([one.with_nullable(True).remove_metadata() for one in schema])
        rows = _Rows(schema, content.rows())
        with _translated(self.where, rows):
            said = CommitProperties(
                custom_metadata=mark.properties,
                max_commit_retries=0,
                app_transactions=[Transaction(self._application, mark.version)],
            )
            if self._table is None:
                if "://" not in self.where:
                    Path(self.where).mkdir(parents=True, exist_ok=True)
                description = f"The collection {collection.name}, published by Tidemark"
                write_deltalake(
                    self.where, rows.reader(), mode="error", description=description, commit_properties=said
                )
                self._table = DeltaTable(self.where)
            elif content.way is Way.MERGE:
                self._merge(self._table, collection, rows, said)
            elif content.way is Way.APPEND:
                write_deltalake(self._table, rows.reader(), mode="append", commit_properties=said)
            else:
                write_deltalake(
                    self._table, rows.reader(), mode="overwrite", schema_mode="overwrite", commit_properties=said
                )
            table = DeltaTable(self.where)
            return self._head(table, str(table.version()))

    def _merge(self, table: DeltaTable, collection: Collection, rows: _Rows, said: CommitProperties) -> None:
        """Keys compare as equal where both are null, too: keys of derived collections may be."""
        same = " AND ".join(f"(stored.`{one.name}` IS NOT DISTINCT FROM new.`{one.name}`)" for one in collection.key)
        columns = {f"`{one.name}`": f"new.`{one.name}`" for one in collection.columns}
        merge = table.merge(rows.reader(), same, "new", "stored", commit_properties=said)
        merge = merge.when_matched_delete(f"new.{GONE}").when_matched_update(columns)
        merge.when_not_matched_insert(columns, f"NOT new.{GONE}").execute()

    def tidy(self) -> int:
        return 0

    def drop(self) -> None:
        """No catalog names it."""


class _Rows:
    """Rows as a stream for deltalake. What they fail with is kept: deltalake says it in words of its own."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema, self._batches = schema, batches
        self.failed: BaseException | None = None

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._each())

    def _each(self) -> Iterable[pa.RecordBatch]:
        try:
            for batch in self._batches:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failed = error
            raise


def _is_ours(commit: dict[str, Any]) -> bool:
    return PREFIX + "collection" in commit


@contextmanager
def _translated(where: str, rows: _Rows | None = None) -> Iterator[None]:
    """Errors of deltalake as ours, in one line that names the table."""
    try:
        yield
    except Exception as error:
        if rows is not None and rows.failed is not None:
            raise rows.failed from None
        if isinstance(error, TidemarkError):
            raise
        said = plain_line((str(error).strip().splitlines() or [type(error).__name__])[0], 300)
        if isinstance(error, CommitFailedError) or "already exists" in said:
            raise Contention(
                f"table {where} was changed by another commit meanwhile ({said}); run the step again"
            ) from error
        if any(word in said.lower() for word in ("credential", "unauthorized", "forbidden", "access denied", "403")):
            raise InvalidUsage(
                f"the store of table {where} refused the credentials, or has none ({said}); set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY"
            ) from error
        if isinstance(error, TableNotFoundError | DeltaError | OSError):
            raise Unavailable(f"table {where} could not be read or written ({said}); run the step again") from error
        raise
