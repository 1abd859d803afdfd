"""An ingest of a few files costs the same whether the ledger knows a hundred files or a hundred thousand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.faulty import WrappedStore
from support.world import World, collection, interval
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.arrangement import Fence
from tidemark.model.change import Attempted, Ingested
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.storage.log.log import Committed
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

pytestmark = pytest.mark.simulation
FILES = (100, 100_000)


class Counted(WrappedStore):
    """Calls, bytes read and bytes written, by the folder of the object."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.counts: Counter[str] = Counter()

    def create(self, key: str, data: bytes) -> None:
        self.counts[f"{key.split('/')[0]}: written"] += len(data)
        super().create(key, data)

    def _call(self, name: str, key: str, action: Any, *, writes: bool) -> Any:
        folder = key.split("/")[0]
        self.counts[f"{folder}: calls"] += 1
        answer = action()
        self.counts[f"{folder}: read"] += len(answer) if isinstance(answer, bytes) else 0
        return answer


def knowing(folder: Path, files: int) -> World:
    """A collection whose ledger knows so many files, each second number of those that could be."""
    made = World(folder, collection(), MemoryStore())
    names = sorted(f"{20 * number}/a.jsonl" for number in range(files))
    known = (LedgerEntry(name, 9, "0" * 64, "x", interval(0), Status.INGESTED) for name in names)
    run = ledger.write_run(made.truth, "ledger/known.json", known, level=5)
    log = made.log()
    fence = Fence("ingest", interval(0), "token")
    for change in (Attempted(fence), Ingested(fence, None, run)):
        assert isinstance(log.commit(log.load(), change), Committed)
    return made


def cost(folder: Path, files: int) -> Counter[str]:
    """Of an ingest of two new files that are named between known ones."""
    made = knowing(folder, files)
    day = 51
    for name in ("b", "c"):
        made.land(day, name, [{"k": 1, "v": "a", "t": day * 10, "e": day * 10}])
    made.store = counted = Counted(made.truth)
    assert made.run(lambda job: ingest(job, interval(day), landing_root=str(folder)))["files"] == 2
    assert made.state.totals.rows_ingested == 2
    return counted.counts


def test_an_ingest_costs_the_same_however_many_files_are_known(tmp_path: Path):
    few, many = (cost(tmp_path / str(files), files) for files in FILES)
    assert few["ledger: calls"] <= many["ledger: calls"] <= few["ledger: calls"] + 2, "the nodes above the leaf"
    assert 20_000 < few["ledger: read"] < many["ledger: read"] < 500_000, "a leaf and its node, of 30 MB"
    assert abs(many["ledger: written"] - few["ledger: written"]) < 50
    for what in ("calls", "written", "read"):
        assert abs(many[f"versions: {what}"] - few[f"versions: {what}"]) < 50, what
