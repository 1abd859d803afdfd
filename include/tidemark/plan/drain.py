"""What to move from unsealed to the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemark.errors import Unvouched
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import Description, Part, TraceBatch, UnsealedBatch
from tidemark.model.collection import Gate
from tidemark.model.dump import Dump


@dataclass(frozen=True)
class DrainRequest:
    """Move `[lower, upper)` into one level-0 batch.

    `batches` hold rows of the interval; none means a batch without data. For a keyed collection `remembered` are the
    batches whose facts the new ones are placed among (they include `batches`), `horizon` is below all of those facts,
    and `trace` says what was held before. For a collection of dumps `dumps` are those of the interval, `trace` what the
    first of them is compared with; a dump without rows has no batch.
    """

    description: Description
    batches: tuple[UnsealedBatch, ...]
    remembered: tuple[UnsealedBatch, ...]
    trace: tuple[TraceBatch, ...]
    horizon: int
    dumps: tuple[Dump, ...] = ()

    def due(self, parts: Sequence[Part]) -> list[Part]:
        """The parts that can hold rows of the interval."""
        lower, upper = self.description.lower, self.description.upper
        return [part for part in parts if part.first_time < upper and part.last_time >= lower]

    def among(self, new: Sequence[Part]) -> DrainRequest:
        """The request with the horizon that facts of the `new` parts need: none of them happened below it.

        The state's horizon is for all facts that are not drained. One that is learned in a hundred years holds it back;
        what is drained today need not be placed among all facts since. The law is the same at any horizon that no new
        fact is below, and above which all facts are remembered (docs/decisions/0008).
        """
        horizon = max(self.horizon, min((part.first_event_time for part in new), default=self.horizon))
        near = (batch for batch in self.remembered if batch in self.batches or batch.last_event_time >= horizon)
        return replace(self, horizon=horizon, remembered=tuple(near))


def plan_drain(state: Arrangement) -> DrainRequest | None:
    """Everything sealed and not yet in the trace; None if the trace upper is at the seal.

    Raises Unvouched if the frontier gate has not vouched for the seal, or a batch of the interval is not vouched for.
    """
    if state.seal == state.trace_upper:
        return None
    if state.vouched_upper < state.seal:
        raise Unvouched(
            f"the frontier is vouched for up to {state.vouched_upper}, the seal is {state.seal}; run the frontier gate",
            Gate.FRONTIER,
        )
    batches = tuple(batch for batch in state.pending if batch.first_time < state.seal)
    if unvouched := [batch.id for batch in batches if not state.is_vouched(batch)]:
        raise Unvouched(f"batch {unvouched[0]} is not vouched for; run the unsealed gate", Gate.UNSEALED)
    keyed = state.collection.keyed
    horizon = state.horizon if keyed else 0
    remembered = tuple(
        batch for batch in state.unsealed if batch in batches or (keyed and batch.last_event_time >= horizon)
    )
    dumps = tuple(dump for dump in state.pending_dumps if dump.time < state.seal)
    return DrainRequest(
        Description(state.trace_upper, state.seal),
        batches,
        remembered,
        tuple(batch for batch in state.trace if batch.rows) if keyed or dumps else (),
        horizon,
        dumps,
    )
