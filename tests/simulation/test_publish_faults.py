"""Every call that a publication makes fails once, before its effect and after it, by death and by an answer: to our
store, to the catalog, to the table's files. The step is run again, and each seal is published exactly once.

The days before the call that fails are run once and copied: each try begins right before the publication that makes it.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO

from simulation.script import row
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.publishing import DELTA, ICEBERG, agree, delta_of, names_no_lost_file, published, root_of, stage, table_of
from support.world import World, interval
from tidemark.errors import CommitUnknown, Contention
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope
from tidemark.model.publication import Destination, TableFormat, of_format
from tidemark.publish import delta
from tidemark.storage.cache import OF_PROCESS
from tidemark.storage.verify.collection import verify_objects

pytestmark = pytest.mark.simulation
DAYS = 4
STRIDE = budget(ci=4, deep=1)
LOOKS = budget(ci=8, deep=1)
"""Of the calls of each name one in so many is made to fail, other ones by each sort of failure; of those to our store
that may only look, one in so many."""
IO = [(PyArrowFileIO, name) for name in ("new_input", "new_output", "delete")]
CATALOG = [(SqlCatalog, name) for name in ("load_table", "create_namespace", "create_table", "commit_table")]
WRITES = [(delta, "write_deltalake")]


class Killed(BaseException):
    """The process is gone: no handler of an exception runs to any effect."""


Publishing = Callable[[World], None]


def up_to_publication(world: World, at: int) -> None:
    """The steps of a day before it is published: rows that are named, then copied as a key's retraction comes, then
    named again after a merge."""
    rows = [row(at, "a", at * 10 + 1), row(at + 1, "b", at * 10 + 2)]
    if at == 2:
        rows.append(row(0, "a", 21, 1, d=-1))
    world.land(at, "a", rows)
    world.run(lambda job: ingest(job, interval(at), landing_root=str(world.landing)))
    world.run(lambda job: seal(job, interval(at)))
    world.run(lambda job: drain(job, interval(at)))


class Days:
    """A collection that is published each day; its days can be gone on with from before any of the publications."""

    def __init__(self, folder: Path, destination: Destination) -> None:
        self.world = stage(folder, Envelope.UPDATES, destination)
        self.at, self.copies = root_of(self.world).parent, folder / "copies"
        self.made: dict[str, list[int]] = {"seams": [0], "calls": [0], "writes": [0]}
        """The calls made up to each publication: to the catalog and the table, to our store, and those that write."""
        self.names: list[str] = []
        """Of the calls to the catalog and the table."""

    def rehearse(self, seams: list[tuple[Any, str]]) -> None:
        """All days without a fault: copied right before each publication, whose calls are counted."""
        calls, faulty = Calls(), FaultyStore(self.world.truth)
        with pytest.MonkeyPatch.context() as patch:
            patched(patch, calls, seams)
            for at in range(DAYS):
                up_to_publication(self.world, at)
                shutil.copytree(self.at, self.copies / str(at))
                self.new_process()
                self.world.store = faulty
                published(self.world)
                self.world.store = self.world.truth
                for name, made in (("seams", calls.made), ("calls", faulty.calls), ("writes", len(faulty.wrote))):
                    self.made[name].append(made)
                self.world.run(lambda job, at=at: compact(job, interval(at)))
        self.names = calls.names

    def new_process(self) -> None:
        """Nothing is remembered of what was read."""
        self.world.forget()
        OF_PROCESS.clear()

    def of_each_name(self, phase: int) -> list[int]:
        """Of the calls of each name one in STRIDE, other ones in each phase; all, if they are few."""
        found: dict[str, list[int]] = {}
        for nth, name in enumerate(self.names, start=1):
            found.setdefault(name, []).append(nth)
        some = [calls if len(calls) <= DAYS else calls[phase % STRIDE :: STRIDE] for calls in found.values()]
        return sorted(chain.from_iterable(some))

    def publication_of(self, kind: str, nth: int) -> tuple[int, int]:
        """The day whose publication makes the nth call of a kind, and the how manieth of that publication it is."""
        at = bisect_left(self.made[kind], nth) - 1
        return at, nth - self.made[kind][at]

    def go_on(self, at: int, faulty: Publishing) -> World:
        """The days from a publication on, which is `faulty`; those after it are not."""
        shutil.rmtree(self.at)
        shutil.copytree(self.copies / str(at), self.at)
        self.new_process()
        for day in range(at, DAYS):
            if day > at:
                up_to_publication(self.world, day)
            (faulty if day == at else published)(self.world)
            self.world.run(lambda job, day=day: compact(job, interval(day)))
        return self.world


def snapshots(world: World, destination: Destination) -> int:
    """How often a table was committed to."""
    if destination.format is TableFormat.DELTA:
        return delta_of(world).version() + 1
    return table_of(world).current_snapshot().sequence_number


def settled(world: World, destination: Destination) -> None:
    """Nothing is lost or published twice, and what is recorded is what is there."""
    agree(world)
    assert snapshots(world, destination) == DAYS
    record = of_format(world.state.publications, destination.format)
    assert record is not None
    assert list(verify_objects(world.truth, world.state)) == []
    if destination.format is TableFormat.DELTA:
        assert record.snapshot == str(DAYS - 1)
        return
    assert record.snapshot == str(table_of(world).current_snapshot().snapshot_id)
    names_no_lost_file(world)


@dataclass
class Calls:
    """Counts calls, and fails one of them."""

    nth: int = 0
    after: bool = False
    error: BaseException | None = None
    made: int = 0
    fired: str = ""
    names: list[str] = field(default_factory=list)

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*args: Any, **asked: Any) -> Any:
            self.made += 1
            self.names.append(name)
            hits = self.made == self.nth and self.error is not None
            if hits and not self.after:
                self.fired = name
                raise self.error  # type: ignore[misc]
            answer = call(*args, **asked)
            if hits:
                self.fired = name
                raise self.error  # type: ignore[misc]
            return answer

        return counted


def patched(patch: pytest.MonkeyPatch, calls: Calls, seams: list[tuple[Any, str]]) -> None:
    for holder, name in seams:
        patch.setattr(holder, name, calls.around(name, getattr(holder, name)))


def tried_again(calls: Calls) -> Publishing:
    """A publication whose process may be killed, and is then run again; as a task is."""

    def publishing(world: World) -> None:
        for _ in range(3):
            try:
                published(world)
                return
            except (Killed, CommitUnknown, Contention):
                assert calls.fired
        raise AssertionError("unreachable")

    return publishing


SEAMS = {"iceberg": IO + CATALOG, "delta": WRITES}
SORTS = [*product(("killed", "unanswered"), (False, True))][:: budget(ci=3, deep=1)]
"""How a call fails: by death or by an answer, before its effect or after it."""


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Days]:
    made = {name: Days(tmp_path_factory.mktemp(name), of) for name, of in (("iceberg", ICEBERG), ("delta", DELTA))}
    for name, days in made.items():
        days.rehearse(SEAMS[name])
        settled(days.world, days.world.collection.publish[0])
    return made


@pytest.mark.parametrize(("sort", "after"), SORTS, ids=lambda each: each if isinstance(each, str) else f"after {each}")
@pytest.mark.parametrize("name", SEAMS)
def test_any_call_to_a_catalog_or_a_table_may_fail(
    rehearsed: dict[str, Days], name: str, sort: str, after: bool
) -> None:
    days, fired = rehearsed[name], set[str]()
    for call in days.of_each_name(SORTS.index((sort, after))):
        at, nth = days.publication_of("seams", call)
        calls = Calls(nth, after, Killed("killed") if sort == "killed" else OSError("no route"))
        with pytest.MonkeyPatch.context() as patch:
            patched(patch, calls, SEAMS[name])
            world = days.go_on(at, tried_again(calls))
        assert calls.made >= nth
        # A call that answers with an error of its own has no effect to fail after.
        fired |= {calls.fired} - {""}
        settled(world, world.collection.publish[0])
    assert fired == set(days.names)


def test_a_commit_that_lost_its_race_is_planned_again(rehearsed: dict[str, Days]) -> None:
    for at in range(DAYS):
        calls = Calls(1, False, CommitFailedException("the branch has changed"))
        with pytest.MonkeyPatch.context() as patch:
            patched(patch, calls, [(SqlCatalog, "commit_table")])
            world = rehearsed["iceberg"].go_on(at, tried_again(calls))
        assert calls.fired
        settled(world, ICEBERG)


@pytest.mark.parametrize("name", SEAMS)
@pytest.mark.parametrize(("after", "dies"), [*product((False, True), repeat=2)][:: budget(ci=3, deep=1)], ids=str)
def test_any_call_to_our_store_may_fail(rehearsed: dict[str, Days], name: str, after: bool, dies: bool) -> None:
    days, fired = rehearsed[name], list[str]()
    stride, kind = (STRIDE, "writes") if after else (LOOKS, "calls")
    for call in range(1 + dies * (stride // 2), days.made[kind][-1] + 1, stride):
        at, nth = days.publication_of(kind, call)
        faulty = FaultyStore(days.world.truth, Fault(nth, after, dies))

        def publishing(world: World) -> None:
            world.store = faulty  # noqa: B023
            published(world)
            world.store = world.truth

        world = days.go_on(at, publishing)
        assert faulty.fired
        fired.append(faulty.fired)
        settled(world, world.collection.publish[0])
    assert fired, "a version for each publication at least"
