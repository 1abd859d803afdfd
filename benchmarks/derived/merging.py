"""Delta and Iceberg as dbt keeps an incremental model: each day the totals of the last days are computed again from the
flights and merged into the table of totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.derived.days import FIRST_DAY, LOOKS_BACK, SCHEMA, TOTALS, Days, Totals
from benchmarks.peers.spark import delta, iceberg
from benchmarks.peers.spark.table import session


class _Merging:
    flights, totals = "flights", "totals"
    settings = f"flights a partition for each day; MERGE of the totals of the last {LOOKS_BACK} days"

    def __init__(self, days: Days, settings: Mapping[str, str], jars: Sequence[Path], using: str) -> None:
        self._days = days
        self.spark = session(settings, jars)
        self.spark.sql(f"create table {self.flights} ({SCHEMA}, day date) using {using} partitioned by (day)")
        self.spark.sql(
            f"create table {self.totals} (carrier string, day date, flights bigint, delay bigint) using {using}"
        )

    def take(self, landing: Path, day: int) -> None:
        self.spark.read.parquet(f"file://{self._days.path(landing, day)}").createOrReplaceTempView("arrived")
        self.spark.sql(
            f"insert into {self.flights} select *, cast(happened_at as date) as day from arrived order by day"
        )

    def refresh(self, day: int) -> None:
        recent = f"day > date_add(date '1970-01-01', {FIRST_DAY + day - LOOKS_BACK})"
        self.spark.sql(
            f"merge into {self.totals} t using (select {TOTALS} from {self.flights} where {recent} group by all) s "
            "on t.carrier = s.carrier and t.day = s.day "
            "when matched and (t.flights != s.flights or t.delay != s.delay) then update set * "
            "when not matched then insert *"
        )

    def answer(self) -> Totals:
        rows = self.spark.sql(f"select carrier, unix_date(day) as day, flights, delay from {self.totals}").collect()
        return {(row["carrier"], row["day"]): (row["flights"], row["delay"]) for row in rows}

    def close(self) -> None:
        self.spark.stop()


class Delta(_Merging):
    def __init__(self, folder: Path, days: Days, jars: Sequence[Path]) -> None:
        super().__init__(days, delta.settings_of(folder), jars, "delta")


class Iceberg(_Merging):
    flights, totals = "db.flights", "db.totals"

    def __init__(self, folder: Path, days: Days, jars: Sequence[Path], mode: str) -> None:
        super().__init__(days, iceberg.settings_of(folder), jars, "iceberg")
        self.settings = f"{self.settings}; as the catalog's defaults are"
