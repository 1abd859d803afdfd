"""A gate over little reads it in its own process; only for more is another runner asked for."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from tests.quality.support import DAY, InProcess, World, collection, update
from tidemark.jobs import in_process_runner as nearby
from tidemark.jobs.in_process_runner import BySize
from tidemark.jobs.steps.gate import gate
from tidemark.model.collection import Gate

pytestmark = pytest.mark.quality


class NoSparkHere(Exception):
    pass


def refuse() -> NoReturn:
    raise NoSparkHere


def ingested(rows: int) -> World:
    owner = {"expect_column_values_to_not_be_null": {"column": "status"}}
    world = World(collection(quality=[owner]))
    world.ingest(1, [update(key, time=DAY) for key in range(rows)])
    return world


def test_little_needs_no_other_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DOCS", str(tmp_path))
    monkeypatch.setenv(nearby.VARIABLE, "1MiB")
    few, many = ingested(5), ingested(10_000)
    few.runner = BySize(few.store, refuse, 1, print)
    assert gate(few.job(), Gate.UNSEALED)["outcome"] == "applied"
    many.runner = BySize(many.store, refuse, 1, print)
    with pytest.raises(NoSparkHere):
        gate(many.job(), Gate.UNSEALED)
    other = InProcess(many.store)
    many.runner = BySize(many.store, lambda: other, 1, print)
    assert gate(many.job(), Gate.UNSEALED)["outcome"] == "applied"
    assert other.tasks == 1
