"""Storage that does not hold what was written is found out, whichever object it is and whatever happened to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from simulation.script import row, steps, world
from support.budget import budget
from support.faulty import Fault, FaultyStore
from support.world import World, collection, interval
from tidemark.jobs.queries.verify import Report, verify
from tidemark.jobs.steps.ingest import ingest
from tidemark.model.batch import ObjectRef
from tidemark.model.collection import Envelope
from tidemark.storage.documents.codec import with_checksum
from tidemark.storage.sidecars import ledger, parts_table
from tidemark.storage.stores.memory import MemoryStore

pytestmark = [pytest.mark.simulation, pytest.mark.usefixtures("nothing_is_small")]

KINDS = {
    "version": r"versions/",
    "parts table": r"data/[^/]+/parts-",
    "part": r"data/[^/]+/[0-9a-f]+\.parquet",
    "late rows": r"data/[^/]+/late-",
    "ledger run": r"ledger/",
}
TREES = ("parts table", "ledger run")
METADATA = ("version", "parts table", "ledger run")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A few days with late rows, a quarantine, and an unsealed day behind; the ledger's runs and the tables of parts
    are small trees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "LEAF", 1)
        for name, value in (("SMALL", 0), ("WHOLE", 0), ("LEAF", 1), ("FAN_OUT", 2)):
            patch.setattr(parts_table, name, value)
        folder = tmp_path_factory.mktemp("verified")
        made = world(folder, Envelope.UPSERT, MemoryStore())
        for step in steps(folder):
            made.run(step, first=False)
        for name in "xy":
            made.land(4, name, [row(k, name, 41 + k, k) for k in range(6)])
        made.run(partial(ingest, interval=interval(4), landing_root=str(folder)))
    return made


@pytest.fixture
def made(sound: World) -> Iterator[World]:
    """The same for one test, which may damage it."""
    before = dict(sound.truth.objects)
    yield sound
    sound.truth.objects = before
    sound.store = sound.truth
    sound.forget()


def report(made: World, **asked: bool) -> Report:
    return verify(made.job(), **asked)


def of_kind(made: World, kind: str) -> list[str]:
    """The objects of a kind that the newest state names, and every version."""
    keys = [key for key in made.truth.objects if re.match(KINDS[kind], key)]
    if kind == "version":
        return sorted(keys)
    state = made.state
    tables = [batch.parts for batch in state.batches if isinstance(batch.parts, ObjectRef)]
    named = {ref.key for table in tables for ref in parts_table.objects(made.truth, table)}
    named |= {part.file.key for part in parts_table.parts_of(made.truth, state.batches)}
    for run in state.ledger:
        named |= {reference.key for reference in ledger.named_objects(made.truth, run)}
    return sorted({*keys} & named)


def test_what_is_sound_is_found_sound_and_nothing_is_left_out(made: World) -> None:
    found = report(made, data=True)
    assert found.findings == ()
    assert found.parts_read == found.parts == len(of_kind(made, "part"))
    assert found.objects == sum(len(of_kind(made, kind)) for kind in KINDS if kind != "version")
    assert found.batches == len(made.state.batches)
    assert {kind: len(of_kind(made, kind)) > 1 for kind in KINDS} == dict.fromkeys(KINDS, True)


def flipped(data: bytes, at: float) -> bytes:
    place = int(at * (len(data) - 1))
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "first bit flipped": partial(flipped, at=0),
    "bit flipped early": partial(flipped, at=0.3),
    "bit flipped late": partial(flipped, at=0.8),
    "cut short": lambda data: data[:-1],
    "emptied": lambda data: b"",
    "missing": lambda data: None,
}


@pytest.mark.parametrize("damage", budget(ci=[*DAMAGES][1::2], deep=[*DAMAGES]))
@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_any_object_is_found_and_named(made: World, kind: str, damage: str) -> None:
    sizes_differ = damage in ("cut short", "emptied", "missing")
    for key in of_kind(made, kind):
        before = made.truth.objects[key]
        after = DAMAGES[damage](before)
        if after is None and key == max(made.truth.objects):
            continue  # without the newest version the one before it is the newest: nobody can tell
        if after is None:
            del made.truth.objects[key]
        else:
            made.truth.objects[key] = after
        found = report(made, data=kind not in METADATA and not sizes_differ)
        assert key in {finding.object for finding in found.findings}, (key, found.findings)
        if kind in ("part", "late rows", "parts table"):
            (at_fault,) = {finding.batch for finding in found.findings}
            assert f"data/{at_fault}/" in key
        made.truth.objects[key] = before


def rewritten(data: bytes) -> bytes:
    """A version altered by somebody who knows how its own checksum is made."""
    body = data.rpartition(b',"sha256":"')[0]
    return with_checksum(re.sub(rb'"written_at":\d+', b'"written_at":7', body) + b"}")


def test_a_version_rewritten_with_care_is_found_by_its_successor(made: World) -> None:
    keys = of_kind(made, "version")
    for number, key in enumerate(keys[:-1], start=1):
        before = made.truth.objects[key]
        made.truth.objects[key] = rewritten(before)
        finding, *more = report(made).findings
        assert [other.rule for other in more] == (["state"] if number > len(keys) // 16 * 16 - 1 else [])
        assert (finding.rule, finding.object) == ("history", key)
        assert f"version {number + 1} follows" in finding.detail
        assert ("one of the two was altered" in finding.detail) == (number + 1 == len(keys))
        made.truth.objects[key] = before


def test_a_version_that_does_not_apply_or_fold_is_named(made: World) -> None:
    keys = of_kind(made, "version")
    other = made.truth.objects[keys[4]]
    for number in (6, 16):
        key = keys[number - 1]
        before = made.truth.objects[key]
        foreign = other.replace(b'"version":5', b'"version":%d' % number)
        made.truth.objects[key] = with_checksum(foreign.rpartition(b',"sha256":"')[0] + b"}")
        found = report(made).findings
        assert {finding.object for finding in found} == {key}, found
        made.truth.objects[key] = before


@pytest.mark.parametrize("kind", KINDS)
def test_two_objects_exchanged_are_found_and_both_named(made: World, kind: str) -> None:
    keys = of_kind(made, kind)
    for one, other in pairwise(keys):
        stored = made.truth.objects
        stored[one], stored[other] = stored[other], stored[one]
        found = report(made, data=True)
        named = {finding.object for finding in found.findings}
        # A block of a tree below one that is not what it should be is nobody's any more.
        both = {one, other} <= named if kind not in TREES else {one, other} & named
        assert both, (one, other, found.findings)
        stored[one], stored[other] = stored[other], stored[one]


def test_parts_of_equal_size_exchanged_are_found_in_their_bytes(tmp_path: Path) -> None:
    """Sizes and even the numbers of rows are as recorded."""
    made = World(tmp_path, collection(Envelope.APPEND))
    for day, word in enumerate("ab"):
        made.land(day, "f", [{"k": 1, "v": word, "t": 10 * day, "e": 10 * day}])
        made.run(partial(ingest, interval=interval(day), landing_root=str(tmp_path)))
    one, other = parts_table.parts_of(made.truth, made.state.unsealed)
    assert one.file.bytes == other.file.bytes
    stored = made.truth.objects
    stored[one.file.key], stored[other.file.key] = stored[other.file.key], stored[one.file.key]
    assert report(made).sound, "no metadata shows it"
    found = report(made, data=True)
    rules = {(finding.object, finding.rule) for finding in found.findings}
    for part in (one, other):
        assert (part.file.key, "readable") in rules
    assert found.parts_read == 0, "bytes of another part are not taken for rows of this one"


def test_one_broken_object_hides_no_other(made: World) -> None:
    """Two versions, a run of the ledger, a table, a part of another batch and late rows at once; all else is read."""
    part = of_kind(made, "part")[0]
    table = next(key for key in of_kind(made, "parts table") if key.split("/")[1] != part.split("/")[1])
    damaged = [*of_kind(made, "version")[2:8:5], of_kind(made, "ledger run")[0], table, part]
    damaged += of_kind(made, "late rows")[:1]
    unseen = [key for key in of_kind(made, "part") if key.split("/")[1] == table.split("/")[1]]
    whole = report(made, data=True).parts_read
    for key in damaged:
        made.truth.objects[key] = flipped(made.truth.objects[key], 0.5)
    found = report(made, data=True)
    assert set(damaged) <= {finding.object for finding in found.findings}
    assert whole - len(unseen) - 1 <= found.parts_read <= whole - len(unseen)


def test_where_no_state_can_be_had_the_report_says_so(made: World) -> None:
    newest = of_kind(made, "version")[-1]
    made.truth.objects[newest] = b"{}"
    found = report(made)
    assert [finding.object for finding in found.findings] == [newest, ""]
    assert "the newest state cannot be loaded" in found.findings[1].detail
    assert found.batches == 0


def test_a_store_that_refuses_once_is_asked_again(made: World) -> None:
    made.store = counting = FaultyStore(made.truth)
    assert report(made).sound
    for nth in range(1, counting.calls, 7):
        made.store = faulty = FaultyStore(made.truth, Fault(nth, dies=False))
        assert report(made).sound
        assert faulty.fired


def test_metadata_is_read_once_and_data_not_at_all(made: World) -> None:
    made.store = counting = FaultyStore(made.truth)
    assert report(made).sound
    versions = len(of_kind(made, "version"))
    metadata = sum(len(of_kind(made, kind)) for kind in METADATA)
    assert counting.calls < metadata + versions // 4 + 20, "sizes come from a listing, not one by one"


def test_progress_is_reported_to_the_end(made: World) -> None:
    reported: dict[str, tuple[int, int]] = {}
    verify(made.job(), data=True, progress=lambda what, done, total: reported.update({what: (done, total)}))
    assert set(reported) == {
        "reading versions",
        "reading parts tables",
        "reading the ledger",
        "reading parts",
        "reading late rows",
    }
    assert all(done == total for done, total in reported.values())
    assert isinstance(made.truth, MemoryStore)
