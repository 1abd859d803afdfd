"""Spans that follow each other give each change once: of first runs, cleared ones, wide ones, and after compactions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tidemark
from simulation.plain_definitions import COUNTS, derived
from simulation.script import row
from simulation.sea import Sea
from tests.pure.api.made import Made
from tidemark.errors import InvalidUsage
from tidemark.jobs.steps.collect import AT_ONCE, collect
from tidemark.jobs.steps.retain import drop_hold, hold
from tidemark.model.collection import Envelope, Retention

DAYS = [
    [row(1, "a", 3), row(2, "b", 4)],
    [row(3, "b", 12), row(1, "a", 13, d=-1), row(1, "c", 13)],
    [row(4, "a", 25), row(6, "a", 26)],
    [row(2, "b", 31, d=-1), row(5, None, 38)],
]
Changed = Counter[tuple[Any, ...]]


@pytest.fixture
def sea(tmp_path: Path) -> Sea:
    return Sea(tmp_path, root=tmp_path / "root")


def opened(sea: Sea, name: str, version: int | None = None) -> tidemark.OpenCollection:
    return tidemark.open(str(sea.root), name, version)


def learned(sea: Sea, name: str, lower: int, upper: int, **asked: Any) -> Changed:
    """What a span gives: rows with the time at which each was learned, and by how much their number changed."""
    found: Changed = Counter()
    columns = opened(sea, name).schema.names
    for change in opened(sea, name).changes_within(lower, upper, **asked).to_arrow().to_pylist():
        found[*(change[column] for column in columns), change["_commit_version"]] += change["diff"]
    return found


def rows(sea: Sea, name: str) -> Changed:
    answer = opened(sea, name).as_of().to_arrow().to_pylist()
    return Counter({tuple(one.values())[:-1]: one["_multiplicity"] for one in answer})


def added_up(spans: list[Changed]) -> Changed:
    total: Changed = Counter()
    for span in spans:
        for (*values, _), diff in span.items():
            total[tuple(values)] += diff
    return Counter({values: diff for values, diff in total.items() if diff})


@pytest.mark.parametrize("policy", ["all", "full_merge"])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_of_a_landed_collection(sea: Sea, policy: Any, width: int) -> None:
    """Each span, when its run asks and when it is cleared after all compactions, has what nobody merged."""
    sea.landed("whole", envelope=Envelope.UPDATES)
    sea.landed("tides", envelope=Envelope.UPDATES, retention=Retention(policy))
    edges, asked = [0], []
    for day in range(0, len(DAYS), width):
        both = [row for some in DAYS[day : day + width] for row in some]
        for name in ("whole", "tides"):
            sea.ingest(name, day, ("a", both), days=width)
        edges.append(sea.worlds["tides"].state.trace_upper)
        asked.append(learned(sea, "tides", *edges[-2:]))
    wanted = [learned(sea, "whole", *span) for span in pairwise(edges)]
    assert asked == wanted
    assert [learned(sea, "tides", *span) for span in pairwise(edges)] == wanted, "cleared"
    assert added_up([learned(sea, "tides", edges[0], edges[-1])]) == added_up(wanted), "a wide run"
    assert added_up(wanted) == rows(sea, "tides")
    seal = opened(sea, "tides").readable_at(edges[1] - 1).as_of(edges[1] - 1).to_arrow()
    assert seal == opened(sea, "whole").as_of(edges[1] - 1).to_arrow()


@pytest.mark.parametrize("history", [0, 10])
@pytest.mark.parametrize("retention", ["all", "full_merge"])
def test_of_a_derived_collection(sea: Sea, history: int, retention: Any) -> None:
    """Its first run is handed the rows with which history begins, and then the changes; the next goes on from there."""
    sea.landed("tides", envelope=Envelope.UPDATES)
    sea.add(derived("d", COUNTS, history=history, retention=Retention(retention)))
    for day in (0, 1, 2):
        sea.ingest("tides", day, ("a", DAYS[day]))
    sea.correct("d")
    edges = [0, sea.worlds["d"].state.trace_upper]
    first = learned(sea, "d", *edges)
    assert added_up([first]) == rows(sea, "d")
    begins = 9 if history else 29
    assert {time for *_, time in first} == {begins, *((19, 29) if history else ())}
    assert all(diff > 0 for (*_, time), diff in first.items() if time == begins)
    sea.ingest("tides", 3, ("a", DAYS[3]))
    sea.correct("d")
    edges.append(sea.worlds["d"].state.trace_upper)
    second = learned(sea, "d", *edges[1:])
    assert added_up([first, second]) == rows(sea, "d")
    assert learned(sea, "d", *edges[:2]) == first, "cleared"
    assert learned(sea, "d", 5, edges[1]) == first, "nothing was learned before"
    assert added_up([learned(sea, "d", edges[0], edges[2])]) == rows(sea, "d"), "a wide run"
    some = learned(sea, "d", *edges[:2], where="v=a")
    assert some == Counter({one: diff for one, diff in first.items() if one[0] == "a"})


def test_what_is_merged_with_what_was_learned_before_is_refused(tmp_path: Path) -> None:
    """No version has it any more: a hold was lost, and the collector has been there."""
    made = Made(tmp_path, Envelope.UPDATES, retention=Retention("full_merge"))
    for day, some in enumerate([*DAYS, *[[]] * 9]):  # for some windows of versions, which are collected as a whole
        if day == 1:
            made.world.run(lambda job: hold(job, "own", since=9))
        if day == 4:
            made.world.run(lambda job: drop_hold(job, "own"))
        made.drained(day, some)
        made.compacted(day)
        for _ in range(2):
            made.world.clock.now += 100
            collect(made.world.job(), keep=0, graces=AT_ONCE)
        tides = tidemark.open(made.root, "tides")
        if day in (2, 3):
            exact = tides.changes_within(10, 30).to_arrow()
            assert (tides.state.since, exact["_commit_version"].to_pylist()) == (9, [13, 13, 12, 25, 26])
    assert tides.state.since == 129
    for lower, upper in ((10, 30), (10, 130), (30, 130)):
        with pytest.raises(InvalidUsage, match=r"cannot be given once any more: what was learned up to \S+Z is merged"):
            tides.changes_within(lower, upper)
    everything = tides.changes_within(0, 130).to_arrow()
    assert everything.select(["k", "v", "diff"]) == tides.as_of().to_arrow().rename_columns(["k", "v", "diff"])
    with pytest.raises(InvalidUsage, match=r"outside the readable .*; the newest readable is"):
        tides.changes_within(129, 140)
    with pytest.raises(InvalidUsage, match=r"must satisfy 0 <= lower < upper"):
        tides.changes_within(30, 30)
    made.world.run(lambda job: hold(job, "own", since=10, or_later=True))
    assert [one.since for one in made.world.state.holds] == [129]
