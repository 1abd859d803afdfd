"""The five derived collections that ship with the project, at full size: built, and refreshed after a hundredth of the
flights changed, beside Spark's own queries and DuckDB's over the same files.

They are read from include/collections as users have them, with their conditions, means and expressions: a fast path
that these do not take is none. Flights are drawn from a fixed seed: `days` days of flights of carriers between
airports, with aircraft that fly some legs a day; one in fifty is cancelled. What changes are all flights of some days
that follow each other: they are delayed by a minute more. Answers are compared with Spark's; sliding windows, of which
Spark gives half, with those that numpy calculated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.derived.refresh import Kept, kept
from benchmarks.feed import DAY, START, Ints, write_day
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process, measured
from benchmarks.peers.engines import missing
from benchmarks.steps import Bench, silent, stored
from benchmarks.throughput import same, wake_workers, warm_spark
from benchmarks.windows.kinds import slid
from benchmarks.windows.readings import Rows
from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

Result = dict[str, Any]
COLLECTIONS = Path(__file__).resolve().parent.parent / "include" / "collections"
MINUTE = 60_000_000
BEFORE = 400 * DAY
"""The first flight is so long before what is landed: all windows have closed by then."""
CARRIERS, AIRPORTS, AIRCRAFT = 16, 40, 4_000
HALF_HOUR = 30 * MINUTE
ARRIVED = "status = 'arrived'"
SUMS = {
    "delays_by_hour": "count(*) as r, sum(flights) as n, sum(delay_sum) as s, sum(worst) as w, sum(late) as l, "
    "sum(cast(floor(delay * 1000) as bigint)) as d",
    "aircraft_days": "count(*) as r, sum(legs) as n, sum(delay_sum) as s, sum(worst) as w, "
    "sum(ascii(first_from) * legs) as f, sum(ascii(last_to) * legs) as t",
    "delays_by_carrier": "count(*) as r, sum(arrived) as n, sum(delay_sum) as s, "
    "sum(cast(floor(delay * 1000) as bigint)) as d",
    "named_flights": "count(*) as r, sum(flight) as f, sum(delay_min) as s, sum(length(name)) as l",
    "busy_half_hours": "count(*) as r, sum(flights) as n, sum(cast(floor(delay * 1000) as bigint)) as d",
}
"""What is compared, as SQL over the collection's columns."""
_AGGREGATES = "count(*) as {n}, sum(delay_min) as delay_sum, max(delay_min) as worst"
SPARK = {
    "delays_by_hour": f"select origin, window(scheduled_at, '1 hour') as w, {_AGGREGATES.format(n='flights')}, "
    "avg(delay_min) as delay, count(delay_min) filter (where delay_min > 15) as late "
    f"from flights where {ARRIVED} group by 1, 2",
    "aircraft_days": f"select tailnum, session_window(scheduled_at, '8 hours') as w, {_AGGREGATES.format(n='legs')}, "
    "min(struct(scheduled_at, origin)).origin as first_from, max(struct(scheduled_at, dest)).dest as last_to "
    f"from flights where {ARRIVED} group by 1, 2",
    "delays_by_carrier": "select carrier, date(scheduled_at) as day, count(*) as arrived, sum(delay_min) as delay_sum, "
    f"avg(delay_min) as delay from flights where {ARRIVED} group by 1, 2",
    "named_flights": "select f.time_hour, f.carrier, f.flight, c.name, f.status, f.delay_min "
    "from flights f join carriers c on f.carrier = c.carrier",
    "busy_half_hours": "select origin, scheduled_at, count(*) over w as flights, avg(delay_min) over w as delay "
    f"from flights where {ARRIVED} window w as (partition by origin order by scheduled_at "
    "range between interval 30 minutes preceding and current row)",
}
_IN_UTC = "replace (make_timestamp(epoch_us(scheduled_at)) as scheduled_at)"
_HOUR = "time_bucket(interval 1 hour, scheduled_at)"
_BEGINS = "if(scheduled_at - lag(scheduled_at) over p <= interval 8 hours, 0, 1)"
_NUMBERED = (
    f"select *, {_BEGINS} as b from flights where {ARRIVED} window p as (partition by tailnum order by scheduled_at)"
)
_WITHIN = f"select *, sum(b) over (partition by tailnum order by scheduled_at) as s from ({_NUMBERED})"
DUCKDB = SPARK | {
    "delays_by_hour": SPARK["delays_by_hour"].replace("window(scheduled_at, '1 hour')", _HOUR),
    "aircraft_days": f"select tailnum, s as w, {_AGGREGATES.format(n='legs')}, min_by(origin, scheduled_at) as "
    f"first_from, max_by(dest, scheduled_at) as last_to from ({_WITHIN}) group by 1, 2",
}


@dataclass(frozen=True)
class Flights:
    """`total` flights of `days` days."""

    total: int
    days: int = 365
    seed: int = 1

    @property
    def collection(self) -> Collection:
        """As the project declares it, but for how it lands."""
        source = Source("{{ landing }}/flights/{{ ds }}/*.parquet", Format.PARQUET, Envelope.UPSERT)
        types = {
            "time_hour": ColumnType.TIMESTAMP,
            "flight": ColumnType.INT,
            "scheduled_at": ColumnType.TIMESTAMP,
            "delay_min": ColumnType.INT,
        }
        columns = [Column(name, types.get(name, ColumnType.STRING)) for name in COLUMNS]
        landed = Landed(source, START, time="reported_at", inputs=(Column("reported_at", ColumnType.TIMESTAMP),))
        return Collection("flights", tuple(columns[:3]), tuple(columns[3:]), landed)

    def interval(self, day: int) -> Interval:
        return Interval(START + day * DAY, START + (day + 1) * DAY)

    @cached_property
    def drawn(self) -> dict[str, Ints]:
        """Columns as numbers, in order of when flights are scheduled."""
        chance = np.random.default_rng(self.seed)
        at = np.sort(chance.integers(0, self.days * 1_440, self.total)) * MINUTE + START - BEFORE
        hour = at - at % (60 * MINUTE)
        first = np.searchsorted(hour, hour)  # the first flight of its hour: numbers are given within that
        return {
            "time_hour": hour,
            "carrier": chance.integers(0, CARRIERS, self.total),
            "flight": np.arange(self.total) - first,
            "status": (chance.integers(0, 50, self.total) == 0).astype(np.int64),
            "origin": chance.integers(0, AIRPORTS, self.total),
            "dest": chance.integers(0, AIRPORTS, self.total),
            "tailnum": chance.integers(0, AIRCRAFT, self.total),
            "scheduled_at": at,
            "delay_min": chance.integers(-20, 90, self.total),
        }

    def changes(self) -> slice:
        """A hundredth of them, which follow each other."""
        middle = self.total // 2
        return slice(middle, middle + max(1, self.total // 100))

    def known(self, day: int) -> dict[str, Ints]:
        """All flights as they are after a day."""
        rows = dict(self.drawn)
        if day:
            delay = rows["delay_min"].copy()
            delay[self.changes()] += 1
            rows["delay_min"] = delay
        return rows

    def land(self, landing: Path, day: int) -> None:
        """Write a day's files."""
        rows = self.known(day)
        if day:
            rows = {name: column[self.changes()] for name, column in rows.items()}
        reported_at = np.full(len(rows["flight"]), START + day * DAY + DAY // 2)
        instants = {"time_hour": rows["time_hour"], "scheduled_at": rows["scheduled_at"], "reported_at": reported_at}
        texts = {
            "carrier": [f"C{number:02d}" for number in range(CARRIERS)],
            "status": ["arrived", "cancelled"],
            "origin": [f"{chr(65 + number % 26)}{number:02d}" for number in range(AIRPORTS)],
            "dest": [f"{chr(65 + number % 26)}{number:02d}" for number in range(AIRPORTS)],
            "tailnum": [f"N{number:05d}" for number in range(AIRCRAFT)],
        }
        columns = {name: pa.array(at, pa.timestamp("us", "UTC")) for name, at in instants.items()}
        columns |= {name: pa.array(of).take(pa.array(rows[name])) for name, of in texts.items()}
        delay = pa.array(rows["delay_min"], mask=rows["status"] == 1)
        table = pa.table(columns | {"flight": pa.array(rows["flight"]), "delay_min": delay})
        write_day(landing / "flights", self.interval(day), table)

    def sliding(self, day: int, *, frames: bool) -> dict[str, int]:
        """Half hours of arrived flights of an airport: how many, flights in all, and thousandths of their means."""
        rows = self.known(day)
        arrived = np.flatnonzero(rows["status"] == 0)
        order = arrived[np.lexsort((rows["scheduled_at"][arrived], rows["origin"][arrived]))]
        columns = [rows[name][order] for name in ("origin", "flight", "scheduled_at", "delay_min")]
        windows = slid(Rows(*columns), HALF_HOUR, has_most=False, frames=frames)
        means = np.floor(windows.total / windows.readings * 1000).astype(np.int64)
        return {"r": len(windows.start), "n": int(windows.readings.sum()), "d": int(means.sum())}


COLUMNS = ("time_hour", "carrier", "flight", "status", "origin", "dest", "tailnum", "scheduled_at", "delay_min")


def shipped(full: bool, say: Callable[[str], None]) -> Result:
    """The figures of all five, from a process of its own. AssertionError if an answer is wrong."""
    flights = Flights(2_000_000 if full else 200_000)
    has_duckdb = not missing("duckdb")
    say(f"the five that ship, over {flights.total:,} flights")
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        found: Result = in_fresh_process(warmed, _measured, flights, Path(folder))
        if has_duckdb:
            for name, cost in in_fresh_process(_by_duckdb, flights, Path(folder)).items():
                found[name]["DuckDB"] = cost
                same(f"{name} by DuckDB", {"r": cost["rows"]}, {"r": found[name]["Spark"]["sums"]["r"]})
    return {"flights": flights.total, "collections": found}


def warmed(measure: Callable[[SparkSession, Flights, Path], Result], flights: Flights, folder: Path) -> Result:
    """What is measured over flights, after the same over few of them."""
    spark = warm_spark()
    measure(spark, Flights(4_000), folder / "warm")
    found = measure(spark, flights, folder)
    spark.stop()
    return found


def _measured(spark: SparkSession, flights: Flights, folder: Path) -> Result:
    root, landing = folder / "root", folder / "landing"
    flights.land(landing, 0)
    _land_carriers(landing)
    source = Bench(flights.collection, root, landing, note=silent)
    source.certified_day(flights.interval(0))
    carriers = Bench(_carriers(), root, landing, note=silent)
    carriers.certified_day(flights.interval(0))
    found: Result = {name: {} for name in SPARK}
    made = {name: _declared(spark, name, root) for name in SPARK}
    for name, one in made.items():
        found[name]["built"] = _corrected(one, name)
        found[name]["Spark"] = _by_spark(spark, name, folder)
        _check(name, found[name], flights)
    flights.land(landing, 1)
    source.certified_day(flights.interval(1))
    _land_carriers(landing, 1)
    carriers.certified_day(flights.interval(1))
    for name, one in made.items():
        found[name]["refreshed"] = _corrected(one, name)
    same("sliding, refreshed", found["busy_half_hours"]["refreshed"]["sums"], flights.sliding(1, frames=False))
    return found


def _check(name: str, found: Result, flights: Flights) -> None:
    ours, theirs = found["built"]["sums"], found["Spark"]["sums"]
    if name == "busy_half_hours":
        same(name, ours, flights.sliding(0, frames=False))
    else:
        same(name, ours, theirs)


def _carriers() -> Collection:
    source = Source("{{ landing }}/carriers/{{ ds }}/*.parquet", Format.PARQUET, Envelope.UPSERT)
    landed = Landed(source, START, time="reported_at", inputs=(Column("reported_at", ColumnType.TIMESTAMP),))
    key, name = Column("carrier", ColumnType.STRING), Column("name", ColumnType.STRING)
    return Collection("carriers", (key,), (name,), landed)


def _land_carriers(landing: Path, day: int = 0) -> None:
    reported_at = pa.array([START + day * DAY + 1] * CARRIERS, pa.timestamp("us", "UTC"))
    names = [f"C{number:02d}" for number in range(CARRIERS)]
    table = pa.table({"carrier": names, "name": [f"Carrier {name}" for name in names], "reported_at": reported_at})
    write_day(landing / "carriers", Flights(1).interval(day), table)


def _declared(spark: SparkSession, name: str, root: Path) -> Kept:
    """A collection as its file in the project declares it."""
    file = parse(COLLECTIONS / f"{name}.yaml")
    assert isinstance(file, DerivedFile)
    made = kept(spark, name, file.origin, root)
    if file.key:
        columns = {column.name: column for column in made.bench.collection.columns}
        value = tuple(column for column in columns.values() if column.name not in file.key)
        made.bench.collection = replace(made.bench.collection, key=tuple(columns[one] for one in file.key), value=value)
    made.bench.note = made.bench.job.note = silent
    return made


def _corrected(one: Kept, name: str) -> Result:
    wake_workers(one.spark)
    cost, result = one.correct()
    return {**cost.as_dict(), "sums": _sums(one.frame(), name), "way": result["way"], "rows": result["rows"]}


def _sums(frame: DataFrame, name: str) -> dict[str, int]:
    found = frame.selectExpr(*SUMS[name].split(", ")).collect()[0].asDict()
    return {of: int(value) for of, value in found.items()}


def _by_spark(spark: SparkSession, name: str, folder: Path) -> Result:
    out = folder / f"spark-{name}"
    with measured() as cost:
        for of in ("flights", "carriers"):
            files = [f"file://{path}" for path in sorted((folder / "landing" / of).rglob("*.parquet"))]
            spark.read.parquet(*files).createOrReplaceTempView(of)
        spark.sql(SPARK[name]).write.option("compression", "zstd").parquet(f"file://{out}")
    sums = _sums(spark.read.parquet(f"file://{out}"), name)
    return {**cost.as_dict(), "sums": sums, "bytes_stored": stored(out)[0]}


def _by_duckdb(flights: Flights, folder: Path) -> dict[str, Result]:
    missing("duckdb")  # where it is
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    found = {}
    for name, sql in DUCKDB.items():
        connection = duckdb.connect()
        with measured() as cost:
            for of, clause in (("flights", _IN_UTC), ("carriers", "")):
                files = f"read_parquet('{folder}/landing/{of}/{format_instant(START)[:10]}/*.parquet')"
                connection.execute(f"create view {of} as select * {clause} from {files}")
            out = folder / f"duckdb-{name}.parquet"
            connection.execute(f"copy ({sql}) to '{out}' (format parquet, compression zstd)")
        found[name] = cost.as_dict() | {"rows": connection.execute(f"select count(*) from '{out}'").fetchone()[0]}
    return found


def figures(found: Result) -> Figures:
    """CPU seconds of each."""
    return Figures(
        "The five collections that ship",
        f"{found['flights']:,} flights; CPU s of all processes together. Spark and DuckDB read the landed files and "
        "write Parquet, with no history and no checks; Spark's sliding windows are half of ours.",
        ("collection", "built", "s", "Spark", "DuckDB", "of Spark's", "1 % changed", "s", "Spark's whole is"),
        tuple(_row(name, one) for name, one in found["collections"].items()),
    )


def _row(name: str, one: Result) -> tuple[str, ...]:
    ours, spark, again = (one[of]["cpu_seconds_total"] for of in ("built", "Spark", "refreshed"))
    duckdb = f"{one['DuckDB']['cpu_seconds_total']:.2f}" if "DuckDB" in one else ""
    ways = [one[of]["way"]["words"] for of in ("built", "refreshed")]
    of_spark, dearer = f"{ours / spark:.2f} x", f"{spark / again:.0f} x"
    return (name, ways[0], f"{ours:.2f}", f"{spark:.2f}", duckdb, of_spark, ways[1], f"{again:.2f}", dearer)


def targets(found: Result | None) -> list[tuple[str, str, str, bool]]:
    """What was aimed at: windows in half of Spark's CPU, and refreshes that are cheaper than Spark's whole."""
    lines = []
    for name, one in (found["collections"] if found else {}).items():
        ours, spark, again = (one[of]["cpu_seconds_total"] for of in ("built", "Spark", "refreshed"))
        windows = name not in ("named_flights", "delays_by_carrier")
        if windows:
            lines.append((f"{name} built: CPU of Spark's", "0.5", f"{ours / spark:.2f}", ours <= 0.5 * spark))
        least = 20 if windows else 10
        met = spark >= least * again
        lines.append((f"{name} refreshed: cheaper than Spark's whole", f"{least} x", f"{spark / again:.1f} x", met))
    return lines
