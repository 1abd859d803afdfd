"""The ingest kernel on real files and a store in memory: parts, late objects, ledger entries, and files left out."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pure.ingest.landed import FORMATS, collection, listed, task, write
from tidemark.arrow.decode import content
from tidemark.arrow.kernels import ingest
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.arrow.parts.reader import read_groups
from tidemark.errors import NotReady, Unavailable
from tidemark.model.collection import Column, ColumnType, Envelope, Format, Late
from tidemark.model.ledger import LedgerEntry, SourceFile, Status
from tidemark.plan.tasks import IngestAnswer
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

V = Column("v", ColumnType.STRING)
REEMIT = Late("reemit", 20)


def rows_of(store: MemoryStore, answer: IngestAnswer) -> list[dict[str, Any]]:
    return [row for part in answer.parts for batch in read_groups(store, part) for row in batch.to_pylist()]


def late_rows(store: MemoryStore, entry: LedgerEntry) -> list[dict[str, Any]]:
    assert entry.late is not None
    data = store.read(entry.late.key)
    assert len(data) == entry.late.bytes
    return pq.read_table(io.BytesIO(data)).to_pylist()


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_same_rows_give_the_same_parts_in_every_format(tmp_path: Path, file_format: Format) -> None:
    declared = collection(V, file_format=file_format, late=REEMIT)
    rows = [{"k": k, "v": f"v{k}", "t": t} for k, t in ((3, 50), (1, 35), (2, 10), (1, 40))]
    store = MemoryStore()
    answer = ingest_files(store, task(declared, [write(tmp_path / "a", rows, declared)], seal=40))
    assert rows_of(store, answer) == [
        {"k": 1, "v": "v1", "_time": 40, "_event_time": 40, "_diff": 1},
        {"k": 1, "v": "v1", "_time": 40, "_event_time": 40, "_diff": 1},
        {"k": 3, "v": "v3", "_time": 50, "_event_time": 50, "_diff": 1},
    ]
    (entry,) = answer.entries
    assert (entry.status, entry.batch, entry.rows) == (Status.INGESTED, "b1", 3)
    assert (entry.rows_late_applied, entry.rows_late_discarded) == (1, 1)
    assert answer.first_on_time == 40
    fates = [
        (row["k"], row["_applied"], row["_reason"], row["_lateness"], row["_row"]) for row in late_rows(store, entry)
    ]
    assert fates == [(1, True, "below the seal", 5, 1), (2, False, "beyond max_lateness", 30, 2)]
    assert sorted(store.objects) == sorted([answer.parts[0].file.key, entry.late.key if entry.late else ""])


def test_facts_are_sorted_by_key_event_time_order_file_and_row(tmp_path: Path) -> None:
    declared = collection(
        V, envelope=Envelope.UPSERT, event_time="e", order_by="o", delete_when="op = 'd'",
        inputs=(Column("o", ColumnType.STRING), Column("op", ColumnType.STRING)),
    )  # fmt: skip
    rows = [
        {"k": 2, "v": "a", "t": 9, "e": 5, "o": "x", "op": "u"},
        {"k": 1, "v": "b", "t": 9, "e": 6, "o": None, "op": "d"},
        {"k": 1, "v": "c", "t": 9, "e": 5, "o": "z", "op": None},
        {"k": 1, "v": "d", "t": 9, "e": 5, "o": "y", "op": "u"},
        {"k": 1, "v": "e", "t": 9, "e": 5, "o": None, "op": "u"},
    ]
    files = [write(tmp_path / name, rows, declared) for name in ("b", "a")]
    store = MemoryStore()
    found = rows_of(store, ingest_files(store, task(declared, files)))
    places = [(row["k"], row["_event_time"], row["_order"], row["_file"][-1], row["_row"]) for row in found[:6]]
    assert places == [
        (1, 5, None, "a", 4),
        (1, 5, None, "b", 4),
        (1, 5, "y", "a", 3),
        (1, 5, "y", "b", 3),
        (1, 5, "z", "a", 2),
        (1, 5, "z", "b", 2),
    ]
    assert [(row["v"], row["_deleted"]) for row in found[6:8]] == [(None, True), (None, True)]
    assert {row["_deleted"] for row in found[:6]} == {False}


def test_a_bad_file_leaves_no_row_and_no_object_and_the_others_go_on(tmp_path: Path) -> None:
    declared = collection(V, late=REEMIT)
    good = write(tmp_path / "a", [{"k": 1, "v": "x", "t": 5}], declared)
    late = [{"k": k, "v": "y", "t": 5} for k in range(9)]
    bad = write(tmp_path / "b", [*late, {"k": None, "v": "y", "t": 9}], declared)
    last = write(tmp_path / "c", [{"k": 3, "v": "z", "t": 9}], declared)
    store = MemoryStore()
    answer = ingest_files(store, task(declared, [good, bad, last], seal=6))
    assert [row["v"] for row in rows_of(store, answer)] == ["x", "z"]
    assert [entry.status for entry in answer.entries] == [Status.INGESTED, Status.QUARANTINED, Status.INGESTED]
    entry = answer.entries[1]
    assert (entry.reason, entry.rows, entry.batch, entry.late) == (
        "row 10: column k is null; a key never is",
        0,
        None,
        None,
    )
    assert (entry.path, entry.bytes, entry.token) == (bad.path, bad.bytes, bad.token)
    assert len(entry.sha256) == 64
    assert len(store.objects) == 2


def test_what_cannot_be_read_is_no_bad_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = SourceFile(str(tmp_path / "folder"), 0, "t")
    with pytest.raises(Unavailable, match="cannot be read: "):
        ingest_files(MemoryStore(), task(collection(), [file]))


def test_only_bad_files_and_no_files_give_no_parts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"PAR1")
    answer = ingest_files(MemoryStore(), task(collection(), [listed(tmp_path / "a")]))
    assert (answer.parts, answer.first_on_time) == ((), None)
    assert ingest_files(MemoryStore(), task(collection(), [])) == IngestAnswer((), (), None)


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_without_rows_are_counted_as_read(tmp_path: Path, file_format: Format) -> None:
    declared = collection(file_format=file_format)
    store = MemoryStore()
    answer = ingest_files(store, task(declared, [write(tmp_path / "a", [], declared)]))
    (entry,) = answer.entries
    assert (entry.status, entry.rows, entry.late, answer.parts) == (Status.INGESTED, 0, None, ())
    assert not store.objects


def test_a_day_that_is_all_late_has_no_part_and_keeps_its_rows(tmp_path: Path) -> None:
    declared = collection()
    store = MemoryStore()
    answer = ingest_files(store, task(declared, [write(tmp_path / "a", [{"k": 1, "t": 5}] * 3, declared)], seal=6))
    assert (answer.parts, answer.first_on_time) == ((), None)
    assert answer.entries[0].rows_late_discarded == 3
    assert [row["t"] for row in late_rows(store, answer.entries[0])] == [5, 5, 5]


def test_arrival_is_the_last_instant_of_the_interval(tmp_path: Path) -> None:
    declared = collection(time=None)
    store = MemoryStore()
    answer = ingest_files(store, task(declared, [write(tmp_path / "a", [{"k": 1}], declared)], upper=500))
    assert rows_of(store, answer) == [{"k": 1, "_time": 499, "_event_time": 499, "_diff": 1}]
    assert answer.first_on_time == 499


ROWS = st.lists(
    st.fixed_dictionaries({"k": st.integers(0, 9), "v": st.sampled_from("xyz"), "t": st.integers(0, 99)}), max_size=40
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(ROWS, max_size=3),
    file_format=st.sampled_from(FORMATS),
    seal=st.integers(0, 60),
    limit=st.integers(1, 30),
)
def test_no_row_is_lost_or_doubled_however_files_and_runs_are_cut(
    tmp_path: Path, files: list[list[dict[str, Any]]], file_format: Format, seal: int, limit: int
) -> None:
    declared = collection(V, file_format=file_format, late=REEMIT)
    sources = [write(tmp_path / f"f{at}", rows, declared) for at, rows in enumerate(files)]
    with pytest.MonkeyPatch.context() as patch:
        # Small limits: files are decoded twice, and read from disk each time; runs are cut within and between files.
        patch.setattr(ingest, "SORTED_ROWS", limit)
        patch.setattr(ingest, "CHECKED_BYTES", limit * 20)
        patch.setattr(content, "IN_MEMORY_BYTES", 0)
        store = MemoryStore()
        answer = ingest_files(store, task(declared, sources, seal=seal))
    expected = Counter(
        (row["k"], row["v"], max(row["t"], seal)) for rows in files for row in rows if row["t"] >= seal - 20
    )
    found = rows_of(store, answer)
    assert Counter((row["k"], row["v"], row["_time"]) for row in found) == expected
    assert sum(entry.rows for entry in answer.entries) == sum(part.rows for part in answer.parts) == len(found)
    late = [row for rows in files for row in rows if row["t"] < seal]
    assert sum(e.rows_late_applied + e.rows_late_discarded for e in answer.entries) == len(late)
    assert sum(len(late_rows(store, e)) for e in answer.entries if e.late) == len(late)
    again = ingest_files(MemoryStore(), task(declared, sources, seal=seal))
    assert sum(p.digest for p in again.parts) % 2**64 == sum(p.digest for p in answer.parts) % 2**64


@pytest.mark.parametrize("broken", [False, True])
def test_a_large_file_that_changes_while_it_is_read_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    monkeypatch.setattr(ingest, "CHECKED_BYTES", 1)
    monkeypatch.setattr(content, "IN_MEMORY_BYTES", 0)
    declared = collection(V, file_format=Format.CSV, late=REEMIT)
    rows = [{"k": 1, "v": "x", "t": 5}, {"k": 2, "v": "x", "t": 9}, {"k": 3, "v": "x", "t": 9}]
    file = write(tmp_path / "a", rows, declared)
    passes = []
    decode = ingest.decode

    def changing(*args: Any) -> Any:
        passes.append(args)
        if len(passes) == 2:
            write(tmp_path / "a", [rows[0], rows[0], {"k": 2, "v": "x", "t": "?" if broken else 8}], declared)
        return decode(*args)

    monkeypatch.setattr(ingest, "decode", changing)
    store = MemoryStore()
    with pytest.raises(NotReady, match="run the step again"):
        ingest_files(store, task(declared, [file], seal=6))
    assert not [key for key in store.objects if "late" in key]


def test_wide_rows_are_cut_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "SORTED_BYTES", 10_000)
    declared = collection(V)
    path = tmp_path / "a"
    pq.write_table(pa.table({"k": list(range(30)), "v": ["x" * 1000] * 30, "t": [1] * 30}), path, row_group_size=5)
    store = MemoryStore()
    monkeypatch.setattr("tidemark.arrow.decode.parquetfile.BATCH_ROWS", 5)
    answer = ingest_files(store, task(declared, [listed(path)]))
    assert sum(part.rows for part in answer.parts) == 30
    assert len(answer.parts) > 2
