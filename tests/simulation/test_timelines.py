"""Bounds of timelines are recorded by every step that writes parts, and what is recorded wrongly is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.world import World, collection, interval
from tests.compat import make_v2
from tests.support.reading import as_of
from tidemark.arrow.parts import writer
from tidemark.arrow.parts.timelines import TimelinesSeen
from tidemark.errors import Corruption
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.chunk.bounds import TimelineBounds
from tidemark.model.collection import Envelope
from tidemark.storage.sidecars import parts_table

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("name", ["tides", "counted", "typed", "updated", "upserted"])
def test_every_step_that_writes_parts_records_them(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Ingests, corrections, drains, compactions, what is trimmed and remembered, and what is derived."""
    if name in ("updated", "upserted"):
        timed = replace(make_v2.COLLECTIONS[name], value=make_v2.VALUE, timelines=("w",))
        monkeypatch.setitem(make_v2.COLLECTIONS, name, timed)
    sea = make_v2.opened(tmp_path / "tides", name, tmp_path, count(1))
    make_v2.live(sea, name)
    world = sea.worlds[name]
    assert world.state.trace
    names = world.state.collection.timelines
    expected = {column.id for column in world.state.collection.value if column.name in names}
    for part in parts_table.parts_of(world.truth, world.state.batches):
        assert {each.id for each in part.timelines} == expected != set()
    report = verify(sea.joined(world.job()), data=True)
    assert report.findings == ()
    assert report.parts_read > 0


class Narrow(TimelinesSeen):
    """What a writer with a mistake would record: the greatest value is forgotten."""

    def bounds(self) -> tuple[TimelineBounds, ...]:
        return tuple(replace(each, last=(each.last or 0) - 1) for each in super().bounds())


def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    declared = collection(Envelope.APPEND, value=make_v2.VALUE, timelines=("w",))
    world = World(tmp_path, declared)
    rows: list[dict[str, Any]] = [{"k": k, "v": "v", "w": k * 10, "t": k, "e": k} for k in range(5)]
    world.land(0, "a", rows)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "TimelinesSeen", Narrow)
        world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(0)))
    return world


def test_bounds_that_are_too_narrow_are_found_by_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = wrong(tmp_path, monkeypatch)
    (part,) = parts_table.parts_of(world.truth, world.state.unsealed)
    (finding,) = verify(world.job(), data=True).findings
    assert (finding.rule, finding.object) == ("bounds", part.file.key)
    assert finding.detail == "timeline w is recorded as 0 to 39, the rows have 0 to 40"
    assert verify(world.job()).findings == (), "only who reads the rows can tell"


def test_a_read_that_meets_the_row_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = wrong(tmp_path, monkeypatch)
    expected = r"\.parquet holds timeline w at 0 to 40 in row groups 0 to 0, recorded were 0 to 39"
    with pytest.raises(Corruption, match=expected):
        as_of(world.truth, world.state)
