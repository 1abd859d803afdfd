"""Readers that live long and share one cache, beside a writer and a collector that removes what they may have read."""

from __future__ import annotations

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.compute as pc
import pytest

import tidemark
from support.budget import budget
from support.world import DAY, World, collection, interval
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, Envelope
from tidemark.storage.cache import OF_PROCESS
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("nothing_is_small")]
READERS, DAYS = budget(ci=(4, 6), deep=(8, 10))
KEYS = 60
_roots = count(1)
Multiplicities = Counter[tuple[int, str, int]]


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 20)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 20)


def rows_of(days: int) -> list[list[dict[str, Any]]]:
    dice = random.Random(7)
    return [
        [
            {
                "k": dice.randrange(KEYS),
                "v": dice.choice("abc"),
                "at": dice.randrange(5),
                "t": DAY * day + dice.randrange(DAY),
                "e": 0,
                "d": dice.choice([1, 1, 2, -1]),
            }
            for _ in range(100)
        ]
        for day in range(days)
    ]


def oracle(rows: list[list[dict[str, Any]]], seal: int) -> Multiplicities:
    """The rows as of right before the seal, by adding up."""
    found: Multiplicities = Counter()
    for row in (row for day in rows for row in day):
        if row["t"] < seal:
            found[row["k"], row["v"], row["at"]] += row["d"]
    return Counter({row: times for row, times in found.items() if times})


class Reader:
    """Asks one question after another of a version that it opened, and opens the newest one now and then."""

    def __init__(self, root: str, rows: list[list[dict[str, Any]]], seed: int) -> None:
        self.root, self.rows, self.dice = root, rows, random.Random(seed)
        self.answered = 0

    def until(self, done: Event) -> int:
        last = False
        while not last:
            last = done.is_set()  # nothing is written or removed any more: what is asked then is answered
            opened = tidemark.open(self.root, "tides")
            expected = oracle(self.rows, opened.state.seal)
            for _ in range(self.dice.randrange(1, 12)):
                try:
                    self.ask(opened, expected)
                except InvalidUsage as refused:
                    if "was collected since it was opened" not in str(refused):
                        raise
                    break
        return self.answered

    def ask(self, opened: tidemark.OpenCollection, expected: Multiplicities) -> None:
        key, at = self.dice.randrange(KEYS), self.dice.randrange(5)
        question = self.dice.choice(["one", "one", "one", "stretch", "all", "dataset"])
        if question == "dataset":
            self.ask_dataset(opened, expected, key)
            return
        if question == "one":
            answer, fits = opened.as_of(where={"k": key}), lambda row: row[0] == key
        elif question == "stretch":
            answer, fits = opened.range("at", at, at + 1), lambda row: at <= row[2] <= at + 1
        else:
            answer, fits = opened.as_of(), lambda row: True
        found = {tuple(row[:3]): row[3] for row in zip(*answer.to_arrow().to_pydict().values(), strict=True)}
        assert found == {row: times for row, times in expected.items() if fits(row)}
        self.answered += 1

    def ask_dataset(self, opened: tidemark.OpenCollection, expected: Multiplicities, least: int) -> None:
        """All rows from a key on, in no order, by threads that read ahead."""
        table = opened.dataset(multiplicity=True).to_table(filter=pc.field("k") >= least)
        found: Multiplicities = Counter()
        for *row, times in zip(*table.to_pydict().values(), strict=True):
            found[tuple(row)] += times
        assert found == Counter({row: times for row, times in expected.items() if row[0] >= least})
        self.answered += 1


@pytest.mark.parametrize("limit", ["256MiB", "40000", "0"])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_every_answer_is_that_of_its_version(
    tmp_path: Path, kind: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_CACHE", limit)
    root = f"memory://cached{next(_roots)}" if kind == "memory" else str(tmp_path / "root")
    store: ObjectStore = MemoryStore.named(f"{root}/tides") if kind == "memory" else LocalStore(f"{root}/tides")
    values = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
    declared = collection(Envelope.UPDATES, value=values, timelines=("at",))
    world = World(tmp_path / "landing", declared, truth=store)
    rows, done, removed = rows_of(DAYS), Event(), []

    def step(day: int) -> None:
        world.land(day, "a", rows[day])
        world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing)))
        for one in (seal, drain, compact):
            world.run(lambda job, one=one: one(job, interval(day)))
        for _ in range(2):  # what is written down first goes then
            removed.append(world.run(lambda job: collect(job, keep=0, graces=AT_ONCE)).summary()["objects_removed"])

    step(0)
    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(Reader(root, rows, seed).until, done) for seed in range(READERS)]
        try:
            for day in range(1, DAYS):
                step(day)
                time.sleep(0.05)
        finally:
            done.set()
        answered = [reader.result() for reader in readers]
    assert all(answered)
    assert sum(removed) > DAYS
    assert OF_PROCESS.bytes <= OF_PROCESS.limit
    assert (OF_PROCESS.bytes > 0) == (limit != "0")
