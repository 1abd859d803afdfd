"""A root with collections that land and others computed from them, without rows: only how far each is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tidemark.jobs.app import open_job
from tidemark.jobs.in_process_runner import InProcess
from tidemark.jobs.job import Job
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.batch import UnsealedBatch
from tidemark.model.change import Certified, Corrected, Created
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format, Gate, Landed, Source
from tidemark.model.derived import Definition, Derived, Mode
from tidemark.model.frontier import EMPTY
from tidemark.model.instant import parse_instant
from tidemark.model.interval import Interval
from tidemark.plan.correct import CorrectRequest, InputState, Waits, plan_correct
from tidemark.plan.gate import plan_gate

START = parse_instant("2024-01-01")
DAY = 86_400_000_000
KEY, VALUE = (Column("id", ColumnType.INT),), (Column("amount", ColumnType.INT),)


class Graph:
    """Collections below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def job(self, name: str) -> Job:
        job = open_job(str(self.root), name, lambda: InProcess(job.store))
        return job

    def land(self, name: str, days: int, *, ends: bool = False) -> None:
        """A collection that lands, complete for so many days from START on; none of their files holds a row. One that
        `ends` has no more days than these."""
        source = Source("{{ landing }}/{{ ds }}/*.csv", Format.CSV, Envelope.APPEND, ready="always")
        end = START + days * DAY if ends else None
        declare_collection(self.job(name), Collection(name, KEY, VALUE, Landed(source, start=START, end=end)))
        for day in range(days):
            ingest(self.job(name), Interval(START + day * DAY, START + (day + 1) * DAY), landing_root=str(self.root))
        if days:
            self._finish(name, START + days * DAY)

    def derive(self, name: str, *inputs: str) -> None:
        """A collection computed from others, not corrected yet."""
        origin = Derived(inputs, Definition(select=f"SELECT id, amount FROM {inputs[0]}"))
        self.declare(Collection(name, KEY, VALUE, origin))

    def declare(self, collection: Collection) -> None:
        """A collection, of which nothing is there yet."""
        log = self.job(collection.name).log
        log.commit(log.load(), Created(collection, collection.name))

    def correct(
        self, name: str, *, drained: bool = True, sealed: bool = True, batch: UnsealedBatch | None = None
    ) -> Waits | None:
        """Follow the inputs as far as they are, of which no row differs, unless the batch is given that says which do;
        what waits, if it does."""
        while True:
            head = self.job(name).log.load()
            asked = plan_correct(head.state, self.inputs(name))
            if not isinstance(asked, CorrectRequest):
                return asked
            fence = Fence("correct", asked.interval, "t", unannounced=True)
            change = Corrected(fence, asked.consumption, batch, asked.previous, Mode.BY_KEY, EMPTY, rows_read=3)
            self.job(name).log.commit(head, replace(change, rows_added=batch.rows if batch else 0))
            if sealed:
                if batch is not None:
                    self._certify(name, Gate.UNSEALED)
                self._finish(name, asked.upper, drained=drained)

    def inputs(self, name: str) -> tuple[InputState, ...]:
        states = []
        for one in self.job(name).log.load().state.collection.derived.inputs:
            log = self.job(one).log
            head = log.load() if log.newest_version() else None
            states.append(InputState(one, head.arrangement if head else None, head.version if head else 0))
        return tuple(states)

    def state(self, name: str) -> Any:
        return self.job(name).log.load().state

    def _finish(self, name: str, upper: int, *, drained: bool = True) -> None:
        seal(self.job(name), Interval(0 if self.state(name).collection.is_derived else START, upper))
        self._certify(name, Gate.FRONTIER)
        if not drained:
            return
        drain(self.job(name), Interval(0, upper))
        self._certify(name, Gate.TRACE)

    def _certify(self, name: str, gate: Gate) -> None:
        """What a gate commits that has nothing to find fault with."""
        log = self.job(name).log
        asked = plan_gate(log.load().state, gate)
        assert asked is not None
        batches = tuple(batch.id for batch in (*asked.unsealed, *asked.trace))
        log.commit(log.load(), Certified(gate, asked.suite, batches, asked.upper))
