"""Questions about time beside four peers: a stretch, the latest row, and the point-in-time join.

The same rows are kept in two orders: by the time itself (key `id`, which follows it) and by what was measured (key
`sensor, id`). Ours is a collection of one batch, drained; a peer has the same rows in one Parquet file, in the same
order, with row groups of the same size. Answers are compared before anything is counted. CPU seconds are those of this
process, the least of several times: with the cache, in which the answer's chunks are, if there is room, and without,
with files warm; bytes and row groups are what `explain()` says, beside those that hold a row of the answer (*own*).
What a process takes that is started for one key is counted, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import tidemark
from benchmarks.figures import MIB, Figures
from benchmarks.measure import in_fresh_process
from benchmarks.peers.timelines import PEERS, PEERS_HAVE, Peers, instant, peers_of, without_peers
from benchmarks.steps import Bench
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Layout, Source
from tidemark.model.interval import Interval
from tidemark.storage.cache import VARIABLE

SENSORS = 500
HOUR = 3_600_000_000
STEP = 20_000
"""Microseconds from one row to the next."""
START = 1_704_067_200_000_000
DAY = Interval(START, START + 86_400_000_000 * 4)
PROBES = 100_000
TRIES = 5
ORDERS = {"time": ("id",), "sensor": ("sensor", "id")}


def timelines(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Both orders of a million rows, or of ten million if `full`."""
    if without_peers():
        say("timelines: without its peers, which are not all installed (make bench PEERS=1)")
    rows = 10_000_000 if full else 1_000_000
    say(f"timelines: {rows:,} rows in {len(ORDERS)} orders")
    return {"rows": rows, "runs": [in_fresh_process(run, order, rows) for order in ORDERS]}


def measurements(count: int, step: int = STEP) -> pa.Table:
    """Rows that come about in order of time, one each `step`: a few seconds out of it."""
    draw = np.random.default_rng(1)
    at = START + np.arange(count) * step + draw.integers(0, 5_000_000, count)
    return pa.table(
        {
            "sensor": draw.integers(0, SENSORS, count),
            "id": np.arange(count),
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "value": draw.random(count),
        }
    )


def run(order: str, count: int) -> dict[str, Any]:
    """One order. AssertionError if an answer is wrong."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder, ExitStack() as stack:
        rows, key = measurements(count), ORDERS[order]
        ours = collected(Path(folder), rows, key)
        peers = peers_of(Path(folder), rows.sort_by([(name, "ascending") for name in key]), stack)
        middle = START + count * STEP // 2
        questions = {
            "one hour": Stretch(middle, min(HOUR, count * STEP // 10)),
            "latest of one sensor": Latest(middle, 7),
            "latest of each sensor": Latest(middle, None),
            f"{PROBES:,} points in time": _Joined(middle, count),
            "one key": _Key(count // 2),
        }
        of_time = ["one hour", "one key"]
        of_sensor = [name for name in questions if name != "one key"]
        asked = of_sensor if order == "sensor" else of_time
        found = [compared(name, questions[name], ours, peers) for name in asked]
        return {"order": order, "questions": found} | ({"cold": _cold(ours, count // 2)} if order == "time" else {})


def collected(
    folder: Path, rows: pa.Table, key: tuple[str, ...], layout: Layout | None = None
) -> tidemark.OpenCollection:
    """The rows in a collection, drained."""
    landing = folder / "landing" / "ticks" / "first"
    landing.mkdir(parents=True)
    pq.write_table(rows, landing / "a.parquet")
    types = {"sensor": ColumnType.INT, "id": ColumnType.INT, "at": ColumnType.TIMESTAMP, "value": ColumnType.FLOAT}
    # What is asked for is the latest row of a key: of a sensor, whose rows a number distinguishes.
    named = ("sensor",) if key[0] == "sensor" else key
    source = Source("{{ landing }}/ticks/first/*.parquet", Format.PARQUET, Envelope.APPEND, ready="always")
    collection = Collection(
        "ticks",
        tuple(Column(name, types[name]) for name in named),
        tuple(Column(name, of) for name, of in types.items() if name not in named),
        Landed(source, time=None, event_time=None, start=DAY.lower),
        timelines=("at",),
        layout=layout,
    )
    bench = Bench(collection, folder / "root", folder / "landing", note=lambda _: None)
    bench.certified_drain(DAY)
    return tidemark.open(str(folder / "root"), "ticks")


class Stretch:
    """All rows of a stretch of time."""

    def __init__(self, start: int, length: int) -> None:
        self.ends = start, start + length

    def ours(self, ticks: tidemark.OpenCollection) -> Any:
        return ticks.range("at", *self.ends)

    def of(self, table: pa.Table) -> tuple[Any, ...]:
        return table.num_rows, pc.sum(table["id"]).as_py()

    def duckdb(self, peers: Peers) -> pa.Table:
        first, last = self.ends
        return peers.sql(
            f'SELECT * FROM {{rows}} WHERE "at" BETWEEN make_timestamptz({first}) AND make_timestamptz({last})'
        )

    def polars(self, peers: Peers) -> pa.Table:
        import polars

        first, last = (polars.lit(end).cast(polars.Datetime("us", "UTC")) for end in self.ends)
        return polars.scan_parquet(peers.path).filter(polars.col("at").is_between(first, last)).collect().to_arrow()

    def delta(self, peers: Peers) -> pa.Table:
        first, last = map(instant, self.ends)
        return peers.datafusion(f'SELECT * FROM {{rows}} WHERE "at" BETWEEN {first} AND {last}')


class _Key:
    """The row of one key."""

    def __init__(self, id: int) -> None:
        self.id = id

    def ours(self, ticks: tidemark.OpenCollection) -> Any:
        return ticks.as_of(where={"id": self.id})

    def of(self, table: pa.Table) -> tuple[Any, ...]:
        return table.num_rows, pc.sum(table["id"]).as_py()

    def duckdb(self, peers: Peers) -> pa.Table:
        return peers.sql(f"SELECT * FROM {{rows}} WHERE id = {self.id}")

    def polars(self, peers: Peers) -> pa.Table:
        import polars

        return polars.scan_parquet(peers.path).filter(polars.col("id") == self.id).collect().to_arrow()

    def delta(self, peers: Peers) -> pa.Table:
        return peers.datafusion(f"SELECT * FROM {{rows}} WHERE id = {self.id}")


class Latest:
    """The newest row up to a time, of one sensor or of each."""

    def __init__(self, at: int, sensor: int | None) -> None:
        self.at, self.sensor = at, sensor

    def ours(self, ticks: tidemark.OpenCollection) -> Any:
        where = None if self.sensor is None else {"sensor": self.sensor}
        return ticks.latest_at("at", self.at, where, columns=["sensor", "id", "at"])

    def of(self, table: pa.Table) -> tuple[Any, ...]:
        times = table["at"].cast(pa.int64())
        return table.num_rows, pc.sum(table["sensor"]).as_py(), pc.sum(pc.subtract(times, START)).as_py()

    def duckdb(self, peers: Peers) -> pa.Table:
        one = "" if self.sensor is None else f"AND sensor = {self.sensor}"
        return peers.sql(
            'SELECT sensor, arg_max(id, "at") AS id, max("at") AS "at" FROM {rows} '
            f'WHERE "at" <= make_timestamptz({self.at}) {one} GROUP BY sensor'
        )

    def polars(self, peers: Peers) -> pa.Table:
        import polars

        rows = polars.scan_parquet(peers.path).filter(
            polars.col("at") <= polars.lit(self.at).cast(polars.Datetime("us", "UTC"))
        )
        rows = rows if self.sensor is None else rows.filter(polars.col("sensor") == self.sensor)
        latest = [polars.col("id").sort_by("at").last(), polars.col("at").max()]
        return rows.group_by("sensor").agg(latest).collect().to_arrow()

    def delta(self, peers: Peers) -> pa.Table:
        one = "" if self.sensor is None else f"AND sensor = {self.sensor}"
        return peers.datafusion(
            'SELECT sensor, last_value(id ORDER BY "at") AS id, max("at") AS "at" FROM {rows} '
            f'WHERE "at" <= {instant(self.at)} {one} GROUP BY sensor'
        )


class _Joined:
    """The newest row of a sensor up to a time, for each of many sensors and times."""

    def __init__(self, middle: int, count: int) -> None:
        draw = np.random.default_rng(2)
        at = START + draw.integers(0, count * STEP, PROBES)
        self.probes = pa.table(
            {"sensor": draw.integers(0, SENSORS, PROBES), "at": pa.array(at).cast(pa.timestamp("us", "UTC"))}
        )

    def ours(self, ticks: tidemark.OpenCollection) -> Any:
        return ticks.latest_at(
            "at", at=self.probes.rename_columns(["sensor", "asked"]), at_column="asked", columns=["at"]
        )

    def of(self, table: pa.Table) -> tuple[Any, ...]:
        found = table["_at"].cast(pa.int64())
        return table.num_rows, found.null_count, pc.sum(pc.subtract(found, START)).as_py()

    def duckdb(self, peers: Peers) -> pa.Table:
        return peers.sql(
            'SELECT p.sensor, p."at", r."at" AS _at FROM probes p ASOF LEFT JOIN {rows} r '
            'ON p.sensor = r.sensor AND r."at" <= p."at"',
            probes=self.probes,
        )

    def polars(self, peers: Peers) -> pa.Table:
        import polars

        probes = polars.from_arrow(self.probes).lazy().sort("at")
        rows = polars.scan_parquet(peers.path).select("sensor", polars.col("at"), polars.col("at").alias("_at"))
        return probes.join_asof(rows.sort("at"), on="at", by="sensor", check_sortedness=False).collect().to_arrow()

    def delta(self, peers: Peers) -> None:
        """DataFusion has no such join."""


class Question(Protocol):
    """What is asked of ours and, by its name, of each peer."""

    def ours(self, ticks: tidemark.OpenCollection) -> Any: ...
    def of(self, table: pa.Table) -> tuple[Any, ...]:
        """What answers have in common, the number of rows first."""

    def duckdb(self, peers: Peers) -> pa.Table: ...
    def polars(self, peers: Peers) -> pa.Table: ...
    def delta(self, peers: Peers) -> pa.Table | None:
        """None where it has no such question."""


def compared(name: str, question: Question, ticks: tidemark.OpenCollection, peers: Peers | None) -> dict[str, Any]:
    """What an answer costs. AssertionError where a peer has another one."""
    answer = question.ours(ticks)
    explained = answer.explain()
    expected = question.of(answer.to_arrow())

    def ask_ours() -> pa.Table:
        return question.ours(ticks).to_arrow()

    found: dict[str, Any] = {
        "question": name,
        "rows": expected[0],
        "chunks": explained.chunks,
        "chunks_read": explained.chunks_read,
        "bytes": explained.bytes,
        "bytes_read": explained.bytes_read,
        "cpu": {"tidemark": least(ask_ours)},
    }
    with without_cache():
        found["cpu"]["without"] = least(ask_ours)
    for peer in PEERS if peers else ():
        assert peers is not None
        with peers.of_ducklake() if peer == "ducklake" else nullcontext():
            ask: Callable[[Peers], pa.Table | None] = getattr(question, "duckdb" if peer == "ducklake" else peer)
            answered = ask(peers)
            if answered is not None:
                assert question.of(answered) == expected, f"{peer} finds another answer to {name}"
                found["cpu"][peer] = least(partial(ask, peers))
    return found


@contextmanager
def without_cache() -> Iterator[None]:
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def _cold(ticks: tidemark.OpenCollection, id: int) -> float:
    """CPU seconds of a process that is started to read one key, the least of some times."""
    ask = f"tidemark.open({ticks.root!r}, {ticks.name!r}).as_of(where={{'id': {id}}}).to_arrow().num_rows"
    script = f"import tidemark, time; assert {ask} == 1; print(time.process_time())"
    runs = (subprocess.run([sys.executable, "-c", script], check=True, capture_output=True) for _ in range(TRIES))
    return min(float(done.stdout) for done in runs)


def least(work: Callable[[], Any]) -> float:
    """CPU seconds of this process, the least of some times."""
    spent = []
    for _ in range(TRIES):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    return min(spent)


def _cold_start(found: dict[str, Any]) -> str:
    cold = [run["cold"] for run in found["runs"] if "cold" in run]
    return f" A process that is started to read one key takes {min(cold):.2f} CPU s." if cold else ""


def figures(found: dict[str, Any]) -> Figures:
    """The table."""
    return Figures(
        "Questions about time",
        f"{found['rows']:,} rows, {SENSORS} sensors, in order of the time or of the sensor; CPU ms, the least of "
        f"{TRIES}: asked again, and without the cache. {PEERS_HAVE} Chunks and MiB are what ours reads of what it "
        "has stored when it is asked first." + _cold_start(found),
        ("in order of", *HEADINGS),
        tuple((run["order"], *cells(one)) for run in found["runs"] for one in run["questions"]),
    )


HEADINGS = (
    *("question", "rows", "chunks", "MiB", "again, CPU ms", "without cache"),
    *(f"{peer} ms" for peer in PEERS),
)


def cells(one: dict[str, Any]) -> tuple[str, ...]:
    """The figures of a question, below the headings."""
    cpu = (f"{one['cpu'][of] * 1e3:,.1f}" if of in one["cpu"] else "-" for of in ("tidemark", "without", *PEERS))
    return (
        one["question"],
        f"{one['rows']:,}",
        f"{one['chunks_read']:,} of {one['chunks']:,}",
        f"{one['bytes_read'] / MIB:.2f} of {one['bytes'] / MIB:.1f}",
        *cpu,
    )
