"""Somebody removes a collection's folder while a step runs: the step ends in a line, and makes no half collection."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from simulation.script import row, steps
from simulation.script import world as world_of_days
from support.faulty import Clock, WrappedStore
from support.world import World, interval
from tidemark.errors import TidemarkError
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.simulation


class Removed(WrappedStore):
    """Loses all objects before the nth call; not between a look at the newest version and the create that follows it,
    which no store can do as one."""

    def __init__(self, inner: MemoryStore, nth: int) -> None:
        super().__init__(inner)
        self.left = nth

    def _call(self, name: str, key: str, action: Callable[[], Any], *, writes: bool) -> Any:
        if name == "create" and key.startswith("versions/"):
            return action()
        self.left -= 1
        if not self.left:
            self.inner.objects.clear()  # type: ignore[attr-defined]
        return action()


STEPS: list[Callable[[Job, Path], Any]] = [
    lambda job, landing: ingest(job, interval(4), landing_root=str(landing)),
    lambda job, _: seal(job, interval(4)),
    lambda job, _: drain(job, interval(4)),
    lambda job, _: compact(job, interval(4)),
    lambda job, _: collect(job, keep=0, graces=AT_ONCE),
]


@pytest.mark.parametrize("number", range(len(STEPS)), ids=["ingest", "seal", "drain", "compact", "collect"])
def test_a_removed_collection_is_not_made_again_by_half(tmp_path: Path, number: int) -> None:
    truth = MemoryStore()
    world = world_of_days(tmp_path, Envelope.APPEND, truth)
    for step in steps(tmp_path):
        world.run(step)
    world.land(4, "a", [row(9, "new", 41)])
    for before in STEPS[:number]:
        world.run(lambda job, before=before: before(job, tmp_path))  # type: ignore[misc]
    objects, modified = dict(truth.objects), dict(truth.modified)
    for nth in count(1):
        store = MemoryStore()
        store.objects, store.modified = dict(objects), dict(modified)
        removing = Removed(store, nth)
        beside = World.__new__(World)
        beside.__dict__ |= vars(world) | {
            "truth": store,
            "store": removing,
            "clock": Clock(world.clock.now),
            "_head": None,
        }
        refused = ""
        try:
            beside.run(lambda job: STEPS[number](job, tmp_path), attempts=1)
        except TidemarkError as error:
            refused = str(error)
        if removing.left > 0:
            assert not refused
            assert nth > 3
            return
        says_so = any(
            words in refused for words in ("is not there any more", "there is no collection", "never created")
        )
        assert says_so or not refused or number == 4, refused  # the collector has lines of its own
        assert [key for key in store.objects if key.startswith("versions/")] == [], f"before call {nth}: {refused}"
