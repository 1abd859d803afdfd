"""Real jobs' executions on a store in memory, and real transitions of a state, one at a time."""

from __future__ import annotations

from itertools import count

from tests.conformance.plain import Plain, write
from tests.support.inprocess import InProcessRunner
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import execute as merge
from tidemark.jobs.steps.drain import execute as move
from tidemark.jobs.steps.trim import execute as trim
from tidemark.jobs.steps.write import trace_batch
from tidemark.model.arrangement import Arrangement, Fence
from tidemark.model.batch import DIGEST_MODULUS, Description, TraceBatch, UnsealedBatch
from tidemark.model.change import Attempted, Certified, Change, Compacted, Drained, Trimmed
from tidemark.model.collection import Gate
from tidemark.model.interval import Interval
from tidemark.model.transition import AlreadyApplied, Applied, Stale, apply
from tidemark.plan.compact import CompactionRequest
from tidemark.plan.drain import plan_drain
from tidemark.plan.trim import plan_trim, trimming
from tidemark.storage.log.log import StateLog
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore


class Stand:
    """What is done here is what a job does between loading a state and committing the next, without the log."""

    def __init__(self) -> None:
        self._ids = count(1)
        self.store = MemoryStore()
        log = StateLog(self.store, self.new_id)
        self.job = Job(self.store, log, lambda: InProcessRunner(self.store), "attempt", self.new_id)

    def new_id(self) -> str:
        return f"id{next(self._ids)}"

    def unsealed(self, sequence: tuple[int, int], updates: list[Plain]) -> UnsealedBatch:
        """A batch of the updates, its parts written."""
        batch = self.new_id()
        parts = write(self.store, f"data/{batch}", updates)
        times = [time for part in parts for time in (part.first_time, part.last_time)]
        return UnsealedBatch(
            batch,
            Interval(0, 1),
            parts_table.save(self.store, f"data/{batch}/parts.json", parts),
            len(parts),
            len(updates),
            sum(part.file.bytes for part in parts),
            sum(part.digest for part in parts) % DIGEST_MODULUS,
            min(times),
            max(times),
            min(times),
            max(times),
            sequence=sequence,
        )

    def trace(self, description: Description, level: int, parts: list[list[Plain]]) -> TraceBatch:
        """A trace batch of parts as given, which are written; of empty ones there is nothing to write."""
        batch = self.new_id()
        written = [part for updates in parts for part in write(self.store, f"data/{batch}", updates)]
        return trace_batch(self.job, batch, description, level, written)

    def fenced(self, state: Arrangement, step: str) -> tuple[Arrangement, Fence]:
        """A new attempt at a step of an interval that no other attempt is at."""
        number = next(self._ids)
        fence = Fence(step, Interval(number, number + 1), "attempt")
        return applied(state, Attempted(fence)), fence

    def drained(self, state: Arrangement) -> tuple[Arrangement, TraceBatch] | None:
        """The state after a drain; None if there is nothing to drain."""
        request = plan_drain(certified(state))
        if request is None:
            return None
        state, fence = self.fenced(state, "drain")
        batch = self.new_id()
        _, tables = parts_table.opened(self.store, request.unsealed)
        parts = [part for answer in move(self.job, state, request, tables, batch) for part in answer.parts]
        moved = trace_batch(self.job, batch, request.description, 0, parts)
        return applied(state, Drained(fence, moved)), moved

    def trimmed(self, state: Arrangement) -> Arrangement | None:
        """The state after one batch was trimmed, however little of it goes; None if none has anything to go."""
        for request in plan_trim(state):
            parts = parts_table.parts_of(self.job.store, [request.batch])
            if wanted := trimming(request, parts, least_share=0):
                state, fence = self.fenced(state, "trim")
                batch = trim(self.job, state, request, parts, wanted)
                return applied(state, Trimmed(fence, batch, request.batch.parts))
        return None

    def merged(self, state: Arrangement, request: CompactionRequest) -> tuple[Arrangement, Compacted]:
        """The result of a compaction, not applied, and the state that knows of the attempt."""
        state, fence = self.fenced(state, "compact")
        batch, _ = merge(self.job, state, request)
        return state, Compacted(fence, tuple(each.id for each in request.inputs), batch)


def certified(state: Arrangement) -> Arrangement:
    """The state after all gates passed."""
    for gate, batches in ((Gate.UNSEALED, state.unsealed), (Gate.TRACE, state.trace), (Gate.FRONTIER, ())):
        upper = state.seal if gate is Gate.FRONTIER else None
        certified = Certified(gate, state.collection.suite(gate), tuple(batch.id for batch in batches), upper)
        state = applied(state, certified)
    return state


def applied(state: Arrangement, change: Change) -> Arrangement:
    """The state after a change that must fit, or that it holds already."""
    outcome = apply(state, change)
    if isinstance(outcome, AlreadyApplied):
        return state
    assert isinstance(outcome, Applied), outcome
    return outcome.state


def fits(state: Arrangement, change: Change) -> Arrangement | None:
    """The state after a change; None if it is stale or made already."""
    outcome = apply(state, change)
    assert isinstance(outcome, Applied | AlreadyApplied | Stale), outcome
    return outcome.state if isinstance(outcome, Applied) else None
