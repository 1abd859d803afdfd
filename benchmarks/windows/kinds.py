"""Windows of each kind over readings: by Tidemark, by Spark, by DuckDB; and what must come out, by numpy.

Sliding windows are named by how many readings one holds on average. Spark and DuckDB emit a sliding window for each
reading, the one that ends with it (a `RANGE BETWEEN` frame); Tidemark emits those, and the ones that begin just after a
reading, about as many again. Answers are compared as fingerprints: rows, sums of all columns, and sums of products
across columns, which a value in a wrong row would change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchmarks.feed import Fingerprint, Ints
from benchmarks.windows.readings import STEP, Rows
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Session, Sliding, Tumbling
from tidemark.model.window.windows import Windows

Bools = npt.NDArray[np.bool_]
HOUR = 60 * STEP
GAP = 3 * STEP
SUMS = (Aggregate("readings", Function.COUNT), Aggregate("total", Function.SUM, "amount"))
ALL = (*SUMS, Aggregate("most", Function.MAX, "amount"))


@dataclass(frozen=True)
class WindowRows:
    """Windows as columns, a row each."""

    sensor: Ints
    start: Ints
    readings: Ints
    total: Ints
    most: Ints | None

    def fingerprint(self) -> Fingerprint:
        found = {
            "rows": len(self.start),
            "counts": int(self.readings.sum()),
            "totals": int(self.total.sum()),
            "total_by_start": int((self.total % 1009 * (self.start % 1013)).sum()),
            "count_by_sensor": int((self.readings * (self.sensor % 1021)).sum()),
        }
        if self.most is not None:
            found["most_by_start"] = int((self.most % 1009 * (self.start % 1013)).sum())
        return dict(found)


def fingerprint_sql(start: str, has_most: bool, modulo: str = "pmod({}, {})") -> list[str]:
    """The same, as expressions of SQL; `start` is the microsecond at which a window begins."""
    of_start = modulo.format(start, 1013)
    sums = {
        "rows": "count(*)",
        "counts": "sum(readings)",
        "totals": "sum(total)",
        "total_by_start": f"sum(total % 1009 * {of_start})",
        "count_by_sensor": "sum(readings * (sensor % 1021))",
    }
    if has_most:
        sums["most_by_start"] = f"sum(most % 1009 * {of_start})"
    return [f"cast({sql} as bigint) as {name}" for name, sql in sums.items()]


@dataclass(frozen=True)
class Kind:
    """Windows of one kind over the readings of each sensor, and their aggregates."""

    name: str
    windows: Windows
    spark: str
    duckdb: str

    @property
    def has_most(self) -> bool:
        return self.windows.aggregates == ALL

    def expected(self, rows: Rows) -> Fingerprint:
        """What Tidemark is to tell of these readings."""
        return self._calculated(rows, frames=False).fingerprint()

    def expected_of_peers(self, rows: Rows) -> Fingerprint:
        """What Spark and DuckDB are to tell."""
        return self._calculated(rows, frames=True).fingerprint()

    def _calculated(self, rows: Rows, frames: bool) -> WindowRows:
        rows = rows.at(np.lexsort((rows.taken_at, rows.sensor)))
        match self.windows.kind:
            case Tumbling(size=size):
                return _grouped(rows, rows.taken_at - rows.taken_at % size, self.has_most)
            case Session(gap=gap):
                return _sessions(rows, gap, self.has_most)
            case Sliding(size=size):
                return slid(rows, size, self.has_most, frames)
            case other:
                raise AssertionError(other)


def tumbling(aggregates: tuple[Aggregate, ...] = SUMS) -> Kind:
    shown, group = _shown(aggregates), "sensor, window(taken_at, '1 hour')"
    name = "tumbling, an hour" if aggregates == SUMS else "tumbling, an hour, with max"
    return Kind(
        name,
        Windows(("sensor",), "taken_at", Tumbling(HOUR), aggregates),
        f"select sensor, window.start as start, {shown} from readings group by {group}",
        f"select sensor, time_bucket(interval 1 hour, taken_at) as start, {shown} from readings group by all",
    )


def conditioned(kind: Kind) -> Kind:
    """The same of the readings that a condition holds of, which are all."""
    name = f"{kind.name}, with a where"
    where = "where sensor >= 0 or sensor is null"
    spark, duckdb = (sql.replace("from readings", f"from readings {where}") for sql in (kind.spark, kind.duckdb))
    return Kind(name, replace(kind.windows, where=where.removeprefix("where ")), spark, duckdb)


def sessions() -> Kind:
    shown = _shown(ALL)
    begins = f"epoch_us(taken_at) - epoch_us(lag(taken_at) over (partition by sensor order by taken_at)) <= {GAP}"
    numbered = f"select *, if({begins}, 0, 1) as begins from readings"
    within = "select *, sum(begins) over (partition by sensor order by taken_at) as session from "
    return Kind(
        "session, a gap of 3 minutes",
        Windows(("sensor",), "taken_at", Session(GAP), ALL),
        f"select sensor, session_window.start as start, {shown} from readings "
        f"group by sensor, session_window(taken_at, '{GAP} microseconds')",
        f"select sensor, min(taken_at) as start, {shown} from ({within} ({numbered})) group by sensor, session",
    )


def sliding(records: int) -> Kind:
    frame = f"range between interval '{records}' minute preceding and current row"
    shown = f"sensor, taken_at - interval '{records}' minute as start"
    aggregates = "count(*) over w as readings, sum(amount) over w as total, max(amount) over w as most"
    both = f"select {shown}, {aggregates} from readings window w as (partition by sensor order by taken_at {frame})"
    return Kind(
        f"sliding, {records:,} records in one",
        Windows(("sensor",), "taken_at", Sliding(records * STEP), ALL),
        both,
        both,
    )


def _shown(aggregates: tuple[Aggregate, ...]) -> str:
    most = ", max(amount) as most" if aggregates == ALL else ""
    return f"count(*) as readings, sum(amount) as total{most}"


def _grouped(rows: Rows, start: Ints, has_most: bool) -> WindowRows:
    begins = np.append(True, (rows.sensor[1:] != rows.sensor[:-1]) | (start[1:] != start[:-1]))
    return _parted(rows, start, begins, has_most)


def _sessions(rows: Rows, gap: int, has_most: bool) -> WindowRows:
    after_gap = np.diff(rows.taken_at) > gap
    begins = np.append(True, after_gap | (rows.sensor[1:] != rows.sensor[:-1]))
    return _parted(rows, rows.taken_at, begins, has_most)


def _parted(rows: Rows, start: Ints, begins: Bools, has_most: bool) -> WindowRows:
    first = np.flatnonzero(begins)
    readings, total = np.diff(np.append(first, len(start))), np.add.reduceat(rows.amount, first)
    most = np.maximum.reduceat(rows.amount, first) if has_most else None
    return WindowRows(rows.sensor[first], start[first], readings, total, most)


def slid(rows: Rows, size: int, has_most: bool, frames: bool) -> WindowRows:
    """Sliding windows of rows that are in order of sensor and instant: all of them, or `frames`, those that end with a
    row."""
    found = [_slid_by_one(rows.at(rows.sensor == sensor), size, frames) for sensor in np.unique(rows.sensor)]
    start, lo, hi, sensor = (np.concatenate(columns) for columns in zip(*found, strict=True))
    first = np.searchsorted(rows.sensor, sensor)
    lo, hi, running = lo + first, hi + first, np.append(0, np.cumsum(rows.amount))
    most = _most(rows.amount, lo, hi) if has_most else None
    return WindowRows(sensor, start, hi - lo, running[hi] - running[lo], most)


def _slid_by_one(rows: Rows, size: int, frames: bool) -> tuple[Ints, Ints, Ints, Ints]:
    """Of one sensor's windows the starts, and the readings [lo, hi) each holds."""
    at = rows.taken_at
    instants = np.unique(at)
    after = instants + 1
    nonempty = np.searchsorted(at, after + size, "right") > np.searchsorted(at, after, "left")
    start = at - size if frames else np.unique(np.concatenate([instants - size, after[nonempty]]))
    lo, hi = np.searchsorted(at, start, "left"), np.searchsorted(at, start + size, "right")
    return start, lo, hi, np.full(len(start), rows.sensor[0])


def _most(values: Ints, lo: Ints, hi: Ints) -> Ints:
    """The largest value of each range: of two stretches, each a power of two long, that cover it."""
    found, level = np.empty(len(lo), np.int64), np.int64(0)
    power = np.floor(np.log2(hi - lo)).astype(np.int64)
    running = values
    while len(running):
        here = np.flatnonzero(power == level)
        found[here] = np.maximum(running[lo[here]], running[hi[here] - (1 << level)])
        half = 1 << level
        running = np.maximum(running[:-half], running[half:])
        level += 1
    return found
