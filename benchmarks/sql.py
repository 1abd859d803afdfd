"""SQL over a collection beside DuckDB over the same files: what a dataset adds to reading Parquet.

Measurements that came and never went, in one batch and in four that overlap in their keys: no row needs a merge. DuckDB
reads the very files of the collection by itself, which it may here, as every row in them counts once. Ours is
`tidemark.sql`, and the same statement in a DuckDB that is handed `dataset()`, or the rows as a stream, which takes
neither columns nor filters. Answers are compared before anything is counted. CPU seconds are those of this process, the
least of several times, without our cache; and with it, where the question was asked before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tidemark
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.steps import Bench, silent
from benchmarks.timelines import START, STEP, least, measurements, without_cache
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.interval import Interval

DAY = 86_400_000_000
FIRST = START
BATCHES = (1, 4)
TRIES = 5
STATEMENTS = {
    "one column, summed": "SELECT sum(id) AS total FROM {table}",
    "grouped by another": "SELECT sensor, count(*) AS n, max(value) AS most FROM {table} GROUP BY ALL ORDER BY sensor",
    "a stretch of time": "SELECT count(*) AS n, max(value) FROM {table} WHERE measured BETWEEN '{first}' AND '{last}'",
    "one key": "SELECT id, value FROM {table} WHERE id = {middle}",
}


def sql(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Both ways of holding a million rows, or ten million if `full`."""
    rows = 10_000_000 if full else 1_000_000
    say(f"sql: {rows:,} rows in {' and in '.join(map(str, BATCHES))} batches")
    return {"rows": rows, "runs": [in_fresh_process(run, batches, rows) for batches in BATCHES]}


def run(batches: int, count: int) -> dict[str, Any]:
    """One collection. AssertionError if an answer is wrong."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder, duckdb.connect() as connection:
        ticks = collected(Path(folder), measurements(count), batches)
        connection.execute("SET TimeZone = 'UTC'")
        files = [str(path) for path in sorted((Path(ticks.root) / "ticks").rglob("*.parquet"))]
        connection.execute(f"CREATE VIEW files AS SELECT sensor, id, measured, value FROM read_parquet({files})")
        connection.register("dataset", ticks.dataset())
        asked = {name: _asked(text, ticks, connection, count) for name, text in STATEMENTS.items()}
        return {"batches": batches, "files": len(files), "questions": asked, "cold": _cold(ticks)}


def collected(folder: Path, rows: pa.Table, batches: int) -> tidemark.OpenCollection:
    """The rows in a collection of so many batches, each of every so many-th row, drained."""
    columns = {
        "id": ColumnType.INT,
        "sensor": ColumnType.INT,
        "measured": ColumnType.TIMESTAMP,
        "value": ColumnType.FLOAT,
    }
    source = Source("{{ landing }}/ticks/{{ ds }}/*.parquet", Format.PARQUET, Envelope.APPEND, ready="always")
    key, *value = (Column(name, of) for name, of in columns.items())
    landed = Landed(source, time=None, event_time=None, start=FIRST)
    declared = Collection("ticks", (key,), tuple(value), landed, live_batches=max(BATCHES) + 1)
    bench = Bench(declared, folder / "root", folder / "landing", note=silent)
    for batch in range(batches):
        interval = Interval(FIRST + batch * DAY, FIRST + (batch + 1) * DAY)
        at = folder / "landing" / "ticks" / f"2024-01-0{batch + 1}"
        at.mkdir(parents=True)
        some = rows.rename_columns(["sensor", "id", "measured", "value"]).take(
            pa.array(range(batch, len(rows), batches))
        )
        pq.write_table(some, at / "a.parquet")
        bench.certified_drain(interval)
    return tidemark.open(str(folder / "root"), "ticks")


def _asked(text: str, ticks: tidemark.OpenCollection, connection: Any, count: int) -> dict[str, float]:
    """CPU seconds of each way to one answer."""
    middle = START + count * STEP // 2
    ends = (pa.scalar(at, pa.timestamp("us", "UTC")).as_py().isoformat() for at in (middle, middle + 60_000_000))
    first, last = ends

    def statement(table: str) -> str:
        return text.format(table=table, first=first, last=last, middle=count // 2)

    def in_duckdb(table: str) -> list[Any]:
        found: list[Any] = connection.execute(statement(table)).fetchall()
        return found

    def as_stream() -> list[Any]:
        connection.register("stream", ticks.as_of().reader())
        return in_duckdb("stream")

    def ours() -> list[Any]:
        return [tuple(row.values()) for row in tidemark.sql(ticks.root, statement("ticks")).to_arrow().to_pylist()]

    expected = in_duckdb("files")
    for found in (in_duckdb("dataset"), as_stream(), ours()):
        if found != expected:
            raise AssertionError(f"{statement('ticks')}: {found} is not {expected}")
    cached = {"cached": least(lambda: in_duckdb("dataset"))}
    with without_cache():
        ways = {"files": lambda: in_duckdb("files"), "dataset": lambda: in_duckdb("dataset"), "sql": ours}
        return {name: least(work) for name, work in {**ways, "stream": as_stream}.items()} | cached


def _cold(ticks: tidemark.OpenCollection) -> float:
    """CPU seconds of a process that is started for one statement, the least of some times."""
    ask = f"tidemark.sql({ticks.root!r}, 'SELECT count(*) AS n FROM ticks').to_arrow().num_rows"
    script = f"import tidemark, time; assert {ask} == 1; print(time.process_time())"
    runs = (subprocess.run([sys.executable, "-c", script], check=True, capture_output=True) for _ in range(TRIES))
    return min(float(done.stdout) for done in runs)


def figures(found: dict[str, Any]) -> Figures:
    """The table."""
    cold = min(run["cold"] for run in found["runs"])
    return Figures(
        "SQL over rows that need no merge",
        f"{found['rows']:,} rows; CPU ms. A process that is started for one statement takes {cold:.2f} CPU s.",
        ("batches", "question", "DuckDB, the files", "dataset", "dataset, cached", "tidemark.sql", "as a stream"),
        tuple(
            (str(run["batches"]), name, *(f"{1000 * cpu[way]:,.1f}" for way in _SHOWN))
            for run in found["runs"]
            for name, cpu in run["questions"].items()
        ),
    )


_SHOWN = ("files", "dataset", "cached", "sql", "stream")


def targets(found: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """What was aimed at: SQL over a bag beside DuckDB over its files, and the first answer of a process."""
    if not found:
        return []
    lines = []
    for run in found["runs"]:
        for name, cpu in run["questions"].items():
            ratio = cpu["dataset"] / cpu["files"]
            lines.append(
                (
                    f"SQL over a bag of {run['batches']}, {name}: CPU beside its files",
                    "1.2",
                    f"{ratio:.2f}",
                    ratio <= 1.2,
                )
            )
    cold = min(run["cold"] for run in found["runs"])
    return [*lines, ("the first answer in SQL of a process: CPU s", "1.5", f"{cold:.2f}", cold <= 1.5)]
