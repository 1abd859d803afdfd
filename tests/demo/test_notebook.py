"""docs/notebooks show what happens, over a week of real flights: `REWRITE=1` writes again what their cells show."""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest

from demo import layout
from support.world import World
from tests.support import notebooks
from tidemark.config.collection_file import load
from tidemark.config.schedule import Schedule
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.storage.stores.local import LocalStore

PROJECT = Path(__file__).resolve().parents[2]
FLIGHTS = PROJECT / "include" / "collections" / "flights.yaml"
NOTEBOOKS = sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb"))
DAY = 86_400_000_000
DAYS = 8


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root with the collection that the demo makes, and the address of it."""
    landing = tmp_path_factory.mktemp("landing")
    layout.lay_out(landing, first=layout.FIRST_DAY, last=layout.FIRST_DAY + timedelta(days=DAYS - 1))
    root = tmp_path_factory.mktemp("root")
    world = World(landing, load(FLIGHTS), truth=LocalStore(str(root / "flights")))
    first = world.collection.landed.start
    for day in Schedule("@daily").beginning(first, first + DAYS * DAY):
        world.run(lambda job, day=day: ingest(job, day, landing_root=str(landing)))
        for step in (seal, drain, compact):
            world.run(lambda job, step=step, day=day: step(job, day))
    return str(root)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_cells_show_what_is_stored(path: Path, week: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_ROOT", week)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stored = notebooks.outputs(notebooks.json.loads(path.read_text()))
    now = notebooks.run(path)
    if os.environ.get("REWRITE"):
        notebooks.save(path, now)
        return
    assert [list(map(_steady, shown)) for shown in notebooks.outputs(now)] == [
        list(map(_steady, was)) for was in stored
    ]


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["doors", "timelines"]


def _steady(line: str) -> str:
    """A line without what differs between releases of Arrow (bytes), and between ways to the same state (versions)."""
    if line.startswith("  bytes read"):
        return "bytes"
    return line.partition("; version")[0].rstrip("\n")
