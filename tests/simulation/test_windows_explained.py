"""What is shown of windows before anything is computed: what they are, and what the next run reads and computes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from simulation.plain_definitions import windows_of
from simulation.script import row
from simulation.sea import Sea
from support.budget import budget
from tests.support.kinds import SAMPLES, Sample, name
from tidemark.cli.derived import _explained
from tidemark.definition.windows.explained import explained_windows
from tidemark.jobs.queries.explain import explain
from tidemark.model.window.aggregate import Aggregate, Function
from tidemark.model.window.contents import Rule, contents
from tidemark.model.window.happened import Happened
from tidemark.model.window.kinds import Hopping, Session, Sliding
from tidemark.model.window.windows import Windows

COUNT = Aggregate("n", Function.COUNT)
HOUR = 3_600_000_000


@pytest.mark.parametrize("sample", SAMPLES, ids=name)
def test_windows_in_words(sample: Sample) -> None:
    kind, most = sample.kind, sample.most
    assert kind.most_windows == most
    lines = explained_windows(Windows(("k",), "at", kind, (COUNT,), grace=2 * HOUR))
    assert lines[0] == f"{sample.called} on at, for each k"
    assert lines[1].startswith(f"a row changes {f'at most {most:,} {kind.noun}' if most else kind.changes}")
    assert lines[2] == "a window is there from 2h after its end on"


def test_many_windows_in_words() -> None:
    assert Hopping(HOUR, 7).changes == "at most 514,285,715 windows"
    assert Session(HOUR).changes == "at most 2 sessions: it may join two, or part one"
    assert Sliding(HOUR).changes == "2 windows of its own, and one for each instant with rows within 1h of it"


@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.unit == 1], ids=name)
def test_a_row_changes_no_more_windows_than_is_said(sample: Sample) -> None:
    """Of many random sets of instants, of which one comes or goes."""
    chance, kind = random.Random(7), sample.kind

    def windows(instants: set[int]) -> dict[Any, Any]:
        return dict(contents(Rule(kind), [Happened("k", "v", at, 0) for at in instants]))

    for _ in range(budget(ci=125, deep=500)):
        others = {chance.randrange(60) for _ in range(chance.randrange(12))}
        at = chance.randrange(60)
        after, before = windows({*others, at}), windows(others - {at})
        gone, come = (
            {of for of, rows in one.items() if other.get(of) != rows}
            for one, other in ((before, after), (after, before))
        )
        most = kind.most_windows
        if isinstance(kind, Sliding):
            most = 2 + sum(0 < abs(one - at) <= kind.size for one in others)
        assert most is None or max(len(gone), len(come)) <= most
        assert len(after) <= kind.windows_per_row * len({*others, at})


def test_what_the_next_run_reads_and_computes_is_shown_beforehand(tmp_path: Path) -> None:
    sea = Sea(tmp_path)
    sea.landed("tides")
    sea.add(windows_of("w", Windows(("v",), "k", Hopping(20, 5), (COUNT,), early=True)))
    sea.ingest("tides", 0, ("a", [row(k, "a", 3) for k in range(9)]))
    assert _next(sea)["changed_rows"] == 9, "a first build reads all"
    sea.correct("w")
    assert _next(sea)["does"] == "nothing"
    sea.ingest("tides", 1, ("a", [row(3, "a", 12), row(12, "b", 13)]))
    sea.add(windows_of("s", Windows(("v",), "k", Sliding(20), (COUNT,), early=True)))
    lines = "\n".join(map(str, _explained(_explain(sea, "s"), queries=False)))
    assert set(_explain(sea, "s")["queries"]) == {"rows", "valued"}, "what Spark is asked, if anything is left to it"
    assert "computes at most 22 windows" in lines, "a first build has two windows for each row at most"
    following = _next(sea)
    assert (following["mode"], following["changed_rows"], following["touched_windows"]) == ("by_key", 2, 8)
    assert len(sea.asked) == 1, "nothing was computed for it"


def _explain(sea: Sea, name: str) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    sea.run(name, lambda job: answers.append(explain(sea.joined(job))))
    return answers[0]


def _next(sea: Sea) -> dict[str, Any]:
    answer = _explain(sea, "w")
    lines = "\n".join(map(str, _explained(answer, queries=False)))
    assert "hopping windows of 20us every 5us on k, for each v" in lines
    assert "a window is there as soon as it has rows" in lines
    if "changed_rows" in answer["next"]:
        assert f"reads at most {answer['next']['changed_rows']} rows that changed, and computes at most" in lines
    return dict(answer["next"])
