"""All steps and gates at once, up to a time."""

from __future__ import annotations

from tests.cli.conftest import Shell
from tests.support.graph import Graph


def test_a_collection_advances_through_all_steps_also_over_days_on_which_nothing_came(events: Shell) -> None:
    events.events(1, "a,1,10:00", "b,2,11:00")
    said = events.ok("advance", "events", "--to", "2024-01-04").out
    assert said.rstrip().endswith("complete below 2024-01-04T00:00:00Z")
    told = [line.partition(":")[0] for line in said.splitlines()]
    assert told == [
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


def test_what_it_cannot_reach_is_told_in_one_line(events: Shell) -> None:
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
    told = shell.json("advance", "delays", "--to", "2024-01-09")
    assert (told["outcome"], told["complete_below_text"]) == ("nothing to do", "2024-01-03T00:00:00Z")
    assert told["steps"][0]["waits_for"] in ("flights", "carriers")
