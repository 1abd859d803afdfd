"""Hudi on Spark: upserts into a merge-on-read table, change data capture on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.feed import Fingerprint
from benchmarks.peers.spark.table import COLUMNS, SCHEMA, SparkTable, fingerprint_of, session

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id,code",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.precombine.field": "happened_at",
    "hoodie.table.cdc.enabled": "true",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
}


class Hudi(SparkTable):
    settings = "merge on read, upserts ordered by happened_at, zstd, change data capture; run_compaction; run_clean"

    def __init__(self, folder: Path, jars: Sequence[Path]) -> None:
        settings = {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        }
        super().__init__(session(settings, jars), folder)
        self._path = f"file://{folder}/t"

    def ingest(self, day: int, rows: Path) -> None:
        changed = self.arrived(rows).withColumnRenamed("deleted", "_hoodie_is_deleted")
        operation = "upsert" if day else "bulk_insert"
        writer = changed.write.format("hudi").options(**OPTIONS).option("hoodie.datasource.write.operation", operation)
        writer.mode("append" if day else "overwrite").save(self._path)
        if day == 0:
            self.spark.sql(f"create table t using hudi location '{self._path}'")

    def maintain(self, day: int) -> None:
        self.spark.sql(f"call run_compaction(op => 'scheduleAndExecute', path => '{self._path}')").collect()

    def clean(self) -> None:
        self.spark.sql("call run_clean(table => 't', retain_commits => 1)").collect()

    def newest(self) -> Any:
        """When the newest commit of rows began, by which states are asked for, and ended, by which changes are."""
        done = (self.folder / "t" / ".hoodie" / "timeline").glob("*_*.*commit")
        return max(tuple(path.name.split(".")[0].split("_")) for path in done)

    def _read(self, **options: str) -> Any:
        return self.spark.read.format("hudi").options(**options).load(self._path)

    def as_of(self, day: int) -> Fingerprint:
        rows = self._read(**{"as.of.instant": self.versions[day][0]})
        return fingerprint_of(rows.selectExpr(*COLUMNS.split(", "), "1 as multiplicity"))

    def changes(self, after: int, upto: int) -> Fingerprint:
        rows = self._read(
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.query.incremental.format": "cdc",
                "hoodie.datasource.read.begin.instanttime": self.versions[after][1],
                "hoodie.datasource.read.end.instanttime": self.versions[upto][1],
            }
        )
        rows.createOrReplaceTempView("captured")
        json = SCHEMA.replace("timestamp", "string")
        sides = " union all ".join(
            f"select inline(array(from_json({side}, '{json}'))), {count} as multiplicity "
            f"from captured where {side} is not null"
            for side, count in (("before", -1), ("after", 1))
        )
        return self.rows(f"select {COLUMNS}, multiplicity from ({sides})")

    def point(self, id: int, code: str) -> Fingerprint:
        rows = self._read().where(f"id = {id} and code = '{code}'")
        return fingerprint_of(rows.selectExpr(*COLUMNS.split(", "), "1 as multiplicity"))
