"""A collection is created, and declared again."""

from __future__ import annotations

from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import (
    Created,
    Redefined,
)
from tidemark.model.collection import Collection
from tidemark.model.evolution import check_successor
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale


def created(state: Arrangement | None, change: Created) -> Outcome:
    """The first state, of a declaration."""
    if state is None:
        return Applied(Arrangement(change.collection, incarnation=change.incarnation))
    if state.collection == change.collection:
        return AlreadyApplied()
    return Stale(f"collection {state.collection.name} exists with another declaration")


def redefined(state: Arrangement, change: Redefined) -> Outcome:
    """The declaration replaced by one that rows at rest can follow. InvalidUsage for any other."""
    if state.collection == change.collection:
        return AlreadyApplied()
    check_successor(state.collection, change.collection)
    _check_intervals(state, change.collection)
    new = change.collection
    read = () if new.is_derived else (*new.columns, *new.landed.inputs)
    undeclared = tuple(name for name in state.undeclared if name not in {column.name for column in read})
    corrected_from = _corrected_from(state, change)
    return Applied(replace(state, collection=new, corrected_from=corrected_from, undeclared=undeclared))


def _corrected_from(state: Arrangement, change: Redefined) -> int:
    """Where files can be corrected from: a longer `reprocess_for` does not bring back what was not kept."""
    current, asked = state.collection.correctable_for, change.collection.correctable_for
    if asked <= current:
        return state.corrected_from
    settled = state.settled + 1 if state.collection.kind.facts else 0
    return max(state.corrected_from, state.complete_below - current, settled)


def _check_intervals(state: Arrangement, collection: Collection) -> None:
    """History kept at the ends of one interval can be kept at those of another only if one divides the other."""
    if collection.retention == state.collection.retention:
        return
    for rung in state.rungs:
        for interval in collection.retention.intervals:
            if interval % rung.interval and rung.interval % interval:
                raise InvalidUsage(
                    f"retention of collection {collection.name} cannot keep every {interval} µs: history is kept at "
                    f"every {rung.interval} µs already; choose an interval that divides it or is a multiple"
                )
