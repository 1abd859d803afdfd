"""The same days through Tidemark, DuckLake and delta-rs: bytes, CPU seconds, objects, and whether answers are right.

Each engine runs in a process of its own on local files, takes in the same base and the same upserts, and is maintained
after the same number of ingests. Nothing is deleted, so every day stays readable and what is on disk is what was
written, but for what an engine overwrites: bytes handed to the kernel are counted too. Bytes are compared with those
of each day's rows written once, alone, as zstd Parquet.

A day's rows of one key are reduced to the newest before a peer's MERGE, which is what its guide advises: without that
Delta refuses and DuckLake holds a row twice (benchmarks/peers/semantics.py).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.feed import Fingerprint, code_of, fingerprint_of
from benchmarks.measure import in_fresh_process
from benchmarks.peers.engines import ENGINES, Engine, missing, opened
from benchmarks.peers.semantics import cases
from benchmarks.workload import CurrentRows, Workload, minus
from tests.support.memory import peak_bytes

REPEATS = 3
PACKAGES = ("duckdb", "duckdb-ext-ducklake", "deltalake")


def peers(workloads: list[tuple[Workload, int]], say: Callable[[str], None]) -> dict[str, Any]:
    """Every engine through every workload, maintained after so many ingests; and the cases of what is right."""
    installed = []
    for name in ENGINES:
        if packages := missing(name):
            say(f"{name} is left out, as these are not installed: {', '.join(packages)} (make bench PEERS=1)")
        else:
            installed.append(name)
    runs = []
    for workload, every in workloads:
        for name in installed:
            say(f"peers: {workload.ingests} x {workload.rows:,} rows into {workload.base:,}, {name}")
            runs.append(in_fresh_process(_run, name, workload, every))
    return {"versions": versions(), "runs": runs, "cases": in_fresh_process(cases, installed)}


def _run(name: str, workload: Workload, every: int) -> dict[str, Any]:
    expected = _expected(workload)
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        engine: Engine = opened(name, Path(folder, "table"))
        alone, ingest, maintain = [], [], []
        base = _clocked(lambda: engine.ingest(0, workload.day(0).table(workload.envelope)))
        before = engine.stored()
        for day in range(1, workload.ingests + 1):
            rows = workload.day(day).table(workload.envelope)
            alone.append(_bytes_alone(rows))
            ingest.append(_clocked(partial(engine.ingest, day, rows)))
            if day % every == 0:
                maintain.append(_clocked(partial(engine.maintain, day)))
        after = engine.stored()
        reads = _reads(engine, workload, expected)
        grown = {kind: after[kind] - before[kind] for kind in after}
        return {
            "engine": name,
            "settings": engine.settings,
            "base": workload.base,
            "ingests": workload.ingests,
            "rows_per_ingest": workload.rows,
            "seed": workload.seed,
            "maintained_every": every,
            "bytes_alone": sum(alone),
            "stored": grown,
            "bytes_to_kernel": sum(cost["bytes_to_kernel"] for cost in (*ingest, *maintain)),
            "write_amplification": round((grown["data"] + grown["metadata"]) / sum(alone), 2),
            "base_cpu_seconds": base["cpu_seconds"],
            "ingest": _spread(ingest),
            "maintain": _spread(maintain),
            "reads": reads,
            "peak_rss": peak_bytes(),
        }


def _expected(workload: Workload) -> list[Fingerprint]:
    current = CurrentRows(workload.feed)
    return [current.after(workload.day(day)) for day in range(workload.ingests + 1)]


def _reads(engine: Engine, workload: Workload, expected: list[Fingerprint]) -> dict[str, Any]:
    last, half = workload.ingests, workload.ingests // 2
    key = int(workload.day(last).id[~workload.day(last).deleted][0])
    asked: dict[str, tuple[Callable[[], pa.Table], Fingerprint | None]] = {
        "as-of the end": (lambda: engine.as_of(last), expected[last]),
        "as-of half way": (lambda: engine.as_of(half), expected[half]),
        "changes of the second half": (lambda: engine.changes(half, last), minus(expected[last], expected[half])),
        "changes of the last ingest": (
            lambda: engine.changes(last - 1, last),
            minus(expected[last], expected[last - 1]),
        ),
        "one key": (lambda: engine.point(key, code_of(key % 97)), None),
    }
    return {what: _read(read, wanted) for what, (read, wanted) in asked.items()}


def _read(read: Callable[[], pa.Table], expected: Fingerprint | None) -> dict[str, Any]:
    """The least CPU of some repeats; and whether the answer is the one calculated, for one key whether it is one."""
    answers: list[pa.Table] = []
    try:
        costs = [_clocked(lambda: answers.append(read())) for _ in range(REPEATS)]
        right = answers[0].num_rows == 1 if expected is None else fingerprint_of(answers[0], "multiplicity") == expected
    except Exception as error:  # an engine that cannot answer is a result
        return {"answer": f"error: {str(error).splitlines()[0][:160]}"}
    least = min(costs, key=lambda cost: float(cost["cpu_seconds"]))
    return {"cpu_seconds": least["cpu_seconds"], "rows": answers[0].num_rows, "answer": "right" if right else "wrong"}


def _clocked(work: Callable[[], object]) -> dict[str, Any]:
    written, began, spent = _to_kernel(), time.perf_counter(), time.process_time()
    work()
    return {
        "cpu_seconds": round(time.process_time() - spent, 4),
        "seconds": round(time.perf_counter() - began, 4),
        "bytes_to_kernel": _to_kernel() - written,
    }


def _to_kernel() -> int:
    """Bytes this process handed to write calls."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


def _bytes_alone(rows: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return int(sink.getvalue().size)


def _spread(costs: list[dict[str, Any]]) -> dict[str, Any]:
    spent = [cost["cpu_seconds"] for cost in costs]
    if not spent:
        return {"times": 0, "cpu_seconds": 0.0}
    return {
        "times": len(spent),
        "cpu_seconds": round(sum(spent), 3),
        "cpu_seconds_median": round(median(spent), 4),
        "cpu_seconds_most": max(spent),
        "seconds": round(sum(cost["seconds"] for cost in costs), 3),
    }


def versions() -> dict[str, str]:
    """Those of the packages of peers that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
