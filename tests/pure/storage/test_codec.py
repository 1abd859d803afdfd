"""States and changes as JSON and back: nothing changes on the way, and what is not theirs is refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.world import collection, interval
from tidemark.errors import Corruption
from tidemark.model.arrangement import Arrangement, Certificate, Fence, FrontierCertificate, LedgerRun
from tidemark.model.batch import Description, ObjectRef, Part, TraceBatch, UnsealedBatch
from tidemark.model.change import Certified, Change, Compacted, Created, Drained, Ingested, Quarantined, Refused, Sealed
from tidemark.model.collection import Envelope, Gate
from tidemark.model.instant import MAX_TIME
from tidemark.model.interval import IntervalSet
from tidemark.model.transition import apply
from tidemark.storage.documents import document
from tidemark.storage.documents.codec import VersionRecord, check, decode, encode, reference
from tidemark.storage.documents.upgrade import Kind
from tidemark.storage.sidecars.parts_table import PartsTable

big = st.integers(0, 2**64 - 1)
times = st.integers(0, MAX_TIME)
refs = st.builds(ObjectRef, st.text(min_size=1), times, st.text())
scalars = (
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.sampled_from(["1", "true", "null", "1.5", ""])
)
rows = st.tuples(scalars, scalars)
parts = st.builds(
    Part, refs, times, big, st.lists(st.tuples(rows, times), min_size=1).map(tuple), rows, times, times, times, times
)
unsealed = st.builds(
    UnsealedBatch,
    st.text(min_size=1),
    st.just(interval(3)),
    refs,
    st.integers(0, 9),
    st.integers(1, MAX_TIME),
    times,
    big,
    st.just(0),
    times,
    st.just(0),
    times,
)
traces = st.builds(
    TraceBatch, st.text(min_size=1), st.just(Description(0, MAX_TIME)), st.integers(0, 60), st.just(1), times, big, refs
)
fences = st.builds(Fence, st.sampled_from(["ingest", "drain"]), st.just(interval(1)), st.text())
runs = st.builds(LedgerRun, refs, times, st.text(), st.text(), st.integers(0, 9))
changes = st.one_of(
    st.builds(Ingested, fences, st.none() | unsealed, st.none() | runs, st.lists(big).map(tuple), st.none() | times),
    st.builds(Drained, fences, traces),
    st.builds(Compacted, fences, st.lists(st.text()).map(tuple), traces),
    st.builds(Refused, runs, fences, st.lists(big).map(tuple)),
    st.builds(Certified, st.sampled_from(Gate), st.text(), st.lists(st.text()).map(tuple), st.none() | times),
    st.builds(Sealed, times, times),
    st.builds(Quarantined, st.text(), runs),
    st.sampled_from([Created(collection(envelope)) for envelope in Envelope]),
)


@given(changes, times)
def test_a_version_comes_back_as_it_was(change: Change, written_at: int):
    record = VersionRecord(7, "0" * 64, "id", written_at, "who", change)
    assert document.read(document.write(record), Kind.VERSION, VersionRecord, name="v") == record


@given(st.lists(parts).map(tuple))
def test_keys_of_parts_keep_their_types(read_many: tuple[Part, ...]):
    table = PartsTable(read_many)
    back = document.read(document.write(table), Kind.PARTS, PartsTable, name="parts").parts
    assert back == read_many
    for one, other in zip(back, read_many, strict=True):
        assert [type(cell) for cell in one.last_key] == [type(cell) for cell in other.last_key]


def test_a_checkpoint_comes_back_as_it_was():
    declared = collection(Envelope.UPSERT, grace=3, quality=('{"a": 1}',))
    state = Arrangement(
        declared,
        complete_below=9,
        seal=9,
        unsealed=(UnsealedBatch("a", interval(0), ObjectRef("k", 1, "0"), 1, 1, 1, 2**64 - 1, 0, 9, 0, 9),),
        ingested=IntervalSet((interval(0), interval(2))),
        certificates=(Certificate("a", "suite"),),
        frontier_certificate=FrontierCertificate(9, "suite"),
        fences=(Fence("drain", interval(0), "t"),),
    )
    assert decode(encode(state), Arrangement, name="state") == state
    assert apply(decode(encode(state), Arrangement, name="state"), Sealed(9, 9, 9)) == apply(state, Sealed(9, 9, 9))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"seal": "soon"}', b"[1, 2]", b"\xff\xfe"])
def test_what_does_not_decode_is_corruption_in_one_line(data: bytes):
    with pytest.raises(Corruption, match=r"state does not decode") as raised:
        decode(data, Arrangement, name="state")
    assert "\n" not in str(raised.value)


def test_a_state_that_cannot_be_does_not_decode():
    """Invariants hold on decode as on change."""
    batch = TraceBatch("x", Description(0, 5), 0, 0, 0, 0)
    good = encode(Arrangement(collection(), complete_below=4, seal=5, trace=(batch,)))
    with pytest.raises(Corruption):
        decode(good.replace(b'"seal":5', b'"seal":4'), Arrangement, name="state")


def test_an_object_must_be_what_was_recorded():
    ref = reference("k", b"data")
    assert check(ref, b"data") == b"data"
    with pytest.raises(Corruption, match="has 3 bytes, recorded were 4"):
        check(ref, b"dat")
    with pytest.raises(Corruption, match="sha256"):
        check(ref, b"dats")
    with pytest.raises(Corruption, match="has 4 bytes, recorded were 5"):
        check(replace(ref, bytes=5), b"data")
