"""Several collections in memory, some derived from others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from simulation.plain_computer import PlainComputer
from simulation.plain_definitions import plain_of, there_at
from simulation.rows_read import Row, read_updates, rows_seen
from support.faulty import Clock
from support.world import DAY, World, certify, collection, interval
from tidemark.definition.computation import Computation
from tidemark.jobs.derived import computation
from tidemark.jobs.job import Job
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.correct import correct
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest, unsealed_batch
from tidemark.jobs.steps.seal import seal
from tidemark.model.arrangement import Fence
from tidemark.model.change import Corrected
from tidemark.model.collection import Collection, Gate
from tidemark.model.derived import Mode
from tidemark.model.interval import Interval
from tidemark.plan.computed_as import computed_as
from tidemark.plan.read import plan_updates
from tidemark.storage.log.log import Committed, StateLog
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore


@dataclass
class Sea:
    """Collections by name, which share a clock, and ids that never come again. `stores` are what jobs see of each.
    Below a `root`, a
    folder, readers can open them."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    ids: Any = field(default_factory=lambda: count(1))
    worlds: dict[str, World] = field(default_factory=dict)
    asked: list[Computation] = field(default_factory=list)
    root: Path | None = None

    def add(self, made: Collection, store: ObjectStore | None = None) -> World:
        """A collection, created."""
        truth: ObjectStore = MemoryStore(f"memory://{made.name}")
        if self.root is not None:
            truth = LocalStore(str(self.root / made.name))
        world = World(
            self.folder / made.name,
            made,
            truth,
            store(truth) if callable(store) else None,
            clock=self.clock,
            ids=self.ids,
        )
        self.worlds[made.name] = world
        return world

    def landed(self, name: str, **changes: Any) -> World:
        return self.add(collection(name=name, **changes))

    def store(self, name: str) -> ObjectStore:
        """What jobs see."""
        store = self.worlds[name].store
        assert store is not None
        return store

    def log(self, name: str) -> StateLog:
        """As a job opens it: a collection that was never created has an empty store."""
        if name not in self.worlds:
            store = MemoryStore(f"memory://{name}")
            return StateLog(store, self.new_id, wall=self.clock, monotonic=self.clock, pause=self.clock.pause)
        world = self.worlds[name]
        return world.log(world.store)

    def new_id(self) -> str:
        return f"{next(self.ids):05}{'0' * 27}"

    def joined(self, job: Job) -> Job:
        """A job that knows its neighbours, and what computes."""
        computer = PlainComputer(self.store, job.store, self.new_id, self.asked)
        return replace(job, beside=self.log, all_names=lambda: [*self.worlds], computer_on=lambda runner: computer)

    def run(self, name: str, step: Callable[[Job], Any], **more: Any) -> Any:
        """A step of a collection as a DAG runs it, gated and tried again."""
        return self.worlds[name].run(lambda job: step(self.joined(job)), **more)

    def ingest(
        self, name: str, day: int, *files: tuple[str, Sequence[Row]], until: str = "compact", days: int = 1
    ) -> None:
        """A day of a landed collection (or several, as one interval), through all steps (or until one of them)."""
        world = self.worlds[name]
        (world.landing / str(day * DAY)).mkdir(parents=True, exist_ok=True)
        for file, rows in files:
            world.land(day, file, rows)
        steps: dict[str, Callable[[Job], Any]] = {
            "ingest": lambda job: ingest(job, Interval(day * DAY, (day + days) * DAY), landing_root=str(world.landing)),
            **self._moving(day + days - 1),
        }
        self._through(name, steps, until)

    def correct(self, name: str, *, until: str = "compact", **asked: Any) -> dict[str, Any]:
        """A run of a derived collection's DAG; what `correct` came to."""
        result: dict[str, Any] = {}

        def corrected(job: Job) -> None:
            result.update(correct(job, **asked))

        self._through(name, {"correct": corrected, **self._moving(0)}, until)
        return result

    def _moving(self, day: int) -> dict[str, Callable[[Job], Any]]:
        return {
            "seal": lambda job: seal(job, interval(day)),
            "drain": lambda job: drain(job, interval(day)),
            "compact": lambda job: compact(job, interval(day)),
        }

    def _through(self, name: str, steps: Mapping[str, Callable[[Job], Any]], until: str) -> None:
        for called, step in steps.items():
            self.run(name, step)
            if called == "drain":
                self.run(name, lambda job: certify(job, Gate.TRACE))
            if called == until:
                return

    def rows_as_of(self, name: str, time: int) -> Counter[tuple[Any, ...]]:
        """The rows of a collection as known at `time`, sealed or not."""
        world = self.worlds[name]
        found: Counter[tuple[Any, ...]] = Counter()
        for (row, known, _), diff in read_updates(world.truth, plan_updates(world.state)).items():
            found[row] += diff if known <= time else 0
        return Counter({row: many for row, many in found.items() if many})

    def law(self, name: str) -> int:
        """Check the law at every frontier that a derived collection records, and its inputs keep; how many did."""
        state, checked = self.worlds[name].state, 0
        origin = state.collection.derived
        for consumption in state.consumptions:
            known = [self.worlds[one.input].state.collection for one in consumption.inputs]
            in_force = consumption.definition == computed_as(state.collection, known)
            if not in_force or not state.function.keeps(consumption.upper - 1):
                continue
            given = {}
            for one in consumption.inputs:
                world = self.worlds[one.input]
                if not world.state.function.keeps(one.upper - 1) or world.state.seal < one.upper:
                    break
                given[one.input] = rows_seen(origin.definition, world.truth, world.state, one.upper - 1)
            else:
                names = [column.name for column in state.collection.columns]
                wanted = plain_of(origin.definition).whole(given)
                there = there_at(consumption.upper, origin.definition, origin.validity, wanted)
                desired = Counter(tuple(row[name] for name in names) for row in there)
                assert self.rows_as_of(name, consumption.upper - 1) == desired, (name, consumption)
                checked += 1
        return checked


def write_by_hand(
    sea: Sea,
    name: str,
    rows: Mapping[tuple[Any, ...], int],
    *,
    time: int | None = None,
    reported_retractions: int | None = None,
) -> None:
    """A batch that nothing computed, committed as if it had been: rows that others wrote, and rows that they lost.
    Of the latter it says that it retracted as many, or `reported_retractions`."""
    world = sea.worlds[name]
    state = world.state
    upper = state.complete + 1
    at = upper - 1 if time is None else time
    asked = computation(state, world.truth.url, None, Mode.WHOLE, (), upper=upper)
    computer = PlainComputer(sea.store, world.truth, sea.new_id)
    batch = sea.new_id()
    parts = computer.written(
        replace(asked, prefix=f"data/{batch}"), Counter({(row, at, at): diff for row, diff in rows.items()})
    )
    job, lower = world.job(), state.complete
    made = unsealed_batch(job, batch, Interval(lower, upper), parts, learned_at=None)
    consumed = state.consumed
    assert consumed is not None
    consumption = replace(consumed, upper=upper, batch=batch)
    fence = Fence("correct", Interval(lower, upper), "by hand", unannounced=True)
    log = world.log()
    added, retracted = (sum(max(0, sign * diff) for diff in rows.values()) for sign in (1, -1))
    change = Corrected(
        fence,
        consumption,
        made,
        consumed,
        Mode.WHOLE,
        state.event_times_from,
        rows_added=added,
        rows_retracted=retracted if reported_retractions is None else reported_retractions,
    )
    assert isinstance(log.commit(log.load(), change), Committed)
