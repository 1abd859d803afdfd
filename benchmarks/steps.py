"""A collection under measurement: its jobs called one by one, as a DAG run would, each step's cost added up by name."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.counting import CountingStore, Traffic
from benchmarks.measure import Cost, measured
from tidemark.arrow.kernels.registry import kernel as kernel_named
from tidemark.arrow.kernels.registry import run_encoded
from tidemark.jobs.app import open_job
from tidemark.jobs.job import Job, Runner
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Certified
from tidemark.model.collection import Collection, Gate
from tidemark.model.interval import Interval
from tidemark.plan.gate import plan_gate
from tidemark.storage import ObjectStore
from tidemark.storage.documents.codec import decode, encode

FIRST_TRY = "bench/step/-1/1/0"
"""The token of a task's first try in Airflow, as nearly all are."""


@dataclass
class InProcess:
    """Runs kernels in this process, one after the other, through the same JSON as executors do: no JVM."""

    store: ObjectStore
    parallelism: int = 1

    def run(self, name: str, tasks: Sequence[Any]) -> list[Any]:
        called = kernel_named(name)
        answers = (run_encoded(self.store, name, encode(task, called.task)) for task in tasks)
        return [decode(answer, called.answer, name=f"{name} answer") for answer in answers]


@dataclass
class Bench:
    """One collection below `root`, fed from `landing`; `costs` and `results` by step. All steps are of one process,
    which knows the state from the step before, unless `each_loads`: then each loads it, as a task of a DAG does."""

    collection: Collection
    root: Path
    landing: Path
    runner_for: Callable[[ObjectStore], Runner] = InProcess
    measure: Callable[[], AbstractContextManager[Cost]] = measured
    each_loads: bool = False
    note: Callable[[str], None] = field(default=lambda text: print(text, file=sys.stderr, flush=True))
    costs: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))
    results: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        runner: list[Runner] = []

        def one_runner() -> Runner:
            if not runner:
                runner.append(self.runner_for(self.job.store))
            return runner[0]

        self.job: Job = open_job(str(self.root), self.collection.name, one_runner, attempt=FIRST_TRY)
        self.job.note = self.note
        declare_collection(self.job, self.collection)

    def counted(self) -> Traffic:
        """Count what is asked of the store from here on, by jobs and kernels alike: to be called before any step."""
        store = CountingStore(self.job.store)
        self.job.store = self.job.log.store = store
        return store.traffic

    @property
    def folder(self) -> Path:
        return self.root / self.collection.name

    def day(self, interval: Interval) -> None:
        """Ingest to drain, gates included, as far as the trace gate."""
        self._measured("ingest", lambda: ingest(self.job, interval, landing_root=str(self.landing)))
        self._measured("gate unsealed", lambda: gate(self.job, Gate.UNSEALED))
        self._measured("seal", lambda: seal(self.job, interval))
        self._measured("gate frontier", lambda: gate(self.job, Gate.FRONTIER))
        self._measured("drain", lambda: drain(self.job, interval))
        self._measured("gate trace", lambda: gate(self.job, Gate.TRACE))

    def compact(self, interval: Interval) -> None:
        """Compaction and its gate."""
        self._measured("compact", lambda: compact(self.job, interval))
        self._measured("gate compaction", lambda: gate(self.job, Gate.COMPACTION))

    def certified_day(self, interval: Interval) -> None:
        """Ingest to compaction with certificates that nobody looked for: the commits of a run, without what its gates
        read (that is measured elsewhere). Ids, metadata and data are as in a run."""
        self.certified_drain(interval)
        self.certified_compaction(interval)

    def certified_drain(self, interval: Interval) -> None:
        self.certified_ingest(interval)
        self.certified_seal(interval)
        self.drained(interval)

    def certified_ingest(self, interval: Interval) -> None:
        self._measured("ingest", lambda: ingest(self.job, interval, landing_root=str(self.landing)))
        self._certify(Gate.UNSEALED)

    def certified_seal(self, interval: Interval) -> None:
        self._measured("seal", lambda: seal(self.job, interval))
        self._certify(Gate.FRONTIER)

    def drained(self, interval: Interval) -> None:
        self._measured("drain", lambda: drain(self.job, interval))
        self._certify(Gate.TRACE)

    def certified_rest(self) -> None:
        """What follows a derived collection's correction, from its gate to its compaction."""
        run = Interval(0, 1)  # names the run, and nothing else
        self._certify(Gate.UNSEALED)
        self.certified_seal(run)
        self.drained(run)
        self.certified_compaction(run)

    def certified_compaction(self, interval: Interval) -> None:
        self._measured("compact", lambda: compact(self.job, interval))
        self._certify(Gate.COMPACTION)

    def _certify(self, gate: Gate) -> None:
        def certify() -> dict[str, Any]:
            head = self.job.log.load()
            if request := plan_gate(head.state, gate):
                batches = tuple(batch.id for some in (request.unsealed, request.trace) for batch in some)
                self.job.log.commit(head, Certified(gate, request.suite, batches, request.upper))
            return {}

        self._measured("certificates", certify)

    def _measured(self, step: str, work: Callable[[], dict[str, Any]]) -> None:
        with self.measure() as cost:
            if self.each_loads:
                self.job.log = replace(self.job.log)
            result = work()
        self.costs[step] += cost
        self.results[step].append(result)


def silent(text: str) -> None:
    """For a thousand days, whose progress is reported otherwise."""


def stored(folder: Path) -> tuple[int, int]:
    """Bytes and number of all objects below a folder: nothing is deleted, so that is all that was written."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(sizes), len(sizes)
