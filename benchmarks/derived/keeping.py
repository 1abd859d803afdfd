"""Tidemark: the totals are a derived collection of the flights, by key."""

from __future__ import annotations

from pathlib import Path

from benchmarks.derived.days import TOTALS, Days, Totals
from benchmarks.derived.refresh import Kept, kept
from benchmarks.feed import DAY, START
from benchmarks.steps import Bench
from benchmarks.throughput import warm_spark
from tidemark.model.collection import Collection
from tidemark.model.column import Column, ColumnType
from tidemark.model.derived import Definition, Derived
from tidemark.model.interval import Interval
from tidemark.model.landed import Envelope, Format, Landed, Source

NAME = "flights"


class Tidemark:
    settings = "flights appended, totals derived by key; certificates without gates, up to the compaction"

    def __init__(self, folder: Path, days: Days) -> None:
        self._folder, self._days = folder, days
        self.spark = warm_spark()
        self._totals: Kept | None = None
        self._source: Bench | None = None

    def take(self, landing: Path, day: int) -> None:
        if self._source is None:
            value = (("carrier", ColumnType.STRING), ("delay", ColumnType.INT), ("happened_at", ColumnType.TIMESTAMP))
            source = Source("{{ landing }}/{{ ds }}/*.parquet", Format.PARQUET, Envelope.APPEND)
            columns = tuple(Column(name, of) for name, of in value)
            collection = Collection(NAME, (Column("id", ColumnType.INT),), columns, Landed(source, START))
            self._source = Bench(collection, self._folder, landing)
        self._source.certified_day(Interval(START + day * DAY, START + (day + 1) * DAY))

    def refresh(self, day: int) -> None:
        if self._totals is None:
            derived = Derived((NAME,), Definition(f"select {TOTALS} from {NAME} group by all"))
            self._totals = kept(self.spark, "totals", derived, self._folder)
        self._totals.correct()

    def answer(self) -> Totals:
        if self._totals is None:
            return {}
        rows = self._totals.frame().selectExpr("carrier", "unix_date(day) as day", "flights", "delay").collect()
        return {(row["carrier"], row["day"]): (row["flights"], row["delay"]) for row in rows}

    def close(self) -> None:
        self.spark.stop()
