"""What another Tidemark wrote: older formats are read, newer ones and unknown fields are refused before anything is
concluded from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from support.world import collection, interval
from tidemark.errors import Corruption, TidemarkError, UpgradeRequired
from tidemark.model.arrangement import Arrangement
from tidemark.model.batch import ObjectRef, Part
from tidemark.model.change import Created, Sealed
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.plan.collect import Garbage, GarbagePlan, Why
from tidemark.plan.retain import ReadAsked
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import VersionRecord, reference, with_checksum
from tidemark.storage.documents.upgrade import FORMAT, STEPS, Kind
from tidemark.storage.log import plans
from tidemark.storage.log.log import StateLog
from tidemark.storage.log.versions import key_of
from tidemark.storage.sidecars import asked_reads, ledger, parts_table, sidecar
from tidemark.storage.stores.memory import MemoryStore
from tidemark.storage.stores.store import ObjectStore

PART = Part(ObjectRef("data/a/1.parquet", 9, "0"), 2, 2**64 - 1, (((1, "é"), 2),), (2, "x"), 0, 1, 0, 1)
ENTRY = LedgerEntry("a", 1, "0", "t", interval(0), Status.INGESTED, late=ObjectRef("data/a/late.parquet", 1, "0"))
PLAN = GarbagePlan(7, 40, 32, (), (Garbage("data/x", 2**60, Why.UNNAMED, 3, "token"),), 5, ((3, 2**60),))


def logged(store: ObjectStore) -> StateLog:
    log = StateLog(store, new_id=iter("abcdefgh").__next__, writer="host:1", wall=lambda: 0.0)
    log.commit(log.load(), Created(collection()))
    log.commit(log.load(), Sealed(3, 3, 3))
    return log


@dataclass(frozen=True)
class Stored:
    """One kind of document in a store: the member `a_field` stands somewhere in it; `read` reads it by its key."""

    kind: Kind
    key: str
    a_field: bytes
    write: Callable[[ObjectStore], Any]
    read: Callable[[ObjectStore, bytes], Any]


STORED = [
    Stored(Kind.VERSION, key_of(2), b'"upper":3', logged, lambda s, _: StateLog(s, str).load()),
    Stored(
        Kind.PLAN, plans.key_of(7), b'"since":3', lambda s: plans.save(s, PLAN), lambda s, _: plans.versions_below(s)
    ),
    Stored(
        Kind.PARTS,
        "data/a/parts-1.json",
        b'"rows":2',
        lambda s: parts_table.save(s, "data/a/parts-1.json", (PART,)),
        lambda s, data: parts_table.load(s, reference("data/a/parts-1.json", data)),
    ),
    Stored(
        Kind.LEDGER,
        "ledger/1.json",
        b'"status":"ingested"',
        lambda s: ledger.save_run(s, "ledger/1.json", [ENTRY]),
        lambda s, data: sidecar.read(s, reference("ledger/1.json", data), Kind.LEDGER, ledger.SHAPE),
    ),
]


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and leaves are documents of their own, however little they hold."""
    monkeypatch.setattr(parts_table, "SMALL", 0)


EACH = pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored.kind.name)
CHECKSUM = re.compile(rb',"sha256":"[0-9a-f]{64}"\}$')


def altered(stored: Stored, edit: Callable[[bytes], bytes]) -> tuple[MemoryStore, bytes]:
    """A store in which another Tidemark has written that document: its checksum is right."""
    store = MemoryStore()
    stored.write(store)
    data = store.objects[stored.key]
    bare = CHECKSUM.sub(b"}", data)
    edited = edit(bare)
    assert edited != bare
    store.objects[stored.key] = edited = with_checksum(edited) if bare != data else edited
    return store, edited


def refused(stored: Stored, edit: Callable[[bytes], bytes]) -> TidemarkError:
    with pytest.raises(TidemarkError) as raised:
        stored.read(*altered(stored, edit))
    assert stored.key in str(raised.value)
    assert "\n" not in str(raised.value)
    return raised.value


def numbered(number: int) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(b'{"format":%d,' % FORMAT, b'{"format":%d,' % number, 1)


@EACH
def test_every_document_begins_with_its_format(stored: Stored):
    store = MemoryStore()
    stored.write(store)
    assert store.objects[stored.key].startswith(b'{"format":%d,' % FORMAT)


@EACH
def test_a_newer_format_asks_for_an_upgrade(stored: Stored):
    error = refused(stored, numbered(FORMAT + 1))
    assert type(error) is UpgradeRequired
    assert f"format {FORMAT + 1}, this Tidemark reads up to {FORMAT}; upgrade" in str(error)


@EACH
@pytest.mark.parametrize("body", [b"", b',"change":{"kind":"unheard_of"}', b',"entirely":["other"]'])
def test_of_a_newer_format_nothing_but_the_number_is_read(stored: Stored, body: bytes):
    error = refused(stored, lambda _: b'{"format":%d%b}' % (FORMAT + 1, body))
    assert type(error) is UpgradeRequired


@EACH
def test_a_field_that_is_not_known_is_refused_by_name_at_any_depth(stored: Stored):
    """It may refer to what a collector would take for garbage."""
    error = refused(stored, lambda data: data.replace(stored.a_field, stored.a_field + b',"names":{"key":"data/x"}', 1))
    assert type(error) is UpgradeRequired
    assert "names" in str(error)
    error = refused(stored, lambda data: data[:-1] + b',"of two\\nlines%b":1}' % (b"x" * 10_000))
    assert len(str(error)) < 1_000
    error = refused(stored, lambda data: data[:-1] + b',"extra":1}')
    assert type(error) is UpgradeRequired
    assert "the field " in str(error)
    assert "extra, which" in str(error)


@EACH
def test_damage_is_corruption_whatever_number_it_makes(stored: Stored):
    """A number is believed only of a document whose checksum is right."""
    store = MemoryStore()
    stored.write(store)
    written = store.objects[stored.key]
    store.objects[stored.key] = written.replace(b'{"format":%d' % FORMAT, b'{"format":9')
    with pytest.raises(Corruption):
        stored.read(store, written)


def test_an_unknown_change_tells_who_wrote_it_and_what_is_known():
    error = refused(STORED[0], lambda data: data.replace(b'"kind":"sealed"', b'"kind":"sealed_twice"'))
    assert type(error) is UpgradeRequired
    assert "host:1" in str(error)
    assert "sealed_twice" in str(error)
    assert "change" in str(error)


def test_the_variant_at_fault_is_blamed():
    error = refused(STORED[0], lambda data: data.replace(b'"upper":3', b'"upper":"soon"'))
    assert type(error) is Corruption
    assert "change.sealed.upper: " in str(error)


@dataclass(frozen=True)
class Other:
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Holder:
    """Either of two, which differ by their fields alone."""

    content: ObjectRef | Other


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        ({"key": "k", "bytes": 1, "sha256": "0", "names": "x"}, UpgradeRequired),
        ({"key": "k", "size": 1, "sha256": "0"}, UpgradeRequired),
        ({"entries": ["a"], "names": "x"}, UpgradeRequired),
        ({"key": "k", "bytes": "many", "sha256": "0"}, Corruption),
        ({"entries": [3]}, Corruption),
        ("k", Corruption),
    ],
)
def test_a_wrong_value_is_not_taken_for_another_s_field(stored: Any, error: type[TidemarkError]):
    data = json.dumps({"format": FORMAT, "content": stored}).encode()
    with pytest.raises(TidemarkError) as raised:
        document.read(data, Kind.PARTS, Holder, name="d")
    assert type(raised.value) is error


def test_a_read_that_a_newer_tidemark_noted_is_left_out():
    """It is a hint: a newer reader must not stop a collection that this one still writes."""
    store, now = MemoryStore(), 40 * 86_400 * 1_000_000
    for number, body in enumerate(
        (document.write(ReadAsked(5)), b'{"format":%d,"upto":7}' % (FORMAT + 1), b'{"upto":9}')
    ):
        store.create(f"{asked_reads.PREFIX}{now - 1:020d}-{number}.json", body)
    assert [read.upto for read in asked_reads.asked(store, now)] == [5, 9]


def test_there_is_a_step_from_every_older_format():
    assert len(STEPS) == FORMAT - 1


def test_tables_and_ledgers_of_format_1_had_no_number():
    store = MemoryStore()
    for stored in STORED[2:]:
        stored.write(store)
    parts = json.loads(store.objects["data/a/parts-1.json"])["parts"]
    entries = json.loads(store.objects["ledger/1.json"])["entries"]
    node = {"height": 1, "blocks": [{"object": {"key": "ledger/1.json", "bytes": 1, "sha256": "0"}, "entries": 1}]}
    node["blocks"][0] |= {"first_path": "a", "last_path": "a"}
    table, leaf, inner = (json.dumps(each).encode() for each in (parts, entries, node))
    assert document.read(table, Kind.PARTS, parts_table.SHAPE, name="p").parts == (PART,)
    assert document.read(leaf, Kind.LEDGER, ledger.SHAPE, name="l") == ledger.LedgerLeaf((ENTRY,))
    found = document.read(inner, Kind.LEDGER, ledger.SHAPE, name="n")
    assert (found.height, found.blocks[0].object.key) == (1, "ledger/1.json")
    for kind, shape in ((Kind.PARTS, parts_table.SHAPE), (Kind.LEDGER, ledger.SHAPE)):
        for wrong in (b"null", b"3", b'"x"', b"{}", b"[[]]", b"[", b""):
            with pytest.raises(Corruption):
                document.read(wrong, kind, shape, name="w")


def test_a_declaration_of_format_1_was_of_landed_files_and_had_no_origin():
    """In a change and in a checkpoint; a number that its fields do not have then is refused as ever."""
    declared = collection(start=20)
    record = VersionRecord(1, "", "a", 0, "host:1", Created(declared), Arrangement(declared))
    fields = json.loads(document.write(record))
    for place in (fields["change"], fields["checkpoint"]):
        origin = place["collection"].pop("origin")
        for later in ("kind", "reprocess_for", "corrected_share", "batching", "timezone"):
            del origin[later]
        place["collection"] |= origin
    older = json.dumps(fields | {"format": 1}).encode()
    found = document.read(older, Kind.VERSION, VersionRecord, name="v")
    assert (found.change.collection, found.checkpoint.collection) == (declared, declared)
    with pytest.raises(UpgradeRequired):
        document.read(json.dumps(fields).encode(), Kind.VERSION, VersionRecord, name="v")


def test_the_hash_by_which_a_version_is_named_is_of_its_bytes():
    """Those of an older format keep theirs, whatever they are read as."""
    store = MemoryStore()
    log = logged(store)
    first = store.objects[key_of(1)]
    assert next(iter(log.history())).previous == hashlib.sha256(first).hexdigest()
