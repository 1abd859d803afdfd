"""How much is read and asked where windows are judged by their law: never more than the bounds say, and the report
says what was not looked at. Rows are counted, whatever time they take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from simulation.plain_computer import PlainComputer
from simulation.plain_definitions import windows_of
from simulation.script import row
from simulation.sea import Sea, write_by_hand
from support.world import collection
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import GateFailed
from tidemark.jobs.queries import judged_by_law, law_rows
from tidemark.jobs.queries.definition import Judge, compared_keys, verify_definition
from tidemark.jobs.steps.gate import gate
from tidemark.model.collection import Column, ColumnType, Gate
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.kinds import Hopping, Session, Sliding, Tumbling, WindowKind
from tidemark.model.window.windows import EVENT_TIME, Late, Windows

COUNTED = (Aggregate("n", Function.COUNT), Aggregate("most", Function.MAX, "k"))
HOT, ROWS = "hot", 400
"""A key that nearly all rows are of."""


def windows(kind: WindowKind) -> Windows:
    return Windows(("v",), "k", kind, COUNTED, early=True)


def of_names(sea: Sea, name: str) -> None:
    """A collection whose key begins with what windows are by: rows of one of these are together."""
    key = (Column("v", ColumnType.STRING), Column("k", ColumnType.INT))
    sea.add(replace(collection(name=name), key=key, value=(Column("w", ColumnType.INT),)))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows the law is asked of, each time."""
    counts: list[int] = []
    law = judged_by_law.window_rows

    def counting(of: Windows, rows: Iterable[Any], *more: Any) -> Any:
        given = list(rows)
        counts.append(len(given))
        return law(of, given, *more)

    monkeypatch.setattr(judged_by_law, "window_rows", counting)
    return counts


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are read of inputs, each time."""
    counts: list[int] = []
    reading = judged_by_law.input_rows

    def counting(*of: Any, **how: Any) -> Any:
        for rows in reading(*of, **how):
            counts.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(judged_by_law, "input_rows", counting)
    return counts


def made(folder: Path, kind: WindowKind, *, together: bool = False) -> Sea:
    sea = Sea(folder)
    if together:
        of_names(sea, "tides")
    else:
        sea.landed("tides")
    sea.add(windows_of("w", windows(kind)))
    rows = [row(k, HOT if k % 20 else f"few{k % 3}", 3) | {"w": 1} for k in range(ROWS)]
    sea.ingest("tides", 0, ("a", rows))
    sea.correct("w", until="correct")
    return sea


KINDS = (Tumbling(10), Hopping(10, 5), Sliding(10), Session(5))


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_what_is_little_is_judged_by_the_law_alone(
    tmp_path: Path, asked: list[int], kind: WindowKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    sea = made(tmp_path, kind)
    monkeypatch.setattr(PlainComputer, "compare", lambda *_, **__: pytest.fail("compared by what computes"))
    (found,) = sea.run("w", verify_definition).frontiers
    assert (found.sound, found.judged_by, found.left) == (True, Judge.LAW, "")
    assert found.windows == len(sea.rows_as_of("w", 100))
    assert sum(asked) >= ROWS
    report = sea.run("w", lambda job: gate(job, Gate.UNSEALED))
    assert len(report["batches"]) == 1


LATE: list[dict[str, Any]] = [{"late": Late.DISCARD}, {"late": Late.NEXT_WINDOW}, {"max_lateness": 8}, {"grace": 3}]


@pytest.mark.parametrize(("how", "on"), [*((how, "k") for how in LATE), (LATE[-1], EVENT_TIME)])
def test_windows_that_take_late_rows_for_a_while_are_judged_at_each_frontier(
    tmp_path: Path, how: dict[str, Any], on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each day the rows are late by up to all that came before; and a wrong row is found, whatever the kind."""
    sea = Sea(tmp_path)
    sea.landed("tides")
    kinds = {"tumbling": Tumbling(4), "hopping": Hopping(6, 3), "sliding": Sliding(5), "session": Session(3)}
    made = {
        name: Windows(("v",), on, kind, COUNTED, early=True, **how)
        for name, kind in kinds.items()
        if how.get("late") is not Late.NEXT_WINDOW or not isinstance(kind, Sliding | Session)
    }
    for name, of in made.items():
        sea.add(windows_of(name, of))
    chance = Random(str(how))
    for day in range(4):
        at = [chance.randrange(max(1, 10 * day - 25), 10 * day + 10) for _ in range(9)]
        rows = [row(k + 1000 * number * (on != "k"), "ab"[k % 2], 10 * day + 1, k) for number, k in enumerate(at)]
        sea.ingest("tides", day, ("a", rows))
        for name in made:
            sea.correct(name)
    with monkeypatch.context() as alone:
        alone.setattr(PlainComputer, "compare", lambda *_, **__: pytest.fail("compared by what computes"))
        for name in made:
            frontiers = sea.run(name, lambda job: verify_definition(job, every=True)).frontiers
            judged = [one for one in frontiers if not one.not_compared]
            assert all((one.sound, one.judged_by, one.left) == (True, Judge.LAW, "") for one in judged), name
            assert judged
            assert judged[0].windows
            write_by_hand(sea, name, {max(sea.rows_as_of(name, 100), key=lambda window: window[2]): -1})
            assert len(sea.run(name, verify_definition).frontiers[0].differing) == 1, name


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_rows_some_windows_are_judged_and_that_is_said(
    tmp_path: Path, asked: list[int], kind: WindowKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    sea = made(tmp_path, kind)
    monkeypatch.setattr(judged_by_law, "LAW_ROWS", 90)
    monkeypatch.setattr(judged_by_law, "STRETCH_ROWS", 20)
    report = sea.run("w", verify_definition)
    (found,) = report.frontiers
    assert 0 < sum(asked) <= 90
    assert (report.sound, report.whole) == (True, False)
    assert found.windows is not None
    assert 0 < found.windows < len(sea.rows_as_of("w", 100))
    assert found.left == f"{found.windows:,} windows were judged, the others were not"
    monkeypatch.setattr(judged_by_law, "LAW_VISITS", 30)
    asked.clear()
    sea.run("w", verify_definition)
    assert sum(asked) <= 30


def test_keys_with_too_many_rows_are_not_judged_and_pass_no_gate_as_if_they_were(
    tmp_path: Path, asked: list[int], read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a few keys the rows are few, of the hot one too many, to be judged or even to be read; and it is said so."""
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 20)
    sea = made(tmp_path, Session(5), together=True)
    wrong = next(window for window in sea.rows_as_of("w", 100) if window[0] == "few0")
    state = sea.worlds["w"].state
    keys = [tuple(window[:3]) for window in sorted(sea.rows_as_of("w", 100)) if window[0] in (HOT, "few0", "few1")]
    few = [key for key in keys if key[0] != HOT]
    for where, bound, count, most in ((judged_by_law, "LAW_ROWS", 100, ROWS), (law_rows, "READ_ROWS", 40, 80)):
        with monkeypatch.context() as less:
            less.setattr(where, bound, count)
            verdict = sea.run("w", lambda job: compared_keys(job, state, keys, 9))
        assert (verdict.differing, verdict.judged_by, verdict.keys) == ((), Judge.LAW, len(few))
        assert verdict.left == f"{len(keys) - len(few)} of {len(keys)} keys have too many rows"
        assert sum(asked) <= 100
        assert sum(read) <= most
        asked.clear()
        read.clear()
    with monkeypatch.context() as less:
        less.setattr(law_rows, "READ_ROWS", 40)
        verdict = sea.run("w", lambda job: compared_keys(job, state, [key for key in keys if key[0] == HOT], 9))
    assert (verdict.judged_by, verdict.keys, verdict.left) == (Judge.LAW, 0, "1 of 1 keys have too many rows")
    assert not read
    write_by_hand(sea, "w", {wrong: -1})
    with pytest.raises(GateFailed, match=r"of 1 recomputed keys 1 rows are not what the definition says"):
        sea.run("w", lambda job: gate(job, Gate.UNSEALED))
    monkeypatch.setattr(judged_by_law, "LAW_ROWS", 0)
    notes: list[str] = []
    sea.run("w", lambda job: gate(replace(job, note=notes.append), Gate.UNSEALED))
    assert any("not recomputed: 1 of 1 keys have too many rows" in note for note in notes)


def test_of_what_is_too_large_some_windows_are_found_by_a_scan(
    tmp_path: Path, asked: list[int], read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all rows, those alone are kept that are in a few windows of the collection."""
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 4)
    monkeypatch.setattr(judged_by_law, "SOME_KEYS", 3)
    for kind in KINDS[:3]:
        sea = made(tmp_path / str(kind), kind)
        sea.correct("w")
        asked.clear()
        read.clear()
        with monkeypatch.context() as less:
            less.setattr(law_rows, "READ_ROWS", 100)
            (found,) = sea.run("w", verify_definition).frontiers
        assert (found.sound, found.judged_by, found.windows) == (True, Judge.LAW, 3)
        assert found.left == "3 windows were judged, the others were not"
        assert sum(read) == ROWS
        assert 0 < sum(asked) <= 3 * 12


def test_what_is_too_large_to_be_read_is_left_to_spark(
    tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sea = made(tmp_path, Tumbling(10))
    for bound in ("READ_ROWS", "READ_BYTES"):
        with monkeypatch.context() as less:
            less.setattr(law_rows, bound, 50)
            (found,) = sea.run("w", verify_definition).frontiers
            assert (found.sound, found.judged_by, found.windows) == (True, Judge.SPARK, None)
    assert not read
    monkeypatch.setattr(judged_by_law, "LAW_ROWS", 5)  # fewer than any window has
    (found,) = sea.run("w", verify_definition).frontiers
    assert (found.sound, found.judged_by, found.windows) == (True, Judge.SPARK, None)
