"""What a layout by time costs and saves: one hour, one key and its latest row, of the same rows in buckets of a day, of
six hours, of one hour, and of none.

A million rows (ten if `full`) of 500 sensors over 60 days, in one drained batch; a peer has the same rows in one
Parquet file, in order of bucket and sensor. Counted as in timelines.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import tidemark
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.peers.timelines import PEERS_HAVE, Peers, peers_of, without_peers
from benchmarks.timelines import (
    HEADINGS,
    HOUR,
    SENSORS,
    START,
    TRIES,
    Latest,
    Stretch,
    cells,
    collected,
    compared,
    measurements,
)
from tidemark.arrow.rows.layout import buckets
from tidemark.model.collection import Layout

DAYS = 60
LAYOUTS = {"none": None, "1d": 24 * HOUR, "6h": 6 * HOUR, "1h": HOUR}
SENSOR = 7


def layouts(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """Each layout of a million rows, or of ten million if `full`."""
    if without_peers():
        say("layouts: without its peers, which are not all installed (make bench PEERS=1)")
    rows = 10_000_000 if full else 1_000_000
    say(f"layouts: {rows:,} rows, {len(LAYOUTS)} layouts")
    return {"rows": rows, "runs": [in_fresh_process(run, every, rows) for every in LAYOUTS]}


def run(every: str, count: int) -> dict[str, Any]:
    """One layout. AssertionError if an answer is wrong."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder, ExitStack() as stack:
        rows = measurements(count, DAYS * 24 * HOUR // count)
        layout = None if LAYOUTS[every] is None else Layout("at", LAYOUTS[every])
        ours = collected(Path(folder), rows, ("sensor", "id"), layout)
        peers = peers_of(Path(folder), _in_order(rows, layout), stack)
        middle = START + DAYS * 12 * HOUR
        questions = {
            "one hour": Stretch(middle, HOUR),
            "one sensor": _Sensor(),
            "its latest row": Latest(middle, SENSOR),
        }
        return {"every": every, "questions": [compared(name, one, ours, peers) for name, one in questions.items()]}


def _in_order(rows: pa.Table, layout: Layout | None) -> pa.Table:
    by = [("sensor", "ascending"), ("at", "ascending")]
    if layout is None:
        return rows.sort_by(by)
    placed = rows.append_column("bucket", pa.array(buckets(rows["at"], layout)))
    return placed.sort_by([("bucket", "ascending"), *by]).drop_columns(["bucket"])


class _Sensor:
    """All rows of one sensor."""

    def ours(self, ticks: tidemark.OpenCollection) -> Any:
        return ticks.as_of(where={"sensor": SENSOR})

    def of(self, table: pa.Table) -> tuple[Any, ...]:
        return table.num_rows, pc.sum(table["id"]).as_py()

    def duckdb(self, peers: Peers) -> pa.Table:
        return peers.sql(f"SELECT * FROM {{rows}} WHERE sensor = {SENSOR}")

    def polars(self, peers: Peers) -> pa.Table:
        import polars

        return polars.scan_parquet(peers.path).filter(polars.col("sensor") == SENSOR).collect().to_arrow()

    def delta(self, peers: Peers) -> pa.Table:
        return peers.datafusion(f"SELECT * FROM {{rows}} WHERE sensor = {SENSOR}")


def figures(found: dict[str, Any]) -> Figures:
    """The table."""
    return Figures(
        "Layouts by time",
        f"{found['rows']:,} rows of {SENSORS} sensors over {DAYS} days, laid out in buckets; CPU ms, the least of "
        f"{TRIES}: asked again, and without the cache. {PEERS_HAVE} Chunks and MiB are what ours reads of what it "
        "has stored when it is asked first.",
        ("every", *HEADINGS),
        tuple((run["every"], *cells(one)) for run in found["runs"] for one in run["questions"]),
    )
