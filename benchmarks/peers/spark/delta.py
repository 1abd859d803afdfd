"""Delta Lake on Spark: MERGE, change data feed, deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.feed import Fingerprint
from benchmarks.peers.engines import FIELDS
from benchmarks.peers.spark.table import COLUMNS, SCHEMA, SparkTable, session

CAME = "_change_type in ('insert', 'update_postimage')"


def settings_of(folder: Path) -> dict[str, str]:
    """A Spark that knows Delta's tables, below a folder."""
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "2",  # 50 tasks for each look at the log, as the default is
    }


class Delta(SparkTable):
    settings = "MERGE guarded by happened_at, change data feed and deletion vectors on; OPTIMIZE; VACUUM"

    def __init__(self, folder: Path, jars: Sequence[Path]) -> None:
        super().__init__(session(settings_of(folder), jars), folder)

    def ingest(self, day: int, rows: Path) -> None:
        self.arrived(rows)
        if day == 0:
            self.spark.sql(
                f"create table t ({SCHEMA}) using delta tblproperties "
                "('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
            )
            self.spark.sql(f"insert into t select {', '.join(FIELDS)} from arrived order by id, code")
        else:
            self.merge("t")

    def maintain(self, day: int) -> None:
        self.spark.sql("optimize t")

    def clean(self) -> None:
        self.spark.sql("vacuum t retain 0 hours")

    def newest(self) -> Any:
        return self.spark.sql("describe history t limit 1").collect()[0]["version"]

    def as_of(self, day: int) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from t version as of {self.versions[day]}")

    def changes(self, after: int, upto: int) -> Fingerprint:
        first, last = self.versions[after] + 1, self.versions[upto]
        multiplicity = f"case when {CAME} then 1 else -1 end as multiplicity"
        return self.rows(f"select {COLUMNS}, {multiplicity} from table_changes('t', {first}, {last})")

    def point(self, id: int, code: str) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from t where id = {id} and code = '{code}'")
