"""Days of random rows in a collection of any kind, with nulls on its timelines: what readers are tried on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import tidemark
from support.world import World, collection, interval
from tidemark.api.opened import OpenCollection
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, Envelope, Layout
from tidemark.storage.stores.memory import MemoryStore

_roots = count(1)
DAYS = 4
FIRST = datetime(2013, 1, 1, tzinfo=UTC)
VALUES = (
    Column("v", ColumnType.STRING),
    Column("n", ColumnType.INT),
    Column("d", ColumnType.DATE),
    Column("s", ColumnType.TIMESTAMP),
)
ENVELOPES = [Envelope.APPEND, Envelope.UPDATES, Envelope.UPSERT, Envelope.SNAPSHOT]


class History:
    """Days of random rows in a collection, moved step by step."""

    def __init__(self, folder: Path, envelope: Envelope, seed: int, layout: Layout | None = None) -> None:
        self.root = f"memory://pruned{next(_roots)}"
        self.dice, self.envelope = random.Random(f"{envelope} {seed}"), envelope
        declared = collection(envelope, value=VALUES, timelines=("n", "s"), layout=layout)
        source = replace(declared.landed.source, diff="diff")
        declared = replace(declared, origin=replace(declared.landed, source=source))
        self.world = World(folder, declared, truth=MemoryStore.named(f"{self.root}/tides"))

    def versions(self) -> Iterator[OpenCollection]:
        """The collection after each step of each day that leaves something to be read."""
        world = self.world
        for day in range(DAYS):
            world.land(day, "a", [self._row(day) for _ in range(self.dice.randrange(12))])
            world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(world.landing)))
            for step in (seal, drain, compact):
                world.run(lambda job, step=step, day=day: step(job, interval(day)))
                yield tidemark.open(self.root, "tides")

    def _row(self, day: int) -> dict[str, Any]:
        dice = self.dice
        at = FIRST + timedelta(hours=dice.randrange(48))
        row = {
            "k": dice.randrange(8),
            "v": dice.choice(["a", "b", None]),
            "n": dice.choice([None, *range(-4, 12)]),
            "d": dice.choice([None, at.date().isoformat()]),
            "s": dice.choice([None, at.isoformat()]),
        }
        if self.envelope is Envelope.SNAPSHOT:
            return row
        row |= {"t": 10 * day + dice.randrange(10), "e": max(0, 10 * day + dice.randrange(-9, 10))}
        if self.envelope is Envelope.UPSERT:
            row |= {"o": dice.randrange(5), "gone": dice.random() < 0.2}
        if self.envelope is Envelope.UPDATES:
            row |= {"diff": dice.choice([1, 1, 2, -1])}
        return row

    def question(self) -> tuple[str, Any, Any]:
        """A timeline and two of its values; the first is mostly not above the second."""
        name = self.dice.choice(["n", "d", "s", "k"])
        if name in ("n", "k"):
            return (name, *self._ends([self.dice.randrange(-6, 14) for _ in range(2)]))
        moments = [FIRST + timedelta(hours=self.dice.randrange(-5, 55)) for _ in range(2)]
        ends: list[Any] = [at.date() for at in moments] if name == "d" else moments
        return (name, *self._ends(ends))

    def _ends(self, ends: list[Any]) -> list[Any]:
        found: list[Any] = sorted(ends, reverse=self.dice.random() < 0.1)
        if self.dice.random() < 0.2:
            found[self.dice.randrange(2)] = None
        return found
