"""Small collections of every kind, made by the real jobs, below a root in memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from support.world import World, collection, interval
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope
from tidemark.storage.stores.memory import MemoryStore

_roots = count(1)
ROWS: dict[Envelope, list[list[dict[str, Any]]]] = {
    Envelope.APPEND: [
        [{"k": 1, "v": "a", "t": 1, "e": 1}, {"k": 1, "v": "b", "t": 2, "e": 2}, {"k": 2, "v": "a", "t": 3, "e": 3}],
        [{"k": 1, "v": "a", "t": 12, "e": 4}, {"k": 3, "v": None, "t": 13, "e": 13}],
    ],
    Envelope.UPSERT: [
        [
            {"k": 1, "v": "a", "t": 1, "e": 1, "o": 1, "gone": False},
            {"k": 2, "v": "a", "t": 2, "e": 2, "o": 2, "gone": False},
            {"k": 1, "v": "b", "t": 5, "e": 5, "o": 3, "gone": False},
        ],
        [
            {"k": 1, "v": "b", "t": 12, "e": 12, "o": 4, "gone": False},
            {"k": 2, "v": "c", "t": 13, "e": 13, "o": 5, "gone": False},
            {"k": 3, "v": "a", "t": 14, "e": 14, "o": 6, "gone": False},
            {"k": 1, "v": "b", "t": 15, "e": 15, "o": 7, "gone": True},
        ],
    ],
    Envelope.SNAPSHOT: [[{"k": 1, "v": "a"}, {"k": 2, "v": "a"}], [{"k": 2, "v": "b"}, {"k": 3, "v": "a"}]],
}
"""A day each, of each kind of collection."""


class Made:
    """A collection `tides` and its days, moved as far as is asked."""

    def __init__(self, folder: Path, envelope: Envelope = Envelope.APPEND, **declared: Any) -> None:
        self.root = f"memory://made{next(_roots)}"
        self.days = ROWS.get(envelope, [])
        self.world = World(folder, collection(envelope, **declared), truth=MemoryStore.named(f"{self.root}/tides"))

    def ingested(self, day: int, rows: Sequence[dict[str, Any]] | None = None) -> None:
        self.world.land(day, "a", self.days[day] if rows is None else rows)
        self.world.run(lambda job: ingest(job, interval(day), landing_root=str(self.world.landing)))

    def sealed(self, day: int, rows: Sequence[dict[str, Any]] | None = None) -> None:
        self.ingested(day, rows)
        self.world.run(lambda job: seal(job, interval(day)))

    def drained(self, day: int, rows: Sequence[dict[str, Any]] | None = None) -> None:
        self.sealed(day, rows)
        self.world.run(lambda job: drain(job, interval(day)))

    def compacted(self, day: int) -> None:
        self.world.run(lambda job: compact(job, interval(day)))
