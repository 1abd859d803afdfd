"""A collection that grows old: many small ingests into a large base, compaction after each, all history kept.

Three questions. *Write amplification*: how many rows drains and compactions wrote for each row drained, beside the
least anyone can write who takes in as many batches and never holds more (benchmarks/optimum.py; the base counts as
there from the start). *As-of*: what a read of all costs after the ingests, beside the same read of the same rows
merged into one batch. *Changes*: the bytes of the batches that a read of the last w ingests must open, after every
ingest, for w and for 2w, in the first and in the last half of the history; and what such reads fetch and cost, at some
places. The worst place is right after a large merge, where the last ingests are in a large batch.

Besides, by age: the CPU of a batch, the bytes its jobs read, and the objects they leave, by kind.

Jobs and kernels run in this process, so CPU seconds are the kernels' and the jobs' own. The gates' certificates are
committed without looking: what gates cost is in the throughput tables. Every answer is compared with one calculated
separately (benchmarks/workload.py).
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.counting import Traffic
from benchmarks.feed import Feed, Fingerprint
from benchmarks.measure import in_fresh_process, timed
from benchmarks.optimum import curve
from benchmarks.reading import checked_read
from benchmarks.steps import Bench, InProcess, silent, stored
from benchmarks.workload import Workload, land, minus, windows
from tests.support.memory import peak_bytes
from tests.support.reading import as_of_batches, changes_batches
from tidemark.jobs.steps.write import trace_batch
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description
from tidemark.model.chunk.law import meets_keys
from tidemark.model.instant import MAX_TIME
from tidemark.plan.ranges import split_keys
from tidemark.plan.read import plan_changes
from tidemark.plan.tasks import MergeTask
from tidemark.storage.sidecars import parts_table

ROUNDS = 10
"""Times the whole is read on the way."""
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Ingests a read of changes looks back."""
READ_WIDTHS = (4, 16, 64)
PLACES = 32
"""Places where such reads are not only planned but made, and their answers checked."""
REPEATS = 3


def longevity(workload: Workload) -> dict[str, Any]:
    """The figures of one workload. AssertionError if any answer is wrong."""
    answer: dict[str, Any] = in_fresh_process(_longevity, workload)
    return answer


def _longevity(workload: Workload) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        landing = Path(folder, "landing")
        began = time.perf_counter()
        expected, landed = land(workload, landing)
        old = _Old(workload, Bench(workload.collection, Path(folder, "root"), landing, measure=timed, note=silent))
        old.live(expected)
        seconds = time.perf_counter() - began
        written, objects = stored(old.bench.folder)
        answer = {"objects": objects, "bytes": old.bytes(landed, written), "writing": old.writing()}
        answer["as_of"] = old.compared_reads(expected)
    return {
        "envelope": str(workload.envelope),
        "base": workload.base,
        "ingests": workload.ingests,
        "rows_per_ingest": workload.rows,
        "seed": workload.seed,
        "late_days": workload.late_days,
        "live_batches_declared": workload.collection.live_batches,
        "seconds_in_all": round(seconds, 1),
        "peak_rss": peak_bytes(),
        "steps": {name: cost.as_dict() | {"peak_rss": None} for name, cost in old.bench.costs.items()},
        "base_seconds": old.base_seconds,
        **answer,
        "rounds": old.rounds,
        "days": old.days[1:],
        "changes": old.looking_back(),
    }


@dataclass
class _Old:
    """A collection in the course of its years, and what was noted on the way."""

    workload: Workload
    bench: Bench
    live_batches: list[int] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    days: list[dict[str, Any]] = field(default_factory=list)
    planned: dict[int, list[int]] = field(default_factory=lambda: {width: [] for width in WIDTHS})
    base_rows: int = 0
    base_bytes: int = 0
    base_seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.traffic: Traffic = self.bench.counted()

    @property
    def feed(self) -> Feed:
        return self.workload.feed

    @property
    def state(self) -> Arrangement:
        return self.bench.job.log.load().state

    def live(self, expected: list[Fingerprint]) -> None:
        """All days one after the other; reads where they are due."""
        looks = windows(self.workload.ingests, READ_WIDTHS, PLACES, self.workload.seed)
        for day in range(self.workload.ingests + 1):
            self._one_day(day)
            if day == 0:
                self._base_done()
                continue
            self.live_batches.append(self.bench.results["compact"][-1]["live_batches"])
            self._plan_looks(day)
            for place, width in looks:
                if place == day:
                    self._look_back(day, width, minus(expected[day], expected[day - width]))
            if day % max(1, self.workload.ingests // ROUNDS) == 0:
                self.rounds.append({"ingests": day, **self._as_of(self.state, expected[day])})

    def _one_day(self, day: int) -> None:
        """Ingest to compaction, and what that was."""
        self.traffic.taken(), self.traffic.created_by_kind()
        before = self._spent()
        self.bench.certified_day(self.feed.interval(day))
        asked = self.traffic.taken()
        read = {name: asked[name] for name in ("bytes_read", "bytes_written")}
        spent = {step: round(cost - before.get(step, 0), 4) for step, cost in self._spent().items()}
        self.days.append({"cpu_seconds": spent, **read, "created": self.traffic.created_by_kind()})

    def _spent(self) -> dict[str, float]:
        return {step: cost.cpu_total for step, cost in self.bench.costs.items()}

    def _base_done(self) -> None:
        """What the base cost is reported separately."""
        self.base_seconds = {name: round(cost.cpu_total, 2) for name, cost in self.bench.costs.items()}
        self.bench.costs.clear()
        self.bench.results.clear()
        trace = self.state.trace
        self.base_rows, self.base_bytes = sum(batch.rows for batch in trace), sum(batch.bytes for batch in trace)

    def _plan_looks(self, day: int) -> None:
        """Bytes of the batches that reads of the last ingests would open now, as far as there are as many."""
        state, upto = self.state, self.feed.interval(day).upper - 1
        for width in WIDTHS if day >= max(WIDTHS) else ():
            request = plan_changes(state, self.feed.interval(day - width).upper - 1, upto)
            self.planned[width].append(sum(batch.bytes for batch in request.trace))

    def _look_back(self, day: int, width: int, expected: Fingerprint) -> None:
        after, upto = (self.feed.interval(day - back).upper - 1 for back in (width, 0))
        state = self.state
        batches = changes_batches(self.bench.job.store, state, after=after, upto=upto)
        found = checked_read(self.traffic, batches, "diff", f"changes of the last {width} of {day} ingests", expected)
        self.changes.append({"ingests": day, "width": width, **found})

    def _as_of(self, state: Arrangement, expected: Fingerprint, at: int | None = None) -> dict[str, Any]:
        batches = as_of_batches(self.bench.job.store, state, time=at)
        found = checked_read(self.traffic, batches, "_multiplicity", f"as-of of {len(state.trace)} batches", expected)
        return {"live_batches": len(state.trace), "trace_rows": sum(batch.rows for batch in state.trace), **found}

    def compared_reads(self, expected: list[Fingerprint]) -> dict[str, Any]:
        """As-of at the end, half way, and of the same rows merged into one batch."""
        state, half = self.state, self.workload.ingests // 2
        one = self._merged(state)
        end = [self._as_of(state, expected[-1]) for _ in range(REPEATS)]
        compacted = [self._as_of(one, expected[-1]) for _ in range(REPEATS)]
        half_way = self._as_of(state, expected[half], self.feed.interval(half).upper - 1)
        return {
            "at_the_end": end,
            "compacted": compacted,
            "half_way": half_way,
            "cpu_ratio": round(_least(end, "cpu_seconds") / _least(compacted, "cpu_seconds"), 3),
            "bytes_ratio": round(_least(end, "bytes_read") / _least(compacted, "bytes_read"), 3),
        }

    def _merged(self, state: Arrangement) -> Arrangement:
        """The state as it would be if its trace was one batch; nothing is committed."""
        store = self.bench.job.store
        parts = parts_table.parts_of(store, [batch for batch in state.trace if batch.rows])
        description = Description(0, state.trace_upper)
        tasks = [
            MergeTask(
                state.collection,
                tuple(part for part in parts if meets_keys(part, keys)),
                keys,
                0,
                MAX_TIME,
                description.function,
                "data/compacted",
            )
            for keys in split_keys(parts, target_rows=1_000_000)
        ]
        written = [part for answer in InProcess(store).run("merge", tasks) for part in answer.parts]
        level = state.trace[0].level
        return replace(state, trace=(trace_batch(self.bench.job, "compacted", description, level, written),))

    def writing(self) -> dict[str, Any]:
        """Rows and bytes written, by day, and the optimum for as many live batches."""
        drained = [result["rows"] for result in self.bench.results["drain"]]
        merged = [result["rows"] for result in self.bench.results["compact"]]
        unit, most = mean(drained), max(self.live_batches)
        least = curve(self.workload.ingests, most, base=self.base_rows / unit)
        written, best = (sum(drained) + sum(merged)) / sum(drained), least[-1] / self.workload.ingests
        totals = self.state.totals
        moved = sum(result["bytes"] for result in self.bench.results["drain"])
        data = moved + sum(result["bytes_written"] for result in self.bench.results["compact"])
        return {
            "base_rows": self.base_rows,
            "rows_drained": sum(drained),
            "rows_merged": sum(merged),
            "write_amplification": round(written, 3),
            "write_amplification_bytes": round(data / moved, 3),
            "optimum": round(best, 3),
            "of_optimum": round(written / best, 3),
            "live_batches_most": most,
            "live_batches_mean": round(mean(self.live_batches), 2),
            "live_batches": self.live_batches,
            "merged_rows": merged,
            "largest_merge_rows": max(merged),
            "rows_ingested": totals.rows_ingested,
        }

    def looking_back(self) -> list[dict[str, Any]]:
        """By width: bytes opened, of the whole history and its halves, beside those the ingests' drains wrote."""
        drained = mean(result["bytes"] for result in self.bench.results["drain"])
        return [self._by_width(width, planned, drained) for width, planned in self.planned.items() if planned]

    def _by_width(self, width: int, planned: list[int], drained: float) -> dict[str, Any]:
        half = len(planned) // 2
        made = [read for read in self.changes if read["width"] == width]
        return {
            "width": width,
            "bytes_drained": round(width * drained),
            "bytes_opened": round(mean(planned)),
            "bytes_opened_first_half": round(mean(planned[:half])),
            "bytes_opened_last_half": round(mean(planned[half:])),
            "bytes_opened_median": round(median(planned)),
            "bytes_opened_most": max(planned),
            "reads": len(made),
            "bytes_read": round(mean(read["bytes_read"] for read in made)) if made else None,
            "cpu_seconds": round(mean(read["cpu_seconds"] for read in made), 4) if made else None,
        }

    def bytes(self, landed: list[int], written: int) -> dict[str, int]:
        """Bytes by what wrote them, the base's too; metadata is all that is no part of a batch."""
        totals = self.state.totals
        data = {"ingest": totals.bytes_ingested, "drain": totals.bytes_drained, "compact": totals.bytes_compacted}
        files = {"base_files": landed[0], "change_files": sum(landed[1:]), "base_trace": self.base_bytes}
        return files | data | {"metadata": written - sum(data.values())}


def _least(reads: list[dict[str, Any]], name: str) -> float:
    """The least of repeated reads: what others on the machine add is not the read's."""
    return min(float(read[name]) for read in reads)
