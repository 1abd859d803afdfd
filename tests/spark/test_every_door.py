"""One question has one answer by every door: delays by carrier, of a day that was corrected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.parquet as pq
import pytest

import tidemark
from simulation.sea import Sea
from support.publishing import DELTA, ICEBERG, delta_of, published, table_of
from support.world import DAY
from tidemark.model.collection import Column, ColumnType, Envelope

pytestmark = pytest.mark.spark
Delays = dict[str, tuple[int, float]]
SQL = "SELECT carrier, count(*) AS flights, avg(delay) AS delay FROM {table} GROUP BY carrier"
EXPECTED: Delays = {"AA": (2, 15.0), "UA": (1, 4.0), "DL": (1, 0.0)}
"""Counted by hand from the files below."""


def flight(k: int, carrier: str, delay: int, t: int, e: int, **more: Any) -> dict[str, Any]:
    return {"k": k, "carrier": carrier, "delay": delay, "t": t, "e": e, "o": t, "gone": False, **more}


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Sea:
    """Two days, of which the second corrects the first: a delay that was wrong, and a flight that there never was."""
    folder = tmp_path_factory.mktemp("doors")
    sea = Sea(folder, root=folder / "root")
    columns = (Column("carrier", ColumnType.STRING), Column("delay", ColumnType.INT))
    sea.landed("tides", envelope=Envelope.UPSERT, value=columns, publish=(ICEBERG, DELTA))
    first = [flight(1, "AA", 10, 1, 1), flight(2, "AA", 99, 2, 2), flight(3, "UA", 4, 3, 3), flight(4, "UA", 50, 4, 4)]
    sea.ingest("tides", 0, ("a", first))
    published(sea.worlds["tides"])
    second = [flight(2, "AA", 20, 12, 2), flight(4, "UA", 50, 13, 4, gone=True), flight(5, "DL", 0, 14, 14)]
    sea.ingest("tides", 1, ("b", second))
    published(sea.worlds["tides"])
    return sea


def by_carrier(rows: Iterable[Mapping[str, Any]]) -> Delays:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row["carrier"]].append(row["delay"])
    return {carrier: (len(delays), sum(delays) / len(delays)) for carrier, delays in found.items()}


def grouped(rows: Iterable[Any]) -> Delays:
    return {carrier: (flights, delay) for carrier, flights, delay in rows}


def test_python_and_its_libraries(flights: Sea, tmp_path: Path) -> None:
    opened = tidemark.open(str(flights.root), "tides")
    assert by_carrier(opened.as_of().to_arrow().to_pylist()) == EXPECTED
    assert by_carrier(opened.dataset().to_table(columns=["carrier", "delay"]).to_pylist()) == EXPECTED
    lazy = opened.as_of().to_polars(lazy=True).group_by("carrier")
    assert grouped(lazy.agg(polars.len(), polars.col("delay").mean()).collect().rows()) == EXPECTED
    opened.export(tmp_path / "flights.parquet")
    assert by_carrier(pq.read_table(tmp_path / "flights.parquet").to_pylist()) == EXPECTED
    before = by_carrier(opened.as_of(DAY - 1).to_arrow().to_pylist())
    assert before == {"AA": (2, 54.5), "UA": (2, 27.0)}


def test_sql(flights: Sea) -> None:
    table = tidemark.sql(str(flights.root), SQL.format(table="tides")).to_arrow()
    assert grouped(row.values() for row in table.to_pylist()) == EXPECTED
    relation = tidemark.open(str(flights.root), "tides").as_of().to_duckdb()
    assert grouped(relation.aggregate("carrier, count(*), avg(delay)").fetchall()) == EXPECTED


def test_spark_in_batches_and_in_sql(spark: Any, flights: Sea) -> None:
    frame = spark.read.format("tidemark").load(f"{flights.root}/tides")
    assert by_carrier(row.asDict() for row in frame.select("carrier", "delay").collect()) == EXPECTED
    tidemark.register(spark, str(flights.root))
    assert grouped(spark.sql(SQL.format(table="tides")).collect()) == EXPECTED


def test_a_stream_of_spark(spark: Any, flights: Sea, tmp_path: Path) -> None:
    counts: Counter[tuple[str, int]] = Counter()

    def add(batch: Any, _: int) -> None:
        for row in batch.select("carrier", "delay", "diff").collect():
            counts[row["carrier"], row["delay"]] += row["diff"]

    stream = spark.readStream.format("tidemark").option("starting", "beginning").load(f"{flights.root}/tides")
    query = stream.writeStream.foreachBatch(add).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    rows = ({"carrier": carrier, "delay": delay} for (carrier, delay), often in counts.items() for _ in range(often))
    assert by_carrier(rows) == EXPECTED


def test_published_tables(flights: Sea) -> None:
    world = flights.worlds["tides"]
    assert by_carrier(table_of(world).scan().to_arrow().to_pylist()) == EXPECTED
    delta = delta_of(world).to_pyarrow_table()
    assert by_carrier(delta.to_pylist()) == EXPECTED
    assert grouped(duckdb.sql(SQL.format(table="delta")).fetchall()) == EXPECTED
