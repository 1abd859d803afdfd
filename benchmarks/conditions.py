"""What a condition that holds for every row costs: the three windows that ship, built at full size without a `where`,
with one that is always true and computed by Arrow, and with one that only Spark evaluates."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.derived.refresh import Kept, kept
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process
from benchmarks.shipped import COLLECTIONS, Flights, warmed
from benchmarks.steps import Bench, silent
from benchmarks.throughput import same, wake_workers
from tidemark.config.collection_file import parse
from tidemark.config.derived_file import DerivedFile
from tidemark.model.derived import Derived

Result = dict[str, Any]
SUMS = {
    "delays_by_hour": "count(*) as r, sum(flights) as n, sum(delay_sum) as s",
    "aircraft_days": "count(*) as r, sum(legs) as n, sum(delay_sum) as s",
    "busy_half_hours": "count(*) as r, sum(flights) as n",
}
WHERES = {"none": "", "arrow": "flight > -1", "spark": "hash(tailnum) IS NOT NULL"}
"""Which hold for all flights."""
MOST = 1.3


def conditions(full: bool, say: Callable[[str], None]) -> Result:
    """The figures, from a process of its own. AssertionError if a condition changes an answer."""
    flights = Flights(2_000_000 if full else 200_000)
    say(f"windows with a condition that always holds, over {flights.total:,} flights")
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        return {"flights": flights.total, "collections": in_fresh_process(warmed, _measured, flights, Path(folder))}


def _measured(spark: SparkSession, flights: Flights, folder: Path) -> Result:
    root, landing = folder / "root", folder / "landing"
    flights.land(landing, 0)
    Bench(flights.collection, root, landing, note=silent).certified_day(flights.interval(0))
    found: Result = {}
    for name in SUMS:
        found[name] = {of: _built(spark, name, of, root) for of in WHERES}
        for of in WHERES:
            same(f"{name} with {of}", found[name][of]["sums"], found[name]["none"]["sums"])
    return found


def _built(spark: SparkSession, name: str, of: str, root: Path) -> Result:
    one = kept(spark, f"{name}_{of}", _declared(name, WHERES[of]), root)
    one.bench.note = one.bench.job.note = silent
    wake_workers(spark)
    cost, result = one.correct()
    return {**cost.as_dict(), "sums": _sums(one, name), "way": result["way"]["words"]}


def _declared(name: str, where: str) -> Derived:
    """As its file declares it, with another condition."""
    file = parse(COLLECTIONS / f"{name}.yaml")
    assert isinstance(file, DerivedFile)
    definition = file.origin.definition
    assert definition.windows is not None
    return replace(file.origin, definition=replace(definition, windows=replace(definition.windows, where=where)))


def _sums(one: Kept, name: str) -> dict[str, int]:
    found = one.frame().selectExpr(*SUMS[name].split(", ")).collect()[0].asDict()
    return {of: int(value) for of, value in found.items()}


def figures(found: Result) -> Figures:
    """CPU seconds of each."""
    return Figures(
        "A condition that always holds",
        f"{found['flights']:,} flights; CPU s of all processes together, to build the windows.",
        ("collection", "without", "s", "true by Arrow", "of it", "true by Spark", "s", "of it"),
        tuple(_row(name, one) for name, one in found["collections"].items()),
    )


def _row(name: str, one: Result) -> tuple[str, ...]:
    none, arrow, spark = (one[of]["cpu_seconds_total"] for of in WHERES)
    ways = [one[of]["way"] for of in ("none", "spark")]
    true_by_arrow, true_by_spark = f"{arrow:.2f}", f"{spark:.2f}"
    of_it = [f"{cost / none:.2f} x" for cost in (arrow, spark)]
    return (name, ways[0], f"{none:.2f}", true_by_arrow, of_it[0], ways[1], true_by_spark, of_it[1])


def targets(found: Result | None) -> list[tuple[str, str, str, bool]]:
    """What was aimed at: a condition that costs next to nothing."""
    lines = []
    for name, one in (found["collections"] if found else {}).items():
        none, arrow = (one[of]["cpu_seconds_total"] for of in ("none", "arrow"))
        met = arrow <= MOST * none
        lines.append((f"{name}, where always true: CPU beside none", f"{MOST} x", f"{arrow / none:.2f} x", met))
    return lines
