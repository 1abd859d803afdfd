"""Declarations brought into collections that have rows, by the job that does it: what it checks first, and races."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.script import row
from support.relanded import relanded
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Change, Redefined
from tidemark.model.collection import Collection, Column, ColumnType, Envelope
from tidemark.model.transition import Stale
from tidemark.storage.log.log import Committed, Head, StateLog

LARGE = 2**53 + 1


def valued(envelope: Envelope, *value: Column, **changes: Any) -> Collection:
    return collection(envelope, value=value, **changes)


def moved(world: World, day: int, *steps: Callable[..., Any]) -> None:
    for step in steps or (ingest, seal, drain):
        more = {"landing_root": str(world.landing)} if step is ingest else {}
        world.run(lambda job, step=step, more=more: step(job, interval(day), **more))


def redefined(world: World, asked: Collection, log: StateLog | None = None) -> str:
    return str(declare_collection(world.job(log=log), asked)["outcome"])


@pytest.mark.parametrize("where", ["unsealed", "quarantined", "trace"])
def test_an_int_that_no_float_is_keeps_its_column_from_becoming_one(tmp_path: Path, where: str):
    narrow = valued(Envelope.APPEND, Column("v", ColumnType.INT))
    wide = valued(Envelope.APPEND, Column("v", ColumnType.FLOAT))
    world = World(tmp_path, narrow)
    world.land(0, "a", [row(1, 3, 1), row(2, -LARGE, 2), row(3, None, 3)])
    moved(world, 0, *((ingest,) if where != "trace" else ()))
    if where == "quarantined":
        quarantine(world.job(), world.state.pending[0].id)
    stored = next(batch for batch in world.state.batches if batch.rows)
    with pytest.raises(InvalidUsage) as refusal:
        redefined(world, wide)
    assert str(refusal.value) == (
        f"value column v of collection tides cannot change from int to float: batch {stored.id} holds {-LARGE}, "
        f"beyond {-(2**53)} to {2**53}, within which all values stay exact; add a column of another name"
    )
    assert world.state.collection == narrow


def test_what_a_tombstone_is_ordered_by_is_looked_at_too(tmp_path: Path):
    """Its value is null; the order that was copied from it is not."""
    narrow = valued(Envelope.UPSERT, Column("v", ColumnType.INT))
    narrow = relanded(narrow, source=replace(narrow.landed.source, order_by="v"))
    world = World(tmp_path, narrow)
    world.land(0, "a", [row(1, LARGE, 1, gone=True)])
    moved(world, 0, ingest)
    with pytest.raises(InvalidUsage, match=f"holds {LARGE}, beyond"):
        redefined(world, replace(narrow, value=(Column("v", ColumnType.FLOAT),)))


class Meddled(StateLog):
    """Before the first redefinition is committed, something else is."""

    meddle: Callable[[], object] | None = None

    def commit(self, base: Head, change: Change) -> Committed | Stale:
        meddle, self.meddle = self.meddle, None
        if isinstance(change, Redefined) and meddle is not None:
            meddle()
        return super().commit(base, change)


def meddled(world: World, meddle: Callable[[], object]) -> StateLog:
    log = Meddled(world.truth, world.new_id, wall=lambda: 0.0, monotonic=world.clock, pause=world.clock.pause)
    log.meddle = meddle
    return log


def test_what_is_ingested_meanwhile_is_looked_at_too(tmp_path: Path):
    world = World(tmp_path, valued(Envelope.APPEND, Column("v", ColumnType.INT)))
    world.land(0, "a", [row(1, LARGE, 1)])
    log = meddled(world, lambda: moved(world, 0, ingest))
    with pytest.raises(InvalidUsage, match=f"holds {LARGE}, beyond"):
        redefined(world, valued(Envelope.APPEND, Column("v", ColumnType.FLOAT)), log)
    assert world.state.collection.value[0].type is ColumnType.INT


def test_a_number_is_not_given_twice(tmp_path: Path):
    """Two files add a column at once: the later one speaks last, and the number of the other's column stays taken."""
    string, kept = ColumnType.STRING, Column("v", ColumnType.STRING)
    world = World(tmp_path, valued(Envelope.APPEND, kept))
    world.land(0, "a", [row(1, "a", 1)])
    moved(world, 0, ingest)
    theirs = valued(Envelope.APPEND, kept, Column("theirs", string))
    mine = valued(Envelope.APPEND, kept, Column("mine", string))
    assert redefined(world, mine, meddled(world, lambda: redefined(world, theirs))) == "redefined"
    current = world.state.collection
    assert (current.value, current.dropped) == (
        (Column("v", string, 2), Column("mine", string, 4)),
        (Column("theirs", string, 3),),
    )
    assert current.schema == 2


def test_a_key_last_heard_of_before_a_column_was_dropped_is_one_row(tmp_path: Path):
    """Its value is compared as it is stored, with what it had in the dropped column; users see no change."""
    two = valued(Envelope.UPSERT, Column("v", ColumnType.STRING), Column("w", ColumnType.INT))
    world = World(tmp_path, two)
    world.land(0, "a", [row(1, "same", 1, w=7), row(2, "gone", 1, w=7)])
    moved(world, 0)
    redefined(world, valued(Envelope.UPSERT, Column("v", ColumnType.STRING)))
    world.land(1, "a", [row(1, "same", DAY), row(2, None, DAY, gone=True)])
    moved(world, 1)
    expected = [{"k": 1, "v": "same", "_multiplicity": 1}]
    assert as_of(world.truth, world.state).to_pylist() == expected
    assert as_of(world.truth, world.state, time=DAY - 1).num_rows == 2
