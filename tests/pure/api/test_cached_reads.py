"""A reader that asks again reads from the store only what it has not read yet; who does not read so sees the store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidemark
from support.faulty import WrappedStore
from support.world import interval
from tests.pure.api.made import Made
from tidemark.api.opened import OpenCollection
from tidemark.api.pinned import pinned
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.reader import Fetched, OpenedPart
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import Corruption, InvalidUsage
from tidemark.jobs.queries.verify import verify
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.model.collection import Column, ColumnType
from tidemark.storage.cache import OF_PROCESS, Cache
from tidemark.storage.sidecars import parts_table
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


class Counting(WrappedStore):
    """Counts what is asked of a store, and the bytes of parts that are read."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.calls: Counter[str] = Counter()
        self.fetched = Fetched()

    def _call(self, name: str, key: str, action: Callable[[], Any], *, writes: bool) -> Any:
        assert not writes
        self.calls[name] += 1
        found = action()
        return pa.PythonFile(_Counted(found, self.fetched), mode="r") if name == "open_input" else found

    def taken(self) -> tuple[int, int]:
        """The calls and the bytes since it was asked last."""
        counted = self.calls.total(), self.fetched.bytes
        self.calls.clear()
        self.fetched.bytes = 0
        return counted


@dataclass
class _Counted:
    native: pa.NativeFile
    seen: Fetched
    closed: bool = field(default=False)

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.native.read(size)
        self.seen.add(len(data))
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.native.seek(offset, whence))

    def tell(self) -> int:
        return int(self.native.tell())

    def size(self) -> int:
        return int(self.native.size())

    def close(self) -> None:
        self.closed = True


def counted(made: Made) -> tuple[OpenCollection, Counting]:
    """The newest version, and what is asked of its store once it is open."""
    own = pinned(made.root, "tides")
    store = Counting(own.store)
    return OpenCollection(replace(own, store=store)), store


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 50)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 50)


def day(number: int, rows: int = 1000) -> list[dict[str, Any]]:
    return [{"k": k, "v": f"v{k % 7}", "t": 10 * number, "e": 10 * number, "at": k} for k in range(rows)]


@pytest.fixture
def made(tmp_path: Path, nothing_is_small: None) -> Made:
    declared = (Column("v", ColumnType.STRING), Column("at", ColumnType.INT))
    made = Made(tmp_path, value=declared, timelines=("at",))
    made.drained(0, day(0))
    return made


QUESTIONS: dict[str, Callable[[OpenCollection], tidemark.Answer]] = {
    "point": lambda tides: tides.as_of(where={"k": 500}),
    "range": lambda tides: tides.range("at", 120, 260),
    "latest": lambda tides: tides.latest_at("at", 700, where={"k": 500}),
    "join": lambda tides: tides.latest_at("at", at=pa.table({"k": [1, 500], "when": [9, 900]}), at_column="when"),
    "changes": lambda tides: tides.changes(where={"k": 500}),
    "net": lambda tides: tides.changes(net=True),
    "all": lambda tides: tides.as_of(),
}


@pytest.mark.parametrize("asked", list(QUESTIONS))
def test_a_question_that_is_asked_again_asks_nothing_of_the_store(made: Made, asked: str) -> None:
    tides, store = counted(made)
    first = QUESTIONS[asked](tides).to_arrow()
    calls, read = store.taken()
    assert calls > 0
    assert read > 0
    assert QUESTIONS[asked](tides).to_arrow() == first
    assert store.taken() == (0, 0)
    assert first.num_rows > 0


def test_after_a_new_version_only_what_is_new_is_read(made: Made) -> None:
    tides, store = counted(made)
    tides.as_of(where={"k": 500}).to_arrow()
    made.sealed(1, day(1, rows=600))
    tides, store = counted(made)
    found = tides.as_of(where={"k": 500}).to_arrow()
    assert found["_multiplicity"].to_pylist() == [2]
    assert store.calls["open_input"] == 1, "the part of the new batch"
    assert store.calls["read"] == 1, "its table of parts"


def test_without_a_cache_each_read_reads(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_CACHE", "0")
    tides, store = counted(made)
    asked = []
    for _ in range(2):
        tides.as_of(where={"k": 500}).to_arrow()
        asked.append(store.taken())
    assert asked[0] == asked[1] > (0, 0)


@pytest.mark.parametrize("limit", [1, 2_000, 20_000, 60_000])
def test_a_small_cache_changes_no_answer_and_stays_small(made: Made, monkeypatch: pytest.MonkeyPatch, limit: int):
    monkeypatch.setenv("TIDEMARK_CACHE", "0")
    tides, _ = counted(made)
    expected = {name: ask(tides).to_arrow() for name, ask in QUESTIONS.items()}
    monkeypatch.setenv("TIDEMARK_CACHE", str(limit))
    for name in [*QUESTIONS, *reversed(QUESTIONS)]:
        assert QUESTIONS[name](tides).to_arrow() == expected[name]
        assert OF_PROCESS.bytes <= limit


def test_a_setting_that_is_none_is_one_line(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_CACHE", "plenty")
    with pytest.raises(InvalidUsage, match=r"^TIDEMARK_CACHE is 'plenty'; write bytes, such as 256MiB, or 0 for no"):
        tidemark.open(made.root, "tides").as_of().to_arrow()


def test_what_is_remembered_of_a_row_group_keeps_nothing_else_in_memory(made: Made) -> None:
    """The row groups of a batch are decoded together, and each may be thrown out alone."""
    tides, _ = counted(made)
    tides.as_of().to_arrow()
    columns = [value for name, (value, _) in OF_PROCESS._entries.items() if name[0] == "column"]
    assert len(columns) == 20 * 4, "twenty row groups; the columns, and the multiplicity of each row"
    for column in columns:
        assert len(column) == 50
        assert column.offset == 0
        own = sum(buffer.size for buffer in column.buffers() if buffer is not None)
        assert own <= column.nbytes + 64, "what a validity bitmap and offsets are rounded up to"
    addresses = [buffer.address for column in columns for buffer in column.buffers() if buffer is not None]
    assert len(set(addresses)) == len(addresses)


def parts_of(tides: OpenCollection) -> list[Any]:
    return [part for batch in tides.state.trace for part in parts_table.load(tides.store, batch.parts)]


def shortened(data: bytes) -> bytes:
    return data[:-1]


def overwritten(data: bytes) -> bytes:
    """Where the last row group has its keys."""
    keys = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(19).column(0)
    at, size = keys.data_page_offset, keys.total_compressed_size
    return data[:at] + bytes(size) + data[at + size :]


@pytest.mark.parametrize("damage", [shortened, overwritten])
def test_damage_is_found_in_what_was_not_read_yet(made: Made, damage: Callable[[bytes], bytes]) -> None:
    tides, _ = counted(made)
    expected = tides.as_of(where={"k": 1}).to_arrow()
    (part,) = parts_of(tides)
    store = MemoryStore.named(f"{made.root}/tides")
    store.objects[part.file.key] = damage(store.objects[part.file.key])
    assert tides.as_of(where={"k": 1}).to_arrow() == expected, "it was whole when it was read"
    with pytest.raises(Corruption, match=re.escape(part.file.key)):
        tides.as_of().to_arrow()


def test_whoever_does_not_read_so_sees_the_store(made: Made) -> None:
    """Steps, gates and audits have the plain store: they find damage however much readers remember."""
    tides, _ = counted(made)
    tides.as_of().to_arrow()
    (part,) = parts_of(tides)
    store = MemoryStore.named(f"{made.root}/tides")
    store.objects[part.file.key] = store.objects[part.file.key][:-1]
    with pytest.raises(Corruption, match="recorded were"):
        OpenedPart(store, part)
    assert tides.as_of().count() == 1000
    report = made.world.run(lambda job: verify(job, data=True))
    assert part.file.key in str(report.findings)


def test_steps_ask_nothing_of_the_cache(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would answer from memory what they have to look up: each step of a day is run with a cache that refuses."""
    counted(made)[0].as_of().to_arrow()
    monkeypatch.setattr(Cache, "get", lambda *_: pytest.fail("a step asked the cache"))
    monkeypatch.setattr(Cache, "put", lambda *_: pytest.fail("a step filled the cache"))
    made.drained(1, day(1))
    made.compacted(1)
    made.world.run(lambda job: collect(job, keep=0, graces=AT_ONCE))
    assert interval(1).upper == made.world.state.seal
