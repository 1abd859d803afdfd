"""Every type of column, as key and as value, with nulls, in both formats, by reference and by copy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, IsNaN

from simulation.test_publish import day
from support.publishing import COPIED, DELTA, ICEBERG, agree, delta_of, kept_rows, published, stage, table_of
from support.typed import CASES, Typed, TypedWorld
from support.world import World, interval
from tests.pure.ingest.landed import write
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, Envelope, Format
from tidemark.model.publication import Destination
from tidemark.storage.stores.local import LocalStore

pytestmark = pytest.mark.simulation
DESTINATIONS = [ICEBERG, COPIED, DELTA]
KEYED = [case for case in CASES if case.envelope is Envelope.UPSERT]
APPENDED = [case for case in CASES if case.envelope is Envelope.APPEND]


class LocalTyped(TypedWorld):
    """As TypedWorld, below a local root."""

    def __init__(self, folder: Path, case: Typed, *destinations: Destination) -> None:
        declared = replace(case.declared(), publish=destinations)
        self.case, self.format, self.root = case, Format.JSONL, str(folder / "root")
        World.__init__(self, folder / "landing", declared, LocalStore(f"{self.root}/tides"))


@pytest.mark.parametrize("destination", DESTINATIONS, ids=["iceberg", "copied", "delta"])
@pytest.mark.parametrize("case", [*KEYED, *APPENDED], ids=str)
def test_every_type(tmp_path: Path, case: Typed, destination: Destination) -> None:
    world = LocalTyped(tmp_path, case, destination)
    world.put(0, "a", case.rows())
    world.ingested()
    world.moved()
    published(world)
    agree(world)
    keyed = case.envelope is Envelope.UPSERT
    world.put(1, "a", [case.row(1, 13), case.row(0, 14, **({"gone": True, "o": 2} if keyed else {}))])
    world.ingested(1)
    world.moved(1)
    published(world)
    agree(world)
    assert sum(kept_rows(world).values()) == len(case.numbers) + (-1 if keyed else 2)


@pytest.mark.parametrize("destination", DESTINATIONS, ids=["iceberg", "copied", "delta"])
def test_what_statistics_leave_out_is_found(tmp_path: Path, destination: Destination) -> None:
    """NaN has no bounds, nor have texts that are too long for a footer: no reader may skip their files."""
    columns = (Column("f", ColumnType.FLOAT), Column("s", ColumnType.STRING))
    world = stage(tmp_path, Envelope.APPEND, destination, value=columns, format=Format.PARQUET)
    long = "z" * 100_000
    rows: list[dict[str, Any]] = [
        {"k": 1, "f": float("nan"), "s": None},
        {"k": 2, "f": -0.0, "s": long},
        {"k": 3, "f": float("inf"), "s": "a"},
        {"k": 4, "f": None, "s": ""},
    ]
    folder = world.landing / "0"
    folder.mkdir(parents=True)
    write(folder / "a.parquet", [{**row, "t": 1, "e": 1} for row in rows], world.collection)
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(0)))
    world.run(lambda job: drain(job, interval(0)))
    published(world)
    agree(world)
    if destination is DELTA:
        table = delta_of(world).to_pyarrow_dataset()
        import pyarrow.dataset as ds

        assert table.to_table(filter=ds.field("s") == long)["k"].to_pylist() == [2]
        return
    for condition, key in ((EqualTo("s", long), 2), (IsNaN("f"), 1), (EqualTo("f", float("inf")), 3)):
        assert table_of(world).scan(row_filter=condition).to_arrow()["k"].to_pylist() == [key]


def test_a_row_of_a_large_multiplicity_is_as_many_rows(tmp_path: Path) -> None:
    world = stage(tmp_path, Envelope.UPDATES, ICEBERG, DELTA)
    rows = [
        {"k": k, "v": "a", "t": 1, "e": 1, "o": None, "gone": False, "d": d}
        for k, d in ((1, 70_000), (2, 1), (3, 65_536))
    ]
    day(world, 0, rows)
    published(world)
    agree(world)
    assert Counter(kept_rows(world).values()) == Counter([70_000, 1, 65_536])
