"""Iceberg on Spark: MERGE, merge-on-read with deletion vectors or copy-on-write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.feed import Fingerprint
from benchmarks.peers.engines import FIELDS
from benchmarks.peers.spark.table import COLUMNS, SCHEMA, SparkTable, session

CAME = "_change_type in ('INSERT', 'UPDATE_AFTER')"


def settings_of(folder: Path) -> dict[str, str]:
    """A Spark whose catalog is of Iceberg tables below a folder."""
    return {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": f"file://{folder}/warehouse",
        "spark.sql.defaultCatalog": "lake",
    }


class Iceberg(SparkTable):
    def __init__(self, folder: Path, jars: Sequence[Path], mode: str) -> None:
        super().__init__(session(settings_of(folder), jars), folder)
        self._mode = mode
        self.settings = f"hadoop catalog, format 3, zstd, MERGE guarded by happened_at, {mode}; rewrite_data_files"
        self.settings += ", rewrite_position_delete_files" if mode == "merge-on-read" else ""
        self.settings += "; expire_snapshots"

    def ingest(self, day: int, rows: Path) -> None:
        self.arrived(rows)
        if day == 0:
            modes = ", ".join(f"'write.{what}.mode' = '{self._mode}'" for what in ("merge", "update", "delete"))
            self.spark.sql(
                f"create table db.t ({SCHEMA}) using iceberg tblproperties ('format-version' = '3', "
                f"'write.parquet.compression-codec' = 'zstd', {modes})"
            )
            self.spark.sql(f"insert into db.t select {', '.join(FIELDS)} from arrived order by id, code")
        else:
            self.merge("db.t")

    def maintain(self, day: int) -> None:
        self.spark.sql("call lake.system.rewrite_data_files(table => 'db.t')")
        if self._mode == "merge-on-read":
            self.spark.sql("call lake.system.rewrite_position_delete_files(table => 'db.t')")

    def clean(self) -> None:
        self.spark.sql(
            "call lake.system.expire_snapshots(table => 'db.t', older_than => timestamp '2999-01-01', retain_last => 1)"
        )

    def newest(self) -> Any:
        found = self.spark.sql("select snapshot_id from db.t.snapshots order by committed_at")
        return found.collect()[-1]["snapshot_id"]

    def as_of(self, day: int) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from db.t version as of {self.versions[day]}")

    def changes(self, after: int, upto: int) -> Fingerprint:
        ends = f"map('start-snapshot-id', '{self.versions[after]}', 'end-snapshot-id', '{self.versions[upto]}')"
        self.spark.sql(
            f"call lake.system.create_changelog_view(table => 'db.t', options => {ends}, changelog_view => 'changed')"
        )
        return self.rows(f"select {COLUMNS}, case when {CAME} then 1 else -1 end as multiplicity from changed")

    def point(self, id: int, code: str) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from db.t where id = {id} and code = '{code}'")
