"""How a derived collection follows its inputs, as it is reported to people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.graph import DAY, START, Graph
from tidemark.api.opening import open as opened
from tidemark.jobs.app import without_spark
from tidemark.jobs.queries.followed import followed_between
from tidemark.jobs.steps.correct import correct
from tidemark.model.batch import ObjectRef, UnsealedBatch
from tidemark.model.change import CompactionAllowed
from tidemark.model.instant import format_instant
from tidemark.model.interval import Interval
from tidemark.plan.consume import Usable, laggard, usable
from tidemark.plan.seal import plan_seal
from tidemark.storage.log.log import Committed

pytestmark = pytest.mark.pure


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph(tmp_path)


def stands(graph: Graph, name: str) -> dict[str, tuple[str | None, str]]:
    """Of each input how far it was consumed, and how it stands."""
    follows = opened(str(graph.root), name).status().follows
    assert follows is not None
    days = {one.name: None if one.consumed is None else format_instant(one.consumed)[:10] for one in follows.inputs}
    return {one.name: (days[one.name], one.status) for one in follows.inputs}


def test_one_that_has_followed_all_of_them_waits_for_nobody(graph: Graph) -> None:
    graph.land("flights", 3)
    graph.land("carriers", 3)
    graph.derive("delays", "flights", "carriers")
    assert graph.correct("delays") is None
    seen = opened(str(graph.root), "delays").status()
    assert seen.follows is not None
    assert (seen.follows.waits_for, seen.follows.due) == (None, False)
    assert stands(graph, "delays") == {"flights": ("2024-01-04", "all"), "carriers": ("2024-01-04", "all")}
    assert seen.follows.last.startswith("corrected to 2024-01-04T00:00:00Z, by key: 3 rows read, nothing differs")
    assert (seen.complete_below, seen.seal) == (START + 3 * DAY, START + 3 * DAY)
    assert seen.next_step == "tidemark ingest flights --date 2024-01-04", "it has nothing to do itself"


def test_the_one_that_lags_is_named_and_so_is_how_far_the_others_are(graph: Graph) -> None:
    graph.land("flights", 3)
    graph.land("carriers", 1)
    graph.derive("delays", "flights", "carriers")
    graph.correct("delays")
    assert stands(graph, "delays") == {"flights": ("2024-01-02", "behind"), "carriers": ("2024-01-02", "lags")}
    follows = opened(str(graph.root), "delays").status().follows
    assert follows is not None
    assert follows.waits_for == "carriers"
    assert follows.why == "carriers is complete below 2024-01-02T00:00:00Z, flights below 2024-01-04T00:00:00Z"


def test_its_status_says_what_the_next_run_says(graph: Graph) -> None:
    """A run catches up a day at a time, so it is at the first of these days that it finds what is missing."""
    for days in (1, 3):
        for name in ("flights", "carriers"):
            graph.land(name, 5 if (name, days) == ("flights", 3) else days)
        if days == 1:
            graph.derive("delays", "flights", "carriers")
            graph.correct("delays")
    log = graph.job("flights").log
    log.commit(log.load(), CompactionAllowed(START + 5 * DAY - 1, (), 0))
    follows = opened(str(graph.root), "delays").status().follows
    result = correct(graph.job("delays"))
    assert follows is not None
    assert (follows.waits_for, follows.why) == (result["waits_for"], result["waits"])
    assert "would be read as of 2024-01-02T23:59:59.999999Z" in follows.why


def test_what_is_not_there_yet_is_waited_for(graph: Graph) -> None:
    graph.land("flights", 1)
    graph.derive("delays", "flights", "carriers")
    assert stands(graph, "delays") == {"flights": (None, "behind"), "carriers": (None, "lags")}
    graph.land("carriers", 0)
    follows = opened(str(graph.root), "delays").status().follows
    assert follows is not None
    assert (follows.waits_for, follows.due, follows.last) == ("carriers", False, "")
    assert "carriers cannot be read yet" in follows.why


def test_the_next_step_is_that_of_the_input_it_waits_for_also_through_another(graph: Graph) -> None:
    graph.land("flights", 2)
    graph.land("carriers", 1)
    graph.derive("delays", "flights", "carriers")
    graph.derive("totals", "delays", "flights")

    def next_step(name: str) -> str:
        return opened(str(graph.root), name).status().next_step

    assert next_step("totals") == "tidemark correct delays", "nothing of it can be read yet"
    graph.correct("delays")
    graph.correct("totals")
    assert next_step("delays") == next_step("totals") == "tidemark ingest carriers --date 2024-01-02"
    graph.derive("lost", "nowhere")
    assert next_step("lost") == "tidemark correct lost", "which says that there is no such collection"


def test_an_input_that_has_ended_is_not_what_comes_next(graph: Graph) -> None:
    """It is complete below its end and no further, so the least complete of all."""
    graph.land("flights", 2)
    graph.land("carriers", 1, ends=True)
    graph.derive("delays", "flights", "carriers")
    graph.correct("delays")
    seen = opened(str(graph.root), "delays").status()
    assert seen.follows is not None
    assert (seen.follows.waits_for, seen.follows.due) == (None, False)
    assert seen.next_step == "tidemark ingest flights --date 2024-01-03"


def test_the_json_of_a_status_is_json(graph: Graph) -> None:
    graph.land("flights", 1)
    graph.derive("delays", "flights")
    graph.correct("delays")
    follows = opened(str(graph.root), "delays").status().as_dict()["follows"]
    assert follows["inputs"] == [
        {
            "name": "flights",
            "consumed": START + DAY,
            "consumed_text": "2024-01-02T00:00:00Z",
            "readable": START + DAY,
            "readable_text": "2024-01-02T00:00:00Z",
            "complete_below": START + DAY,
            "complete_below_text": "2024-01-02T00:00:00Z",
            "status": "all",
        }
    ]
    assert opened(str(graph.root), "flights").status().as_dict()["follows"] is None


def test_what_was_corrected_before_an_older_seal_came_is_reported_all_the_same(graph: Graph) -> None:
    """Others commit between the plan of a seal and its commit: that of the 2nd may stand behind a run to the 3rd."""
    graph.land("flights", 1)
    graph.derive("delays", "flights")
    graph.correct("delays", sealed=False)
    log = graph.job("delays").log
    planned_at = log.load()
    older = plan_seal(planned_at.state, 0)
    assert older is not None
    graph.land("flights", 2)
    first, last, table = START + DAY, START + 2 * DAY, ObjectRef("data/b/parts.json", 1, "ab" * 32)
    log.store.create(table.key, b"x")
    batch = UnsealedBatch("b", Interval(first, last), table, 1, 5, 1, 0, first, first, first, first)
    graph.correct("delays", sealed=False, batch=batch)
    assert isinstance(log.commit(planned_at, older), Committed)
    found = followed_between(log, first, last)
    assert (found.runs, found.added) == (1, 5)
    assert followed_between(log, last, last + DAY).runs == 0


def test_where_an_input_was_never_created_its_first_run_waits_and_is_no_failure(tmp_path: Path) -> None:
    """What columns it has cannot be known before, so there is no collection either."""
    graph = Graph(tmp_path / "root")
    graph.land("flights", 1)
    file = tmp_path / "delays.yaml"
    file.write_text(
        "name: delays\nfrom: [flights, carriers]\nkey: [id]\n"
        "select: SELECT flights.id, carriers.amount FROM flights JOIN carriers ON flights.id = carriers.id\n"
    )
    bounds = ["--lower", format_instant(0), "--upper", format_instant(START + DAY)]
    asked = ["--root", str(graph.root), "--collection", "delays", *bounds, "--file", str(file)]
    result = without_spark("correct", asked)
    assert result is not None
    assert (result["outcome"], result["waits_for"], result["unfinished"]) == ("waits", "carriers", False)
    assert result["waits"] == "carriers was never created, or was dropped; `tidemark init` creates it from its file"
    graph.land("carriers", 0)
    created = without_spark("correct", asked)
    assert created is not None, "the columns of a join are known without Spark"
    assert (created["outcome"], created["version"]) == ("waits", 1)


def test_an_input_that_has_consumed_another_one_less_far_is_named(tmp_path: Path) -> None:
    """They are used together where both have consumed it equally far: nothing is to do, and it is not all of it."""
    graph = Graph(tmp_path)
    graph.land("flights", 1)
    graph.derive("delays", "flights")
    graph.correct("delays")
    graph.derive("beside", "flights", "delays")
    graph.correct("beside")
    flights, delays = (usable(given) for given in graph.inputs("beside"))
    assert isinstance(flights, Usable)
    assert isinstance(delays, Usable)
    assert laggard(graph.state("beside"), [flights, delays]) is None
    found = laggard(graph.state("beside"), [replace(flights, upper=flights.upper + 1), delays])
    assert found is not None
    assert found.laggard == "delays"
    assert found.reason == "delays has consumed flights to 2024-01-02T00:00:00Z, known is 2024-01-02T00:00:00.000001Z"
