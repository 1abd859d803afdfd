"""A collection of days whose landing is looked at again and again, as the triggerer does, and what its runs do."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from support.relanded import relanded
from support.world import World, collection
from tidemark.jobs.queries.arrivals import Arrivals, Due
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batching.cutting import Batching
from tidemark.model.batching.rate import SECOND
from tidemark.model.instant import parse_instant
from tidemark.model.ledger import SourceFile
from tidemark.storage import landing

START = parse_instant("2100-01-01")
"""Later than any clock that this is run by: what has landed has landed before."""
DAY = 86_400 * SECOND
NOON = START + DAY // 2
EVENT = 1_704_110_400_000_000
"""When rows happened, where nothing else is said."""


def row(event: int = EVENT) -> str:
    """A line of a file."""
    fields = {"k": 1, "v": "a", "t": EVENT, "e": event, "o": None, "gone": False, "d": 1}
    return f"{json.dumps(fields)}\n"


@dataclass
class Feed:
    """A collection of days, whose landing is looked at; `landed` stands in for the file system's clock."""

    world: World
    arrivals: Arrivals
    landed: dict[str, int]
    numbers: Any = field(default_factory=count)

    def land(
        self, at: int, rows: int = 1, name: str = "", day: str = "2100-01-01", events: tuple[int, ...] = ()
    ) -> str:
        folder = self.world.landing / day
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / (name or f"{next(self.numbers):03}.jsonl")
        file.write_text("".join(map(row, events)) if events else row() * rows)
        os.utime(file, ns=(at * 1000, at * 1000))  # another token each time
        self.landed[str(file)] = at
        return str(file)

    def look(self, now: int) -> tuple[str, ...] | None:
        """The reasons for which something is due."""
        due = self.arrivals.look(now)
        return due and (str(due.cut.reason), *map(str, due.cut.also))

    def take(self, now: int) -> dict[str, Any]:
        """What a run does that is started for what is due."""
        due = self.arrivals.look(now)
        assert due is not None
        return self.ingested(due)

    def ingested(self, due: Due) -> dict[str, Any]:
        """What such a run does."""
        root = str(self.world.landing)
        return self.world.run(lambda job: ingest(job, due.interval, landing_root=root, cut=due.cut))

    def begun_again(self) -> Feed:
        """As another process looks at it, which knows what is stored and nothing else."""
        before = self.arrivals
        return replace(self, arrivals=Arrivals(before.collection, before.log, before.landing_root, before.listed))


def fed(tmp_path: Path, batching: Batching) -> Feed:
    declared = collection()
    source = replace(declared.landed.source, path="{{ landing }}/{{ ds }}/*.jsonl")
    declared = relanded(declared, source=source, start=START, end=START + 3 * DAY, schedule="@daily", batching=batching)
    world = World(tmp_path / "landing", declared)
    world.landing.mkdir(parents=True)
    landed: dict[str, int] = {}

    def listed(pattern: str, root: str, *, within: str | None = None) -> list[SourceFile]:
        files = landing.list_named(pattern, root, within=within)
        return [replace(file, landed_at=landed.get(file.path, file.landed_at)) for file in files]

    return Feed(world, Arrivals(declared, world.log(), str(world.landing), listed), landed)
