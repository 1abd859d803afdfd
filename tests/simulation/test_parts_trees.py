"""Collections whose tables of parts are trees, whatever their size: through every step, and what is swept up after."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from support.budget import budget
from support.world import World
from tests.compat import make_v2
from tests.compat.second_reader import SecondReader
from tests.support.reading import as_of
from tidemark.arrow.parts.writer import PartWriter
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.retain import hold
from tidemark.model.batch import ObjectRef
from tidemark.storage.log.versions import CHECKPOINT_EVERY
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.sidecars.parts_table import PartsNode

pytestmark = pytest.mark.simulation


@pytest.fixture(autouse=True)
def trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part has a leaf of its own, and parts are of two rows, so that a day has several."""
    for name, value in (("SMALL", 0), ("WHOLE", 0), ("LEAF", 1), ("FAN_OUT", 2)):
        monkeypatch.setattr(parts_table, name, value)
    for name, value in (("part_rows", 2), ("group_rows", 1)):
        monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, name, value)


def named(world: World) -> set[str]:
    """The objects below `data/` that the newest state leads to."""
    refs = [batch.parts for batch in world.state.batches if isinstance(batch.parts, ObjectRef)]
    runs = (
        ledger.named_objects(world.truth, run, corrected_from=world.state.correctable_from)
        for run in world.state.ledger
    )
    late = [ref for run in runs for ref in run]
    refs += [ref for ref in late if parts_table.is_one(ref)]
    keys = {ref.key for table in refs for ref in parts_table.objects(world.truth, table)}
    return {key for key in keys | {ref.key for ref in late} if key.startswith("data/")}


@pytest.mark.parametrize(
    "name", budget(ci=["counted", "upserted"], deep=["tides", "counted", "updated", "upserted", "dumped"])
)
def test_they_are_read_verified_and_collected_as_others_are(name: str, tmp_path: Path):
    sea = make_v2.opened(tmp_path / "tides", name, tmp_path, count(1))
    make_v2.live(sea, name)
    world = sea.worlds[name]
    roots = [parts_table.open_block(world.truth, batch.parts) for batch in world.state.trace if batch.parts]  # type: ignore[arg-type]
    assert any(isinstance(root, PartsNode) and root.height > 1 for root in roots)
    answer = as_of(world.truth, world.state)
    names = answer.column_names[:-1]
    ours = Counter({tuple((n, row[n]) for n in names): row["_multiplicity"] for row in answer.to_pylist()})
    assert SecondReader(tmp_path / "tides" / name).as_of(world.state.seal - 1) == ours
    for at in range(2 * CHECKPOINT_EVERY):  # until no version that is kept names what the days have replaced
        hold(world.job(), f"hold{at}", since=world.state.since)
    for _ in range(2):  # what the first run plans the second removes
        world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
    left = {info.key for info in world.truth.list("data/")}
    assert left == named(world) != set()
    report = verify(sea.joined(world.job()), data=True)
    assert report.findings == ()
    assert as_of(world.truth, world.state) == answer
