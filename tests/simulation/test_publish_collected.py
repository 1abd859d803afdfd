"""A collector without any grace beside publications: no file that a retained snapshot names is ever missing, and what
none names any more goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from simulation.script import row
from simulation.test_publish import day
from support.publishing import (
    ICEBERG,
    agree,
    by_pyiceberg,
    files_of,
    kept_rows,
    names_no_lost_file,
    ours,
    published,
    root_of,
    stage,
    table_of,
)
from support.world import World
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.publish import unpublish
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted
from tidemark.model.collection import Envelope
from tidemark.model.interval import Interval
from tidemark.storage.log.log import CHECKPOINT_EVERY

pytestmark = pytest.mark.simulation
KEEP = 3
DESTINATION = replace(ICEBERG, keep=KEEP)


def sweep(world: World) -> None:
    """Remove all that no version names but those of the newest windows; and make the others old."""
    log = world.log()
    for at in range(CHECKPOINT_EVERY + 1):
        log.commit(log.load(), Attempted(Fence("drain", Interval(0, 1), f"idle{at}")))
    for _ in range(2):
        world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))


def parts(world: World) -> set[str]:
    return {str(path.relative_to(world.truth.url)) for path in Path(world.truth.url).rglob("*.parquet")}


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
def test_it_sweeps_between_all_commits(tmp_path: Path, envelope: Envelope, monkeypatch: pytest.MonkeyPatch) -> None:
    world = stage(tmp_path, envelope, DESTINATION)
    commit: Callable[..., Any] = SqlCatalog.commit_table

    def beside(*args: Any, **asked: Any) -> Any:
        sweep(world)
        answer = commit(*args, **asked)
        sweep(world)
        return answer

    monkeypatch.setattr(SqlCatalog, "commit_table", beside)
    seen: dict[int, Any] = {}
    for at in range(7):
        day(world, at, [row(10 * at + n, f"v{n}", at * 10 + 1) for n in range(3)] + [row(0, f"v{at}", at * 10 + 2)])
        sweep(world)
        if at:
            names_no_lost_file(world)  # the trace was merged since, and the table still names what was
        published(world)
        agree(world)
        sweep(world)
        names_no_lost_file(world)
        seen[table_of(world).current_snapshot().snapshot_id] = kept_rows(world)
        snapshots = table_of(world).metadata.snapshots
        assert len(snapshots) == min(at + 1, KEEP)
        for snapshot in snapshots:
            assert by_pyiceberg(world, snapshot.snapshot_id) == seen[snapshot.snapshot_id], "an old one is still read"
    table = table_of(world)
    named = {
        name for snapshot in table.metadata.snapshots for name in ours(world, files_of(table, snapshot.snapshot_id))
    }
    sweep(world)
    assert named <= parts(world)
    pinned = {pin.name for publication in world.state.publications for pin in publication.pins}
    assert len(pinned) <= KEEP * 3, "what expired is let go"
    _nothing_of_its_own_is_left_over(world)

    world.run(lambda job: unpublish(job))
    sweep(world)
    live = {f"data/{batch.id}" for batch in world.state.live}
    assert {name.rpartition("/")[0] for name in parts(world)} <= live | {
        part.file.key.rpartition("/")[0] for batch in world.state.live for part in _parts(world, batch)
    }


def _parts(world: World, batch: Any) -> Any:
    from tidemark.storage.sidecars import parts_table

    return parts_table.parts_of(world.truth, [batch])


def _nothing_of_its_own_is_left_over(world: World) -> None:
    """Of the files below the table those are there that its snapshots name, and no others."""
    table = table_of(world)
    named = {str(path) for one in table.metadata.snapshots for path in files_of(table, one.snapshot_id)}
    lists = {one.manifest_list for one in table.metadata.snapshots}
    manifests = {m.manifest_path for one in table.metadata.snapshots for m in one.manifests(table.io)}
    there = [path for path in (root_of(world) / "_published" / "iceberg").rglob("*") if path.is_file()]
    data = {str(path) for path in there if path.suffix == ".parquet"}
    avro = {f"file://{path}" for path in there if path.suffix == ".avro"}
    assert data == {name for name in named if "_published" in name}
    assert avro == lists | manifests
