"""Change messages of Debezium and the same feed as upserts: one collection, whatever comes in which order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulation.script import row
from support.connector_logs import LOGS, messages
from support.relanded import relanded
from support.world import DAY, World, collection, interval
from tests.support.reading import as_of, changes
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, Envelope

pytestmark = pytest.mark.simulation
BOTH = [Envelope.UPSERT, Envelope.DEBEZIUM]


def run_day(world: World, day: int, *, settle: bool) -> None:
    world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
    if settle:
        world.run(lambda job: seal(job, interval(day)))
        world.run(lambda job: drain(job, interval(day)))
        world.run(lambda job: compact(job, interval(day)))


def rows_at(world: World, **when: int) -> dict[int, str]:
    rows = as_of(world.truth, world.state, **{"time": world.state.seal - 1, **when}).to_pylist()
    assert all(one["_multiplicity"] == 1 for one in rows)
    return {one["k"]: one["v"] for one in rows}


# Where merges of other systems go wrong: what comes first, what comes second, and what is right.
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], dict[int, str]]] = {
    "older update arrives late": ([row(1, "a", 1), row(1, "c", 5)], [row(1, "b", 12, 3)], {1: "c"}),
    "two updates of a key in one batch": ([row(1, "a", 1)], [row(1, "b", 12), row(1, "c", 13)], {1: "c"}),
    "two inserts of a new key in one batch": ([row(2, "z", 1)], [row(1, "a", 12), row(1, "b", 12)], {1: "b", 2: "z"}),
    "late update after a delete": ([row(1, "a", 1), row(1, None, 5, gone=True)], [row(1, "b", 12, 3)], {}),
    "delete arrives before its insert": ([row(1, None, 5, gone=True)], [row(1, "a", 12, 3)], {}),
    "late delete older than the row": ([row(1, "a", 1), row(1, "c", 5)], [row(1, None, 12, 3, gone=True)], {1: "c"}),
    "same batch again": ([row(1, "a", 1), row(1, "b", 5)], [row(1, "a", 11, 1), row(1, "b", 15, 5)], {1: "b"}),
    "newer but equal value": ([row(1, "a", 1)], [row(1, "a", 12)], {1: "a"}),
}
UNCHANGED = ("same batch again", "newer but equal value", "older update arrives late")


@pytest.mark.parametrize("envelope", BOTH)
@pytest.mark.parametrize("when", ["in one drain", "after a drain and compaction"])
@pytest.mark.parametrize("case", CASES)
def test_what_peers_get_wrong_is_right(tmp_path: Path, envelope: Envelope, when: str, case: str) -> None:
    first, second, right = CASES[case]
    world = World(tmp_path, collection(envelope))
    world.land(0, "z", first)
    world.land(1, "a", second)
    run_day(world, 0, settle=when != "in one drain")
    run_day(world, 1, settle=True)
    assert rows_at(world) == right
    if case in UNCHANGED and when != "in one drain":
        updates = changes(world.truth, world.state, after=DAY - 1).to_pylist()
        assert [one for one in updates if one["_event_time"] > 5] == []
        assert len(updates) in (0, 4), "an older value changes the past it belongs to, and nothing else anything"


def by_connector() -> Collection:
    declared = collection(Envelope.DEBEZIUM)
    source = replace(declared.landed.source, order_by="connector")
    inputs = (Column("source.ts_ms", ColumnType.TIMESTAMP),)
    return relanded(declared, source=source, time=None, event_time="source.ts_ms", inputs=inputs)


def land(world: World, day: int, name: str, said: list[Any]) -> None:
    path = world.landing / world.land(day, name, [])
    path.write_text("".join(json.dumps(message) + "\n" for message in said))


@pytest.mark.parametrize("log", LOGS)
def test_the_last_change_of_a_database_is_the_row_however_it_comes(tmp_path: Path, log: str) -> None:
    """Files whose names are in another order than the log, a transaction cut between days, and what comes twice."""
    said, last = messages(log), len(LOGS[log]) - 1
    for number, cut in enumerate(range(1, last + 1)):
        world = World(tmp_path / str(number), by_connector())
        land(world, 0, "a", said[cut:][::2])
        land(world, 0, "b", said[cut:][1::2])
        land(world, 1, "a", said[:cut][::-1])
        land(world, 2, "z", said[:last])
        for day in (0, 1, 2):
            run_day(world, day, settle=day != 1)
        assert rows_at(world) == ({} if said[last]["op"] == "d" else {1: str(last)})


def test_messages_of_another_server_are_never_taken(tmp_path: Path) -> None:
    """Not of a later day, also if the declaration was brought in again before, and not beside others in one day."""
    said = messages("mysql")
    other = json.loads(json.dumps(said).replace('"server_id": 5', '"server_id": 6').replace("binlog.", "other."))
    world = World(tmp_path / "later", by_connector())
    land(world, 0, "a", said)
    land(world, 1, "a", other)
    run_day(world, 0, settle=True)
    world.run(lambda job: declare_collection(job, by_connector()))
    with pytest.raises(FileRefused, match=r"line 1: messages come from server 'mysql other'.* another name"):
        run_day(world, 1, settle=False)
    assert rows_at(world) == {1: "9"}
    beside = World(tmp_path / "beside", by_connector())
    land(beside, 0, "a", said)
    land(beside, 0, "b", other)
    with pytest.raises(InvalidUsage, match=r"from server 'mysql binlog 5' .* from 'mysql other 6'"):
        run_day(beside, 0, settle=False)


def test_positions_in_binlog_files_are_said_to_be_no_order(tmp_path: Path) -> None:
    """A collection that was declared so goes on, and each run says it."""
    declared = by_connector()
    inputs = (*declared.landed.inputs, Column("source.pos", ColumnType.INT))
    source = replace(declared.landed.source, order_by="source.pos")
    world, notes = World(tmp_path, relanded(declared, source=source, inputs=inputs)), list[str]()
    land(world, 0, "a", messages("mysql"))
    world.run(lambda job: ingest(replace(job, note=notes.append), interval(0), landing_root=str(world.landing)))
    assert [note for note in notes if "positions begin again in each binlog file" in note]
    world.run(lambda job: declare_collection(job, world.state.collection))
