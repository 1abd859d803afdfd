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
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Change, Redefined
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late
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


def test_a_float_holds_every_int_within_the_bounds(tmp_path: Path):
    world = World(tmp_path, valued(Envelope.APPEND, Column("v", ColumnType.INT)))
    world.land(0, "a", [row(1, 2**53, 1), row(2, -(2**53), 2), row(3, None, 3)])
    moved(world, 0)
    assert redefined(world, valued(Envelope.APPEND, Column("v", ColumnType.FLOAT))) == "redefined"
    assert as_of(world.truth, world.state)["v"].to_pylist() == [2.0**53, -(2.0**53), None]


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
    theirs = valued(Envelope.APPEND, kept, Column("theirs", string))
    mine = valued(Envelope.APPEND, kept, Column("mine", string))
    assert redefined(world, mine, meddled(world, lambda: redefined(world, theirs))) == "redefined"
    current = world.state.collection
    assert (current.value, current.dropped) == (
        (Column("v", string, 2), Column("mine", string, 4)),
        (Column("theirs", string, 3),),
    )
    assert current.schema == 2


def test_rows_are_read_from_the_source_by_their_new_name(tmp_path: Path):
    world = World(tmp_path, valued(Envelope.APPEND, Column("v", ColumnType.STRING)))
    world.land(0, "a", [row(1, "old", 1)])
    moved(world, 0)
    text = replace(valued(Envelope.APPEND, Column("text", ColumnType.STRING)), renames=(("v", "text"),))
    redefined(world, text)
    world.land(1, "a", [row(2, "not this", DAY) | {"text": "new"}])
    moved(world, 1)
    assert as_of(world.truth, world.state)["text"].to_pylist() == ["old", "new"]


def test_late_rows_are_listed_as_they_came_under_todays_names(tmp_path: Path):
    narrow = valued(Envelope.APPEND, Column("v", ColumnType.STRING), Column("w", ColumnType.INT), late=Late())
    world = World(tmp_path, narrow)
    moved(world, 0)
    world.land(1, "a", [row(1, "late", 5, w=7), row(2, "new", DAY, w=8)])
    moved(world, 1)
    text = valued(Envelope.APPEND, Column("text", ColumnType.STRING), late=Late())
    redefined(world, replace(text, renames=(("v", "text"),)))
    (listed,) = late_rows(world.truth, world.state, limit=5).rows
    assert (listed["text"], listed["k"], listed["_reason"]) == ("late", 1, "before its interval")
    assert not {"v", "w"} & set(listed)


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
