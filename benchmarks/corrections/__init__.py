"""What it costs to run the past again: a day run again without a change, one file of a hundred days corrected, and what
a collection pays day by day for being correctable (`reprocess_for`).

history.py draws the days and says what is right after each of them. The file is corrected by Tidemark and by peers
(ours.py, plain.py, delta_rs.py, and on Spark, spark.py), all with the methods of life.py, which asks all the same.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.corrections.history import History
from benchmarks.measure import in_fresh_process
from benchmarks.peers.engines import missing
from benchmarks.peers.spark import PEERS
from benchmarks.peers.spark.run import lived
from benchmarks.peers.spark.run import versions as on_spark
from tidemark.model.collection import Envelope

ENVELOPES = (Envelope.APPEND, Envelope.UPSERT)
"""Those whose files can be corrected."""
ENGINES = {
    "Tidemark in one process": "ours.InOneProcess",
    "plain Parquet by day": "plain.PlainParquet",
    "delta-rs": "delta_rs.DeltaRs",
}
ON_SPARK = {
    "Tidemark on Spark, without gates": "ours.OnSpark",
    "Tidemark on Spark, with gates": "ours.OnSparkWithGates",
    "Delta": "spark.Delta",
    "Iceberg, merge on read": "spark.Iceberg",
    "Iceberg, copy on write": "spark.Iceberg",
}
"""Engines that run in Spark; those of PEERS in an environment of their own."""


def opened(name: str, folder: Path, history: History) -> Any:
    """A new table of that engine, in this process."""
    module, _, cls = {**ENGINES, **ON_SPARK}[name].partition(".")
    engine = getattr(import_module(f"benchmarks.corrections.{module}"), cls)
    if name not in PEERS:
        return engine(folder, history)
    return engine(folder, history, PEERS[name].jar_files, **dict(PEERS[name].options))


def corrections(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures of all three, for each envelope. AssertionError if an answer of ours is wrong."""
    from benchmarks.corrections.reprocess import reprocess
    from benchmarks.corrections.rerun import rerun
    from benchmarks.peers.in_process import versions as in_process

    found: dict[str, Any] = {"versions": {**on_spark(), **in_process()}, "reruns": [], "reprocess": [], "lives": []}
    for envelope in ENVELOPES:
        for history in again(envelope, full):
            say(f"a day of {history.rows:,} rows run again, {envelope}")
            found["reruns"].append(in_fresh_process(rerun, history))
        say(f"a collection with reprocess_for beside one without, {envelope}")
        found["reprocess"] += reprocess(envelope, full)
        small, *large = histories(envelope, full)
        for history in (small, *large):
            found["lives"] += _in_process(history, say)
        found["lives"] += _on_spark(small, say)
    return found


def again(envelope: Envelope, full: bool) -> list[History]:
    """Of which a day is run again: small days, and large ones."""
    return [History(envelope, 10, rows) for rows in ((10_000, 100_000) if full else (4_000,))]


def histories(envelope: Envelope, full: bool) -> list[History]:
    """Of which a file is corrected, the one for Spark too first: of large days what depends on days is small."""
    return [History(envelope, 100, 10_000), History(envelope, 30, 200_000)] if full else [History(envelope, 20, 4_000)]


def _in_process(history: History, say: Callable[[str], None]) -> list[dict[str, Any]]:
    found = []
    for name in ENGINES:
        if name == "delta-rs" and (packages := missing("delta")):
            say(f"{name} is left out, as these are not installed: {', '.join(packages)} (make bench PEERS=1)")
            continue
        say(f"one file of {history.days} days of {history.rows:,} rows corrected, {history.envelope}: {name}")
        found.append({"engine": name, **in_fresh_process(one_life, name, history)})
    return found


def _on_spark(history: History, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Only beside a peer: Tidemark on Spark alone says nothing."""
    peers = [name for name in ON_SPARK if name in PEERS and PEERS[name].installed]
    for name in sorted({name for name in ON_SPARK if name in PEERS} - set(peers)):
        say(f"{name} on Spark is left out, as it is not installed: make bench PEERS=1, which needs Maven for it")
    found = []
    for name in ON_SPARK if peers else ():
        if name in peers or name not in PEERS:
            say(f"one file of {history.days} days of {history.rows:,} rows corrected, {history.envelope}: {name}")
            python = PEERS[name].python if name in PEERS else Path(sys.executable)
            found.append(
                {"engine": name, **history.parameters, **lived(name, python, asdict(history), "benchmarks.corrections")}
            )
    return found


def one_life(name: str, history: History) -> dict[str, Any]:
    """One engine's figures, in this process."""
    from benchmarks.corrections.life import life

    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as made:
        folder = Path(made).resolve()
        table = opened(name, folder / "table", history)
        try:
            return life(table, folder, history)
        finally:
            table.close()


def history_from(case: str) -> History:
    """A history from the JSON of its fields."""
    fields = json.loads(case)
    return History(**{**fields, "envelope": Envelope(fields["envelope"])})
