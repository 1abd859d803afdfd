"""A bit that flips at rest is never another answer, whoever reads it: it is refused by name, or it changed nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import tidemark
from pyspark_tidemark import DefaultSource
from simulation.script import row
from support.budget import budget
from support.world import World, collection, interval
from tidemark.api.opened import OpenCollection
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import Corruption
from tidemark.jobs.job import Job
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Column, ColumnType, Envelope, Late
from tidemark.storage.cache import OF_PROCESS
from tidemark.storage.stores.local import LocalStore

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("nothing_is_small")]
FLIPS = budget(ci=100, deep=5_000)
"""Of each of the two envelopes."""


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 40)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 40)


def made(folder: Path, envelope: Envelope) -> World:
    """Two days in the trace, merged, and a sealed one, which brought dead letters."""
    value = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
    declared = collection(envelope, value=value, timelines=("at",), late=Late("discard"))
    world = World(folder, declared, LocalStore(str(folder / "root" / "tides")))
    dice = random.Random(11)
    for day in range(3):
        texts = ["".join(dice.choices("abcdefgh", k=dice.randrange(9))) for _ in range(150)]
        rows = [row(dice.randrange(90), text, 10 * day, at=n) for n, text in enumerate(texts)]
        world.land(day, "a", rows + [row(n, "late", 0, at=n) for n in range(8 if day == 2 else 0)])
        world.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(folder)))
        world.run(lambda job, day=day: seal(job, interval(day)))
        if day < 2:
            world.run(lambda job, day=day: drain(job, interval(day)))
    return world


class Objects:
    """The objects of a collection on disk, one of which may be `damaged` (its key)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._whole = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        self.damaged = ""

    def flip(self, dice: random.Random) -> str:
        """Flip a bit anywhere; returns where."""
        (path,) = dice.choices(list(self._whole), list(map(len, self._whole.values())))
        data = bytearray(self._whole[path])
        place, bit = dice.randrange(len(data)), dice.randrange(8)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        self.damaged = path.relative_to(self._folder).as_posix()
        return f"bit {bit} of byte {place} of {self.damaged}"

    def mend(self) -> None:
        """Make the damaged object whole."""
        if self.damaged:
            path = self._folder / self.damaged
            path.write_bytes(self._whole[path])

    def restore(self) -> None:
        """As `mend`; remove what steps wrote."""
        self.mend()
        for path in self._folder.rglob("*"):
            if path.is_file() and path not in self._whole:
                path.unlink()


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def readers(root: str) -> dict[str, Callable[[], Any]]:
    """What is asked of the newest version, by each door."""

    def asked(question: Callable[[OpenCollection], Any]) -> Callable[[], list[str]]:
        return lambda: in_order(question(tidemark.open(root, "tides")).to_pylist())

    def by_spark() -> list[str]:
        """As executors read, in this process."""
        source = DefaultSource({"path": f"{root}/tides"})
        reader = source.reader(source.schema())
        return in_order(row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist())

    def streamed() -> list[str]:
        source = DefaultSource({"path": f"{root}/tides", "starting": "beginning"})
        reader = source.streamReader(source.schema())
        first = reader.initialOffset()
        tasks = reader.partitions(first, reader.latestOffset(first, ReadAllAvailable()))
        return in_order(row for task in tasks for batch in reader.read(task) for row in batch.to_pylist())

    return {
        "Spark": by_spark,
        "stream": streamed,
        "as_of": asked(lambda tides: tides.as_of().to_arrow()),
        "one key": asked(lambda tides: tides.as_of(where={"k": 40}).to_arrow()),
        "range": asked(lambda tides: tides.range("at", 30, 60).to_arrow()),
        "changes": asked(lambda tides: tides.changes().to_arrow()),
        "latest": asked(lambda tides: tides.latest_at("at", 120).to_arrow()),
        "dataset": asked(lambda tides: tides.dataset().to_table(columns=["k", "v"])),
        "SQL": lambda: in_order(
            tidemark.sql(root, "SELECT k, v FROM tides WHERE tides.at < 50").to_arrow().to_pylist()
        ),
    }


STEPS: dict[str, Callable[[Job], Any]] = {
    "drain": lambda job: drain(job, interval(2)),
    "compact": lambda job: compact(job, interval(2)),
    "replay": lambda job: replay(job, as_now=True),
}


@pytest.mark.parametrize("envelope", [Envelope.APPEND, Envelope.UPSERT])
def test_a_flipped_bit_is_refused_by_name_or_changes_nothing(tmp_path: Path, envelope: Envelope) -> None:
    world = made(tmp_path, envelope)
    objects = Objects(tmp_path / "root" / "tides")
    asked = readers(str(tmp_path / "root"))

    def answer(door: str) -> Any:
        """The answer of a door; of a step what can be read after it, of objects that are whole again."""
        OF_PROCESS.clear()
        world.forget()
        if door in asked:
            return asked[door]()
        if door == "late":
            return in_order(late_rows(world.truth, world.state, limit=99).rows)
        world.run(STEPS[door], attempts=1)
        objects.mend()
        return asked["changes"]()

    doors = [*asked, "late", *STEPS]
    expected = {}
    for door in doors:
        expected[door] = answer(door)
        objects.restore()
    dice, refused = random.Random(5), Counter[str]()
    for door in islice(cycle(doors), FLIPS):
        damage = objects.flip(dice)
        try:
            outcome = answer(door)
        except Corruption as error:
            outcome = str(error)
        assert outcome == expected[door] or objects.damaged in outcome, (door, damage, outcome)
        refused[door] += outcome != expected[door]
        objects.restore()
    assert all(refused[door] for door in doors), f"each door met some damage: {refused}"
