"""The kernel of corrections on files of facts, against what the files said when, kept in lists: it shares no code."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.relanded import relanded
from tests.pure.ingest.landed import collection, task, write
from tidemark.arrow.kernels import reread
from tidemark.arrow.kernels.ingest import ingest_files
from tidemark.arrow.kernels.reread import reread_files
from tidemark.arrow.parts.reader import read_groups
from tidemark.errors import Corruption
from tidemark.model.batch import Part
from tidemark.model.collection import Collection, Column, ColumnType, Envelope, Late
from tidemark.model.frontier import IDENTITY
from tidemark.model.interval import Interval
from tidemark.model.ledger import SourceFile
from tidemark.plan.tasks import Contributed, Reread, RereadAnswer, RereadTask
from tidemark.storage.stores.memory import MemoryStore

pytestmark = pytest.mark.pure

V = Column("v", ColumnType.STRING)
SEAL = 4
"""What the files are judged by, whenever they are read."""
LAST = 12

Said = dict[str, object]
Fact = tuple[int, int, int | None, str, int, bool, str | None]
"""Key, event time, order, file, row, whether it is a tombstone, value."""

said = st.fixed_dictionaries(
    {
        "k": st.integers(0, 1),
        "v": st.sampled_from([None, "a", "b"]),
        "t": st.integers(0, LAST),
        "e": st.integers(3, 6),
        "o": st.sampled_from([None, 1]),
        "gone": st.booleans(),
    }
)
readings = st.lists(st.lists(said, max_size=5), min_size=2, max_size=2)


def declared(late: str = "reemit") -> Collection:
    inputs = (Column("o", ColumnType.INT), Column("gone", ColumnType.BOOL))
    of = collection(
        V,
        envelope=Envelope.UPSERT,
        event_time="e",
        order_by="o",
        delete_when="gone = TRUE",
        inputs=inputs,
        late=Late(late),
    )
    return relanded(of, reprocess_for=100)


@dataclass
class World:
    """Two files that were read at SEAL, and all that was written of them since: facts, when, how often."""

    of: Collection
    folder: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    written: list[tuple[Fact, int, int]] = field(default_factory=list)
    contributed: list[tuple[Part, ...]] = field(default_factory=list)

    def land(self, file: int, rows: Sequence[Said]) -> SourceFile:
        return write(self.folder / f"f{file}", rows, self.of)

    def path(self, file: int) -> str:
        return str(self.folder / f"f{file}")

    def first(self, files: Sequence[Sequence[Said]]) -> None:
        listed = [self.land(number, rows) for number, rows in enumerate(files)]
        asked = replace(task(self.of, listed, seal=SEAL), interval=Interval(0, 8))
        self.take(ingest_files(self.store, asked).parts)

    def take(self, parts: tuple[Part, ...]) -> None:
        self.contributed.append(parts)
        names = ("k", "_event_time", "_order", "_file", "_row", "_deleted", "v")
        for part in parts:
            for rows in read_groups(self.store, part):
                for row in rows.to_pylist():
                    fact = tuple(row[name] for name in names)
                    self.written.append((fact, row["_time"], -1 if part.retractions else 1))  # type: ignore[arg-type]

    def correct(self, seal: int, some: dict[int, Sequence[Said] | None]) -> RereadAnswer:
        """Read some of the files again; None is a file that is withdrawn."""
        reread = tuple(
            Reread(self.path(file), None if rows is None else self.land(file, rows), SEAL, SEAL, 0)
            for file, rows in some.items()
        )
        pairs = tuple((0, number) for number in range(10, 10 + len(some)))
        contributed = tuple(Contributed(parts, pairs) for parts in self.contributed)
        asked = RereadTask(self.of, Interval(0, 8), reread, contributed, seal, IDENTITY, "c", "data/c", 10)
        answer = reread_files(self.store, asked)
        self.take(answer.parts)
        return answer

    def says(self, time: int) -> dict[tuple[object, ...], list[tuple[bool, object]]]:
        """Of each key, event time, order and file what was said by then, in its sequence."""
        sums: Counter[Fact] = Counter()
        for fact, learned, diff in self.written:
            if learned <= time:
                sums[fact] += diff
        assert set(sums.values()) <= {0, 1}
        found: dict[tuple[object, ...], list[tuple[bool, object]]] = {}
        for fact in sorted((fact for fact, count in sums.items() if count), key=lambda fact: fact[4]):
            found.setdefault((fact[0], fact[1], fact[2], Path(fact[3]).name), []).append(fact[5:])
        return found


def expected(
    newest: dict[int, tuple[int, Sequence[Said]]], late: str, time: int
) -> dict[tuple[object, ...], list[tuple[bool, object]]]:
    """What the files say, each read again at some time, of what is due by then; judged as at SEAL."""
    found: dict[tuple[object, ...], list[tuple[bool, object]]] = {}
    for file, (_, rows) in newest.items():
        for row in rows:
            k, v, t, e, o, gone = (row[name] for name in ("k", "v", "t", "e", "o", "gone"))
            is_late = e < SEAL  # type: ignore[operator]
            due = SEAL if is_late else max(t, SEAL)  # type: ignore[type-var]
            happened = SEAL if is_late and late == "next_window" else e
            if due <= time and not (is_late and late == "discard"):  # type: ignore[operator]
                found.setdefault((k, happened, o, f"f{file}"), []).append((gone, None if gone else v))  # type: ignore[arg-type]
    return found


corrections = st.lists(st.tuples(st.sampled_from([(0,), (1,), (0, 1)]), readings, st.booleans()), max_size=3)


@settings(deadline=None, max_examples=40)
@given(readings, corrections, st.sampled_from(["discard", "next_window", "reemit"]), st.integers(1, 9))
def test_from_each_correction_on_what_is_said_is_what_the_files_say_now(
    first: list[list[Said]], later: list[tuple[tuple[int, ...], list[list[Said]], bool]], late: str, capacity: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reread, "SORTED_ROWS", capacity)
        made = World(declared(late), Path(folder))
        made.first(first)
        newest: dict[int, tuple[int, Sequence[Said]]] = {file: (SEAL, rows) for file, rows in enumerate(first)}
        for seal, (which, rows, withdrawn) in enumerate(later, SEAL + 2):
            known = {time: made.says(time) for time in range(seal)}
            made.correct(seal, {file: None if withdrawn else rows[file] for file in which})
            newest |= {file: (seal, [] if withdrawn else rows[file]) for file in which}
            assert known == {time: made.says(time) for time in range(seal)}
            for time in range(seal, LAST + 1):
                assert made.says(time) == expected(newest, late, time)


def row(k: int, t: int, v: str | None = "a", **more: object) -> Said:
    return {"k": k, "v": v, "t": t, "e": t, "o": None, "gone": False, **more}


def test_a_line_more_at_the_top_is_all_that_is_written(tmp_path: Path) -> None:
    made = World(declared(), tmp_path)
    lines = [row(k, 5 + k % 3) for k in range(20)]
    made.first([lines, []])
    answer = made.correct(9, {0: [row(99, 7), *lines]})
    assert (answer.added, answer.retracted, answer.event_times) == (1, 0, (7, 7))
    (entry,) = answer.entries
    assert entry.rows == 1
    again = made.correct(10, {0: [*lines[:3], row(99, 7), *lines[3:]]})
    assert (again.parts, again.entries[0].rows) == ((), 0)


def test_lines_of_one_key_and_time_that_change_places_are_said_again(tmp_path: Path) -> None:
    made = World(declared(), tmp_path)
    made.first([[row(1, 5, "a"), row(1, 5, "b"), row(2, 5, "a")], []])
    answer = made.correct(9, {0: [row(1, 5, "b"), row(1, 5, "a"), row(2, 5, "a")]})
    assert (answer.added, answer.retracted) == (2, 2)
    assert [(part.rows, part.retractions) for part in answer.parts] == [(2, 0), (2, 2)]


def test_what_was_contributed_twice_is_corruption(tmp_path: Path) -> None:
    made = World(declared(), tmp_path)
    made.first([[row(1, 5, "a")], []])
    made.contributed.append(made.contributed[0])
    with pytest.raises(Corruption, match=r"f0 contributed a fact of key \(1,\) that happened at 5 2 times"):
        made.correct(10, {0: []})
