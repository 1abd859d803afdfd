"""A table of Apache Iceberg that holds a collection, by pyiceberg.

The numbers of the collection's columns are the field ids of the table, and those of every file, whether it is a part
of the collection or a copy: so files match by number whatever a column is called, and columns at rest that have no
number, the times and the diff, are in no answer. The table's name mapping has the same columns, for readers that go by
names. A commit is one transaction: columns, files, properties and the snapshots that expire. It rests on the snapshot
it was planned from, and is never tried again by pyiceberg itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntryStatus
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.table.update.snapshot import ExpireSnapshots

from tidemark.errors import InvalidUsage
from tidemark.model.collection import Collection
from tidemark.model.publication import Destination
from tidemark.plan.publish import PREFIX, Mark, TableHead, Way, marked
from tidemark.publish.iceberg_errors import translated
from tidemark.publish.iceberg_files import data_file, iceberg_schema, name_mapping
from tidemark.publish.rows import table_schema
from tidemark.publish.table import Content

FILE_ROWS, GROUP_ROWS = 1_000_000, 131_072
"""About the most rows of a file that is copied, and of a row group in it."""
FOLDER = "_published"
"""Below the root: the catalog and the tables for which nothing else is declared."""
_SETTINGS = {
    "format-version": "2",
    "gc.enabled": "false",
    TableProperties.COMMIT_NUM_RETRIES: "0",
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.MANIFEST_MIN_MERGE_COUNT: "20",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
"""Nobody but Tidemark may remove files by what the table names; a commit is tried once; its metadata stay few."""
_SAME_ROWS_IN_OTHER_FILES = "replace"
"""The operation of a snapshot that holds the same rows in other files."""


def catalog_properties(destination: Destination, root: str) -> dict[str, str]:
    """The properties of a destination's catalog. InvalidUsage where none is declared and SQLite cannot be had."""
    if destination.catalog:
        return dict(destination.catalog)
    if "://" in root:
        raise InvalidUsage(
            f"the root {root} is no local folder, so no SQLite catalog can be in it; declare publish: {{iceberg: "
            "{catalog: NAME}}, a catalog that pyiceberg's configuration describes"
        )
    folder = Path(root).expanduser().resolve() / FOLDER
    # SQLAlchemy decodes the path of a URL, pyiceberg does not.
    catalog = quote(f"{folder}/catalog.db")
    return {"type": "sql", "uri": f"sqlite:///{catalog}", "warehouse": f"file://{folder}/iceberg"}


@dataclass
class IcebergTable:
    """One table, in one catalog (publish/table.py). `root` is that of collections."""

    destination: Destination
    root: str
    _table: Table | None = None
    _let_go: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.destination.table

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog, opened."""
        properties = catalog_properties(self.destination, self.root)
        if not self.destination.catalog:
            Path(properties["warehouse"].removeprefix("file://")).mkdir(parents=True, exist_ok=True)
        with translated(self.where):
            return load_catalog(properties.pop("name", "tidemark"), **properties)

    def head(self, recorded: str) -> TableHead | None:
        with translated(self.where):
            try:
                self._table = self.catalog.load_table(self.where)
            except NoSuchTableError:
                self._table = None
                return None
            return self._head(self._table, recorded)

    def _head(self, table: Table, recorded: str) -> TableHead:
        said = table.properties
        owner = (said.get(PREFIX + "collection", ""), said.get(PREFIX + "incarnation", ""))
        newest = table.current_snapshot()
        retained = tuple(mark for mark in map(_mark, table.metadata.snapshots) if mark is not None)
        return TableHead(
            "" if newest is None else str(newest.snapshot_id),
            0 if newest is None else newest.sequence_number or 0,
            None if newest is None else next(filter(None, map(_mark, _lineage(table, newest))), None),
            owner if owner[0] else None,
            _changed_by(table, newest, recorded),
            retained,
        )

    def named(self) -> frozenset[str]:
        if self._table is None or (newest := self._table.current_snapshot()) is None:
            return frozenset()
        with translated(self.where):
            return frozenset(each.file_path for each in _files(self._table, newest))

    def commit(self, collection: Collection, head: TableHead | None, mark: Mark, content: Content) -> TableHead:
        with translated(self.where, committing=True):
            table = self._table = self._table or self._created(collection, mark)
            written: list[str] = []
            try:
                table = self._committed(table, collection, mark, content, written)
            except Exception:
                if not _may_have_happened(self, written):
                    for path in written:
                        with suppress(Exception):
                            table.io.delete(path)
                raise
            self._table = table
            return self._head(table, str(table.metadata.current_snapshot_id))

    def _created(self, collection: Collection, mark: Mark) -> Table:
        namespace = tuple(self.where.split(".")[:-1])
        with suppress(NamespaceAlreadyExistsError):
            self.catalog.create_namespace(namespace)
        owned = {name: mark.properties[PREFIX + name] for name in ("collection", "incarnation")}
        properties = _SETTINGS | {PREFIX + name: value for name, value in owned.items()}
        return self.catalog.create_table(self.where, iceberg_schema(collection, 0), properties=properties)

    def _committed(
        self, table: Table, collection: Collection, mark: Mark, content: Content, written: list[str]
    ) -> Table:
        transaction = table.transaction()
        schema = iceberg_schema(collection, max(table.schemas()) + 1)
        if schema.fields != table.schema().fields:
            transaction._apply(
                (AddSchemaUpdate(schema=schema), SetCurrentSchemaUpdate.model_validate({"schema-id": -1})), ()
            )
        before = table.properties.get(TableProperties.DEFAULT_NAME_MAPPING)
        names = {TableProperties.DEFAULT_NAME_MAPPING: name_mapping(collection, before)}
        transaction.set_properties(_SETTINGS | names | mark.properties)
        add = [data_file(schema, each.path, each.bytes, each.footer) for each in content.names]
        if content.rows is not None:
            for copied in self._copied(table, schema, collection, content, written):
                add.append(copied)
        newest = table.current_snapshot()
        whole = content.way in (Way.NAME, Way.WHOLE)
        replaced = [f for f in _files(table, newest) if f.file_path not in content.kept] if whole and newest else []
        update = transaction.update_snapshot(snapshot_properties=mark.properties)
        producer = update.overwrite() if replaced else update.merge_append()
        for each in add:
            producer.append_data_file(each)
        for each in replaced:
            producer.delete_data_file(each)
        producer.commit()
        self._expire(table, transaction)
        return transaction.commit_transaction()

    def _copied(
        self, table: Table, schema: Schema, collection: Collection, content: Content, written: list[str]
    ) -> Iterator[DataFile]:
        """Write the rows that are copied, in files of bounded size."""
        assert content.rows is not None
        arrow, places = table_schema(collection), table.location_provider()
        batches = iter(content.rows())
        batch = next(batches, None)
        while batch is not None:
            path = places.new_data_location(f"{uuid4()}.parquet")
            output, rows = table.io.new_output(path), 0
            written.append(path)
            with (
                output.create() as sink,
                pq.ParquetWriter(sink, arrow, compression="zstd", write_page_checksum=True) as writer,
            ):
                group: list[pa.RecordBatch] = []
                while batch is not None and rows < FILE_ROWS:
                    group.append(batch)
                    rows += batch.num_rows
                    batch = next(batches, None)
                    if batch is None or sum(one.num_rows for one in group) >= GROUP_ROWS or rows >= FILE_ROWS:
                        writer.write_table(pa.Table.from_batches(group, arrow), row_group_size=GROUP_ROWS)
                        group = []
            if rows == 0:
                written.remove(path)
                table.io.delete(path)
                continue
            yield data_file(schema, path, len(output), writer.writer.metadata)

    def _expire(self, table: Table, transaction: Any) -> None:
        """Let snapshots go but for the newest `keep`, the one that is to come included."""
        # The current one never goes: `keep` is 2 at least.
        line = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
        going = line[: max(0, len(line) - self.destination.keep + 1)]
        others = {ref.snapshot_id for name, ref in table.metadata.refs.items() if name != "main"}
        going = [one for one in going if one.snapshot_id not in others]
        if not going:
            return
        expire = ExpireSnapshots(transaction)
        expire.by_ids([one.snapshot_id for one in going])
        expire.commit()
        if not others:
            self._let_go += _only_of(table, going)

    def tidy(self) -> int:
        gone, self._let_go = self._let_go, []
        table = self._table
        assert table is not None
        for path in gone:
            with suppress(Exception):
                table.io.delete(path)
        return len(gone)

    def drop(self) -> None:
        with translated(self.where), suppress(NoSuchTableError):
            self.catalog.drop_table(self.where)


def _mark(snapshot: Snapshot) -> Mark | None:
    return None if snapshot.summary is None else marked(snapshot.summary.additional_properties)


def _lineage(table: Table, newest: Snapshot) -> Iterator[Snapshot]:
    """A snapshot and those it came from, as far as they are retained."""
    at: Snapshot | None = newest
    while at is not None:
        yield at
        at = None if at.parent_snapshot_id is None else table.snapshot_by_id(at.parent_snapshot_id)


def _changed_by(table: Table, newest: Snapshot | None, recorded: str) -> str | None:
    """The snapshot that somebody else put in since the one that was recorded, or in its place."""
    if newest is None:
        return "no snapshot" if recorded else None
    for each in _lineage(table, newest):
        if str(each.snapshot_id) == recorded:
            return None
        operation = "" if each.summary is None else str(each.summary.operation.value)
        if _mark(each) is None and operation != _SAME_ROWS_IN_OTHER_FILES:
            return f"snapshot {each.snapshot_id}"
        if recorded and each.parent_snapshot_id is None:
            return f"snapshot {newest.snapshot_id}, which does not come from it"
    return None


def _files(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    """The data files of a snapshot."""
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.content != DataFileContent.DATA:
                raise InvalidUsage("the table has delete files, which Tidemark does not write; publish with --again")
            yield entry.data_file


def _only_of(table: Table, going: Sequence[Snapshot]) -> list[str]:
    """Files of the table's own that only snapshots name which expire: what their successors dropped, and their lists.

    A file that a snapshot drops is named by none that follows, as no file comes back.
    """
    after = {one.parent_snapshot_id: one for one in table.metadata.snapshots}
    own, gone = table.location().rstrip("/") + "/", []
    for one in going:
        successor = after.get(one.snapshot_id)
        if successor is None:
            continue
        kept = {manifest.manifest_path for manifest in successor.manifests(table.io)}
        gone += [m.manifest_path for m in one.manifests(table.io) if m.manifest_path not in kept]
        gone.append(one.manifest_list)
        for manifest in successor.manifests(table.io):
            if manifest.added_snapshot_id == successor.snapshot_id and manifest.deleted_files_count:
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
                gone += [e.data_file.file_path for e in entries if e.status == ManifestEntryStatus.DELETED]
    return [path for path in gone if path.startswith(own)]


def _may_have_happened(published: IcebergTable, written: Sequence[str]) -> bool:
    """Whether a commit that failed may be there all the same: then its files stay. Asked of the catalog."""
    if not written:
        return True
    try:
        table = published.catalog.load_table(published.where)
        newest = table.current_snapshot()
        names = set() if newest is None else {each.file_path for each in _files(table, newest)}
    except Exception:
        return True
    return bool(names & set(written))
