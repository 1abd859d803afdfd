"""Daily totals of flights, some of which are reported late: kept by Tidemark, and as dbt's incremental models keep
them, by MERGE of the last days, in Delta and Iceberg.

What a day's refresh costs is the CPU of the process and all below it, and the bytes that were not there before, the
median of the last half of the days; taking the day's flights in is no part of it. In the end the totals are compared
with those calculated separately: how many are right is the answer, for a look-back window cannot have them all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.derived.days import Days, Totals
from benchmarks.measure import measured
from benchmarks.peers.spark import PEERS
from benchmarks.peers.spark.run import lived

ENGINES = {"Tidemark": "keeping.Tidemark", "Delta": "merging.Delta", "Iceberg, merge on read": "merging.Iceberg"}


def beside(days: Days, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Each engine's figures, from an environment of its own; those that are not installed are left out."""
    found = []
    for name in ENGINES:
        if name in PEERS and not PEERS[name].installed:
            say(f"{name} on Spark is left out, as it is not installed: make bench PEERS=1, which needs Maven for it")
            continue
        say(f"{days.days} days of {days.rows:,} flights, their totals kept by {name}")
        python = PEERS[name].python if name in PEERS else Path(sys.executable)
        found.append({"engine": name, **lived(name, python, asdict(days), "benchmarks.derived")})
    return found


def life(name: str, days: Days) -> dict[str, Any]:
    """One engine's days, in this process."""
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as made:
        folder = Path(made).resolve()
        landing, table = folder / "landing", folder / "table"
        table.mkdir()
        days.land(landing)
        engine = _opened(name, table, days)
        try:
            each = [_day(engine, table, landing, day) for day in range(days.days)]
            answered = _answered(engine.answer(), days.totals())
        finally:
            engine.close()
    last = each[len(each) // 2 :]
    middle = {what: round(median(cost[what] for cost in last), 3) for what in last[0]}
    return {"settings": engine.settings, **asdict(days), **middle, **answered, "each": each}


def _opened(name: str, folder: Path, days: Days) -> Any:
    module, _, cls = ENGINES[name].partition(".")
    engine = getattr(import_module(f"benchmarks.derived.{module}"), cls)
    return (
        engine(folder, days, PEERS[name].jar_files, **dict(PEERS[name].options))
        if name in PEERS
        else engine(folder, days)
    )


def _day(engine: Any, table: Path, landing: Path, day: int) -> dict[str, float]:
    engine.take(landing, day)
    before = _bytes(table)
    with measured() as cost:
        engine.refresh(day)
    after = _bytes(table)
    return {"cpu_seconds": round(cost.cpu_total, 3), "seconds": round(cost.seconds, 3), "bytes": after - before}


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _answered(found: Totals, right: Totals) -> dict[str, int]:
    same = sum(found.get(group) == totals for group, totals in right.items())
    return {"totals": len(right), "right": same, "none_of_ours": len(found.keys() - right.keys())}


def days_from(case: str) -> Days:
    """Days from the JSON of their fields."""
    return Days(**json.loads(case))
