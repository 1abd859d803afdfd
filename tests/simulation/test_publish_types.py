"""Every type of column, as key and as value, with nulls, in both formats, by reference and by copy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, IsNaN

from simulation.test_publish import day
from support.publishing import COPIED, DELTA, ICEBERG, agree, delta_of, kept_rows, published, stage, table_of
from support.typed import CASES, Typed, TypedWorld
from support.world import World, collection, interval
from tests.pure.ingest.landed import write
from tidemark.arrow.decode.typed import wrong_value
from tidemark.arrow.rows.schema import ARROW_TYPES
from tidemark.errors import InvalidUsage, TidemarkError
from tidemark.jobs.steps import init
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
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


FAR = {ColumnType.TIMESTAMP: (253402300800000000, "us"), ColumnType.DATE: (-719163, "days")}
"""A microsecond and a day beyond the years 1 to 9999, as Parquet and Tidemark have them."""
REFUSED = [
    pytest.param(destination, type, id=f"{name}-{type}")
    for name, destination, type in (
        ("iceberg", ICEBERG, ColumnType.TIMESTAMP),
        ("copied", COPIED, ColumnType.DATE),
        ("delta", DELTA, ColumnType.DATE),
    )
]


def far_world(folder: Path, type: ColumnType, *destinations: Destination) -> World:
    """A collection with a file of two rows, of which the second has a time that is far away."""
    number, _ = FAR[type]
    world = stage(folder, Envelope.APPEND, *destinations, value=(Column("v", type),), format=Format.PARQUET)
    (world.landing / "0").mkdir(parents=True)
    column = pa.array([0, number], pa.int32() if type is ColumnType.DATE else pa.int64()).cast(ARROW_TYPES[type])
    table = pa.table({"k": [1, 2], "v": column, "t": [1, 1], "e": [1, 1]})
    pq.write_table(table, world.landing / "0" / "a.parquet")
    return world


def moved(world: World) -> None:
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(0)))
    world.run(lambda job: drain(job, interval(0)))


@pytest.mark.parametrize(("destination", "type"), REFUSED)
def test_a_time_that_no_table_has_is_refused(
    tmp_path: Path, destination: Destination, type: ColumnType, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, unit = FAR[type]
    far = f"holds {number} {unit} since the epoch, beyond the years 1 to 9999, which no"
    published_first = far_world(tmp_path, type, destination)
    refusal = rf"a.parquet: row 2: column v {far} table of {destination.format} has; write beyond: null, or clip"
    with pytest.raises(TidemarkError, match=refusal):
        moved(published_first)
    world = far_world(tmp_path, type)
    moved(world)
    declared = replace(world.collection, publish=(destination,))
    refusal = rf"tides cannot be published to {destination.format}: column v: batch \w+ {far} such table has"
    with pytest.raises(InvalidUsage, match=refusal):
        world.run(lambda job: declare_collection(job, declared))
    # What came while `publish` was brought in, or is computed, is found out by who publishes.
    monkeypatch.setattr(init, "check_values", lambda *_: None)
    world.run(lambda job: declare_collection(job, declared))
    with pytest.raises(InvalidUsage, match=f"column v of collection tides {far} table of {destination.format} has"):
        published(world)


def test_a_key_has_no_other_time_than_its_own() -> None:
    far = pa.array([FAR[ColumnType.TIMESTAMP][0]]).cast(ARROW_TYPES[ColumnType.TIMESTAMP])
    declared = collection(key=(Column("k", ColumnType.TIMESTAMP),), publish=(ICEBERG,))
    wrong = wrong_value(declared, declared.key[0], far)
    assert wrong is not None
    assert wrong[0].endswith("beyond the years 1 to 9999, which no table of iceberg has")
    assert wrong_value(declared, Column("k_of_file", ColumnType.TIMESTAMP), far) is None


def test_delta_has_timestamps_of_any_year(tmp_path: Path) -> None:
    world = far_world(tmp_path, ColumnType.TIMESTAMP, DELTA)
    moved(world)
    published(world)
    assert delta_of(world).to_pyarrow_table()["v"].cast(pa.int64()).to_pylist() == [0, FAR[ColumnType.TIMESTAMP][0]]


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
