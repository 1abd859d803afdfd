"""Lives of databases, as their connectors report them: the collection is the table, and so is its whole history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.budget import budget
from support.relanded import relanded
from support.world import World, collection
from tests.oracles.database.connectors import CONNECTORS, UNAVAILABLE, Connector, Message
from tests.oracles.database.database import Database, Rows
from tests.oracles.database.files import File, cut
from tests.oracles.database.history import history, table_at
from tests.oracles.database.kinds import EXERCISED, Kind, Kinds
from tests.support.reading import as_of
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Format
from tidemark.model.interval import Interval

pytestmark = pytest.mark.simulation
LENGTH = 30
"""Milliseconds of an interval."""
LIVES = budget(ci=15, deep=300)
COMMITS = 14
TIMES = 8
"""As of how many times the table is read."""


def people(file_format: Format) -> Collection:
    values = (
        Column("city", ColumnType.STRING),
        Column("stock", ColumnType.INT),
        Column("story", ColumnType.STRING),
    )
    declared = collection(Envelope.DEBEZIUM, format=file_format, key=(Column("id", ColumnType.INT),), value=values)
    source = replace(declared.landed.source, order_by="connector", transactions=True)
    inputs = (Column("source.ts_ms", ColumnType.TIMESTAMP),)
    return relanded(declared, source=source, time=None, event_time="source.ts_ms", inputs=inputs)


def interval_of(number: int) -> Interval:
    return Interval(number * LENGTH * 1_000, (number + 1) * LENGTH * 1_000)


def lived(connector: Connector, kinds: Kinds, dice: Random) -> tuple[Database, list[list[Message]]]:
    """A life, and the messages of its log."""
    database = Database(dice, kinds, may_collide=connector.may_collide)
    if Kind.SNAPSHOT in kinds:
        database.live(4)
        database.forget()
        database.snapshot(incremental=False)
    for _ in range(3):
        database.live(COMMITS // 3)
        if Kind.INCREMENTAL in kinds:
            database.snapshot(incremental=True)
    return database, [connector.messages(entry) for entry in database.log]


def land(folder: Path, files: Sequence[File], interval: int, schema: pa.Schema | None) -> None:
    """Write the files of an interval: as Parquet with a schema, else as JSON lines."""
    folder.mkdir(parents=True)
    for file in files:
        if file.interval == interval and schema:
            rows = pa.Table.from_pylist([row or {} for row in file.rows], schema)
            pq.write_table(rows, folder / f"{file.name}.parquet")
        elif file.interval == interval:
            (folder / f"{file.name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in file.rows))


def taken(folder: Path, files: Sequence[File], kinds: Kinds, dice: Random) -> World:
    """A collection that takes the files, interval by interval; now and then it drains and compacts."""
    schema = None
    if dice.random() < 0.4:
        schema = pa.Table.from_pylist([row or {} for file in files for row in file.rows]).schema
    world = World(folder, people(Format.PARQUET if schema else Format.JSONL))
    last = max(file.interval for file in files)
    for number in range(last + 1):
        land(world.landing / str(interval_of(number).lower), files, number, schema)
        world.run(lambda job, number=number: ingest(job, interval_of(number), landing_root=str(world.landing)))
        for step in (seal, drain, compact) if number == last or dice.random() < 0.6 else ():
            try:
                world.run(lambda job, step=step, number=number: step(job, interval_of(number)))
            except InvalidUsage as error:
                # A value was not logged; the row that has it is in a file that comes later, or had another key.
                assert step is drain
                assert "lacks column story" in str(error)  # noqa: PT017 (goes on)
                assert Kind.UNAVAILABLE in kinds
                if number == last:
                    raise
                assert kinds & {Kind.LATE, Kind.UNAVAILABLE_MOVES}
                break
    return world


def lacks_a_moved_value(message: Message) -> bool:
    """Whether a row came to another key, and has a value that was not logged."""
    before, after = message["before"], message["after"]
    is_moved = message["op"] == "c" or (before and after and before["id"] != after["id"])
    return bool(is_moved and after["story"] == UNAVAILABLE)


def rows_at(world: World, at: int | None = None) -> list[tuple[object, ...]]:
    """The rows as of an event time (ms), in order; by default all that is known."""
    when = {} if at is None else {"event_time": at * 1_000 + 999}
    rows = as_of(world.truth, world.state, time=world.state.seal - 1, **when).to_pylist()
    assert all(row["_multiplicity"] == 1 for row in rows)
    return sorted((row["id"], row["city"], row["stock"], row["story"]) for row in rows)


def in_order(rows: Rows) -> list[tuple[object, ...]]:
    return sorted((row.id, row.city, row.stock, row.story) for row in rows.values())


def check_life(folder: Path, name: str, kinds: Kinds, seed: int) -> None:
    dice = Random(f"{name} {seed}")
    connector = CONNECTORS[name](dice, kinds)
    database, said = lived(connector, kinds, dice)
    # In parts of a transaction it is not known which row a delete of a key means, and not when the transaction ended.
    if (not connector.has_images and kinds & {Kind.COLLISIONS, Kind.LONE_DELETES}) or (
        connector.has_statement_times and Kind.LONG in kinds
    ):
        kinds -= {Kind.CUT}
    files = cut(said, dice, kinds, LENGTH)
    if connector.refused:
        with pytest.raises(FileRefused, match=connector.refused):
            taken(folder, files, kinds, dice)
        return
    try:
        world = taken(folder, files, kinds, dice)
    except InvalidUsage:
        # Where rows have one key in turn and deletes no values, the row that has the value is not known, either.
        is_unsure = not connector.has_images and kinds & {Kind.COLLISIONS, Kind.LONE_DELETES}
        assert is_unsure or any(lacks_a_moved_value(message) for messages in said for message in messages)
        return
    assert rows_at(world) == in_order(database.rows)
    became = history(connector, database.log, said, files)
    times = sorted({each.at for each in became})
    for at in dice.sample(times, min(len(times), TIMES)):
        assert rows_at(world, at) == in_order(table_at(became, at)), f"as of {at} ms"


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_collection_is_the_table_and_its_history(tmp_path: Path, seed: int) -> None:
    dice = Random(seed)
    kinds = frozenset(kind for kind in Kind if kind in EXERCISED and dice.random() < 0.6)
    check_life(tmp_path, list(CONNECTORS)[seed % len(CONNECTORS)], kinds, seed)


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_what_follows_a_failover_is_refused(tmp_path: Path, name: str) -> None:
    check_life(tmp_path, name, frozenset({Kind.FAILOVER}), 0)
