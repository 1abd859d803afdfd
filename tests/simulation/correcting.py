"""Days that are run again on one World, and what the collection holds then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.relanded import relanded
from support.world import World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Redefined
from tidemark.model.collection import Envelope, Gate

Multiplicities = dict[tuple[int, str], int]


def row(k: int, v: str, t: int, e: int | None = None, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": v, "t": t, "e": t if e is None else e, **more}


def made(folder: Path, envelope: Envelope = Envelope.APPEND, *, reprocess_for: int = 1000, **landed: Any) -> World:
    return World(folder, collection(envelope, reprocess_for=reprocess_for, **landed))


def run(world: World, day: int) -> dict[str, Any]:
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))


def sealed(world: World, day: int) -> None:
    world.run(lambda job: seal(job, interval(day)))
    certify(world.job(), Gate.FRONTIER)
    world.run(lambda job: drain(job, interval(day)))


def day(world: World, number: int, rows: list[dict[str, Any]] | None = None, name: str = "a") -> dict[str, Any]:
    """A day's file lands and is ingested, sealed and drained."""
    if rows is not None:
        world.land(number, name, rows)
    done = run(world, number)
    sealed(world, number)
    return done


def rows_at(world: World, time: int | None = None, event_time: int | None = None) -> Multiplicities:
    state = world.state
    known = state.seal - 1 if time is None else time
    table = as_of(world.truth, state, time=known, event_time=event_time)
    names = ("k", "v", "_multiplicity")
    return {(k, v): count for k, v, count in zip(*(table[name].to_pylist() for name in names), strict=True)}


def sound(world: World) -> bool:
    return not verify(world.job(), data=True).findings


def objects(world: World) -> set[str]:
    return set(world.truth.objects)  # type: ignore[attr-defined]


def corrections(done: dict[str, Any]) -> tuple[int, int, int, list[int] | None]:
    return done["corrected"], done["retracted"], done["added"], done["event_times"]


def redefined(world: World, reprocess_for: int) -> None:
    asked = relanded(world.state.collection, reprocess_for=reprocess_for)
    world.log().commit(world.head, Redefined(asked))


def without_the_gone(world: World, day: int, **more: bool) -> dict[str, Any]:
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing), removed=True, **more))
