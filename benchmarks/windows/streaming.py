"""Windows over flights of which some are reported days late: kept by Tidemark, and by Spark's Structured Streaming.

Each day's file lands, and what it then takes until its windows are right in the engine's answer is counted: for
Tidemark all steps of the collection of flights, gates aside, and of the collection of windows; for Structured Streaming
the micro-batches over that file. Its watermark forgives WATERMARK: what is later it drops. In the end a last file with
one flight far ahead, which nobody counts, closes all windows of the others. State is what must be kept in order to go
on besides the answer: the state stores of a stream, in memory and in its checkpoint; Tidemark's history of the flights
is reported beside it. Flights that are in no window of the answer, and windows that are right, are counted by numpy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from benchmarks.derived.days import Days, carrier_of
from benchmarks.derived.refresh import Kept, kept
from benchmarks.feed import DAY, START, Ints
from benchmarks.measure import in_fresh_process, measured
from benchmarks.steps import Bench, silent, stored
from benchmarks.throughput import warm_spark
from tidemark.model.collection import Collection
from tidemark.model.column import Column, ColumnType
from tidemark.model.derived import Definition, Derived
from tidemark.model.interval import Interval
from tidemark.model.landed import Envelope, Format, Landed, Source
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Tumbling, WindowKind
from tidemark.model.window.windows import Windows

Result = dict[str, Any]
Answer = dict[tuple[str, int, int], tuple[int, int]]
"""By carrier, start and end how many flights and their delay."""
HOUR = DAY // 24
KINDS: dict[str, WindowKind] = {
    "tumbling, 6 hours": Tumbling(6 * HOUR),
    "session, a gap of 20 minutes": Session(HOUR // 3),
}
NAME, LAST, WATERMARK = "flights", "none", "1 day"
AGGREGATES = (Aggregate("flights", Function.COUNT), Aggregate("delay", Function.SUM, "delay"))
SCHEMA = "id bigint, carrier string, delay bigint, happened_at timestamp"
PROVIDERS = {
    "Structured Streaming": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "Structured Streaming, RocksDB": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def streaming(days: Days, say: Callable[[str], None]) -> list[Result]:
    """Each engine's figures for each kind, from a process of its own. AssertionError if a window of ours is wrong."""
    found = []
    for kind in KINDS:
        right = expected(KINDS[kind], days)
        for engine in ("Tidemark", *PROVIDERS):
            say(f"{days.days} days of {days.rows:,} flights, windows by {engine}: {kind}")
            figures, answer = in_fresh_process(_lived, engine, kind, days)
            flights = days.days * days.rows - sum(counted for counted, _ in answer.values())
            same = sum(answer.get(window) == values for window, values in right.items())
            wrong = len(answer.keys() - right.keys())
            if engine == "Tidemark" and (same, wrong) != (len(right), 0):
                raise AssertionError(f"{kind}: {same} of {len(right)} windows are right, and {wrong} are none")
            found.append(
                {
                    "engine": engine,
                    "kind": kind,
                    **figures,
                    "windows": len(right),
                    "right": same,
                    "none": wrong,
                    "lost": flights,
                }
            )
    return found


def expected(kind: WindowKind, days: Days) -> Answer:
    """The windows of all flights, late ones too."""
    carrier, delay, happened = (np.concatenate(columns) for columns in zip(*days.drawn, strict=True))
    order = np.lexsort((happened, carrier))
    carrier, delay, happened = carrier[order], delay[order], happened[order]
    change = carrier[1:] != carrier[:-1]
    if isinstance(kind, Tumbling):
        start = happened - happened % kind.size
        begins = np.append(True, change | (start[1:] != start[:-1]))
    else:
        assert isinstance(kind, Session)
        start, begins = happened, np.append(True, change | (np.diff(happened) > kind.gap))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(begins)) - 1
    end = start[first] + kind.size if isinstance(kind, Tumbling) else happened[last] + kind.gap
    return _answer(carrier[first], start[first], end, last - first + 1, np.add.reduceat(delay, first))


def _answer(carrier: Ints, *columns: Ints) -> Answer:
    rows = zip(carrier.tolist(), *(column.tolist() for column in columns), strict=True)
    return {(carrier_of(one), start, end): (flights, delay) for one, start, end, flights, delay in rows}


def _lived(engine: str, kind: str, days: Days) -> tuple[Result, Answer]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as made:
        folder = Path(made).resolve()
        days.land(folder / "arriving")
        life = _Ours(folder, KINDS[kind]) if engine == "Tidemark" else _Streamed(folder, KINDS[kind], PROVIDERS[engine])
        costs = []
        for day in range(days.days):
            path = days.path(folder / "landing", day)
            path.parent.mkdir(parents=True)
            days.path(folder / "arriving", day).rename(path)
            with measured() as cost:
                life.day(day)
            costs.append(cost)
        figures = life.sizes()
        _land_last(days, folder / "landing")
        life.day(days.days)
        answer = {window: values for window, values in life.answer().items() if window[0] != LAST}
        last = costs[len(costs) // 2 :]
        figures |= {
            "cpu_seconds": round(median(cost.cpu_total for cost in last), 3),
            "seconds": round(median(cost.seconds for cost in last), 3),
            "late": _late(days),
            "days": days.days,
            "rows": days.rows,
        }
        life.close()
    return figures, answer


def _land_last(days: Days, landing: Path) -> None:
    """The file of the day after the last."""
    far = pa.array([START + (days.days + 3) * DAY], pa.timestamp("us", "UTC"))
    path = days.path(landing, days.days)
    path.parent.mkdir()
    pq.write_table(pa.table({"id": [-1], "carrier": [LAST], "delay": [0], "happened_at": far}), path)


def _late(days: Days) -> int:
    """Flights reported on a day after the one they happened on."""
    return sum(int((happened < START + day * DAY).sum()) for day, (_, _, happened) in enumerate(days.drawn))


class _Ours:
    """Flights appended, windows derived from them."""

    def __init__(self, folder: Path, kind: WindowKind) -> None:
        self.spark, self._folder, self._kind = warm_spark(), folder, kind
        value = (("carrier", ColumnType.STRING), ("delay", ColumnType.INT), ("happened_at", ColumnType.TIMESTAMP))
        source = Source("{{ landing }}/{{ ds }}/*.parquet", Format.PARQUET, Envelope.APPEND)
        columns = tuple(Column(name, of) for name, of in value)
        collection = Collection(NAME, (Column("id", ColumnType.INT),), columns, Landed(source, START))
        self._source = Bench(collection, folder / "root", folder / "landing", note=silent)
        self._windows: Kept | None = None

    def day(self, day: int) -> None:
        self._source.certified_day(Interval(START + day * DAY, START + (day + 1) * DAY))
        if self._windows is None:
            windows = Windows(("carrier",), "happened_at", self._kind, AGGREGATES)
            self._windows = kept(
                self.spark, "windows", Derived((NAME,), Definition(windows=windows)), self._folder / "root"
            )
            self._windows.bench.note = self._windows.bench.job.note = silent
        self._windows.correct()

    def answer(self) -> Answer:
        assert self._windows is not None
        bounds = ("unix_micros(window_start) as _start", "unix_micros(window_end) as _end")
        rows = self._windows.frame().selectExpr("carrier", *bounds, "flights", "delay").collect()
        return {(carrier, start, end): (flights, delay) for carrier, start, end, flights, delay in rows}

    def sizes(self) -> Result:
        assert self._windows is not None
        kept_bytes, _ = stored(self._source.folder)
        answer_bytes, _ = stored(self._windows.bench.folder)
        return {"state_memory": 0, "state_disk": 0, "answer_bytes": answer_bytes, "input_bytes": kept_bytes}

    def close(self) -> None:
        self.spark.stop()


class _Streamed:
    """One query, from landed files to Parquet, each window once it is closed by the watermark."""

    def __init__(self, folder: Path, kind: WindowKind, provider: str) -> None:
        self.spark, self._folder = warm_spark(), folder
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        (folder / "landing").mkdir()
        flights = self.spark.readStream.schema(SCHEMA).parquet(f"file://{folder}/landing/*")
        window = (
            F.window("happened_at", f"{kind.size} microseconds")
            if isinstance(kind, Tumbling)
            else F.session_window("happened_at", f"{kind.gap} microseconds")  # type: ignore[union-attr]
        )
        grouped = flights.withWatermark("happened_at", WATERMARK).groupBy("carrier", window.alias("window"))
        windows = grouped.agg(F.count("*").alias("flights"), F.sum("delay").alias("delay"))
        writer = windows.writeStream.outputMode("append").option("checkpointLocation", f"file://{folder}/checkpoint")
        self._query = writer.format("parquet").option("compression", "zstd").start(f"file://{folder}/out")
        self._memory = 0

    def day(self, day: int) -> None:
        self._query.processAllAvailable()
        used = [state.memoryUsedBytes for one in self._query.recentProgress for state in one.stateOperators]
        self._memory = max(self._memory, *used, 0)

    def answer(self) -> Answer:
        bounds = ("unix_micros(window.start) as _start", "unix_micros(window.end) as _end")
        found = self.spark.read.parquet(f"file://{self._folder}/out").selectExpr("carrier", *bounds, "flights", "delay")
        return {(carrier, start, end): (flights, delay) for carrier, start, end, flights, delay in found.collect()}

    def sizes(self) -> Result:
        disk, _ = stored(self._folder / "checkpoint" / "state")
        answer_bytes, _ = stored(self._folder / "out")
        return {"state_memory": self._memory, "state_disk": disk, "answer_bytes": answer_bytes, "input_bytes": 0}

    def close(self) -> None:
        self._query.stop()
        self.spark.stop()
