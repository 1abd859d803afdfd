"""All steps and gates at once, up to a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cli.conftest import Shell
from tests.support.graph import Graph
from tidemark.errors import InvalidUsage
from tidemark.jobs import app


def test_a_collection_advances_through_all_steps_also_over_days_on_which_nothing_came(events: Shell) -> None:
    events.events(1, "a,1,10:00", "b,2,11:00")
    said = events.ok("advance", "events", "--to", "2024-01-04").out
    assert said.rstrip().endswith("complete below 2024-01-04T00:00:00Z")
    reported = [line.partition(":")[0] for line in said.splitlines()]
    assert reported == [
        *["ingest"] * 3,
        *("gate unsealed", "seal", "gate frontier", "drain", "gate trace", "compact", "gate compaction"),
        "complete below 2024-01-04T00",
    ]
    assert len(events.json("as-of", "events")["rows"]) == 2
    status = events.json("status", "events")
    assert (status["complete_below_text"], status["trace_upper_text"]) == ("2024-01-04T00:00:00Z",) * 2

    again = events.json("advance", "events", "--to", "2024-01-04")
    assert (again["outcome"], again["version"]) == ("nothing to do", status["version"])
    events.ok("ingest", "events", "--date", "2024-01-04", "--as-landed")
    assert events.json("advance", "events")["complete_below_text"] == "2024-01-05T00:00:00Z"


def test_what_it_cannot_reach_is_said_in_one_line(events: Shell) -> None:
    assert "say up to when" in events.refused("advance", "events")
    assert "starts at 2024-01-01" in events.refused("advance", "events", "--to", "2023-12-31")
    assert "ends at 2024-02-01" in events.refused("advance", "events", "--to", "2024-03-01")
    assert "2024-01-02T00:00:00Z" in events.refused("advance", "events", "--to", "2024-01-02T12:00:00Z")
    gone = str(events.landing / "gone")
    assert "does not exist" in events.refused("advance", "events", "--to", "2024-01-03", "--landing", gone)
    assert "has not landed" in events.refused("ingest", "events", "--date", "2024-01-01")


def test_a_derived_collection_advances_as_far_as_its_inputs(shell: Shell) -> None:
    graph = Graph(shell.root)
    graph.land("flights", 2)
    graph.land("carriers", 2)
    graph.derive("delays", "flights", "carriers")
    graph.correct("delays")
    report = shell.json("advance", "delays", "--to", "2024-01-09")
    assert (report["outcome"], report["complete_below_text"]) == ("nothing to do", "2024-01-03T00:00:00Z")
    assert report["steps"][0]["waits_for"] in ("flights", "carriers")


@pytest.fixture
def choosing(events: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell that chooses where to run itself, on which Spark cannot be had."""

    def refused(*_: object) -> None:
        raise InvalidUsage("Spark was asked for")

    monkeypatch.setattr(app, "spark_runner", refused)
    return replace(events, runner=None)


def test_a_small_day_needs_no_spark_and_the_run_says_so(choosing: Shell) -> None:
    choosing.events(1, "a,1,10:00", "b,2,11:00")
    said = choosing.ok("advance", "events", "--to", "2024-01-02")
    (chosen,) = (line for line in said.err.splitlines() if "this process" in line)
    assert chosen.startswith("ingest runs in this process, it takes about 0.0 s and 1 MiB")
    assert "work up to 15 s of CPU" in chosen
    assert "--spark" in chosen
    choosing.events(2, "c,3,10:00")
    for step in ("ingest", "gate", "drain", "compact"):
        words = {"ingest": ["--date", "2024-01-02", "--as-landed"], "gate": ["unsealed"]}.get(step, [])
        document = choosing.json(step, "events", *words)
        assert document.get("work", {}).keys() in ({"runner", "estimated_cpu_s", "estimated_peak_mib", "cpu_s"}, set())
        assert step != "ingest" or document["work"]["runner"] == "process"


def test_spark_is_taken_for_more_and_where_the_option_says_so(choosing: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    choosing.events(1, "a,1,10:00")
    day = ("advance", "events", "--to", "2024-01-02")
    assert choosing.refused(*day, "--spark", "local[1]") == "Spark was asked for"
    with monkeypatch.context() as less:
        less.setenv("TIDEMARK_SMALL_MEMORY", "0")
        assert choosing.refused(*day) == "Spark was asked for"
    monkeypatch.setenv("TIDEMARK_SPARK", "local[1]")  # where Spark is, if it is needed
    choosing.ok(*day)
