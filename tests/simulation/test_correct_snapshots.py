"""Full snapshots that are corrected: an interval is run again, and what was said until the next one is what changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simulation import correcting
from simulation.correcting import objects, sound
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.relanded import relanded
from support.world import World, certify, collection, interval
from tests.support.reading import as_of, changes
from tidemark.errors import FileRefused, InvalidUsage
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.seal import seal
from tidemark.model.change import Redefined
from tidemark.model.collection import Envelope, Gate
from tidemark.model.retention import Retention, Step
from tidemark.model.times import Run
from tidemark.storage.sidecars import ledger

pytestmark = pytest.mark.simulation
Multiplicities = dict[str, int]


def made(folder: Path, *, reprocess_for: int = 1000, **changes: Any) -> World:
    return World(folder, collection(Envelope.SNAPSHOT, reprocess_for=reprocess_for, **changes))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def land(world: World, day: int, says: str | None, name: str = "a") -> None:
    """A day's file says some rows, one a letter; None: it is gone."""
    if says is None:
        (world.landing / str(10 * day) / f"{name}.jsonl").unlink()
    else:
        world.land(day, name, [{"k": 1, "v": letter} for letter in says])


def run(world: World, day: int, says: str | None = None, **asked: Any) -> dict[str, Any]:
    if says is not None:
        land(world, day, says)
    return world.run(lambda job: ingest(job, interval(day), landing_root=str(world.landing), **asked))


def sealed(world: World, day: int = 0) -> None:
    world.run(lambda job: seal(job, interval(day)))
    certify(world.job(), Gate.FRONTIER)


def drained(world: World, day: int = 0) -> None:
    correcting.sealed(world, day)


def days(world: World, *said: str) -> World:
    """Days one after the other, each with a file that says some rows, to the end."""
    for number, says in enumerate(said):
        run(world, number, says)
        drained(world, number)
    return world


def rows_at(world: World, event_time: int | None = None, time: int | None = None) -> Multiplicities:
    known = world.state.seal - 1 if time is None else time
    table = as_of(world.truth, world.state, time=known, event_time=event_time)
    return dict(zip(table["v"].to_pylist(), table["_multiplicity"].to_pylist(), strict=True))


def changes_after(world: World, after: int) -> list[tuple[str, int, int]]:
    """What was learned after a time: value, event time and multiplicity."""
    table = changes(world.truth, world.state, after=after)
    names = ("v", "_event_time", "diff")
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("step", [drained, sealed], ids=["drained", "read"])
def test_one_in_the_middle_is_corrected_until_the_next(world: World, step: Any) -> None:
    """Full snapshots at 9, 19 and 29 hold x = 1, 1, 0, and that of 19 is corrected to 0: exactly -x@19, +x@29."""
    days(world, "x", "x", "")
    done = run(world, 1, "")
    assert (done["corrected"], done["retracted"], done["added"], done["event_times"]) == (1, 1, 0, [19, 19])
    step(world)
    assert changes_after(world, after=29) == [("x", 19, -1), ("x", 29, 1)]
    assert [rows_at(world, at) for at in (8, 9, 18, 19, 28, 29)] == [{}, {"x": 1}, {"x": 1}, {}, {}, {}]
    assert [rows_at(world, at, time=29) for at in (9, 19, 29)] == [{"x": 1}, {"x": 1}, {}]
    assert run(world, 1)["outcome"] == "nothing to do"
    assert sound(world)


def test_the_next_one_that_is_drained_in_between_is_counted_as_it_was_announced(world: World) -> None:
    """The correction is committed while the next one is sealed and not drained, and comes into the trace after it."""
    days(world, "x", "x")
    run(world, 2, "xz")
    sealed(world, 2)
    run(world, 1, "")
    world.run(lambda job: drain(job, interval(2)))
    assert rows_at(world, 29) == {"x": 1, "z": 1}
    drained(world)
    assert changes_after(world, after=29) == [("x", 19, -1), ("x", 29, 1)]
    assert [rows_at(world, at) for at in (9, 19, 29)] == [{"x": 1}, {}, {"x": 1, "z": 1}]
    assert sound(world)


@pytest.mark.parametrize("step", [drained, sealed], ids=["drained", "read"])
def test_one_that_is_withdrawn_says_nothing_and_the_one_before_holds(world: World, step: Any) -> None:
    days(world, "x", "xy", "z")
    land(world, 1, None)
    assert run(world, 1)["outcome"] == "nothing to do"
    with pytest.raises(InvalidUsage, match=r"nothing is left at .*, and 1 files of .* are ingested"):
        run(world, 1, removed=True)
    before = objects(world)
    done = run(world, 1, removed=True, yes=True)
    assert (done["corrected"], done["retracted"], done["added"], done["event_times"]) == (1, 2, 0, [19, 19])
    assert (done["withdrawn"], done["rows"]) == (True, 0)
    assert not {key for key in objects(world) - before if key.startswith("data/")}, "nothing is written for it"
    step(world)
    assert changes_after(world, after=29) == [("y", 19, -1), ("y", 29, 1)]
    assert [rows_at(world, at) for at in (9, 19, 29)] == [{"x": 1}, {"x": 1}, {"z": 1}]
    assert run(world, 1, removed=True, yes=True)["outcome"] == "nothing to do"
    assert sound(world)


def test_a_withdrawal_the_ledger_knows_no_more_is_not_put_back_nor_taken_out(world: World) -> None:
    """Found by the machine: its entries went with a merge of the ledger's runs, and it has no batch to tell of them."""
    days(world, "x", "y", "z")
    land(world, 1, None)
    first = run(world, 1, removed=True, yes=True)["batch"]
    world.run(lambda job: quarantine(job, first))
    second = run(world, 1, removed=True, yes=True)["batch"]
    run(world, 1, "yy")
    for number in range(10, 10 + ledger.FAN_IN):
        run(world, number, "q")
    world.run(lambda job: compact(job, interval(0)))
    with pytest.raises(InvalidUsage, match="taken by others since, and the ledger no longer knows it"):
        world.run(lambda job: release(job, first))
    with pytest.raises(InvalidUsage, match="taken by others since; quarantine those batches first"):
        world.run(lambda job: quarantine(job, second))
    drained(world)
    assert [rows_at(world, at) for at in (9, 19, 29)] == [{"x": 1}, {"y": 2}, {"z": 1}]


@pytest.mark.parametrize("says", ["", "xw"])
@pytest.mark.parametrize("step", [drained, sealed], ids=["drained", "read"])
def test_one_that_comes_afterwards_says_what_there_was_until_the_next(world: World, says: str, step: Any) -> None:
    """Its files came after its interval was run without any."""
    run(world, 0, "x")
    run(world, 1)
    run(world, 2, "z")
    drained(world, 2)
    done = run(world, 1, says)
    assert done["rows"] == len(says)
    step(world)
    expected = [("x", 19, -1), ("x", 29, 1)] if not says else [("w", 19, 1), ("w", 29, -1)]
    assert changes_after(world, after=29) == expected
    assert [rows_at(world, at) for at in (9, 19, 29)] == [{"x": 1}, dict(Counter(says)), {"z": 1}]
    assert (rows_at(world, 19, time=29), world.state.complete_below) == ({"x": 1}, 30)
    drained(world)
    run(world, 1, "q")
    drained(world)
    assert [rows_at(world, at) for at in (9, 19, 29)] == [{"x": 1}, {"q": 1}, {"z": 1}]
    assert sound(world)


def test_a_file_without_rows_that_joined_is_taken_out_with_what_it_joined(world: World) -> None:
    """Found by the machine: it has no batch of its own, and was counted when nothing was announced any more."""
    first = run(world, 0, "x")["batch"]
    land(world, 0, "", "b")
    assert run(world, 0)["batch"] is None
    world.run(lambda job: quarantine(job, first))
    land(world, 0, None, "a")
    assert run(world, 0)["files"] == 1
    drained(world)
    assert (rows_at(world), list(world.state.told)) == ({}, [9])
    assert sound(world)


def test_nothing_changed_writes_nothing_and_other_bytes_are_an_entry(world: World) -> None:
    days(world, "xy", "y")
    before, version = objects(world), world.head.version
    assert run(world, 0)["outcome"] == "nothing to do"
    assert (objects(world), world.head.version) == (before, version)
    data = {key for key in before if key.startswith("data/")}
    done = run(world, 0, "yx")
    assert (done["corrected"], done["added"], done["retracted"], done["batch"]) == (1, 0, 0, None)
    assert {key for key in objects(world) if key.startswith("data/")} == data
    assert (world.state.learned_below, world.state.snapshots) == (20, ())
    assert run(world, 0)["outcome"] == "nothing to do"


def test_a_correction_that_cannot_be_decoded_leaves_what_was_said(world: World) -> None:
    days(world, "x", "y")
    world.land(0, "a", [{"k": "no number", "v": "q"}])
    with pytest.raises(FileRefused, match="what it said before stays; mend the file and run again"):
        run(world, 0)
    run(world, 0, "z")
    drained(world)
    assert [rows_at(world, at) for at in (9, 19)] == [{"z": 1}, {"y": 1}]


def test_what_is_beyond_reprocess_for_is_refused_with_the_instant_it_begins_at(tmp_path: Path) -> None:
    world = days(made(tmp_path, reprocess_for=20), "x", "y", "z", "w")
    beyond = "reprocess_for 20us lets intervals be corrected that begin at .*20Z or later"
    land(world, 0, "q")
    with pytest.raises(InvalidUsage, match=rf"changed after it was ingested: .*{beyond}.*wait for the next full snap"):
        run(world, 0)
    land(world, 0, "x")
    land(world, 0, "q", "b")
    with pytest.raises(InvalidUsage, match=rf"which the seal .*40Z has passed; {beyond}; wait for the next full snap"):
        run(world, 0)
    land(world, 2, "zz")
    run(world, 2)
    drained(world)
    assert [rows_at(world, at) for at in (9, 19, 29, 39)] == [{"x": 1}, {"y": 1}, {"z": 2}, {"w": 1}]


def test_of_full_snapshots_at_regular_times_one_run_is_kept_and_no_more_than_may_be_corrected(tmp_path: Path) -> None:
    world = days(made(tmp_path, reprocess_for=50), *"abcdefghij")
    assert world.state.told.runs == (Run(59, 10, 5),)
    run(world, 11, "l")
    run(world, 10)
    drained(world, 11)
    assert list(world.state.told) == [79, 89, 99, 119]
    assert days(made(tmp_path / "without", reprocess_for=0), *"abc").state.told.runs == ()


def test_retention_stays_below_what_may_be_corrected(tmp_path: Path) -> None:
    ladder = Retention("ladder", steps=(Step(None, 20), Step(10, None)))
    world = days(made(tmp_path, reprocess_for=20, retention=ladder, live_batches=2), *"abcd")
    world.run(lambda job: compact(job, interval(3)))
    assert world.state.since < world.state.correctable_from == 20
    run(world, 2, "cx")
    run(world, 3, "")
    world.run(lambda job: compact(job, interval(3)))
    drained(world)
    world.run(lambda job: compact(job, interval(3)))
    assert [rows_at(world, at) for at in (19, 29, 39)] == [{"b": 1}, {"c": 1, "x": 1}, {}]
    assert sound(world)


def test_reprocess_for_is_lowered_while_a_correction_waits(world: World) -> None:
    """A drain comes before the correction's, and would forget the next one, which ends what it says."""
    days(world, "x", "y")
    run(world, 2, "z")
    sealed(world, 2)
    run(world, 0, "q")
    log = world.log()
    log.commit(log.load(), Redefined(relanded(world.collection, reprocess_for=0)))
    world.forget()
    world.run(lambda job: drain(job, interval(2)))
    world.run(lambda job: compact(job, interval(2)))
    run(world, 3, "w")
    drained(world, 3)
    assert [rows_at(world, at) for at in (9, 19, 29, 39)] == [{"q": 1}, {"y": 1}, {"z": 1}, {"w": 1}]
    assert world.state.told.runs == ()
    land(world, 1, "yy")
    with pytest.raises(InvalidUsage, match="changed after it was ingested"):
        run(world, 1)


def dies_at(folder: Path, at: int, lost: bool) -> bool:
    """Whether a call of that number came, and failed."""
    world = made(folder)
    run(world, 0, "x")
    run(world, 1, "xy")
    run(world, 2)
    run(world, 3, "z")
    drained(world, 3)
    land(world, 0, "xq")
    land(world, 1, None)
    land(world, 2, "w")
    world.store = store = FaultyStore(world.truth, Fault(at, lost, True))
    for day in (0, 1, 2):
        run(world, day, removed=True, yes=True)
    world.store = world.truth
    drained(world)
    expected = [dict(Counter(says)) for says in ("xq", "xq", "w", "z")]
    assert [rows_at(world, when) for when in (9, 19, 29, 39)] == expected
    assert sound(world)
    return store.fired is not None


@pytest.mark.parametrize("lost", [True, False], ids=["reply lost", "not done"])
def test_a_run_that_dies_anywhere_is_run_again(tmp_path: Path, lost: bool) -> None:
    """The nth call to the store fails, of a run that corrects, one that withdraws and one that tells afterwards."""
    number = 1
    while dies_at(tmp_path / str(number), number, lost):
        number += budget(ci=3, deep=1)
    assert number > (7 if lost else 30), "the runs do so much"
