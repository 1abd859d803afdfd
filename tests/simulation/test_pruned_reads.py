"""Answers of which row groups were left out are the answers of all rows, filtered: for every kind of collection, before
and after each step of random days; and what was left out was not read."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tidemark
from simulation.random_days import ENVELOPES, History
from support.budget import budget
from support.world import interval
from tidemark.arrow.kernels import merge
from tidemark.arrow.parts.writer import PartWriter
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.drain import drain
from tidemark.jobs.steps.ingest import ingest
from tidemark.jobs.steps.seal import seal
from tidemark.model.collection import Envelope, Layout

pytestmark = pytest.mark.simulation
SEEDS, QUESTIONS = budget(ci=(1, 2), deep=(8, 6))


@pytest.fixture(autouse=True)
def row_groups_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PartWriter.__init__.__kwdefaults__, "group_rows", 3)
    monkeypatch.setattr(merge, "ROW_GROUP_ROWS", 3)


def rows(answer: Any) -> Counter[Any]:
    table = answer.to_arrow()
    return Counter({tuple(row.values()): 1 for row in table.to_pylist()})


def within(whole: Counter[Any], names: list[str], question: tuple[str, Any, Any]) -> Counter[Any]:
    name, low, high = question
    at = names.index(name)
    return Counter(
        {
            row: times
            for row, times in whole.items()
            if row[at] is not None and (low is None or low <= row[at]) and (high is None or row[at] <= high)
        }
    )


def text(question: tuple[str, Any, Any]) -> str:
    name, *ends = question
    written = [f"'{end.isoformat()}'" if isinstance(end, date) else str(end) for end in ends]
    tests = [f"{name} {op} {end}" for op, end in zip((">=", "<="), written, strict=True) if end != "None"]
    return " AND ".join([*tests, f"{name} IS NOT NULL"])


@pytest.mark.parametrize(
    ("envelope", "layout"),
    [
        *((envelope, None) for envelope in ENVELOPES),
        *((envelope, Layout("n", 3)) for envelope in ENVELOPES if envelope is not Envelope.UPSERT),
        (Envelope.UPDATES, Layout("s", 3_600_000_000 * 7)),
    ],
    ids=lambda each: each.name if isinstance(each, Envelope) else f"by {each.by}" if each else "by key",
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_version_answers_as_if_all_were_read(
    envelope: Envelope, layout: Layout | None, seed: int, tmp_path: Path
) -> None:
    history = History(tmp_path, envelope, seed, layout)
    left_out = 0
    for opened in history.versions():
        names = opened.schema.names
        whole = rows(opened.as_of())
        learned = {net: rows(opened.changes(net=net)) for net in (True, False) if not opened.state.since}
        for _ in range(QUESTIONS):
            question = history.question()
            wanted = within(whole, names, question)
            answer = opened.range(*question)
            assert rows(answer) == wanted
            assert rows(opened.as_of(where=text(question))) == wanted
            few = opened.range(*question, columns=["v"])
            assert sum(few.to_arrow()["_multiplicity"].to_pylist()) == sum(row[-1] for row in wanted)
            for net, changes in learned.items():
                assert rows(opened.changes(net=net, where=text(question))) == within(changes, names, question)
            left_out += sum(answer.explain().chunks_missed.values())
    assert left_out > 0


def test_rows_in_order_of_a_timeline(tmp_path: Path) -> None:
    for opened in History(tmp_path, Envelope.APPEND, 7).versions():
        answer = opened.range("n", None, 8, in_order=True).to_arrow()
        found = [(row["n"], row["k"], row["v"] or "", row["d"] or date.min) for row in answer.to_pylist()]
        assert found == sorted(found)
        assert Counter(map(str, answer.to_pylist())) == Counter(
            map(str, opened.range("n", None, 8).to_arrow().to_pylist())
        )
    assert len(found) > 5


def test_what_is_read_is_what_is_explained(tmp_path: Path) -> None:
    """Of two hundred row groups sorted by key, a narrow stretch of a timeline that follows the key reads two."""
    history = History(tmp_path, Envelope.APPEND, 1)
    world = history.world
    world.land(0, "a", [{"k": at, "v": "a", "n": 10 * at, "d": None, "s": None, "t": 1, "e": 1} for at in range(600)])
    world.run(lambda job: ingest(job, interval(0), landing_root=str(world.landing)))
    for step in (seal, drain):
        world.run(lambda job, step=step: step(job, interval(0)))
    answer = tidemark.open(history.root, "tides").range("n", 2995, 3020, columns=["k"])
    assert answer.to_arrow()["k"].to_pylist() == [300, 301, 302]
    explained = answer.explain()
    assert (explained.parts, explained.parts_opened, explained.chunks, explained.chunks_read) == (1, 1, 200, 1)
    assert explained.chunks_missed == {"keys": 0, "values": 199}
    assert explained.bytes_read < explained.bytes / 50
    assert "; n in [2995, 3020]; version" in explained.question
    assert "chunks read   1 of 200; 199 left out by values of columns" in str(explained)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("vv", 1, 2), "did you mean 'v'?"),
        (("v", "a", "b"), "of type string; a timeline is of type int, date or timestamp"),
        (("n", 1.5, 2), "1.5 is no value of it"),
        (("s", "noon", None), "'noon' is no value of it"),
        (("s", 2**63, None), "is no value of it"),
        (("d", True, None), "True is no value of it"),
    ],
)
def test_a_timeline_or_bounds_that_there_are_not(tmp_path: Path, asked: tuple[Any, ...], message: str) -> None:
    *_, opened = History(tmp_path, Envelope.APPEND, 1).versions()
    with pytest.raises(InvalidUsage) as refused:
        opened.range(*asked)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_range_that_ends_before_it_begins_is_empty(tmp_path: Path) -> None:
    *_, opened = History(tmp_path, Envelope.APPEND, 1).versions()
    assert opened.range("n", 8, 2).count() == 0
    assert opened.range("n", None, None).count() > 0
    with pytest.raises(InvalidUsage, match="in_order needs timeline n among the columns"):
        opened.range("n", 1, 2, columns=["v"], in_order=True)
