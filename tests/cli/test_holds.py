"""Retention and holds by hand: what stays readable, what does not, and who keeps it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import EVENTS, Shell
from tests.cli.test_drop import moved
from tests.cli.test_drop import sums as sums
from tidemark.jobs.steps.retain import hold_name

DAYS = [f"2024-01-{day:02d}" for day in range(1, 8)]


def full(shell: Shell, retention: str) -> Shell:
    """Seven days of one row each, drained day by day, under a retention that compaction has not applied yet."""
    shell.ok("init", shell.declared(EVENTS + f"retention: {retention}\nlive_batches: 2\n"))
    for number, day in enumerate(DAYS, start=1):
        shell.events(number, f"a,{number},10:00")
        shell.moved("events", day)
    return shell


def row_count(shell: Shell, time: str) -> int:
    """Rows as known at a time."""
    return len(shell.json("as-of", "events", "--time", time)["rows"])


@pytest.mark.parametrize(
    ("retention", "readable", "gone", "nearest"),
    [
        ("full_merge", ["2024-01-07T23:59:59.999999Z"], "2024-01-07T12:00:00Z", "2024-01-07T23:59:59.999999Z"),
        (
            "{tiered: {keep_recent: 3}}",
            ["2024-01-05T23:59:59.999999Z", "2024-01-06T01:00:00Z"],
            "2024-01-05T12:00:00Z",
            "2024-01-05T23:59:59.999999Z",
        ),
        (
            "{time_boundary: 1d}",
            ["2024-01-01T23:59:59.999999Z", "2024-01-04T23:59:59.999999Z"],
            "2024-01-04T12:00:00Z",
            "2024-01-03T23:59:59.999999Z and 2024-01-04T23:59:59.999999Z",
        ),
        (
            "[{keep: all, for: 2d}, {keep: 12h, for: 4d}, {keep: 1d}]",
            ["2024-01-06T00:00:01Z", "2024-01-05T11:59:59.999999Z", "2024-01-02T23:59:59.999999Z"],
            "2024-01-02T11:59:59.999999Z",
            "2024-01-01T23:59:59.999999Z and 2024-01-02T23:59:59.999999Z",
        ),
    ],
)
def test_what_retention_keeps_is_exact_and_the_rest_is_refused_with_the_nearest_times(
    shell: Shell, retention: str, readable: list[str], gone: str, nearest: str
) -> None:
    full(shell, retention)
    before = {time: row_count(shell, time) for time in [*readable, gone]}
    shell.ok("compact", "events")
    assert {time: row_count(shell, time) for time in readable} == {time: before[time] for time in readable}
    refused = shell.refused("as-of", "events", "--time", gone)
    assert refused.endswith(f"nearest readable: {nearest}"), refused


def test_since_does_not_pass_a_hold_until_it_is_let_go(shell: Shell) -> None:
    full(shell, "full_merge")
    at = "2024-01-03T10:00:00Z"
    placed = shell.json("hold", "events", "report", "--at", at, "--for", "7d")
    assert (placed["outcome"], placed["since_text"]) == ("applied", at)
    shell.ok("compact", "events")
    assert row_count(shell, at) == 3
    assert shell.json("status", "events")["since_text"] == at
    assert [(one["hold"], one["holds"]) for one in shell.json("hold", "events")["holds"]] == [("report", True)]
    shell.ok("release", "events", "report")
    shell.ok("compact", "events")
    assert shell.json("status", "events")["since_text"] == "2024-01-07T23:59:59.999999Z"
    assert "no hold" in shell.ok("hold", "events").out


def test_holds_are_named_and_released_by_name(events: Shell) -> None:
    assert "must match" in events.refused("hold", "events", "Not A Name")
    refused = events.refused("hold", "events", "derived.totals")
    assert "hold name 'derived.totals': names that begin with 'derived.' belong to derived collections" in refused
    assert "name the hold" in events.refused("hold", "events", "--at", "2024-01-01", code=2)
    events.ok("hold", "events", "one")
    assert hold_name("derived.mine.scheduled").startswith("h-derived.mine.scheduled-")
    refused = events.refused("release", "events", "two")
    assert "no batch and no hold is called 'two'; quarantined: none; holds: one" in refused


def test_a_wrong_retention_is_refused_with_what_may_be_written(shell: Shell) -> None:
    for retention, said in {
        "weekly": "is no retention; write all, full_merge",
        "{tiered: 7}": "write {tiered: {keep_recent: 7}}",
        "{tiered: {keep_recent: 0}}": "keep_recent is 0; it must be 1 to 1000",
        "[{keep: 1h}, {keep: 1d}]": "only the last may lack `for`",
        "[{keep: 7h, for: 1d}, {keep: 12h}]": "divide each other",
        "[{for: 1d}]": "a step of a ladder is",
    }.items():
        refused = shell.refused("init", shell.declared(EVENTS + f"retention: {retention}\n"))
        assert said in refused, refused


def test_adaptive_keeps_what_is_asked_for(shell: Shell) -> None:
    """Somebody asks for day 2 and for the newest: since stays at what was asked."""
    full(shell, "adaptive")
    row_count(shell, "2024-01-02T12:00:00Z")
    shell.json("as-of", "events")
    shell.ok("compact", "events")
    assert shell.json("status", "events")["since_text"] == "2024-01-02T12:00:00Z"
    assert row_count(shell, "2024-01-02T12:00:00Z") == 2


def test_a_derived_collections_hold_that_is_released_comes_back_with_its_next_run(sums: Shell) -> None:
    """The run computes all where the input has merged what it still needed."""
    sums.ok("init", sums.declared(EVENTS + "retention: full_merge\nlive_batches: 2\n"))
    for day in (2, 3):
        sums.events(day, f"a,{day},10:00")
        sums.moved("events", f"2024-01-0{day}")
    assert sums.json("status", "events")["since_text"] <= "2024-01-01T23:59:59.999999Z"
    sums.ok("release", "events", "derived.sums")
    sums.ok("compact", "events")
    sums.ok("gate", "events", "compaction")
    assert sums.json("status", "events")["since_text"] == "2024-01-03T23:59:59.999999Z"
    moved(sums)
    (hold,) = sums.json("hold", "events")["holds"]
    assert (hold["hold"], hold["since_text"]) == ("derived.sums", "2024-01-03T23:59:59.999999Z")
    assert [row["amount"] for row in sums.json("as-of", "sums")["rows"]] == [6, 2]
    assert "corrected to 2024-01-04T00:00:00Z, whole (" in sums.ok("log", "sums").out
