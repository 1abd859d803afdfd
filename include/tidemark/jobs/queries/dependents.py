"""Who depends on a collection.

What is computed from it, tables that name its files, and who holds its history; and holds that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemark.errors import TidemarkError
from tidemark.jobs.job import Job
from tidemark.model.arrangement import Arrangement, Hold
from tidemark.plan.correct import HOLD
from tidemark.plan.retain import alive


@dataclass(frozen=True)
class Dependents:
    """Who depends on a collection.

    `derived` are computed from it, `unreadable` may be, as they cannot be read; `tables` name its files, and
    `holds` are those of people and readers.
    """

    derived: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()


def dependents(job: Job, state: Arrangement, others: Iterable[str]) -> Dependents:
    """Who depends on a collection, among the `others` of its root. Their newest states are read."""
    now = int(job.log.wall() * 1_000_000)
    return Dependents(
        *derived_from(job, state.collection.name, others),
        tuple(f"{table.format} {table.table}" for table in state.publications if table.pins),
        tuple(hold.name for hold in alive(state.holds, now) if not hold.name.startswith(HOLD)),
    )


def derived_from(job: Job, name: str, others: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The collections that are computed from one, and those that may be, as they cannot be read, with the reason."""
    states = [(other, _state(job, other)) for other in sorted({*others} - {name})]
    return (
        tuple(other for other, newest in states if isinstance(newest, Arrangement) and name in _inputs(newest)),
        tuple(f"{other} ({newest})" for other, newest in states if isinstance(newest, str)),
    )


def needless_holds(job: Job, state: Arrangement, others: Iterable[str]) -> Iterator[Hold]:
    """The holds on a collection for derived ones that are not there any more, or have another input now.

    One that cannot be read keeps its hold.
    """
    existing = {*others}
    for hold in state.holds:
        name = hold.name.removeprefix(HOLD)
        if name == hold.name:
            continue
        newest = _state(job, name) if name in existing else None
        if not isinstance(newest, str) and (newest is None or state.collection.name not in _inputs(newest)):
            yield hold


def _state(job: Job, name: str) -> Arrangement | str | None:
    """The newest state of another collection; None if there is none, and why it cannot be read."""
    try:
        return job.neighbour(name).log.load().arrangement
    except TidemarkError as error:
        return f"{error.kind}: {error}"


def _inputs(state: Arrangement) -> tuple[str, ...]:
    return state.collection.derived.inputs if state.collection.is_derived else ()
