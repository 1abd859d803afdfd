"""A day that lands as very many small files, of ten rows each, and the day after it, of one file.

The first day is taken in by one process without a JVM, through the same kernels and the same JSON as by executors, once
for each format; and, if `full`, by executors of Spark on this machine. Memory is the peak of that process and of those
below it, without the JVM, whose heap is configured. Then all steps take the second day, 20 rows: what it costs is to
depend little on how many files the ledger has. What is in the files follows from their numbers; the rows of each
collection are counted and added up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.feed import DAY, START
from benchmarks.figures import MIB, Figures
from benchmarks.measure import Cost, in_fresh_process
from benchmarks.steps import Bench, silent, stored
from tests.support.reading import as_of
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Landed, Source
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval

ROWS = 10
"""Of each file of the first day."""
NEXT_ROWS = 20
"""Of the one file of the second."""
MOST = 1024 * MIB
FORMATS = (Format.CSV, Format.JSONL, Format.PARQUET)


def collection(form: Format) -> Collection:
    """Amounts by number, appended."""
    source = Source(f"{{{{ landing }}}}/{{{{ ds }}}}/*.{form}", form, Envelope.APPEND)
    landed = Landed(source, START, time="at", inputs=(Column("at", ColumnType.TIMESTAMP),))
    return Collection("many", (Column("id", ColumnType.INT),), (Column("amount", ColumnType.INT),), landed)


def land(landing: Path, form: Format, day: int, files: int, *, rows: int = ROWS) -> None:
    """Write the files of a day; every other one of Parquet is compressed."""
    folder = landing / format_instant(START + day * DAY)[:10]
    folder.mkdir(parents=True)
    for number in range(files):
        path = folder / f"{number:07d}.{form}"
        table = _table(day, number * rows, rows)
        if form is Format.PARQUET:
            pq.write_table(table, path, compression="zstd" if number % 2 else "none")
            continue
        lines = zip(*(column.to_pylist() for column in table.columns), strict=True)
        texts = [(key, amount, at.isoformat()) for key, amount, at in lines]
        if form is Format.CSV:
            path.write_text("id,amount,at\n" + "".join(f"{key},{amount},{at}\n" for key, amount, at in texts))
        else:
            path.write_text(
                "".join(f'{{"id": {key}, "amount": {amount}, "at": "{at}"}}\n' for key, amount, at in texts)
            )


def _table(day: int, first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    ids = pa.array([day * 10**9 + number for number in numbers])
    at = pa.array([START + day * DAY + number % 86_400 * 1_000_000 for number in numbers], pa.timestamp("us", "UTC"))
    return pa.table({"id": ids, "amount": pa.array([number * 37 % 1_009 for number in numbers]), "at": at})


def small_files(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of 2,000 files, or of 100,000 if `full`. AssertionError if rows are missing, or there twice."""
    files = 100_000 if full else 2_000
    cases = [("process", form) for form in FORMATS] + ([("spark", Format.CSV)] if full else [])
    days = []
    for place, form in cases:
        say(f"small files: {files:,} files of {form}, {place}")
        days.append({"place": place, "format": str(form), **in_fresh_process(_measured, place, str(form), files)})
    return {"files": files, "days": days}


def _measured(place: str, form: str, files: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as name:
        folder = Path(name)
        land(folder / "landing", Format(form), 0, files)
        land(folder / "landing", Format(form), 1, 1, rows=NEXT_ROWS)
        with closing(_benches(place, Format(form), folder)) as benches:
            bench = next(benches)
            bench.day(Interval(START, START + DAY))
            first, first_state = dict(bench.costs), stored(bench.folder)
            bench.costs.clear()
            bench.day(Interval(START + DAY, START + 2 * DAY))
            second = sum(bench.costs.values(), Cost())
            _check(bench, files)
        ledger = [path.stat().st_size for path in (bench.folder / "ledger").iterdir()]
    return {
        "ingest": first["ingest"].as_dict(),
        "other_steps_cpu": round(sum(cost.cpu_total for step, cost in first.items() if step != "ingest"), 3),
        "second_day_cpu": round(second.cpu_total, 3),
        "ledger_bytes": sum(ledger),
        "ledger_objects": len(ledger),
        "bytes": first_state[0],
        "objects": first_state[1],
    }


def _benches(place: str, form: Format, folder: Path) -> Iterator[Bench]:
    made = partial(Bench, collection(form), folder / "root", folder / "landing", each_loads=True, note=silent)
    if place == "process":
        yield made()
        return
    from tidemark.spark.runner import SparkRunner
    from tidemark.spark.session import session

    spark = session("small files")
    try:
        yield made(runner_for=lambda store: SparkRunner(spark, store.url))
    finally:
        spark.stop()


def _check(bench: Bench, files: int) -> None:
    rows = as_of(bench.job.store, bench.job.log.load().state)
    numbers = range(files * ROWS)
    counts = (rows.num_rows, sum(rows.column("amount").to_pylist()), len(set(rows.column("id").to_pylist())))
    amounts = sum(number * 37 % 1_009 for number in (*numbers, *range(NEXT_ROWS)))
    expected = (len(numbers) + NEXT_ROWS, amounts, len(numbers) + NEXT_ROWS)
    assert counts == expected, f"rows, amounts and numbers are {counts}, and should be {expected}"


def _peak(day: dict[str, Any]) -> int:
    peak = day["ingest"]["peak_rss"]
    return int(peak["driver"] + peak["executors"])


def figures(result: dict[str, Any]) -> Figures:
    """What the first day costs by place and format, and the second after it."""
    files = result["files"]
    return Figures(
        "Many small files",
        f"{files:,} files of {ROWS} rows in one day, then one file of {NEXT_ROWS} rows; gates included.",
        ("place, format", "CPU, ms a file", "peak", "other steps, CPU s", "ledger", "second day, CPU s"),
        tuple(
            (
                f"{day['place']}, {day['format']}",
                f"{day['ingest']['cpu_seconds_total'] / files * 1e3:.2f}",
                f"{_peak(day) / MIB:,.0f} MiB",
                f"{day['other_steps_cpu']:.2f}",
                f"{day['ledger_bytes'] / 1e6:.1f} MB, {day['ledger_objects']:,} objects",
                f"{day['second_day_cpu']:.2f}",
            )
            for day in result["days"]
        ),
    )


def targets(result: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """A day of many files within one GiB."""
    return [
        (
            f"{result['files']:,} small files, {day['place']}, {day['format']}: memory at the peak, without the JVM",
            "≤ 1 GiB",
            f"{_peak(day) / MIB:,.0f} MiB",
            _peak(day) <= MOST,
        )
        for day in (result["days"] if result else [])
    ]
