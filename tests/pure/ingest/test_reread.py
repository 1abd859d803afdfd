"""The kernel of corrections on real files, against what the files said when, kept in lists: it shares no code."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.ingest.landed import collection, task, write
from tidemark.arrow.kernels import reread
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.arrow.kernels.reread import reread_files
from tidemark.arrow.parts.reader import read_groups
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late
from tidemark.model.frontier import IDENTITY
from tidemark.model.interval import Interval
from tidemark.model.ledger import SourceFile, Status
from tidemark.plan.tasks import Contributed, Reread, RereadAnswer, RereadTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

V = Column("v", ColumnType.STRING)
SEAL = 4
"""What the files are judged by, whenever they are read."""
LAST = 12

Said = dict[str, object]
Updates = list[tuple[int, str | None, int, int, int]]


def declared(late: Late, envelope: Envelope = Envelope.UPDATES) -> Collection:
    return relanded(collection(V, envelope=envelope, event_time="e", late=late), reprocess_for=100)


said = st.fixed_dictionaries(
    {
        "k": st.integers(0, 2),
        "v": st.sampled_from([None, "a", "b"]),
        "t": st.integers(0, LAST),
        "e": st.integers(0, LAST),
        "diff": st.sampled_from([1, 1, 2, -1]),
    }
)
files = st.lists(st.lists(said, max_size=5), min_size=2, max_size=2)


@dataclass
class World:
    """Two files that were read at SEAL, and all that was written of them since."""

    store: MemoryStore
    of: Collection
    folder: Path
    updates: Updates
    contributed: list[Contributed]
    batches: int = 0

    def land(self, file: int, rows: list[Said]) -> SourceFile:
        return write(self.folder / f"f{file}", rows, self.of)  # type: ignore[arg-type]

    def take(self, parts: tuple, numbers: dict[int, int]) -> None:  # type: ignore[type-arg]
        self.contributed.append(Contributed(parts, tuple(numbers.items())))
        for part in parts:
            for rows in read_groups(self.store, part):
                for row in rows.to_pylist():
                    self.updates.append((row["k"], row["v"], row["_time"], row["_event_time"], row["_diff"]))

    def correct(self, seal: int, some: dict[int, list[Said] | None], **changes: object) -> RereadAnswer:
        """Read some of the files again; None is a file that is withdrawn."""
        numbers = {file: at for at, file in enumerate(some)}
        reread = tuple(
            Reread(f"f{file}", None if rows is None else self.land(file, rows), SEAL, SEAL, 0)
            for file, rows in some.items()
        )
        contributed = tuple(
            Contributed(known.parts, tuple((old, numbers[file]) for old, file in known.numbers if file in numbers))
            for known in self.contributed
        )
        self.batches += 1
        asked = RereadTask(self.of, Interval(0, 8), reread, contributed, seal, IDENTITY, "c", f"data/c{self.batches}")
        answer = reread_files(self.store, replace(asked, **changes))
        self.take(answer.parts, {at: file for file, at in numbers.items()})
        return answer

    def current(self, time: int, event_time: int) -> dict[tuple[int, str | None], int]:
        sums: dict[tuple[int, str | None], int] = {}
        for k, v, learned, happened, diff in self.updates:
            if learned <= time and happened <= event_time:
                sums[k, v] = sums.get((k, v), 0) + diff
        return {at: count for at, count in sums.items() if count}


def world(of: Collection, folder: str, first: list[list[Said]]) -> World:
    made = World(MemoryStore(), of, Path(folder), [], [])
    listed = [made.land(file, rows) for file, rows in enumerate(first)]
    answer = ingest_files(made.store, replace(task(of, listed, seal=SEAL), interval=Interval(0, 8)))
    made.take(answer.parts, {0: 0, 1: 1})
    return made


def judged(rows: list[Said], policy: str) -> Updates:
    """When rows count and what they say, by the rules that docs/how-to state, as judged at SEAL."""
    found: Updates = []
    for row in rows:
        k, v, t, e, diff = (row[name] for name in ("k", "v", "t", "e", "diff"))
        if e >= SEAL:  # type: ignore[operator]
            found.append((k, v, max(t, SEAL), e, diff))  # type: ignore[arg-type,type-var]
        elif policy == "reemit":
            found.append((k, v, SEAL, e, diff))  # type: ignore[arg-type]
        elif policy == "next_window":
            found.append((k, v, SEAL, SEAL, diff))  # type: ignore[arg-type]
    return found


def expected(
    versions: list[tuple[int, int, list[Said]]], policy: str, time: int, event_time: int
) -> dict[tuple[int, str | None], int]:
    """`versions`: when, which file, what it said from then on."""
    sums: dict[tuple[int, str | None], int] = {}
    for file in (0, 1):
        newest = [rows for seal, of, rows in versions if of == file and seal <= time][-1:]
        for k, v, learned, happened, diff in (row for rows in newest for row in judged(rows, policy)):
            if learned <= time and happened <= event_time:
                sums[k, v] = sums.get((k, v), 0) + diff
    return {at: count for at, count in sums.items() if count}


corrections = st.lists(st.tuples(st.sampled_from([(0,), (1,), (0, 1)]), files, st.booleans()), max_size=3)


@settings(deadline=None, max_examples=60)
@given(files, corrections, st.sampled_from(["discard", "next_window", "reemit"]), st.integers(1, 9))
def test_from_each_correction_on_the_files_count_as_they_say_now(
    first: list[list[Said]], later: list[tuple[tuple[int, ...], list[list[Said]], bool]], policy: str, capacity: int
) -> None:
    """At every (time, event time), judged as at first: the rows that are due and have happened, as last read."""
    versions = [(SEAL, file, rows) for file, rows in enumerate(first)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reread, "SORTED_ROWS", capacity)
        made = world(declared(Late(policy)), folder, first)
        for seal, (which, rows, withdrawn) in enumerate(later, SEAL + 2):
            made.correct(seal, {file: None if withdrawn else rows[file] for file in which})
            versions += [(seal, file, [] if withdrawn else rows[file]) for file in which]
        for time, event_time in product(range(SEAL, LAST + 1), range(LAST + 1)):
            assert made.current(time, event_time) == expected(versions, policy, time, event_time)
    event(f"corrections: {len(later)}")


def row(k: int, t: int, v: str | None = "a") -> Said:
    return {"k": k, "v": v, "t": t, "e": t, "diff": 1}


def test_what_changed_is_reported_and_which_event_times_it_touches(tmp_path: Path) -> None:
    made = world(declared(Late("reemit")), str(tmp_path), [[row(1, 5), row(2, 6), row(3, 7)], [row(4, 5)]])
    answer = made.correct(9, {0: [row(1, 5), row(2, 6, "b"), row(3, 7)]})
    assert (answer.added, answer.retracted, answer.event_times) == (1, 1, (6, 6))
    (entry,) = answer.entries
    assert entry is not None
    assert (Path(entry.path).name, entry.rows, entry.status, entry.batch) == ("f0", 2, Status.INGESTED, "c")
    assert made.current(9, 9) == {(1, "a"): 1, (2, "b"): 1, (3, "a"): 1, (4, "a"): 1}


@pytest.mark.parametrize(
    ("before", "now", "retracted", "added"),
    [
        *(([1], [1, -1, -1], 1, 1), ([1], [1, -2], 1, 1), ([], [-1, -1], 0, 2), ([-1], [], 1, 0), ([-3], [-1], 2, 0)),
        *(([-1], [-3], 0, 2), ([2], [1], 1, 0), ([1, -1], [], 0, 0), ([-1], [1], 1, 1)),
    ],
)
def test_what_is_retracted_is_what_the_file_said_whatever_its_sign(
    tmp_path: Path, before: list[int], now: list[int], retracted: int, added: int
) -> None:
    """Rows of negative diff that are new are added, and one that is gone is retracted."""
    first, second = ([row(1, 5) | {"diff": diff} for diff in diffs] for diffs in (before, now))
    made = world(declared(Late("reemit")), str(tmp_path), [first, []])
    answer = made.correct(9, {0: second})
    assert (answer.retracted, answer.added) == (retracted, added)


def test_arrival_with_discard_a_row_is_added_and_none_is_a_dead_letter(tmp_path: Path) -> None:
    """`time: arrival` with `discard`, three rows, sealed, a fourth is added: +1 and no dead letters."""
    of = relanded(declared(Late("discard"), Envelope.APPEND), time=None, event_time=None)
    three: list[Said] = [{"k": k, "v": "a", "t": 0, "e": 0, "diff": 1} for k in (1, 2, 3)]
    made = world(of, str(tmp_path), [three, []])
    answer = made.correct(20, {0: [*three, three[0] | {"k": 4}]})
    (entry,) = answer.entries
    assert entry is not None
    assert (answer.added, answer.retracted, entry.rows_late_discarded, entry.late) == (1, 0, 0, None)
    assert made.updates[-1] == (4, "a", 20, 7, 1)


def test_a_corrected_file_that_cannot_be_read_leaves_what_was_said(tmp_path: Path) -> None:
    made = world(declared(Late("reemit")), str(tmp_path), [[row(1, 5)], [row(2, 6)]])
    good, bad = made.land(1, [row(3, 6)]), made.land(0, [row(9, 9)])
    Path(bad.path).write_bytes(b"no parquet")
    bad = replace(bad, bytes=10)
    (known,) = made.contributed
    asked = RereadTask(
        made.of,
        Interval(0, 8),
        (Reread("f0", bad, SEAL, SEAL, 0), Reread("f1", good, SEAL, SEAL, 0)),
        (Contributed(known.parts, ((0, 0), (1, 1))),),
        20,
        IDENTITY,
        "c",
        "data/c",
    )
    answer = reread_files(made.store, asked)
    assert [entry and entry.status for entry in answer.entries] == [Status.QUARANTINED, Status.INGESTED]
    made.take(answer.parts, {0: 0, 1: 1})
    assert made.current(20, 20) == {(1, "a"): 1, (3, "a"): 1}
