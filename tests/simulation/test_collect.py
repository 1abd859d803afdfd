"""Collecting: what goes, when, and that nothing goes that a version names, whoever dies or stands still meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest

from simulation.script import answers, row, steps
from simulation.script import world as world_of_days
from support.budget import budget
from support.faulty import Clock, Died, Fault, FaultyStore, InterruptedStore, WrappedStore
from support.world import World, collection, interval
from tidemark.errors import CommitUnknown, Contention, Corruption, InvalidUsage
from tidemark.jobs.job import Job
from tidemark.jobs.steps.collect import AT_ONCE, GRACES, SECOND, Report, collect
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.arrangement import Fence
from tidemark.model.batch import ObjectRef
from tidemark.model.change import Attempted
from tidemark.model.collection import Envelope
from tidemark.plan.collect import Why
from tidemark.storage.log import plans
from tidemark.storage.log.log import CHECKPOINT_EVERY, Committed
from tidemark.storage.log.references import References
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import AlreadyExists, Indeterminate, Unavailable
from tidemark.storage.verify.collection import verify_history, verify_objects

pytestmark = pytest.mark.simulation
HOUR = 3600.0
KEEP = 2 * 3600 * SECOND
ORPHAN = "0" * 31 + "f"
READ = f"reads/{1:020}-{ORPHAN}.json"


def collected(world: World, *, hours: float = 0, keep: int = KEEP, **more: Any) -> Report:
    """A run of the collector, some hours later."""
    world.clock.now += hours * HOUR
    report = world.run(lambda job: collect(job, keep=keep, **more))
    sound(world)
    return report


def sound(world: World) -> None:
    """Every version that is retained loads, and what it names is there."""
    log = world.log()
    assert list(verify_history(log)) == []
    oldest = log.oldest_version()
    for version in range(oldest, log.newest_version() + 1):
        assert list(verify_objects(world.truth, log.load(version).state)) == [], f"version {version}"


def keys(world: World, prefix: str = "") -> set[str]:
    return {info.key for info in world.truth.list(prefix)}


def named(world: World) -> set[str]:
    """What the retained versions name."""
    log, found = world.log(), References(world.truth)
    oldest = log.oldest_version()
    found.add(log.versions.between(oldest, log.newest_version()))
    return found.since(oldest)


@pytest.fixture(scope="module")
def four_days(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("days")
    made = world_of_days(folder, Envelope.APPEND, MemoryStore())
    for step in steps(folder):
        made.run(step)
    return made


@pytest.fixture
def world(tmp_path: Path, four_days: World) -> World:
    """After four days; nothing was collected yet."""
    store = MemoryStore()
    store.objects, store.modified = dict(four_days.truth.objects), dict(four_days.truth.modified)
    clock = Clock(four_days.clock.now)
    return World(tmp_path, four_days.collection, store, clock=clock, ids=count(10_000))


def idle(world: World) -> None:
    """Commits that name no object, for two windows of versions."""
    log = world.log()
    head = log.load()
    for _ in range(2 * CHECKPOINT_EVERY):
        committed = log.commit(head, Attempted(Fence("drain", interval(99), world.new_id())))
        assert isinstance(committed, Committed)
        head = committed.head


def test_what_no_version_names_goes_after_its_grace_and_all_else_stays(world: World):
    before = answers(world)
    idle(world)
    unnamed = keys(world, "data/") | keys(world, "ledger/")
    collected(world)
    report = collected(world, hours=3)
    assert report.summary()["outcome"] == "planned"
    assert {entry.why for entry in report.listed.entries} == {Why.VERSION, Why.UNNAMED}
    # The versions after an hour; the objects only a day after they were listed.
    report = collected(world, hours=1)
    assert {entry.why for entry in report.removed} == {Why.VERSION}
    assert keys(world, "data/") | keys(world, "ledger/") == unnamed
    report = collected(world, hours=22.9)
    assert report.removed == ()
    report = collected(world, hours=0.2)
    assert {entry.why for entry in report.removed} == {Why.UNNAMED}
    assert report.oldest_version > 16
    assert keys(world, "data/") | keys(world, "ledger/") == named(world) < unnamed
    assert answers(world) == before
    with pytest.raises(InvalidUsage, match="version 3 was collected"):
        world.log().load(3)


def test_once_all_is_collected_no_run_writes_anything(world: World):
    """After all is collected no run writes anything more: neither a version nor a plan."""
    for _ in range(6):
        collected(world, hours=25)
    before = dict(world.truth.objects)
    report = collected(world, hours=1000)
    assert report.summary()["outcome"] == "nothing to do"
    assert report.plan is None
    assert world.truth.objects == before


def test_a_plan_can_be_read_and_the_newest_ten_stay(world: World):
    idle(world)
    for _ in range(14):
        (world.truth.create(f"data/{ORPHAN}/{world.new_id()}.parquet", b"1"))
        report = collected(world, hours=1)
    assert keys(world, "collect/") == {plans.key_of(number) for number in range(5, 15)}
    plan = plans.load(world.truth, str(report.plan))
    assert plan == report.listed
    listed = {entry.since: entry for entry in plan.objects if ORPHAN in entry.key}
    assert sorted(listed) == list(range(1, 15)), "each since the plan that first listed it"
    assert dict(plan.appeared)[14 - 1] == round((world.clock.now - HOUR) * SECOND)


def test_what_a_killed_attempt_wrote_goes_and_what_a_running_one_writes_stays(world: World, tmp_path: Path):
    """The orphan is a day old when it goes; the attempt commits eleven hours after it planned."""
    world.truth.create(f"data/{ORPHAN}/{ORPHAN}.parquet", b"1")
    world.truth.create(f"ledger/{ORPHAN}.json", b"1")
    collected(world, hours=1)
    world.land(4, "a", [row(9, "new", 41)])
    log = world.log(world.truth)
    base = log.load()
    stopped = []

    class Slow(type(log)):  # type: ignore[misc]
        def commit(self, base, change):
            if change.kind == "ingested" and not stopped:
                stopped.append(change)
                for _ in range(10):
                    collected(world, hours=1.1)
            return super().commit(base, change)

    slow = Slow(world.truth, world.new_id, wall=lambda: 0.0, monotonic=world.clock, pause=world.clock.pause)
    result = world.run(lambda job: ingest(job, interval(4), landing_root=str(tmp_path)), log=slow, attempts=1)
    assert result["outcome"] == "applied"
    collected(world, hours=14)
    assert f"data/{ORPHAN}/{ORPHAN}.parquet" not in keys(world)
    assert f"ledger/{ORPHAN}.json" not in keys(world)
    collected(world, hours=50)
    assert base.version < world.head.version


@pytest.mark.parametrize(("hours", "commits"), [(13, True), (30, True), (100, False)])
def test_an_attempt_that_stood_still_before_its_create_does_not_name_what_was_removed(
    world: World, tmp_path: Path, hours: float, commits: bool
):
    """On a collection where nobody else commits, only the collector does, before it removes. What an attempt wrote is
    listed by the first collector to come, here after a third of the time, and removed a day later."""
    world.land(4, "a", [row(9, "new", 41)])

    def meanwhile() -> None:
        for _ in range(3):
            collected(world, hours=hours / 3)
        collected(world, hours=0)

    class Frozen(InterruptedStore):
        def _call(self, name, key, action, *, writes):
            if not key.startswith("versions/") or name != "create" or b'"ingested"' not in self.bytes:
                return action()
            return super()._call(name, key, action, writes=writes)

        def create(self, key, data):
            self.bytes = data
            super().create(key, data)

    world.store = frozen = Frozen(world.truth, "create", meanwhile, after=False)
    frozen.bytes = b""
    stale = world.job()
    job = Job(frozen, world.log(frozen), stale.runner, "frozen", world.new_id)
    if commits:
        assert ingest(job, interval(4), landing_root=str(tmp_path))["outcome"] == "applied"
    else:
        with pytest.raises(Contention, match="planned more than 12 h ago"):
            ingest(job, interval(4), landing_root=str(tmp_path))
    world.store = world.truth
    world.forget()
    sound(world)
    world.run(lambda job: ingest(job, interval(4), landing_root=str(tmp_path)))
    assert [batch.rows for batch in world.state.pending] == [1]
    sound(world)


@pytest.mark.parametrize(("after", "dies"), [*product((False, True), repeat=2)][:: budget(ci=3, deep=1)], ids=str)
def test_any_single_fault_of_a_collector_harms_nothing(world: World, after: bool, dies: bool):
    """Every call of every run fails once, others commit, and the next runs remove what is left."""
    before = answers(world)
    idle(world)
    collected(world, hours=3)
    world.clock.now += 24 * HOUR
    start, then = dict(world.truth.objects), world.clock.now
    expected: set[str] | None = None
    fired = set()
    for nth in count(1):
        world.truth.objects, world.clock.now = dict(start), then
        world.forget()
        world.store = faulty = FaultyStore(world.truth, Fault(nth, after, dies))
        with suppress(Died, Unavailable, Indeterminate, AlreadyExists, CommitUnknown):
            world.run(lambda job: collect(job, keep=KEEP), attempts=1)
        fired.add((faulty.fired or "").split("/")[0])
        world.store = world.truth
        if nth % 7 == 0 or faulty.fired is None:
            sound(world)
        collected_quietly(world)
        world.forget()
        found = keys(world, "data/") | keys(world, "ledger/")
        expected = expected or found
        assert found == expected == named(world), f"call {nth}: {faulty.fired}"
        if faulty.fired is None:
            break
    assert {"create collect", "delete versions", "create versions"} <= fired
    assert {"delete data", "delete ledger"} & fired
    assert answers(world) == before


def collected_quietly(world: World) -> None:
    """Runs of the collector until all is gone; checked by the caller."""
    for _ in range(2):
        world.clock.now += 25 * HOUR
        world.run(lambda job: collect(job, keep=KEEP))


@pytest.mark.parametrize("name", ["list", "read", "create", "stat", "delete"])
@pytest.mark.parametrize("after", budget(ci=[True], deep=[False, True]))
def test_two_collectors_at_once_are_harmless(world: World, name: str, after: bool):
    """One stands still for two days, at its first call of a kind, while another goes to the end."""
    before = answers(world)
    idle(world)
    collected(world, hours=3)
    world.clock.now += 24 * HOUR

    def other() -> None:
        for _ in range(3):
            world.clock.now += 24 * HOUR
            world.run(lambda job: collect(job, keep=KEEP))

    world.store = InterruptedStore(world.truth, name, other, after=after)
    slow = world.job()
    fast, world.store = world.store, world.truth
    with suppress(Contention):
        report = collect(slow, keep=KEEP)
        if report.plan in keys(world):
            assert plans.load(world.truth, str(report.plan)) == report.listed, "each has a plan of its own"
    assert fast.interrupted
    world.forget()
    sound(world)
    collected_quietly(world)
    assert keys(world, "data/") | keys(world, "ledger/") == named(world)
    assert answers(world) == before


def test_what_the_store_will_not_delete_stays_in_the_plan(world: World):
    """Versions stop at the first that stays, so that none below the low-water mark is missing in between."""
    idle(world)
    collected(world, hours=3)
    world.clock.now += 30 * HOUR

    class Stubborn(FaultyStore):
        refused = 0

        def delete(self, key):
            if self.refused < 2 or key.startswith("ledger/"):
                self.refused += 1
                raise (Indeterminate if self.refused % 2 else Unavailable)(key)
            super().delete(key)

    world.store = Stubborn(world.truth)
    world.store.refused = 1
    report = world.run(lambda job: collect(job, keep=KEEP))
    assert report.failed > 0
    assert not any(entry.why is Why.VERSION for entry in report.removed)
    assert not any(entry.key.startswith("ledger/") for entry in report.removed)
    assert 1 in {int(key[-17:-5]) for key in keys(world, "versions/")}
    world.store = world.truth
    sound(world)
    report = collected(world)
    assert any(entry.why is Why.VERSION for entry in report.removed), "without another grace"


def test_versions_go_oldest_first(world: World):
    """At any moment what is left of them has no gap: a writer that sees its version there and not the next one knows
    that it made a stray."""
    idle(world)
    collected(world, hours=3)
    world.clock.now += 2 * HOUR
    left = []

    class Watched(WrappedStore):
        def delete(self, key):
            super().delete(key)
            if key.startswith("versions/"):
                left.append(sorted(int(name[-17:-5]) for name in keys(world, "versions/")))

    world.store = Watched(world.truth)
    world.run(lambda job: collect(job, keep=KEEP))
    assert len(left) > 16
    assert all(numbers == list(range(numbers[0], numbers[-1] + 1)) for numbers in left)


@pytest.mark.usefixtures("nothing_is_small")
def test_corruption_stops_the_collector(world: World):
    world.land(4, "more", [{"k": 1, "v": "a", "t": 45, "e": 45}])
    world.run(lambda job: ingest(job, interval(4), landing_root=str(world.landing)))
    idle(world)
    collected(world, hours=3)
    table = next(batch.parts.key for batch in world.state.unsealed if isinstance(batch.parts, ObjectRef))
    world.truth.objects[table] = b"[]"
    before = dict(world.truth.objects)
    world.clock.now += 30 * HOUR
    with pytest.raises(Corruption, match=table):
        collect(world.job(), keep=KEEP)
    assert world.truth.objects == before


def test_a_plan_that_is_not_what_was_written_stops_the_collector(world: World):
    """A flipped bit in it could make something due before its time."""
    world.truth.create(f"data/{ORPHAN}/{ORPHAN}.parquet", b"1")
    key = str(collected(world).plan)
    world.truth.objects[key] = world.truth.objects[key].replace(b'"since":1', b'"since":0')
    world.clock.now += 30 * HOUR
    with pytest.raises(Corruption, match=key):
        collect(world.job(), keep=KEEP)
    assert f"data/{ORPHAN}/{ORPHAN}.parquet" in keys(world)


def test_versions_are_kept_at_least_for_their_grace(world: World):
    with pytest.raises(InvalidUsage, match="versions kept for 60 s would go before their grace of 3600 s"):
        collect(world.job(), keep=60 * SECOND)
    assert GRACES.versions == 3600 * SECOND
    assert GRACES.objects == 24 * 3600 * SECOND


def test_records_of_reads_go_after_thirty_days_and_unknown_folders_stay(world: World):
    for key in (READ, "somebody/else.txt", "readme"):
        world.truth.create(key, b"1")
    for hours in (25, 25, 25):
        collected(world, hours=hours)
    assert READ in keys(world)
    collected(world, hours=24 * 30)
    collected(world, hours=25)
    assert keys(world) >= {"somebody/else.txt", "readme"}
    assert READ not in keys(world)


def test_what_others_put_into_the_folder_stays_and_is_named(world: World):
    theirs = {f"collect/note{number:03}.txt" for number in range(20)}
    theirs |= {"versions/notes.json", "versions/00000000/.DS_Store", "versions/00000000/x.json", "versions/zzz/a.json"}
    theirs |= {"data/notes.txt", f"data/{ORPHAN}/notes.parquet", "ledger/copy.json", "reads/1.json"}
    for key in theirs:
        world.truth.create(key, b"1")
    before = answers(world)
    notes = list[str]()
    world.clock.now += 60 * 24 * HOUR
    report = world.run(lambda job: collect(replace(job, note=notes.append), keep=0, graces=AT_ONCE))
    assert report.removed
    assert keys(world) >= theirs
    assert answers(world) == before
    assert notes == [
        (
            "4 objects in the collection's folder are not named as Tidemark's are, and stay: "
            f"data/{ORPHAN}/notes.parquet, data/notes.txt, ledger/copy.json … and 1 more"
        )
    ]


def test_files_left_unfinished_by_killed_writers_go(tmp_path: Path):
    from tidemark.storage.stores.local import TEMPORARY, LocalStore

    world = World(tmp_path / "landing", collection(), LocalStore(str(tmp_path / "root")))
    left = tmp_path / "root" / "data" / "b" / f"{TEMPORARY}{'a' * 24}"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    report = collect(world.job())
    assert [(entry.why, entry.bytes) for entry in report.listed.entries] == [(Why.UNFINISHED, 4)]
    assert left.exists()
    collect(world.job(), keep=0, graces=AT_ONCE)
    assert not left.exists()


def test_every_reference_a_table_or_an_entry_can_hold_is_known_to_the_collector():
    """Whoever adds one teaches `storage/log/references.py` and `ledger.named_objects`, or it is collected."""
    from dataclasses import fields

    from tidemark.model.batch import Part
    from tidemark.model.ledger import Contribution, Correctable, LedgerEntry

    def references(kind: type) -> Iterator[str]:
        holders = ("ObjectRef", "Contribution", "Correctable", "LedgerEntry")
        return (one.name for one in fields(kind) if any(name in str(one.type) for name in holders))

    assert list(references(Part)) == ["file"]
    assert list(references(Contribution)) == ["parts"]
    assert list(references(Correctable)) == ["contributed", "replaced"]
    assert list(references(LedgerEntry)) == ["late", "correctable"]
