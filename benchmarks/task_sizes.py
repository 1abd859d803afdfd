"""The estimates of plan/task_size.py beside what the kernels take: lives of collections, each in a fresh process.

A life lands days, and calls the steps that a DAG would. The runner estimates each group of tasks, runs it in this
process, and keeps CPU seconds and the peak of its memory above what the process had before. Lives differ in format,
shape of rows, files and what happens (merges, corrections, replays, full snapshots, trims), from fixed seeds.
"""

from __future__ import annotations

import gc
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.feed import DAY, START
from benchmarks.figures import Figures
from benchmarks.measure import in_fresh_process, timed
from benchmarks.steps import Bench, silent
from tidemark.arrow.kernels.density import density_of
from tidemark.jobs.in_process_runner import InProcess, estimated_of
from tidemark.jobs.job import Job
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.trim import trim
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Late, Source
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.task_size import Size, sizes_of
from tidemark.plan.tasks import InspectTask, TrimTask
from tidemark.storage import ObjectStore
from tidemark.storage.sidecars import parts_table

WORDS = 997
WHAT = ("CPU", "memory")
MOST, SHARE = 3, 0.9
"""How many times too large or too small an estimate may be, and of how many it must hold."""
BASE_MIB = 5
"""Memory of which nothing is decided."""


@dataclass(frozen=True)
class Shape:
    """How many columns of each kind a row has besides its key, and how many words its texts have."""

    name: str
    ints: int
    floats: int
    texts: int
    words: int

    @property
    def value(self) -> tuple[Column, ...]:
        kinds = (
            ("i", ColumnType.INT, self.ints),
            ("f", ColumnType.FLOAT, self.floats),
            ("s", ColumnType.STRING, self.texts),
        )
        return tuple(Column(f"{letter}{n}", of) for letter, of, count in kinds for n in range(count))

    def rows(self, count: int, keys: int, seed: int) -> dict[str, pa.Array]:
        """Columns of drawn rows."""
        drawn = np.random.default_rng(seed)
        words = np.array([f"word{n:03d} " for n in range(WORDS)])
        columns: dict[str, pa.Array] = {"id": pa.array(drawn.integers(0, keys, count))}
        for column in self.value:
            if column.type is ColumnType.INT:
                columns[column.name] = pa.array(drawn.integers(0, 1_000_000, count))
            elif column.type is ColumnType.FLOAT:
                columns[column.name] = pa.array(drawn.integers(0, 10**6, count) / 1024)
            else:
                picked = words[drawn.integers(0, WORDS, (count, self.words))]
                columns[column.name] = pa.array(["".join(row) for row in picked.tolist()])
        return columns


NARROW, WIDE, LONG = Shape("narrow", 1, 1, 1, 2), Shape("wide", 120, 40, 39, 1), Shape("long text", 1, 0, 1, 250)


@dataclass(frozen=True)
class Life:
    """What happens to a collection: `days` of `rows` rows in `files` files; then its files are written again with a
    hundredth changed (`reread`), or all rows come late (`late`)."""

    format: Format
    shape: Shape
    rows: int
    files: int = 1
    envelope: Envelope = Envelope.APPEND
    days: int = 2
    reread: bool = False
    late: bool = False
    few_later: bool = False
    ahead: bool = False

    @property
    def name(self) -> str:
        said = [str(self.format), self.shape.name, f"{self.rows:,} rows", str(self.envelope)]
        said += [f"{self.files:,} files"] if self.files > 1 else []
        said += [what for what in ("reread", "late", "few_later", "ahead") if getattr(self, what)]
        return ", ".join(said)

    @property
    def collection(self) -> Collection:
        snapshot, upsert = self.envelope is Envelope.SNAPSHOT, self.envelope is Envelope.UPSERT
        inputs = () if snapshot else (Column("at", ColumnType.TIMESTAMP),)
        inputs += (Column("gone", ColumnType.BOOL),) if upsert else ()
        source = Source(
            f"{{{{ landing }}}}/{{{{ ds }}}}/*.{self.format}",
            self.format,
            self.envelope,
            order_by="at" if upsert else None,
            delete_when="gone = TRUE" if upsert else None,
            ready="always",
        )
        landed = Landed(
            source=source,
            start=START,
            time=None if snapshot else "at",
            event_time=None if snapshot else "at",
            late=Late("discard") if self.late else Late(),
            inputs=inputs,
            reprocess_for=100 * DAY if self.reread else 0,
        )
        return Collection("bench", (Column("id", ColumnType.INT),), self.shape.value, landed, live_batches=2)

    def interval(self, day: int) -> Interval:
        return Interval(START + day * DAY, START + (day + 1) * DAY)

    def table(self, day: int, *, again: bool = False) -> pa.Table:
        rows = self.rows // 100 + 1 if self.few_later and day else self.rows
        columns = self.shape.rows(rows, max(1, self.rows), 1 + day)
        if self.envelope is Envelope.SNAPSHOT:
            columns["id"] = pa.array(np.arange(rows))
        if again:
            changed = columns["i0"].to_numpy().copy()
            changed[::100] += 1
            columns["i0"] = pa.array(changed)
        if self.envelope is not Envelope.SNAPSHOT:
            drawn = np.random.default_rng(day)
            first = self.interval(day).lower - (DAY * 20 if self.late else 0)
            span = 30 * DAY if self.ahead else DAY
            columns["at"] = pa.array(first + drawn.integers(0, span, rows)).cast(pa.timestamp("us", "UTC"))
        if self.envelope is Envelope.UPSERT:
            columns["gone"] = pa.array(np.random.default_rng(day + 9).random(rows) < 0.02)
        return pa.table(columns)

    def land(self, landing: Path, day: int, *, again: bool = False) -> None:
        folder = landing / format_instant(self.interval(day).lower)[:10]
        folder.mkdir(parents=True, exist_ok=True)
        table = self.table(day, again=again)
        each = -(-table.num_rows // self.files)
        for number, first in enumerate(range(0, table.num_rows, each)):
            _write(folder / f"{number:05d}.{self.format}", table.slice(first, each), self.format)


def _write(path: Path, rows: pa.Table, of: Format) -> None:
    if of is Format.PARQUET:
        pq.write_table(rows, path, compression="snappy")
        return
    if "at" in rows.column_names:
        at = rows.column_names.index("at")
        rows = rows.set_column(at, "at", pa.compute.strftime(rows["at"], "%Y-%m-%dT%H:%M:%SZ"))
    if of is Format.CSV:
        pa.csv.write_csv(rows, path)
        return
    with path.open("w") as out:
        for batch in rows.to_batches(max_chunksize=10_000):
            out.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())


@dataclass
class Estimating:
    """Runs kernels in this process, and keeps what was estimated and what they took."""

    store: ObjectStore
    records: list[dict[str, Any]]
    parallelism: int = 1

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        if not tasks:
            return []
        before = _settled()
        began = time.process_time()
        estimate = estimated_of(self.store, name, tasks)
        asked = time.process_time() - began
        density = density_of(self.store, tasks)
        sizes: dict[str, Size] = {}
        for task in tasks:
            for priced, size in sizes_of(name, task, density).items():
                sizes[priced] = sizes.get(priced, Size()) + size
        began = time.process_time()
        answers = InProcess(self.store).run(name, tasks)
        cpu = time.process_time() - began
        self.records.append(
            {
                "kernel": name,
                "tasks": len(tasks),
                "sizes": {priced: vars(size) for priced, size in sizes.items()},
                "estimated_cpu_s": estimate and estimate.cpu_seconds,
                "estimated_peak_mib": estimate and estimate.peak_bytes / 2**20,
                "asked_cpu_s": asked,
                "cpu_s": cpu,
                "peak_mib": (_peak() - before) / 2**20,
                "base_mib": before / 2**20,
            }
        )
        return answers


def _settled() -> int:
    """What the process has in memory once what is free was given back; its peak begins there."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def lived(lives: Sequence[Life]) -> list[dict[str, Any]]:
    """What each group of tasks of some lives was estimated to take, and took. The first life is lived twice: what a
    process does for the first time takes longer."""
    records: list[dict[str, Any]] = []
    for number, life in enumerate((replace(lives[0], rows=100, files=1), *lives)):
        here: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
            bench = Bench(
                life.collection,
                Path(folder, "root"),
                Path(folder, "landing"),
                runner_for=lambda store, here=here: Estimating(store, here),
                measure=timed,
                note=silent,
            )
            _live(life, bench)
        records += [{"life": life.name, **record} for record in here] if number else []
    return records


def _live(life: Life, bench: Bench) -> None:
    for day in range(life.days):
        interval = life.interval(day)
        for again in (False, True) if life.reread else (False,):
            life.land(bench.landing, day, again=again)
            if again:
                ingest(bench.job, interval, landing_root=str(bench.landing))
                gate(bench.job, Gate.UNSEALED)
            else:
                bench.certified_ingest(interval)
            _inspect(bench.job)
            bench.certified_seal(interval)
            bench.drained(interval)
        bench.certified_compaction(interval)
        trim(bench.job, interval)
    if life.late:
        replay(bench.job)


def _inspect(job: Job) -> None:
    """What a gate reads of the newest batch."""
    state = job.log.load().state
    batches = [*state.unsealed, *state.trace][-1:]
    collection = state.collection
    parts = [(batch, part) for batch in batches for part in parts_table.parts_of(job.store, [batch])]
    facts = [collection.kind.facts_in(batch) for batch, _ in parts]
    looked = [InspectTask(collection, part, of) for (_, part), of in zip(parts, facts, strict=True)]
    job.runner().run("inspect", looked)
    middle = [(part.first_time + part.last_time) // 2 for _, part in parts]
    job.runner().run(
        "trim",
        [
            TrimTask(collection, part, of, lower, lower, "data/trimmed", DAY)
            for (_, part), of, lower in zip(parts, facts, middle, strict=True)
        ],
    )


def lives(full: bool) -> Iterator[Life]:
    """The lives: each kernel, format and shape of rows."""
    sizes = {NARROW: (1_000, 30_000, 300_000), WIDE: (300, 3_000, 20_000), LONG: (1_000, 20_000)}
    upsert, snapshot = Envelope.UPSERT, Envelope.SNAPSHOT
    for shape, counts in sizes.items():
        for rows in counts if full else counts[:1]:
            yield from (Life(of, shape, rows) for of in Format)
            yield Life(Format.PARQUET, shape, rows, envelope=upsert, days=3, few_later=rows > 1_000)
            yield Life(Format.PARQUET, shape, rows, envelope=snapshot, days=3)
            yield Life(Format.CSV, shape, rows, reread=True)
            yield Life(Format.PARQUET, shape, rows, envelope=upsert, reread=True)
            yield Life(Format.PARQUET, shape, rows, late=True)
            yield Life(Format.PARQUET, shape, rows, ahead=True)
    for of in Format:
        yield Life(of, NARROW, 30_000 if full else 3_000, 300 if full else 30)
    if full:
        yield from (Life(of, NARROW, 2_000_000) for of in Format)
        yield Life(Format.PARQUET, NARROW, 1_000_000, envelope=upsert)
        yield Life(Format.PARQUET, NARROW, 1_000_000, envelope=snapshot)


def task_sizes(full: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """The figures."""
    chosen = list(lives(full))
    say(f"estimates: {len(chosen)} lives of collections")
    return {"runs": in_fresh_process(lived, chosen)}


def figures(found: dict[str, Any]) -> Figures:
    """Of each kernel how many times too large or too small its estimates are."""
    by_kernel: dict[str, list[dict[str, Any]]] = {}
    for run in found["runs"]:
        by_kernel.setdefault(_kernel(run), []).append(run)
    lines = []
    for kernel, runs in sorted(by_kernel.items()):
        cpu, memory = (sorted(_ratio(run, what) for run in runs) for what in WHAT)
        seconds = max(run["cpu_s"] for run in runs)
        shares = [f"{sum(map(_is_within, ratios)) / len(ratios):.0%}" for ratios in (cpu, memory)]
        middle = [f"{median(ratios):.2f}" for ratios in (cpu, memory)]
        lines.append((kernel, str(len(runs)), f"{seconds:.1f} s", middle[0], shares[0], middle[1], shares[1]))
    return Figures(
        "Estimates of tasks",
        f"Estimated ÷ measured, of {len(found['runs']):,} groups of tasks in one process; "
        f"memory is that above what the process had, plus {BASE_MIB} MiB.",
        ("kernel", "runs", "longest", "CPU, median", f"within {MOST} x", "memory, median", f"within {MOST} x"),
        tuple(lines),
    )


def targets(found: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """Nine of ten estimates are within three times of what was measured."""
    if not found:
        return []
    shares = {what: sum(_is_within(_ratio(run, what)) for run in found["runs"]) / len(found["runs"]) for what in WHAT}
    return [
        (f"estimates of {what} within {MOST} x of what was measured", f">= {SHARE:.0%}", f"{share:.0%}", share >= SHARE)
        for what, share in shares.items()
    ]


def _kernel(run: dict[str, Any]) -> str:
    return f"ingest {run['life'].split(',')[0]}" if run["kernel"] == "ingest" else str(run["kernel"])


def _ratio(run: dict[str, Any], what: str) -> float:
    if what == "CPU":
        return float(run["estimated_cpu_s"] / max(run["cpu_s"], 1e-4))
    return float((run["estimated_peak_mib"] + BASE_MIB) / (run["peak_mib"] + BASE_MIB))


def _is_within(ratio: float) -> bool:
    return 1 / MOST <= ratio <= MOST
