"""The memory of a process: reserved in one step, given back once, and kernels that hold less where there is little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.pure.arrow.samples import SMALL
from tests.pure.ingest.landed import collection, task, write
from tests.pure.ingest.test_ingest import V, rows_of
from tests.support.faulty import Fault, FaultyStore
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.arrow.kernels.merge import Tally, merged
from tidemark.arrow.parts.writer import PartWriter
from tidemark.arrow.rows import memory
from tidemark.arrow.rows.memory import Memory
from tidemark.arrow.rows.schema import updates_schema
from tidemark.errors import InvalidUsage, Unavailable
from tidemark.model.batching.memory import Budget, Level
from tidemark.model.frontier import CompactionFunction
from tidemark.plan.tasks import KeyRange, MergeTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure


@pytest.fixture
def of_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process whose memory is made again, from what the test puts into the environment."""
    monkeypatch.setattr(memory, "_own", None)
    yield
    if memory._own is not None:
        assert memory._own.used == 0, "something was not given back"


def test_a_guard_gives_back_once_also_where_the_work_fails() -> None:
    budgeted = Memory(Budget(100))
    guard = budgeted.reserve("a", 60)
    assert guard is not None
    assert (budgeted.used, budgeted.level, budgeted.reserve("b", 36)) == (60, Level.MEDIUM, None)

    def fails() -> None:
        with guard:
            guard.release()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (budgeted.used, budgeted.level) == (0, Level.LOW)


def test_some_is_as_much_as_there_is_and_at_the_worst_the_least() -> None:
    budgeted = Memory(Budget(100))
    with (
        budgeted.some("a", 64, least=8) as first,
        budgeted.some("b", 64, least=8) as second,
        budgeted.some("c", 64, least=8) as third,
    ):
        assert (first, second, third) == (64, 16, 8)
        with budgeted.some("d", 64, least=8) as fourth:
            assert fourth == 8
    assert budgeted.used == 0


@pytest.mark.parametrize(("text", "most"), [("1000", 950), ("1KiB", 972), ("512MiB", 510027366), ("", None)])
def test_the_environment_says_how_much(of_process: None, monkeypatch: pytest.MonkeyPatch, text: str, most: int) -> None:
    monkeypatch.setenv(memory.VARIABLE, text)
    budget = memory.memory()._usage.budget
    assert budget.most == (most or int(0.95 * memory.DEFAULT))


@pytest.mark.parametrize("text", ["much", "12Q", "1TiB", "-1", "0", "1.5GiB"])
def test_what_is_no_number_of_bytes_is_refused(of_process: None, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(memory.VARIABLE, text)
    with pytest.raises(InvalidUsage):
        memory.memory()


@pytest.mark.parametrize("room", ["1", "2000", "64MiB"])
def test_an_ingest_gives_the_same_rows_however_little_there_is(
    of_process: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: str
) -> None:
    monkeypatch.setenv(memory.VARIABLE, room)
    declared, store = collection(V), MemoryStore()
    rows = [[{"k": 3 * at + number, "v": "w" * 40, "t": at} for at in range(30)] for number in range(3)]
    files = [write(tmp_path / f"{number}", some, declared) for number, some in enumerate(rows)]
    answer = ingest_files(store, task(declared, files))
    assert len(answer.parts) > 1 if room != "64MiB" else len(answer.parts) == 1
    assert sorted(row["k"] for row in rows_of(store, answer)) == list(range(90))
    assert sum(entry.rows for entry in answer.entries) == 90


def test_what_fails_gives_back_what_it_reserved(
    of_process: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(memory.VARIABLE, "64MiB")
    declared = collection(V)
    files = [write(tmp_path / name, [{"k": 1, "v": "w", "t": 1}], declared) for name in ("a", "b")]
    with pytest.raises(Unavailable):
        ingest_files(FaultyStore(MemoryStore(), Fault(1, dies=False)), task(declared, files))
    assert memory.memory().used == 0


@pytest.mark.parametrize("room", ["1", "64MiB"])
def test_a_merge_gives_the_same_rows_however_little_there_is(
    of_process: None, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    monkeypatch.setenv(memory.VARIABLE, room)
    store, schema, parts = MemoryStore(), updates_schema(SMALL), []
    for number in range(2):
        with PartWriter(store, f"{number}", schema, key_width=1, facts=False, group_rows=10) as writer:
            keys = list(range(number, 200, 2))
            columns = [keys, ["w"] * 100, [number] * 100, [number] * 100, [1] * 100]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
            parts += writer.close()
    merge = MergeTask(SMALL, tuple(parts), KeyRange(), 0, 10, CompactionFunction(), "out")
    found = merged(store, merge, Tally(), buffered_rows=80)
    assert [key for rows in found for key in rows.column(0).to_pylist()] == list(range(200))
