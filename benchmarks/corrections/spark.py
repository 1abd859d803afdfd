"""Delta and Iceberg on Spark: all rows that were reported, a partition a day; a corrected file by MERGE, or its day
written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.corrections.history import History
from benchmarks.feed import DAY, START, Fingerprint
from benchmarks.peers.spark import delta, iceberg
from benchmarks.peers.spark.table import COLUMNS, SCHEMA, SUMS, session
from benchmarks.workload import plus
from tidemark.model.collection import Envelope

MERGE = "MERGE"
OVERWRITTEN = "the day overwritten"
DIFFERS = " or ".join(f"t.{name} != s.{name}" for name in ("amount", "ratio", "label", "reported_at"))
DAY_OF = f"cast(floor((unix_micros(happened_at) - {START}) / {DAY}) as int)"


class _Peer:
    table = "t"
    ways = (MERGE, OVERWRITTEN)

    def __init__(self, folder: Path, history: History, settings: Mapping[str, str], jars: Sequence[Path]) -> None:
        self._history = history
        self.spark = session(settings, jars)
        deleted = ", deleted boolean" if history.envelope is Envelope.UPSERT else ""
        self._schema = f"{SCHEMA}{deleted}, day int, file int"
        self._columns = [field.split()[0] for field in self._schema.split(", ")]

    def _create(self, properties: str, using: str) -> None:
        table = f"{self.table} ({self._schema}) using {using} partitioned by (day)"
        self.spark.sql(f"create table {table} tblproperties ({properties})")

    def load(self, landing: Path) -> None:
        paths = [path for number in range(self._history.days) for path in self._history.paths(landing, number)]
        self._arrived(paths)
        self.spark.sql(f"insert into {self.table} select * from arrived order by day")

    def _arrived(self, paths: Sequence[Path]) -> None:
        """The rows of some files as the view `arrived`, in the columns of the table."""
        rows = self.spark.read.parquet(*(f"file://{path}" for path in paths))
        known = [name for name in self._columns if name not in ("day", "file")]
        file = "cast(substring_index(_metadata.file_name, '.', 1) as int) as file"
        rows.selectExpr(*known, f"{DAY_OF} as day", file).createOrReplaceTempView("arrived")

    def correct(self, way: str, number: int, landing: Path) -> None:
        if way == OVERWRITTEN:
            self._arrived(self._history.paths(landing, number))
            self.overwrite(number)
            return
        file = self._history.corrected_file(number)
        self._arrived([self._history.path(landing, number, file)])
        inside = f"t.day = {number} and t.file = {file}"
        names, values = ", ".join(self._columns), ", ".join(f"s.{name}" for name in self._columns)
        changed = ", ".join(f"t.{name} = s.{name}" for name in self._columns)
        self.spark.sql(
            f"merge into {self.table} t using arrived s "
            f"on {inside} and t.id = s.id and t.happened_at = s.happened_at "
            f"when matched and ({DIFFERS}) then update set {changed} "
            f"when not matched then insert ({names}) values ({values}) "
            f"when not matched by source and {inside} then delete"
        )

    def overwrite(self, number: int) -> None:
        """Put `arrived` in the place of a day's rows."""
        raise NotImplementedError

    def settle(self, number: int) -> None:
        """Nothing: maintenance is left to its owner's schedule."""

    def by_day(self) -> list[Fingerprint]:
        updates = f"select {COLUMNS}, day, 1 as multiplicity from {self.table}"
        if self._history.envelope is Envelope.UPSERT:
            updates = (
                f"select {COLUMNS}, explode(if(next is null, array(struct(day, 1 as multiplicity)), "
                "array(struct(day, 1 as multiplicity), struct(next as day, -1 as multiplicity)))) as at from "
                "(select *, lead(day) over (partition by id, code order by happened_at) as next "
                f"from {self.table}) where not deleted"
            )
            updates = f"select {COLUMNS}, at.day, at.multiplicity from ({updates})"
        found = self.spark.sql(f"select day, {', '.join(SUMS)} from ({updates}) group by day order by day").collect()
        sums = {row["day"]: {name: row[name] for name in row.asDict() if name not in ("day", "odd")} for row in found}
        total: Fingerprint = {}
        answer = []
        for number in range(self._history.days):
            total = plus(total, sums.get(number, dict.fromkeys(total, 0)))
            answer.append(total)
        return answer

    def close(self) -> None:
        self.spark.stop()


class Delta(_Peer):
    settings = (
        "zstd, deletion vectors, a partition a day; MERGE by id and happened_at within day and file, rows that are "
        "gone deleted; replaceWhere"
    )

    def __init__(self, folder: Path, history: History, jars: Sequence[Path]) -> None:
        super().__init__(folder, history, delta.settings_of(folder), jars)
        self._create("'delta.enableDeletionVectors' = 'true'", "delta")

    def overwrite(self, number: int) -> None:
        rows = self.spark.table("arrived").write.format("delta").mode("overwrite")
        rows.option("replaceWhere", f"day = {number}").saveAsTable(self.table)


class Iceberg(_Peer):
    table = "db.t"

    def __init__(self, folder: Path, history: History, jars: Sequence[Path], mode: str) -> None:
        super().__init__(folder, history, iceberg.settings_of(folder), jars)
        self.settings = (
            f"hadoop catalog, format 3, zstd, a partition a day, {mode}; MERGE by id and happened_at within day and "
            "file, rows that are gone deleted; overwritePartitions"
        )
        modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("merge", "update", "delete"))
        self._create(f"'format-version' = '3', 'write.parquet.compression-codec' = 'zstd', {modes}", "iceberg")

    def overwrite(self, number: int) -> None:
        self.spark.table("arrived").writeTo(self.table).overwritePartitions()
