"""A newer Tidemark has written to a collection: this one says so, answers nothing, commits nothing and removes nothing,
at whatever moment it finds out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.faulty import WrappedStore
from support.world import DAY, World, certify, collection, interval
from tests.support.reading import as_of
from tidemark.errors import UpgradeRequired
from tidemark.jobs.job import Job
from tidemark.jobs.queries.history import history
from tidemark.jobs.queries.late import late_rows
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.compact import compact
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.gate import gate
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.init import declare_collection
from tidemark.jobs.steps.quarantine import quarantine, release
from tidemark.jobs.steps.replay import replay
from tidemark.jobs.steps.retain import hold
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Gate
from tidemark.storage.documents.codec import reference, with_checksum
from tidemark.storage.documents.upgrade import FORMAT
from tidemark.storage.log import plans
from tidemark.storage.log.versions import key_of
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import Missing, ObjectStore

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("nothing_is_small")]
NEXT = FORMAT + 1
THEIRS = f"data/{'e' * 32}/{'f' * 32}.parquet"
"""Named by a field that is not known."""
CHECKSUM = re.compile(rb',"sha256":"[0-9a-f]{64}"\}$')
KEPT = 3600 * 1_000_000
T = TypeVar("T")
Call = Callable[[World, Job], Any]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Four days, the last of them unsealed, after more versions than one checkpoint."""
    made = World(tmp_path_factory.mktemp("landing"), collection(Envelope.UPSERT, live_batches=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_table, "SMALL", 0)
        four_days(made)
    assert made.head.version > 16
    return made


def four_days(made: World) -> None:
    for day in range(4):
        rows = [{"k": k, "v": f"v{day}", "t": day * DAY + k, "e": day * DAY, "o": 0, "gone": False} for k in range(4)]
        made.land(day, "a", rows)
        made.run(lambda job, day=day: ingest(job, interval(day), landing_root=str(made.landing)))
        if day < 3:
            made.run(lambda job, day=day: seal(job, interval(day)))
            made.run(lambda job, day=day: drain(job, interval(day)))


@pytest.fixture
def world(made_once: World) -> World:
    store = MemoryStore()
    store.objects, store.modified, store.clock = objects(made_once), dict(made_once.truth.modified), made_once.wall
    return replace(made_once, truth=store, store=store, clock=replace(made_once.clock))


def objects(world: World) -> dict[str, bytes]:
    assert isinstance(world.truth, MemoryStore)
    return dict(world.truth.objects)


def edited(data: bytes, edit: Callable[[dict[str, Any]], object], number: int) -> bytes:
    """As another Tidemark would have written it."""
    whole = json.loads(data)
    checked = whole.pop("sha256", None) is not None
    edit(whole)
    made = json.dumps({**whole, "format": number}, separators=(",", ":")).encode()
    return with_checksum(made) if checked else made


def rewritten(world: World, key: str, number: int, edit: Callable[[dict[str, Any]], object]) -> None:
    assert isinstance(world.truth, MemoryStore)
    world.truth.objects[key] = edited(world.truth.objects[key], edit, number)


def commits(world: World, number: int) -> None:
    """A newer Tidemark seals, and names an object in a way this one has never heard of."""
    newest = world.truth.read(key_of(world.log().newest_version()))

    def as_theirs(version: dict[str, Any]) -> None:
        version["version"] += 1
        version["previous"] = reference("", newest).sha256
        version["checkpoint"] = None
        version["id"] = "theirs"
        version["change"] = {"kind": "sealed", "upper": 30, "wanted": 30, "layers": [{"key": THEIRS}]}

    world.truth.create(key_of(world.log().newest_version() + 1), edited(newest, as_theirs, number))
    try:
        world.truth.read(THEIRS)
    except Missing:
        world.truth.create(THEIRS, b"precious")


def a_version(world: World) -> None:
    commits(world, NEXT)


def an_unknown_field(world: World) -> None:
    commits(world, FORMAT)


def an_unknown_field_in_a_checkpoint(world: World) -> None:
    """In the middle of the history: what is read is the newest state, from the checkpoint on."""
    rewritten(world, key_of(16), FORMAT, lambda v: v["checkpoint"].update(layers=[{"key": THEIRS}]))
    world.truth.create(THEIRS, b"precious")


def a_table_of_parts(world: World) -> None:
    _and_its_version(world, r"data/[^/]+/parts-", lambda table: table.update(layers=[{"key": THEIRS}]))


def an_object_of_the_ledger(world: World) -> None:
    _and_its_version(world, r"ledger/", lambda block: block.update(layers=[{"key": THEIRS}]))


def _and_its_version(world: World, pattern: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """A sidecar of a newer format that versions of this one's format name."""
    stored = objects(world)
    key = max(key for key in stored if re.match(pattern, key))
    old = reference(key, stored[key])
    rewritten(world, key, NEXT, edit)
    new = reference(key, world.truth.read(key))
    this, that = (f'"bytes":{each.bytes},"sha256":"{each.sha256}"' for each in (old, new))
    before = ""
    for number in range(1, world.log().newest_version() + 1):
        text = CHECKSUM.sub(b"}", stored[key_of(number)]).decode().replace(this, that)
        data = with_checksum(re.sub('"previous":"[0-9a-f]*"', f'"previous":"{before}"', text).encode())
        assert isinstance(world.truth, MemoryStore)
        world.truth.objects[key_of(number)] = data
        before = reference("", data).sha256
    world.truth.create(THEIRS, b"precious")


CALLS: dict[str, Call] = {
    "load": lambda world, job: job.log.load(),
    "replay of versions": lambda world, job: job.log.replay(),
    "history": lambda world, job: list(history(job.log, limit=100)),
    "init": lambda world, job: declare_collection(job, world.collection),
    "ingest": lambda world, job: ingest(job, interval(3), landing_root=str(world.landing)),
    "seal": lambda world, job: seal(job, interval(3)),
    "drain": lambda world, job: drain(job, interval(3)),
    "compact": lambda world, job: compact(job, interval(3)),
    "gate": lambda world, job: gate(job, Gate.FRONTIER),
    "hold": lambda world, job: hold(job, "audit", since=1),
    "quarantine": lambda world, job: quarantine(job, "id"),
    "release": lambda world, job: release(job, "id"),
    "replay": lambda world, job: replay(job),
    "verify": lambda world, job: verify(job),
    "late": lambda world, job: late_rows(job.store, job.log.load().state, limit=9),
    "read": lambda world, job: as_of(job.store, job.log.load().state, time=25),
    "collect": lambda world, job: collect(job, keep=0, graces=AT_ONCE),
}


@pytest.mark.parametrize("wrote", [a_version, an_unknown_field])
@pytest.mark.parametrize("call", CALLS)
def test_every_step_and_read_asks_for_an_upgrade_and_changes_nothing(world: World, wrote: Any, call: str):
    wrote(world)
    before = objects(world)
    newest = key_of(world.log().newest_version())
    with pytest.raises(UpgradeRequired, match=newest) as raised:
        CALLS[call](world, world.job())
    assert "upgrade Tidemark" in str(raised.value)
    assert objects(world) == before


@pytest.mark.parametrize("wrote", [an_unknown_field_in_a_checkpoint, a_table_of_parts, an_object_of_the_ledger])
@pytest.mark.parametrize("call", ["verify", "collect"])
def test_what_cannot_be_read_is_neither_sound_nor_swept(world: World, wrote: Any, call: str):
    wrote(world)
    before = objects(world)
    with pytest.raises(UpgradeRequired, match="upgrade Tidemark"):
        CALLS[call](world, world.job())
    assert objects(world) == before


def test_a_plan_of_a_newer_collector_stops_this_one(world: World):
    world.truth.create(THEIRS, b"precious")
    collect(world.job(), keep=KEPT)
    key = plans.key_of(1)
    rewritten(world, key, NEXT, lambda plan: plan.update(keeps=[THEIRS]))
    world.clock.now += 40 * 86_400.0
    before = objects(world)
    with pytest.raises(UpgradeRequired, match=key):
        collect(world.job(), keep=0, graces=AT_ONCE)
    assert objects(world) == before


class Meanwhile(WrappedStore):
    """A store in which something happens just before the nth write."""

    def __init__(self, inner: ObjectStore, writes: int, happens: Callable[[], None]) -> None:
        super().__init__(inner)
        self.left, self.happens = writes, happens

    def _call(self, name: str, key: str, action: Callable[[], T], *, writes: bool) -> T:
        if writes:
            self.left -= 1
            if self.left == -1:
                self.happens()
        return action()


OVERTAKEN: dict[str, tuple[int, Call]] = {
    "ingest": (4, lambda world, job: ingest(job, interval(4), landing_root=str(world.landing))),
    "seal": (1, lambda world, job: seal(job, interval(5))),
    "drain": (3, CALLS["drain"]),
    "compact": (3, CALLS["compact"]),
    "hold": (1, CALLS["hold"]),
    "gate": (1, lambda world, job: certify(job, Gate.TRACE)),
    "collect": (2, lambda world, job: collect(job, keep=KEPT)),
}
"""Steps, the least number of writes by which they must find out, and how they are called."""


@pytest.mark.parametrize("step", OVERTAKEN)
def test_a_step_that_a_newer_tidemark_overtakes_stops_at_its_next_commit(world: World, tmp_path: Path, step: str):
    """At whichever write it is: no version of ours follows theirs, and what they name stays."""
    certify(world.job(), Gate.UNSEALED)
    world.run(lambda job: seal(job, interval(3)))
    certify(world.job(), Gate.FRONTIER)
    if step == "compact":
        certify(world.job(), Gate.TRACE)
    if step == "collect":
        world.truth.create(THEIRS, b"precious")  # an attempt of theirs has written it, and not committed yet
        collect(world.job(), keep=KEPT)
        world.clock.now += 25 * 3600.0
    world.land(4, "a", [{"k": 9, "v": "x", "t": 4 * DAY, "e": 4 * DAY, "o": 0, "gone": False}])
    before, (least, call) = objects(world), OVERTAKEN[step]
    stopped = 0
    for moment in count():
        assert isinstance(world.truth, MemoryStore)
        world.truth.objects = dict(before)
        job = world.job()
        store = Meanwhile(world.truth, moment, lambda: commits(world, NEXT))
        job.store = job.log.store = store
        with suppress(UpgradeRequired):
            call(world, job)
            stopped -= 1
        stopped += 1
        if store.left >= 0:
            break  # it ended before
        theirs = max(key for key in world.truth.objects if key.startswith("versions/"))
        assert json.loads(world.truth.objects[theirs])["id"] == "theirs"
        if step == "collect" and b'"step":"collect"' in b"".join(list(objects(world).values())):
            break  # it had said so before they committed: they must ask its plan, as everybody
        assert world.truth.objects[THEIRS] == b"precious"
    assert stopped >= least
