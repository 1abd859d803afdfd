"""The ledger of source files: the last word on a path, and what it costs to ask for it and to add to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.faulty import WrappedStore
from support.world import interval
from tidemark.errors import Corruption
from tidemark.model.arrangement import LedgerRun
from tidemark.model.batch import ObjectRef
from tidemark.model.ledger import LedgerEntry, Status
from tidemark.storage.sidecars import ledger
from tidemark.storage.stores.memory import MemoryStore


def entry(path: str, rows: int = 1, *, late: str = "") -> LedgerEntry:
    kept = ObjectRef(late, 1, "0") if late else None
    return LedgerEntry(path, 10, "0" * 64, "token", interval(0), Status.INGESTED, "batch", rows, late=kept)


def numbered(numbers: range) -> Iterator[LedgerEntry]:
    return (entry(f"2013/{number:08}.csv") for number in numbers)


class Costs(WrappedStore):
    """Counts what is asked of a store, and the bytes it answers with."""

    calls = read_bytes = 0

    def _call(self, name: str, key: str, action: Any, *, writes: bool) -> Any:
        self.calls += 1
        answer = action()
        self.read_bytes += len(answer) if isinstance(answer, bytes) else 0
        return answer


@dataclass
class Ledger:
    """Runs in a store, as commits leave them."""

    store: MemoryStore
    runs: tuple[LedgerRun, ...] = ()

    def add(self, *entries: LedgerEntry) -> None:
        self.runs += (ledger.save_run(self.store, f"ledger/{len(self.store.objects):09}.json", entries),)

    def merge(self, first: int = 0, last: int | None = None) -> None:
        some = self.runs[first:last]
        merged = ledger.merge_runs(self.store, f"ledger/m{len(self.store.objects):09}.json", some)
        self.runs = (*self.runs[:first], merged, *self.runs[first + len(some) :])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "LEAF", 3)
    monkeypatch.setattr(ledger, "FAN_OUT", 2)


paths = st.text("abc/", max_size=4)


@given(runs=st.lists(st.lists(paths, min_size=1, max_size=30, unique=True), min_size=1, max_size=5), data=st.data())
def test_look_ups_scans_and_merges_give_the_last_word_on_every_path(runs, data):
    """Under leaves of three and nodes of two, so that trees are deep; against a dictionary."""
    numbers, expected, recorded = count(), {}, Ledger(MemoryStore())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "LEAF", 3)
        patch.setattr(ledger, "FAN_OUT", 2)
        for run in runs:
            said = [entry(path, next(numbers)) for path in run]
            expected |= {one.path: one for one in said}
            recorded.add(*said)
        first = data.draw(st.integers(0, len(runs) - 1))
        recorded.merge(first, data.draw(st.integers(first + 1, len(runs))))
        asked = data.draw(st.lists(paths, max_size=9))
        found = ledger.known(recorded.store, recorded.runs, asked)
        assert found == {path: expected[path] for path in asked if path in expected}
        assert list(ledger.entries(recorded.store, recorded.runs)) == [expected[path] for path in sorted(expected)]
        assert [run.entries for run in recorded.runs] == [
            len(ledger.load_run(recorded.store, run)) for run in recorded.runs
        ]


def test_a_run_names_all_its_objects_and_those_of_late_rows(small):
    recorded = Ledger(MemoryStore())
    recorded.add(*(entry(f"{number:02}", late=f"late-{number}" if number % 5 == 0 else "") for number in range(20)))
    named = {ref.key for ref in ledger.named_objects(recorded.store, recorded.runs[0])}
    assert named == {*recorded.store.objects, *(f"late-{number}" for number in range(0, 20, 5))}


def test_a_million_files_are_not_loaded_to_look_up_ten():
    """What is read is a leaf and its nodes for each path that could be there, whatever the number of files."""
    costs = []
    for files in (5_000, 50_000):
        recorded = Ledger(MemoryStore())
        recorded.add(*numbered(range(0, 2 * files, 2)))
        store = Costs(recorded.store)
        asked = [f"2013/{number:08}.csv" for number in (7, 8, files, 2 * files - 2, 2 * files + 9)]
        assert (
            list(ledger.known(store, recorded.runs, asked)) == [path for path in asked if int(path[5:13]) % 2 == 0][:3]
        )
        costs.append((store.calls, store.read_bytes))
    (few_calls, few_bytes), (many_calls, many_bytes) = costs
    assert few_calls == many_calls <= 5
    assert many_bytes < 1.1 * few_bytes + 20_000


def test_paths_after_all_others_open_nothing():
    """As where landing folders are named by date."""
    recorded = Ledger(MemoryStore())
    recorded.add(*numbered(range(3_000)))
    store = Costs(recorded.store)
    assert ledger.known(store, recorded.runs, ["2014/00000001.csv", "2014/00000002.csv"]) == {}
    assert store.calls == 0


def test_a_commit_adds_one_object_however_many_files_were_counted_before():
    recorded = Ledger(MemoryStore())
    recorded.add(*numbered(range(20_000)))
    before = dict(recorded.store.objects)
    recorded.add(*numbered(range(20_000, 20_030)))
    added = {key: len(data) for key, data in recorded.store.objects.items() if key not in before}
    assert len(added) == 1
    assert sum(added.values()) < 400 * 30
    assert len(recorded.runs) == 2


def test_a_run_of_few_files_is_no_object_and_is_looked_up_merged_and_scanned_like_others():
    recorded = Ledger(MemoryStore())
    recorded.add(*numbered(range(100)))
    before = dict(recorded.store.objects)
    few = [entry("2014/b.csv"), entry("2014/a.csv")]
    recorded.add(*few)
    assert dict(recorded.store.objects) == before
    assert ledger.known(recorded.store, recorded.runs, ["2014/a.csv", "2014/c.csv"]) == {"2014/a.csv": few[1]}
    assert ledger.load_run(recorded.store, recorded.runs[-1]) == (few[1], few[0])
    assert list(ledger.named_objects(recorded.store, recorded.runs[-1])) == []
    late = replace(entry("2014/d.csv"), late=ObjectRef("data/b/late-1.parquet", 1, "0"))
    recorded.add(late)
    assert list(ledger.named_objects(recorded.store, recorded.runs[-1])) == [late.late]
    merged = ledger.merge_runs(recorded.store, "ledger/merged.json", recorded.runs)
    assert merged.object.key in recorded.store.objects
    assert [one.path for one in ledger.load_run(recorded.store, merged)][-3:] == [
        "2014/a.csv",
        "2014/b.csv",
        "2014/d.csv",
    ]


def test_a_merge_holds_one_leaf_of_each_run_in_memory(monkeypatch: pytest.MonkeyPatch):
    """Every leaf it opens is used up before that run's next one is opened."""
    monkeypatch.setattr(ledger, "LEAF", 10)
    recorded = Ledger(MemoryStore())
    recorded.add(*numbered(range(0, 2_000, 2)))
    recorded.add(*numbered(range(1, 2_000, 2)))
    order: list[tuple[str, str]] = []

    class Watched(WrappedStore):
        def _call(self, name: str, key: str, action: Any, *, writes: bool) -> Any:
            order.append((name, key))
            return action()

    merged = ledger.merge_runs(Watched(recorded.store), "ledger/merged.json", recorded.runs)
    assert merged.entries == 2_000
    assert merged.level == 1
    ahead = most = 0
    for name, _ in order:
        ahead += {"read": 1, "create": -1}.get(name, 0)
        most = max(most, ahead)
    assert most <= 2 + 4, "leaves read and not yet written again, beside the two roots"


@pytest.mark.parametrize("victim", ["root", "leaf", "node"])
def test_a_block_that_is_missing_or_changed_is_corruption(small, victim: str):
    recorded = Ledger(MemoryStore())
    recorded.add(*(entry(f"{number:02}") for number in range(20)))
    root = recorded.runs[0].object.key
    other = {key: data for key, data in recorded.store.objects.items() if key != root}
    kind = b'"kind":"node"' if victim == "node" else b'"kind":"leaf"'
    key = root if victim == "root" else next(key for key, data in other.items() if kind in data)
    whole = recorded.store.objects[key]
    recorded.store.objects[key] = whole.replace(b"0", b"1", 1)
    with pytest.raises(Corruption, match=key):
        ledger.load_run(recorded.store, recorded.runs[0])
    del recorded.store.objects[key]
    with pytest.raises(Corruption, match=f"{key} is named by the state and does not exist"):
        ledger.load_run(recorded.store, recorded.runs[0])


def test_a_run_that_is_not_what_the_state_recorded_is_corruption():
    recorded = Ledger(MemoryStore())
    recorded.add(entry("a"), entry("b"))
    for wrong in (replace(recorded.runs[0], entries=3), replace(recorded.runs[0], last_path="c")):
        with pytest.raises(Corruption, match="recorded were"):
            ledger.load_run(recorded.store, wrong)


def test_eight_neighbours_of_one_level_are_due():
    recorded = Ledger(MemoryStore())
    for number in range(ledger.FAN_IN - 1):
        recorded.add(entry(str(number)))
    assert ledger.due_for_merge(recorded.runs) == ()
    recorded.add(entry("9"))
    assert ledger.due_for_merge(recorded.runs) == recorded.runs
    recorded.merge()
    assert [run.level for run in recorded.runs] == [1]
    assert ledger.due_for_merge(recorded.runs) == ()
