"""Landed and derived collections as states alone, moved by plans and transitions: no store, no rows at rest.

What rows they hold is kept beside the states, as (item, time, diff): what a correct executor would have written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from support.world import collection
from tidemark.model.arrangement import Arrangement, Fence, Hold
from tidemark.model.batch import ObjectRef, TraceBatch, UnsealedBatch
from tidemark.model.change import (
    Certified,
    Change,
    CompactionAllowed,
    Corrected,
    Created,
    Drained,
    HoldPlaced,
    Ingested,
    Quarantined,
    Redefined,
)
from tidemark.model.collection import Collection, Column, ColumnType, Derived, Gate
from tidemark.model.derived import Definition, Mode
from tidemark.model.frontier import EMPTY
from tidemark.model.interval import Interval
from tidemark.model.transition import AlreadyApplied, Applied, Outcome, apply
from tidemark.plan.correct import CorrectRequest, InputState, Waits, hold_name, plan_correct
from tidemark.plan.drain import plan_drain
from tidemark.plan.gate import plan_gate
from tidemark.plan.retain import plan_retention
from tidemark.plan.seal import plan_seal

Item = tuple[Any, ...]
Row = tuple[Item, int, int]
"""What it is, when it was learned, and how often it came or went."""


def landed(name: str, **changes: Any) -> Collection:
    """A collection that rows land in, with times of their own."""
    return replace(collection(**changes), name=name)


def derived(name: str, *inputs: str, select: str = "", by_row: bool = False, **changes: Any) -> Collection:
    """A collection of those inputs; by row if its query says so."""
    definition = changes.pop("definition", None) or Definition(select or ("every row" if by_row else "groups"))
    origin = {key: changes.pop(key) for key in ("history", "max_lag", "validity") if key in changes}
    key = changes.pop("key", (Column("k", ColumnType.INT),))
    value = changes.pop("value", (Column("n", ColumnType.INT),))
    return Collection(name, key, value, Derived(inputs, definition, **origin), **changes)


@dataclass
class Tank:
    """One collection: its state, its version, and the rows of its batches by id."""

    state: Arrangement
    version: int = 1
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def as_of(self, time: int) -> Counter[Item]:
        """Its rows as of a time, of all that is not quarantined."""
        out = {batch.id for batch in self.state.quarantined}
        counts: Counter[Item] = Counter()
        for batch, rows in self.rows.items():
            if batch not in out:
                for item, learned, diff in rows:
                    counts[item] += diff * (learned <= time)
        return Counter({item: diff for item, diff in counts.items() if diff})


@dataclass
class Derivations:
    """Collections by name, and what may be done to them."""

    tanks: dict[str, Tank] = field(default_factory=dict)
    ids: Any = field(default_factory=lambda: count(1))
    written: dict[str, list[Row]] = field(default_factory=dict)
    """What was written and is not committed, by its batch."""

    def add(self, *declared: Collection) -> None:
        for each in declared:
            made = apply(None, Created(each, f"of {each.name} {next(self.ids)}"))
            assert isinstance(made, Applied)
            self.tanks[each.name] = Tank(made.state)

    def state(self, name: str) -> Arrangement:
        return self.tanks[name].state

    def commit(self, name: str, change: Change) -> Outcome:
        tank = self.tanks[name]
        done = apply(tank.state, change)
        if isinstance(done, Applied):
            tank.state = done.state
            tank.version += 1
            batch = getattr(change, "batch", None)
            if isinstance(batch, UnsealedBatch):
                tank.rows[batch.id] = self.written.pop(batch.id)
        return done

    def do(self, name: str, change: Change) -> None:
        done = self.commit(name, change)
        assert isinstance(done, Applied | AlreadyApplied), done

    def ingest(self, name: str, lower: int, upper: int, *times: int) -> None:
        """An interval, and rows of it; those of what is complete already come late."""
        state, batch = self.state(name), f"b{next(self.ids)}"
        late = any(time < state.complete_below for time in times)
        rows = [((name, next(self.ids)), max(time, state.seal), 1) for time in times]
        made = self._batch(batch, Interval(lower, upper), rows)
        made = made and replace(made, learned_at=state.seal if late else None)
        fence = Fence("ingest", Interval(lower, upper), "t", unannounced=True)
        self.do(name, Ingested(fence, made, None, rows_late_applied=late, judged_below=state.complete_below))

    def _batch(self, batch: str, interval: Interval, rows: Sequence[Row]) -> UnsealedBatch | None:
        if not rows:
            return None
        self.written[batch] = list(rows)
        times = [time for _, time, _ in rows]
        bounds = (min(times), max(times))
        return UnsealedBatch(batch, interval, ObjectRef(batch, 1, "0"), 1, len(rows), 1, 0, *bounds, *bounds)

    def gate(self, name: str, gate: Gate) -> None:
        asked = plan_gate(self.state(name), gate)
        if asked:
            batches = tuple(batch.id for batch in (*asked.unsealed, *asked.trace))
            self.do(name, Certified(gate, asked.suite, batches, asked.upper))

    def seal(self, name: str, upper: int = 0) -> None:
        self.gate(name, Gate.UNSEALED)
        if sealed := plan_seal(self.state(name), upper):
            self.do(name, sealed)
        self.gate(name, Gate.FRONTIER)

    def drain(self, name: str) -> None:
        """Without its gate."""
        if request := plan_drain(self.state(name)):
            description = request.description
            fence = Fence("drain", Interval(description.lower, description.upper), "t", unannounced=True)
            self.do(name, Drained(fence, TraceBatch(f"t{next(self.ids)}", description, 0, 0, 0, 0)))

    def settle(self, name: str, upper: int = 0) -> None:
        """All steps after the one that writes."""
        self.seal(name, upper)
        self.drain(name)
        self.gate(name, Gate.TRACE)

    def day(self, name: str, lower: int, upper: int, *times: int) -> None:
        """An interval from its files to the trace."""
        self.ingest(name, lower, upper, *times)
        self.settle(name, upper)

    def retain(self, name: str) -> None:
        allowed = plan_retention(self.state(name), 0)
        if isinstance(allowed, CompactionAllowed):
            self.do(name, allowed)

    def plan(self, name: str, **asked: Any) -> CorrectRequest | Waits | None:
        inputs = self.state(name).collection.derived.inputs
        given = [InputState(each, self.tanks[each].state, self.tanks[each].version) for each in inputs]
        return plan_correct(self.state(name), given, **asked)

    def hold(self, name: str, request: CorrectRequest, *, after: bool) -> None:
        for each in request.inputs:
            since = each.hold_after if after else each.hold_before
            self.do(each.name, HoldPlaced(Hold(hold_name(name), since)))

    def executed(self, name: str, request: CorrectRequest) -> Corrected:
        """What a run would commit: the rows by which what should be differs from the current rows."""
        last, upper = request.interval.lower, request.upper
        by_row = self.state(name).collection.derived.definition.select.startswith("every row")
        if by_row and not request.whole:
            (only,) = request.inputs
            assert only.after is not None
            rows = [
                ((name, item), min(max(time, last), upper - 1), diff)
                for batch in self._alive(only.name)
                for item, time, diff in batch
                if only.after < time <= only.upto
            ]
        else:
            wanted, current = self.defined(name, request), self.tanks[name].as_of(EMPTY)
            differs = {item: wanted[item] - current[item] for item in wanted | current}
            rows = [(item, upper - 1, diff) for item, diff in differs.items() if diff]
        batch = self._batch(f"d{next(self.ids)}", request.interval, rows)
        fence = Fence("correct", request.interval, "t", unannounced=True)
        consumption = replace(request.consumption, batch=batch and batch.id)
        mode = Mode.BY_ROW if by_row else Mode.WHOLE if request.whole else Mode.BY_KEY
        since = request.since if by_row else EMPTY
        return Corrected(fence, consumption, batch, request.previous, mode, since, why=request.whole)

    def _alive(self, name: str) -> list[list[Row]]:
        out = {batch.id for batch in self.state(name).quarantined}
        return [rows for batch, rows in self.tanks[name].rows.items() if batch not in out]

    def defined(self, name: str, request: CorrectRequest) -> Counter[Item]:
        """What the definition makes of the inputs as they are asked for: each row of each, with its input."""
        made: Counter[Item] = Counter()
        for each in request.inputs:
            for item, diff in self.tanks[each.name].as_of(each.upto).items():
                made[name, item] += diff
        return made

    def correct(self, name: str, **asked: Any) -> CorrectRequest | Waits | None:
        """One commit, if there is one to make."""
        request = self.plan(name, **asked)
        if isinstance(request, CorrectRequest):
            self.hold(name, request, after=False)
            change = self.executed(name, request)
            if request.moves or change.batch:
                self.do(name, change)
                self.hold(name, request, after=True)
        return request

    def catch_up(self, name: str, **asked: Any) -> Waits | None:
        """As a run does: until there is nothing to do, or something to wait for; then all steps after it."""
        while isinstance(done := self.correct(name, **asked), CorrectRequest):
            pass
        self.settle(name)
        return done

    def quarantine(self, name: str, batch: str) -> Outcome:
        return self.commit(name, Quarantined(batch, None))

    def redefine(self, name: str, declared: Collection) -> None:
        self.do(name, Redefined(declared))

    def consumed(self, name: str) -> tuple[int, int, tuple[int, ...]]:
        """Of the newest consumption u, W and how far each input was consumed."""
        newest = self.state(name).consumed
        assert newest is not None
        return newest.upper, newest.complete_below, tuple(each.upper for each in newest.inputs)
