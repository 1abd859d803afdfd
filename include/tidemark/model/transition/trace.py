"""What the trace holds: batches are drained into it, and neighbours become one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.model import admission, invariants
from tidemark.model.arrangement import Arrangement, Certificate, evicted
from tidemark.model.batch import TraceBatch
from tidemark.model.change import (
    Compacted,
    Drained,
)
from tidemark.model.transition.ahead import left_ahead
from tidemark.model.transition.derived import kept_consumptions
from tidemark.model.transition.fences import fenced_off, unfenced
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale


def drained(state: Arrangement, change: Drained) -> Outcome:
    """A batch is put at the young end of the trace, and what it covers is evicted."""
    batch = change.batch
    if any(other.id == batch.id for other in state.trace):
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    for broken in admission.of_trace_append(state, batch.description):
        return Stale(broken.message)
    if batch.description.upper > state.seal:
        return Stale(f"the drain reaches {batch.description.upper}, beyond the seal {state.seal}")
    left = left_ahead(state, change)
    if isinstance(left, Stale):
        return left
    totals = replace(
        state.totals,
        drains=state.totals.drains + 1,
        rows_drained=state.totals.rows_drained + batch.rows,
        bytes_drained=state.totals.bytes_drained + (0 if change.taken_over else batch.bytes),
        images_unmatched=state.totals.images_unmatched + change.unmatched,
    )
    consumptions = kept_consumptions(state.consumptions, batch.description.upper)
    fences = unfenced(state, change.fence)
    moved = replace(left, trace=(*state.trace, batch), consumptions=consumptions, fences=fences, totals=totals)
    return Applied(evicted(moved))


def compacted(state: Arrangement, change: Compacted) -> Outcome:
    """Neighbours become one batch, where they still are neighbours."""
    ids = [batch.id for batch in state.trace]
    if change.batch.id in ids:
        return AlreadyApplied()
    if off := fenced_off(state, change.fence):
        return off
    if not set(change.inputs) <= set(ids):
        return Stale(f"compaction input {next(i for i in change.inputs if i not in ids)} is gone")
    at = ids.index(change.inputs[0])
    if tuple(ids[at : at + len(change.inputs)]) != change.inputs:
        return Stale("the compaction's inputs are no longer neighbours")
    inputs = state.trace[at : at + len(change.inputs)]
    for input_ in inputs:
        if input_.rows:
            invariants.check(admission.of_merge([input_.description], change.batch.description.function))
    trace = merged_trace(state.trace, inputs, change.batch)
    rewritten = not any(input_.parts == change.batch.parts for input_ in inputs)
    totals = replace(
        state.totals,
        rows_compacted=state.totals.rows_compacted + (change.batch.rows - change.kept_rows) * rewritten,
        bytes_compacted=state.totals.bytes_compacted + (change.batch.bytes - change.kept_bytes) * rewritten,
    )
    certificates = tuple(c for c in state.certificates if c.batch not in change.inputs)
    if not rewritten:
        certificates = (*certificates, *_taken_over(state, change, inputs))
    fences = unfenced(state, change.fence)
    return Applied(replace(state, trace=trace, fences=fences, certificates=certificates, totals=totals))


def merged_trace(
    trace: tuple[TraceBatch, ...], inputs: tuple[TraceBatch, ...], batch: TraceBatch
) -> tuple[TraceBatch, ...]:
    """The trace with neighbours replaced by the batch they became. Older batches, which a merge leaves alone for their
    size, are lifted to its level if they are on a lower one: levels never rise from old to new."""
    at = trace.index(inputs[0])
    older = tuple(replace(other, level=max(other.level, batch.level)) for other in trace[:at])
    return (*older, batch, *trace[at + len(inputs) :])


def _taken_over(state: Arrangement, change: Compacted, inputs: tuple[TraceBatch, ...]) -> Iterator[Certificate]:
    """The certificates of the one input with data hold for the output, which has the same parts."""
    data = next((input_.id for input_ in inputs if input_.rows), inputs[0].id)
    yield from (Certificate(change.batch.id, c.suite) for c in state.certificates if c.batch == data)
