"""What the Spark peers share: a session of their own, rows as Parquet files, answers as one row of sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.feed import Fingerprint
from benchmarks.peers.engines import FIELDS, KEY, VALUE

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
COLUMNS = ", ".join([*KEY, *VALUE])
SCHEMA = (
    "id bigint, code string, amount bigint, ratio double, label string, happened_at timestamp, reported_at timestamp"
)
SUMS = (
    "coalesce(sum(multiplicity), 0) as rows",
    "coalesce(sum(multiplicity * id), 0) as ids",
    "coalesce(sum(multiplicity * amount), 0) as amounts",
    "coalesce(sum(multiplicity * ratio), 0) as ratios",
    "coalesce(sum(multiplicity * amount * (id % 1009)), 0) as amount_by_id",
    "coalesce(sum(multiplicity * cast(substring(label, 7) as bigint) * (id % 1013)), 0) as label_by_id",
    "coalesce(sum(if(code = concat('code-', lpad(cast(id % 97 as string), 2, '0')), 0, 1)), 0) as odd",
)
"""The fingerprint of benchmarks/feed.py, of every column; and how many rows have a key that was never written."""


def session(settings: Mapping[str, str], jars: Sequence[Path]) -> SparkSession:
    """A Spark of two threads with the peer's jars."""
    builder = SparkSession.builder.master("local[2]").appName("peer")
    for name, value in {**SETTINGS, "spark.jars": ",".join(map(str, jars)), **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def fingerprint_of(rows: DataFrame) -> Fingerprint:
    """That of rows with the columns of key and value, and `multiplicity`. AssertionError for a key that was never
    written."""
    answer: dict[str, Any] = rows.selectExpr(*SUMS).collect()[0].asDict()
    if odd := answer.pop("odd"):
        raise AssertionError(f"{odd} rows with keys that were never written")
    return answer


class SparkTable:
    """What is the same for every peer. Days are noted with the version that a day's commit, or the maintenance after
    it, has made."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.versions: dict[int, Any] = {}

    def newest(self) -> Any:
        """The version of the table now."""
        raise NotImplementedError

    def note(self, day: int) -> None:
        self.versions[day] = self.newest()

    def arrived(self, rows: Path) -> DataFrame:
        """A day's change file, as the temporary view `arrived` too, each key's newest row only: what the makers'
        guides advise before a MERGE."""
        every = self.spark.read.parquet(f"file://{rows}")
        every.createOrReplaceTempView("every")
        columns = ", ".join([*FIELDS, "deleted"])
        last = self.spark.sql(
            f"select {columns} from (select *, row_number() over "
            "(partition by id, code order by happened_at desc) as n from every) where n = 1"
        )
        last.createOrReplaceTempView("arrived")
        return last

    def merge(self, table: str) -> None:
        """A day's rows into a table by SQL's MERGE, guarded by happened_at."""
        updates = ", ".join(f"t.{name} = s.{name}" for name in FIELDS if name not in KEY)
        self.spark.sql(
            f"merge into {table} t using arrived s on t.id = s.id and t.code = s.code "
            "when matched and s.deleted and s.happened_at > t.happened_at then delete "
            f"when matched and s.happened_at > t.happened_at then update set {updates} "
            f"when not matched and not s.deleted then insert ({', '.join(FIELDS)}) "
            f"values ({', '.join(f's.{name}' for name in FIELDS)})"
        )

    def rows(self, query: str) -> Fingerprint:
        return fingerprint_of(self.spark.sql(query))

    def close(self) -> None:
        self.spark.stop()
