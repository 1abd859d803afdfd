"""What was published, and which parts published tables may name (model/publication.py)."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.arrangement import Arrangement
from tidemark.model.publication import Pin, Publication, Published, Publishing, Unpublished, of_format, pin_of
from tidemark.model.transition.outcome import AlreadyApplied, Applied, Outcome, Stale


def publishing(state: Arrangement, change: Publishing) -> Outcome:
    """Pins are added, of batches that are live."""
    current = of_format(state.publications, change.format)
    if current is not None and current.table != change.table:
        return Stale(f"the collection is published to {change.format} table {current.table}, not to {change.table}")
    if current is not None and current.attempt == change.attempt and set(change.pins) <= set(current.pins):
        return AlreadyApplied()
    live: set[Pin] = {pin_of(batch.parts) for batch in state.live if batch.parts}
    old = current.pins if current is not None else ()
    added = tuple(pin for pin in change.pins if pin not in old)
    if gone := [pin for pin in added if pin not in live]:
        return Stale(f"the batch of {gone[0].name} was replaced meanwhile")
    base = Publication(change.format, change.table) if current is None else current
    if change.afresh:
        base = replace(base, snapshot="", sequence=0, version=0, seal=0)
    return _with(state, replace(base, attempt=change.attempt, pins=(*old, *added)))


def published(state: Arrangement, change: Published) -> Outcome:
    """What a table holds is recorded, and pins that it no longer needs are dropped. Of what an older snapshot says
    nothing is taken."""
    current = of_format(state.publications, change.format) or Publication(change.format, change.table)
    if current.table != change.table:
        return Stale(f"the collection is published to {change.format} table {current.table}, not to {change.table}")
    if current.attempt != change.attempt:
        return Stale(f"another attempt publishes to {change.format} table {change.table}")
    names = [pin.name for pin in current.pins]
    if lost := [name for name in change.keeps if name not in names]:
        return Stale(f"{lost[0]} is not pinned")
    if change.sequence < current.sequence:
        return AlreadyApplied()
    kept = tuple(pin for pin in current.pins if pin.name in change.keeps)
    said = {name: getattr(change, name) for name in ("snapshot", "sequence", "version", "seal")}
    return _with(state, replace(current, **said, pins=kept))


def unpublished(state: Arrangement, change: Unpublished) -> Outcome:
    """A publication ends."""
    kept = tuple(one for one in state.publications if one.format is not change.format)
    return AlreadyApplied() if kept == state.publications else Applied(replace(state, publications=kept))


def _with(state: Arrangement, publication: Publication) -> Outcome:
    others = tuple(one for one in state.publications if one.format is not publication.format)
    both = tuple(sorted((*others, publication), key=lambda one: one.format))
    return AlreadyApplied() if both == state.publications else Applied(replace(state, publications=both))
