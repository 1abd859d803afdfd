"""Paimon on Spark: a primary-key table, an LSM tree in each bucket."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.feed import Fingerprint
from benchmarks.peers.engines import FIELDS
from benchmarks.peers.spark.table import COLUMNS, SCHEMA, SparkTable, fingerprint_of, session

KEYED = SCHEMA.replace("id bigint, code string", "id bigint not null, code string not null")


class Paimon(SparkTable):
    settings = (
        "primary key, 2 buckets, sequence.field happened_at, rowkind.field, changelog-producer lookup, zstd; "
        "sys.compact; sys.expire_snapshots"
    )

    def __init__(self, folder: Path, jars: Sequence[Path]) -> None:
        settings = {
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.lake.warehouse": f"file://{folder}/warehouse",
            "spark.sql.defaultCatalog": "lake",
        }
        super().__init__(session(settings, jars), folder)
        self.spark.sql("create database if not exists lake.db")
        self.spark.sql("use lake.db")

    def ingest(self, day: int, rows: Path) -> None:
        self.arrived(rows)
        if day == 0:
            self.spark.sql(
                f"create table t ({KEYED}, kind string) tblproperties ('primary-key' = 'id,code', 'bucket' = '2', "
                "'sequence.field' = 'happened_at', 'rowkind.field' = 'kind', 'changelog-producer' = 'lookup', "
                "'file.format' = 'parquet', 'file.compression' = 'zstd', 'snapshot.num-retained.min' = '1000', "
                "'snapshot.num-retained.max' = '100000')"
            )
        kind = "case when deleted then '-D' else '+I' end"
        self.spark.sql(f"insert into t select {', '.join(FIELDS)}, {kind} from arrived")

    def maintain(self, day: int) -> None:
        self.spark.sql("call sys.compact(table => 'db.t')").collect()

    def clean(self) -> None:
        self.spark.sql("call sys.expire_snapshots(table => 'db.t', retain_max => 1, retain_min => 1)").collect()

    def newest(self) -> Any:
        return self.spark.sql("select max(snapshot_id) as newest from `t$snapshots`").collect()[0]["newest"]

    def as_of(self, day: int) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from t version as of {self.versions[day]}")

    def changes(self, after: int, upto: int) -> Fingerprint:
        ends = f"{self.versions[after]},{self.versions[upto]}"
        log = self.spark.read.format("paimon").option("incremental-between", ends).table("lake.db.`t$audit_log`")
        multiplicity = "case when rowkind in ('+I', '+U') then 1 else -1 end as multiplicity"
        return fingerprint_of(log.selectExpr(*COLUMNS.split(", "), multiplicity))

    def point(self, id: int, code: str) -> Fingerprint:
        return self.rows(f"select {COLUMNS}, 1 as multiplicity from t where id = {id} and code = '{code}'")
