"""A demo in the folder of an earlier one: how often the file was mended is read from the collection's log."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import tidemark
from demo import answers, layout
from support.world import World
from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule
from tidemark.jobs.steps.ingest import ingest
from tidemark.storage.stores.local import LocalStore

FLIGHTS = Path(__file__).resolve().parents[2] / "include" / "collections" / "flights.yaml"


def test_a_file_is_mended_by_each_demo_and_once_more_by_each_that_follows(tmp_path: Path) -> None:
    landing, root = tmp_path / "landing", tmp_path / "root"
    world = World(landing, load(FLIGHTS), truth=LocalStore(str(root / "flights")))
    first = world.collection.landed.start

    def counted() -> int:
        """Read the days, and count."""
        for day in Schedule("@daily").beginning(first, answers.start_of(date(2013, 1, 2))):
            world.run(lambda job, day=day: ingest(job, day, landing_root=str(landing)))
        return answers.times_mended(tidemark.open(str(root), "flights"))

    found = []
    for _ in range(2):
        layout.lay_out(landing, first=layout.FIRST_DAY, last=layout.MENDED_DAY)
        found.append(counted())
        layout.mend(landing)
        found += [counted(), counted()]
    assert found == [0, 1, 1, 2, 3, 3]
