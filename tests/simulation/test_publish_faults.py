"""Every call that a publication makes fails once, before its effect and after it, by death and by an answer: to our
store, to the catalog, to the table's files. The step is run again, and each seal is published exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO

from simulation.script import row
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.publishing import DELTA, ICEBERG, agree, delta_of, names_no_lost_file, published, stage, table_of
from support.world import World, interval
from tidemark.errors import CommitUnknown, Contention
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope
from tidemark.model.publication import Destination, TableFormat, of_format
from tidemark.publish import delta
from tidemark.storage.verify.collection import verify_objects

pytestmark = pytest.mark.simulation
DAYS = 4
STRIDE = budget(ci=3, deep=1)
LOOKS = budget(ci=8, deep=1)
"""Of the calls one in so many is made to fail; of those to our store that may only look, one in so many."""
IO = [(PyArrowFileIO, name) for name in ("new_input", "new_output", "delete")]
CATALOG = [(SqlCatalog, name) for name in ("load_table", "create_namespace", "create_table", "commit_table")]
WRITES = [(delta, "write_deltalake")]


class Killed(BaseException):
    """The process is gone: no handler of an exception runs to any effect."""


def days(world: World, publishing: Callable[[World], Any]) -> None:
    """Days that are named, then copied as a key's retraction comes, then named again after a merge."""
    for at in range(DAYS):
        rows = [row(at, "a", at * 10 + 1), row(at + 1, "b", at * 10 + 2)]
        if at == 2:
            rows.append(row(0, "a", 21, 1, d=-1))
        world.land(at, "a", rows)
        world.run(lambda job, at=at: ingest(job, interval(at), landing_root=str(world.landing)))
        world.run(lambda job, at=at: seal(job, interval(at)))
        world.run(lambda job, at=at: drain(job, interval(at)))
        publishing(world)
        world.run(lambda job, at=at: compact(job, interval(at)))


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


def tried_again(calls: Calls) -> Callable[[World], None]:
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


CASES = [(ICEBERG, IO + CATALOG), (DELTA, WRITES)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [Killed("killed"), OSError("no route")], ids=["killed", "unanswered"])
@pytest.mark.parametrize(("destination", "seams"), CASES, ids=["iceberg", "delta"])
def test_any_call_to_a_catalog_or_a_table_may_fail(
    tmp_path: Path, destination: Destination, seams: list[tuple[Any, str]], error: BaseException, after: bool
) -> None:
    nth, fired = 1 if after else 0, set[str]()
    while True:
        nth += STRIDE
        calls = Calls(nth, after, error)
        world = stage(tmp_path, Envelope.UPDATES, destination)
        with pytest.MonkeyPatch.context() as patch:
            patched(patch, calls, seams)
            days(world, tried_again(calls))
        if calls.made < nth:
            break
        # A call that answers with an error of its own has no effect to fail after.
        fired |= {calls.fired} - {""}
        settled(world, destination)
    assert fired >= {"write_deltalake"} if destination is DELTA else fired >= {"commit_table", "new_output"}


def test_a_commit_that_lost_its_race_is_planned_anew(tmp_path: Path) -> None:
    for nth in range(1, DAYS + 1):
        calls = Calls(nth, False, CommitFailedException("the branch has changed"))
        world = stage(tmp_path, Envelope.UPDATES, ICEBERG)
        with pytest.MonkeyPatch.context() as patch:
            patched(patch, calls, [(SqlCatalog, "commit_table")])
            days(world, tried_again(calls))
        assert calls.fired
        settled(world, ICEBERG)


@pytest.mark.parametrize("destination", [ICEBERG, DELTA], ids=["iceberg", "delta"])
@pytest.mark.parametrize(("after", "dies"), [*product((False, True), repeat=2)], ids=str)
def test_any_call_to_our_store_may_fail(tmp_path: Path, destination: Destination, after: bool, dies: bool) -> None:
    stride = STRIDE if after else LOOKS
    nth, others = 1 - stride + dies, 0
    while True:
        nth += stride
        world = stage(tmp_path, Envelope.UPDATES, destination)
        faulty = FaultyStore(world.truth)
        fired: list[str] = []
        left = nth

        def publishing(world: World) -> None:
            nonlocal left
            faulty.arm(Fault(left, after, dies) if left > 0 else None)  # noqa: B023
            world.store = faulty  # noqa: B023
            published(world)
            left = 0 if faulty.fired else left - faulty.calls if not after else left - len(faulty.wrote)  # noqa: B023
            if faulty.fired:  # noqa: B023
                fired.append(faulty.fired)  # noqa: B023
            world.store = world.truth

        days(world, publishing)
        if not fired:
            break
        others += 1
        settled(world, destination)
    assert others >= DAYS // STRIDE, "a version for each publication at least"
