"""What windows cost: built whole beside Spark and DuckDB (build.py), kept right after a change beside computed whole
(refresh.py), and kept day by day beside Structured Streaming (streaming.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def windows(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of all. AssertionError if an answer is wrong."""
    from benchmarks.derived.days import Days
    from benchmarks.peers.in_process import versions
    from benchmarks.windows.build import build
    from benchmarks.windows.readings import Readings
    from benchmarks.windows.refresh import refresh
    from benchmarks.windows.streaming import streaming

    built = build(full, say)
    readings = Readings(1_000, 2_000 if full else 200)
    say(f"windows over {readings.total:,} readings, of which a hundredth changes")
    refreshed = refresh(readings)
    streamed = streaming(Days(20, 100_000) if full else Days(6, 10_000), say)
    duckdb = {name: number for name, number in versions().items() if name == "duckdb"}
    return {"versions": duckdb, "built": built, "refresh": refreshed, "streaming": streamed}
