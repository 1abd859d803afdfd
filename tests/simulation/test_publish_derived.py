"""A derived collection is published as any: its keys may be null, and its tables follow what is corrected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from simulation.plain_definitions import BIG, SUMS, derived
from simulation.script import row
from simulation.sea import Sea
from support.publishing import COPIED, DELTA, ICEBERG, agree, kept_rows, names_no_lost_file
from support.world import World
from tidemark.jobs.steps.publish import publish
from tidemark.model.collection import Collection
from tidemark.storage.stores.local import LocalStore
from tidemark.storage.stores.store import ObjectStore

pytestmark = pytest.mark.simulation


@dataclass
class LocalSea(Sea):
    """Collections below a local root."""

    def add(self, made: Collection, store: ObjectStore | None = None) -> World:
        truth = LocalStore(str(self.folder / "root" / made.name))
        self.worlds[made.name] = World(self.folder / made.name, made, truth, clock=self.clock, ids=self.ids)
        return self.worlds[made.name]


@pytest.mark.parametrize("iceberg", [ICEBERG, COPIED], ids=["named", "copied"])
@pytest.mark.parametrize("select", [SUMS, BIG], ids=["groups, one of null", "rows"])
def test_its_tables_follow(tmp_path: Path, select: str, iceberg: object) -> None:
    sea = LocalSea(tmp_path)
    sea.landed("tides")
    world = sea.add(replace(derived("tides2", select), name="d", publish=(replace(iceberg, table="db.tides"), DELTA)))
    days = [
        [row(1, "a", 3), row(2, "b", 4), row(3, "b", 5), row(4, None, 6)],
        [row(5, "b", 12), row(2, "c", 13, 4), row(6, None, 14)],
        [],
        [row(9, "z", 33)],
    ]
    for at, rows in enumerate(days):
        sea.ingest("tides", at, ("a", rows))
        sea.correct("d")
        sea.run("d", lambda job: publish(job))
        agree(world)
        names_no_lost_file(world)
    assert sum(kept_rows(world).values()) > 3
