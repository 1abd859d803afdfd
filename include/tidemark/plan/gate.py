"""What a gate has to look at: everything not certified under its current suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.model.arrangement import Arrangement, EmptyReading
from tidemark.model.batch import TraceBatch, UnsealedBatch
from tidemark.model.collection import Covers, Gate
from tidemark.model.interval import Interval


@dataclass(frozen=True)
class GateRequest:
    """Run `suite` over these batches (for the frontier gate: over the state, up to `upper`). Of `empty` intervals there
    is no batch, and what is about all of their rows is judged."""

    gate: Gate
    suite: str
    unsealed: tuple[UnsealedBatch, ...] = ()
    trace: tuple[TraceBatch, ...] = ()
    upper: int | None = None
    empty: tuple[EmptyReading, ...] = ()

    @property
    def unjudged(self) -> tuple[UnsealedBatch | EmptyReading, ...]:
        """What the unsealed gate is to certify."""
        return (*self.unsealed, *self.empty)

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of what is to be certified."""
        return tuple(each.id for each in (*self.unjudged, *self.trace))


def plan_gate(state: Arrangement, gate: Gate, intervals: Sequence[Interval] = ()) -> GateRequest | None:
    """The batches or the frontier that the gate has not certified yet; None if all is certified.

    With `intervals`, of unsealed batches only those that came with one of them: a bad day is its own run's
    (docs/decisions/0047). A derived collection has none, and all its batches are judged.
    """
    suite = state.collection.suite(gate)
    if gate.covers is Covers.FRONTIER:
        return GateRequest(gate, suite, upper=state.seal) if state.seal > state.certified_upper else None
    if gate.covers is Covers.UNSEALED:
        chosen = () if state.collection.is_derived else intervals
        unjudged = [each for each in state.uncertified if _belongs_to(each, chosen)]
        unsealed = tuple(each for each in unjudged if isinstance(each, UnsealedBatch))
        empty = tuple(each for each in unjudged if isinstance(each, EmptyReading))
        return GateRequest(gate, suite, unsealed=unsealed, empty=empty) if unjudged else None
    trace = tuple(batch for batch in state.trace if not state.is_certified(batch))
    return GateRequest(gate, suite, trace=trace) if trace else None


def _belongs_to(batch: UnsealedBatch | EmptyReading, intervals: Sequence[Interval]) -> bool:
    came = batch.interval
    return not intervals or any(came.lower < each.upper and each.lower < came.upper for each in intervals)
