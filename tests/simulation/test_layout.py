"""A collection that is laid out by time holds, tells and is asked what one that is not does: through late rows, files
that are corrected, merges that move times, columns that change; and its parts are as the layout says."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from simulation.correcting import run, sealed, sound
from simulation.test_latest import opened, readable
from support.budget import budget
from support.world import World, collection, interval
from tidemark.arrow.kernels import lateness, merge
from tidemark.arrow.parts.writer import PartWriter
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.compact import compact
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late, Layout
from tidemark.model.retention import Retention, Step
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation
SEEDS = budget(ci=1, deep=8)
VALUE = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
LADDER = Retention("ladder", steps=(Step(None, 15), Step(5, None)))
DAYS = 4


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 4)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 4)


def declared(envelope: Envelope, layout: Layout | None, **changes: Any) -> Collection:
    return collection(envelope, value=VALUE, timelines=("at",), live_batches=2, layout=layout, **changes)


class Twins:
    """The same files, landed for two collections."""

    def __init__(self, folder: Path, envelope: Envelope, seed: int, **changes: Any) -> None:
        self.dice, self.envelope = random.Random(f"{envelope} {seed}"), envelope
        self.plain, self.placed = (
            World(folder / name, declared(envelope, layout, **changes))
            for name, layout in (("plain", None), ("placed", Layout("at", 3)))
        )
        self.answers = 0

    def land(self, day: int, name: str) -> None:
        rows = [self._row(day) for _ in range(self.dice.randrange(9))]
        for world in (self.plain, self.placed):
            world.land(day, name, rows)

    def _row(self, day: int) -> dict[str, Any]:
        dice = self.dice
        row = {"k": dice.randrange(3), "v": dice.choice("ab"), "at": dice.choice([None, *range(-4, 8)])}
        if self.envelope is Envelope.SNAPSHOT:
            return row
        row |= {"t": 10 * day + dice.randrange(10), "e": max(0, 10 * day + dice.randrange(-12, 10))}
        return row | ({"d": dice.choice([1, 2, -1])} if self.envelope is Envelope.UPDATES else {})

    def both(self, of: Any) -> None:
        results = [of(world) for world in (self.plain, self.placed)]
        assert results[0] == results[1]
        self.check()

    def check(self) -> None:
        if not self.plain.state.seal:
            return
        plain, placed = opened(self.plain), opened(self.placed)
        for time in readable(self.plain.state):
            self.answers += 1
            assert rows(plain.as_of(time)) == rows(placed.as_of(time))
            assert rows(plain.as_of(time, where="k = 1")) == rows(placed.as_of(time, where="k = 1"))
            assert rows(plain.range("at", 0, 4, time=time)) == rows(placed.range("at", 0, 4, time=time))
            assert rows(plain.changes(time)) == rows(placed.changes(time))

    def ingested(self, day: int) -> None:
        self.both(lambda world: said(run(world, day)))
        self.both(lambda world: sealed(world, day))
        self.both(lambda world: said(world.run(lambda job: compact(job, interval(day)))))


def said(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result.get(name) for name in ("outcome", "rows", "corrected", "retracted", "added", "late_applied")}


def rows(answer: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in answer.to_arrow().to_pylist())


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPDATES, Envelope.SNAPSHOT])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_days_that_are_corrected_and_merged(tmp_path: Path, envelope: Envelope, seed: int) -> None:
    kept = Retention() if envelope is Envelope.SNAPSHOT or seed % 2 else LADDER
    late = {} if envelope is Envelope.SNAPSHOT else {"late": Late("reemit", 9)}
    twins = Twins(tmp_path, envelope, seed, reprocess_for=1000, retention=kept, **late)
    for day in range(DAYS):
        twins.land(day, "a")
        twins.ingested(day)
        twins.land(twins.dice.randrange(day + 1), twins.dice.choice("ab"))
        for again in range(day + 1):
            twins.ingested(again)
    assert twins.answers > 40
    assert sound(twins.placed)


def test_chunks_end_with_their_bucket_and_buckets_ascend(tmp_path: Path) -> None:
    world = World(tmp_path, declared(Envelope.APPEND, Layout("at", 10)))
    times = [at for at in [None, *range(-25, 40)] for _ in range(3)]
    world.land(0, "a", [{"k": n % 7, "v": "a", "at": at, "t": 1, "e": 1} for n, at in enumerate(times)])
    run(world, 0)
    sealed(world, 0)
    (part,) = parts_table.parts_of(world.truth, world.state.trace)
    with world.truth.open_input(part.file.key) as file:
        read = pq.ParquetFile(file)
        groups = [read.read_row_group(at) for at in range(read.num_row_groups)]
    buckets = [group["_bucket"].unique().to_pylist() for group in groups]
    assert all(len(each) == 1 for each in buckets)
    assert sorted({each for (each,) in buckets}) == [-(2**63), -3, -2, -1, 0, 1, 2, 3]
    assert buckets == sorted(buckets)
    for group, (bucket,) in zip(groups, buckets, strict=True):
        assert {-(2**63) if at is None else at // 10 for at in group["at"].to_pylist()} == {bucket}
        keys = group["k"].to_pylist()
        assert keys == sorted(keys)
    answer = opened(world).range("at", 10, 19)
    assert answer.count() == 30
    explained = answer.explain()
    assert explained.chunks_read == sum(bucket == [1] for bucket in buckets)
    assert "laid out      by at, every 10us; rows of a key are in many buckets" in str(explained)
    assert "_bucket" not in opened(world).as_of().to_arrow().column_names


def test_a_part_in_another_bucket_than_its_rows_say_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, declared(Envelope.APPEND, Layout("at", 10)))
    world.land(0, "a", [{"k": 1, "v": "a", "at": at, "t": 1, "e": 1} for at in (5, 15)])
    right = lateness.buckets
    monkeypatch.setattr(lateness, "buckets", lambda times, layout: right(times, replace(layout, every=1000)))
    run(world, 0)
    monkeypatch.undo()
    (found,) = verify(world.job(), data=True).findings
    assert (found.rule, found.detail) == ("bounds", "1 of 2 rows are in another bucket than their at says")


def test_buckets_of_few_rows_share_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an `every` that is too short each instant would have a row group to itself, for good."""
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 160)
    world = World(tmp_path, declared(Envelope.APPEND, Layout("at", 1)))
    world.land(0, "a", [{"k": n % 7, "v": "a", "at": n // 3, "t": 1, "e": 1} for n in range(1_000)])
    run(world, 0)
    sealed(world, 0)
    (part,) = parts_table.parts_of(world.truth, world.state.trace)
    assert [rows for _, rows in part.groups][:3] == [12, 12, 12]
    assert len(part.groups) == 84
    assert opened(world).range("at", 100, 104).count() == 15
    assert sound(world)


@pytest.mark.parametrize(("rows", "groups"), [(4_096, [2_500]), (1_024, [1_024, 1_024, 452])])
def test_chunks_that_are_not_in_order_of_time_are_as_small_as_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, groups: list[int]
) -> None:
    """Of rows in order of both key and time the chunk is whole all the same."""
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 16_384)
    for name, at, found in (("not", lambda n: -n, groups), ("in order", lambda n: n, [2_500])):
        world = World(tmp_path / name, declared(Envelope.APPEND, None, max_rows_if_unsorted=rows))
        world.land(0, "a", [{"k": n, "v": "a", "at": at(n), "t": 1, "e": 1} for n in range(2_500)])
        run(world, 0)
        sealed(world, 0)
        (part,) = parts_table.parts_of(world.truth, world.state.trace)
        assert [count for _, count in part.groups] == found, name
