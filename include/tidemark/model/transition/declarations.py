"""A collection is created, declared again, dropped, and brought back."""

from __future__ import annotations

from dataclasses import replace

from tidemark.errors import InvalidUsage
from tidemark.model.arrangement import Arrangement
from tidemark.model.change import (
    Created,
    Dropped,
    Redefined,
    Restored,
)
from tidemark.model.collection import Collection
from tidemark.model.evolution import check_begun, check_successor, differences, evolved, started
from tidemark.model.ordering import as_ordered
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
    new = change.collection if state.has_no_data else as_ordered(state.collection, change.collection)
    if state.collection == new:
        return AlreadyApplied()
    if state.has_no_data:
        _check_begun(state, change.collection)
    else:
        check_successor(state.collection, new)
    _check_intervals(state, new)
    read = () if new.is_derived else (*new.columns, *new.landed.inputs)
    undeclared = tuple(name for name in state.undeclared if name not in {column.name for column in read})
    corrected_from = _corrected_from(state, change)
    return Applied(replace(state, collection=new, corrected_from=corrected_from, undeclared=undeclared))


def dropped(state: Arrangement | None, change: Dropped) -> Outcome:
    """No state is left. What a collector writes of a dropped collection never drops one that was created since."""
    if state is None:
        return Applied(None) if change.token else AlreadyApplied()
    return Stale(f"collection {change.collection} is in use again") if change.token else Applied(None)


def restored(state: Arrangement | None, change: Restored) -> Outcome:
    """The state as it was before the collection was dropped."""
    if state is None:
        return Applied(change.state)
    if state == change.state:
        return AlreadyApplied()
    return Stale(f"collection {state.collection.name} is in use again")


def redeclared(state: Arrangement, declared: Collection) -> Collection:
    """What a state declares once the declaration of a file is brought in; the same as before if nothing changed.

    Without data it is what the file says, in every field. With data it is what rows at rest can follow
    (`evolution.evolved`).

    Raises:
        InvalidUsage: The state cannot follow, with both values and what would be needed.
    """
    current = state.collection
    if not state.has_no_data:
        return evolved(current, declared)
    new = started(declared, current)
    _check_begun(state, new)
    changed = (new.key, new.value, new.hidden) != (current.key, current.value, current.hidden)
    return replace(new, schema=current.schema + (changed or bool(current.dropped)))


def changed_columns(state: Arrangement, new: Collection) -> list[str]:
    """What becomes of the columns of a state by its next declaration, one line each."""
    if not state.has_no_data:
        return differences(state.collection, new)
    columns = (new.key, new.value) != (state.collection.key, state.collection.value)
    return ["replaced: no row has come yet"] if columns else []


def _check_begun(state: Arrangement, new: Collection) -> None:
    """Raise InvalidUsage where intervals were ingested, be it without rows, and would not be those of the new one."""
    if state.ingested.members:
        check_begun(state.collection, new)


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
